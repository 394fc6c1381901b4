/** Checks that the writers of several formats make before they plan a file. */
import { DTYPES } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { DenseTensor, Tensor } from '../tensor/tensor.js'
import { exactByteLength, exactSizeOf } from './exact_size.js'
import type { WritePlan } from './format.js'

/** @throws TileworkError ERR_NO_DATA for a tensor without data, named `what` */
export function checkHasData({ hasData }: Pick<Tensor, 'hasData'>, what: string, format: string): void {
  if (!hasData) throw new TileworkError('ERR_NO_DATA', `${what} has no data in its file.`, { format })
}

/**
 * Checks that a tensor's storage is the array of `shape`: a caller's own tensor may declare both and mean neither.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkStorageBytes(
  { dtype, storage }: DenseTensor,
  shape: readonly number[],
  what: string,
  format: string,
): void {
  const needed = exactByteLength(exactSizeOf(shape).elements, DTYPES[dtype].bits)
  if (storage.byteLength === needed) return
  const message = `${what} has ${storage.byteLength} storage bytes; its shape [${shape}] needs ${needed}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format })
}

/**
 * Names for a format that identifies tensors by name. A tensor without a name gets `prefix` and its position, followed
 * by underscores where another tensor has that name. Names that two tensors share stay; the format refuses them.
 */
export function uniqueNames(names: readonly string[], prefix: string): string[] {
  const taken = new Set(names)
  return names.map((name, index) => {
    if (name !== '') return name
    let unique = `${prefix}${index}`
    while (taken.has(unique)) unique += '_'
    taken.add(unique)
    return unique
  })
}

/**
 * The `plan` of a format that is only read.
 *
 * @param advice - what to do instead, as the end of a sentence
 */
export function refuseWriting(format: string, advice: string): () => Promise<WritePlan> {
  return async () => {
    throw new TileworkError('ERR_UNSUPPORTED', `${format} files are read and not written; ${advice}.`, {
      format,
    })
  }
}
