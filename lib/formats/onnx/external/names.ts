/**
 * Names of new external data files. Existing files are never overwritten: until the new model replaces the old one, the
 * old model needs its data, and other models in the folder may share it.
 */
import { lstat } from 'node:fs/promises'
import { basename, dirname, join, posix } from 'node:path'
import { checkNewSibling } from '../../../bytes/sibling.js'
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME, MAX_EXTERNAL_FILES, quote } from '../schema.js'

/**
 * Unused names for `count` data files.
 *
 * @param path - path of the model
 * @param location - the requested name, relative to the model's folder; default `<model>.data`
 * @throws TileworkError ERR_PATH_ESCAPE for a location outside of the folder, ERR_ARGUMENT for the name of the model,
 * ERR_LIMIT, ERR_IO
 */
export async function namesForData(
  path: string,
  location: string | undefined,
  count: number,
): Promise<readonly string[]> {
  if (count > MAX_EXTERNAL_FILES) {
    const message = `The values need ${count} files; the limit is ${MAX_EXTERNAL_FILES}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, path })
  }
  const wanted = location ?? `${basename(path)}.data`
  // onnxruntime reads `*/` as a memory address, and Windows reads a backslash as a folder separator.
  if (wanted.startsWith('*/') || wanted.includes('\\')) {
    const message = `location ${quote(wanted)} is not portable; it must not start with "*/" or contain a backslash.`
    throw new TileworkError('ERR_PATH_ESCAPE', message, { format: FORMAT_NAME, path })
  }
  await checkNewSibling(path, wanted)
  if (wanted.toLowerCase() === basename(path).toLowerCase()) {
    const message = `location ${quote(wanted)} is the model itself; external data needs another file.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  }
  for (let generation = 0; ; generation++) {
    const names = Array.from({ length: count }, (_, at) => nameOf(wanted, at, count, generation))
    const taken = await Promise.all(names.map((name) => isThere(join(dirname(path), name))))
    if (!taken.includes(true)) return names
  }
}

function nameOf(wanted: string, index: number, count: number, generation: number): string {
  const extension = posix.extname(wanted)
  const stem = wanted.slice(0, wanted.length - extension.length)
  const part = count === 1 ? '' : `-${fiveDigits(index + 1)}-of-${fiveDigits(count)}`
  return `${stem}${part}${generation === 0 ? '' : `-${generation}`}${extension}`
}

function fiveDigits(number: number): string {
  return String(number).padStart(5, '0')
}

/** True for dangling links as well. */
async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
