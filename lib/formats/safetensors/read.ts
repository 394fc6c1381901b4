/** Opens a safetensors file, or an index with its shards: checks every header, and creates tensors on access. */
import type { ByteSource } from '../../bytes/source.js'
import { Budget } from '../budget.js'
import { FileHead } from '../file_head.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { isIndex } from './detect.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { walkIndex } from './shard_index.js'
import { FileTensors, ShardedTensors } from './tensor_list.js'
import { walkFile } from './walk.js'

/**
 * Reads the headers. Tensors have the names of the header and the metadata of their file. They are in the order of their bytes
 * in a plain file, and in the order of the weight map in an index.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(source: ByteSource, options: ReadOptions): Promise<ReadResult> {
  const { level, limits, sibling } = options
  const report = new Report(FORMAT_NAME, level, 'throw')
  const budget = new Budget(limits, DEFAULT_LIMITS)
  // The report throws for an invalid header, so the walk is always defined.
  if (await isIndex(await FileHead.read(source))) {
    const { files, fileOf } = (await walkIndex(source, budget, report, sibling))!
    return { tensors: new ShardedTensors(files, fileOf), findings: report.findings() }
  }
  const header = (await walkFile(source, budget, report))!
  return { tensors: new FileTensors({ source, header }), findings: report.findings() }
}
