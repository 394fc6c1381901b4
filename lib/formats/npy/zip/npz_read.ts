/**
 * Opens an npz archive: checks the directory, local headers and array headers. Stored members are ranges of the file;
 * deflated members are inflated when they are read. Only a check verifies checksums, because they need all data.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { ReadOptions, ReadResult } from '../../format.js'
import { Report } from '../../report.js'
import { TensorArray } from '../../tensor_list.js'
import { tensorOf } from '../array.js'
import { FORMAT_NAME } from './npz_schema.js'
import { walkArrays } from './npz_walk.js'

/**
 * Tensors are in the order of the directory and have numpy's names: the member names without `.npy`. Members that are not
 * arrays are findings and no tensors, and in lenient so are arrays of unsupported types.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  // The list is undefined only where the report has thrown.
  const made = await walkArrays(source, limits, report, ({ array, source: content, start }) =>
    array ? tensorOf(array.header, content, start, array.name) : undefined,
  )
  const tensors = (made ?? []).filter((tensor) => tensor !== undefined)
  return { tensors: new TensorArray(tensors), findings: report.findings() }
}
