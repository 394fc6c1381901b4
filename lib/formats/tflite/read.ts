/** Opens a TFLite file: reads its tables, and no data but the indices of sparse tensors and of strings. */
import type { ByteSource } from '../../bytes/source.js'
import { Budget } from '../budget.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { tfliteTensors } from './tensor_list.js'
import { walkFile } from './walk.js'

/**
 * Tensors are those with data, in the order of the subgraphs, with their names: of equal ones the second is `name#2`, and those of
 * further subgraphs start with the subgraph's name and a slash. Sparse tensors are dense when they are read.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  const budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  // A walk is undefined only where the report has thrown.
  const { tensors, details } = (await walkFile(source, { budget, report }))!
  return { tensors: tfliteTensors(source, tensors), findings: report.findings(), details }
}
