/** Opens an IR: reads its XML file, and of the weights only how many bytes there are. */
import type { ByteSource } from '../../bytes/source.js'
import { Budget } from '../../formats/budget.js'
import type { ReadOptions, ReadResult } from '../../formats/format.js'
import { walkIr } from '../../formats/openvino/constants.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from '../../formats/openvino/schema.js'
import { Report } from '../../formats/report.js'
import { OpenvinoModel } from './model.js'
import { SummaryVisitor } from './summary.js'

/**
 * Tensors are the constants of the main graph and of all bodies, in file order, by their names; those of a body start with the
 * name of its layer and that of the body: `loop/body/w`. Of constants with one name the second is `NAME#ID`, with the layer's id.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(
  source: ByteSource,
  { level, limits, sibling }: ReadOptions,
): Promise<ReadResult & { readonly model: OpenvinoModel }> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  const budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  const visitor = new SummaryVisitor(budget)
  // A walk is undefined only where the report has thrown.
  const walked = (await walkIr(source, visitor, {
    budget,
    report,
    sibling,
    needsWeights: level === 'strict',
  }))!
  const model = new OpenvinoModel(walked, visitor.finish(walked))
  return { tensors: model.tensors, findings: report.findings(), model }
}
