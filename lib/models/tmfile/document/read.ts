/** Opens a tmfile: reads and checks every struct, and reads no weights. */
import type { ByteSource } from '../../../bytes/source.js'
import type { ReadOptions, ReadResult } from '../../../formats/format.js'
import { Report } from '../../../formats/report.js'
import { examineFile } from '../../../formats/tmfile/check.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import { buildModel } from './build_model.js'
import type { TmfileModel } from './model.js'
import { ModelTensors } from './tensors.js'

/**
 * Reads the structs of a file. `tensors` holds every tensor of the graph; activations have no data, and neither do
 * constants whose weights are not in the file.
 *
 * @throws TileworkError with the code of the first broken rule that the level does not allow
 */
export async function read(
  source: ByteSource,
  { level, limits }: ReadOptions,
): Promise<ReadResult & { readonly model: TmfileModel }> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  // A walk is incomplete only where the report throws.
  const records = (await examineFile(source, { limits, coverage: level === 'strict' }, report))!
  const model = buildModel(source, records)
  return { tensors: new ModelTensors(model), findings: report.findings(), model }
}
