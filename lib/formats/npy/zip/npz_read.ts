/**
 * Opens an npz archive: checks directory, local headers and array headers. Stored members are ranges of the file;
 * deflated ones are inflated when they are read. Checksums are left to a check, because they cost reading everything.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { ReadOptions, ReadResult } from '../../format.js'
import { Report } from '../../report.js'
import { TensorArray } from '../../tensor_list.js'
import { tensorOf } from '../array.js'
import { walkMembers } from './npz_walk.js'
import { FORMAT_NAME } from './zip_schema.js'

/**
 * Tensors are named as numpy names the arrays: by the member without `.npy`, in the order of the directory. Members
 * that are no arrays, and in lenient arrays of types that cannot be read, are findings and no tensors.
 *
 * @throws TileworkError with the code of the first rule that the level does not let pass
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  // The list is missing only where the report has thrown.
  const contents = (await walkMembers(source, limits, report)) ?? []
  const tensors = contents.flatMap(({ array, source: content, start }) =>
    array ? [tensorOf(array.header, content, start, array.name)] : [],
  )
  return { tensors: new TensorArray(tensors), findings: report.findings() }
}
