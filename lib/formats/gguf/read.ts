/** Opens a GGUF file with its shards: checks every header, and makes a tensor when one is asked for. */
import type { ByteSource } from '../../bytes/source.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { Budget } from '../budget.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { checkPaddings } from './data_cover.js'
import { GgufModel } from './model.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { walkShards } from './shards.js'

/**
 * Reads the headers. Tensors are in the order of the infos, those of the first shard first.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(
  source: ByteSource,
  { level, limits, sibling }: ReadOptions,
): Promise<ReadResult<AnyTensor> & { readonly model: GgufModel }> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  // A walk is undefined only where the report has thrown.
  const files = (await walkShards(source, new Budget(limits, DEFAULT_LIMITS), report, sibling))!
  if (level === 'strict') {
    for (const file of files) await checkPaddings(file.source, file.header.table, file.header, file.report)
  }
  const model = new GgufModel(files)
  return { tensors: model.tensors, findings: report.findings(), model }
}
