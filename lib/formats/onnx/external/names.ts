/**
 * Names of new files of external data. A file that is there is never written over: until the new model takes its name, the
 * old one must find its own data, and other models of the folder may use them as well.
 */
import { lstat } from 'node:fs/promises'
import { basename, dirname, join, posix } from 'node:path'
import { checkNewSibling } from '../../../bytes/sibling.js'
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME, MAX_EXTERNAL_FILES, quote } from '../schema.js'

/**
 * @param path - of the model
 * @param location - what the user asks for, relative to the model's folder; default `<model>.data`
 * @throws TileworkError ERR_PATH_ESCAPE for a location that leads out of the folder, ERR_ARGUMENT for the model's own
 * name, ERR_LIMIT, ERR_IO
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
  // Such a location is a memory address to onnxruntime, and a back-slash is a folder elsewhere.
  if (wanted.startsWith('*/') || wanted.includes('\\')) {
    const message = `${quote(wanted)} is no location that every reader takes for a file of the model's folder.`
    throw new TileworkError('ERR_PATH_ESCAPE', message, { format: FORMAT_NAME, path })
  }
  await checkNewSibling(path, wanted)
  if (wanted.toLowerCase() === basename(path).toLowerCase()) {
    const message = `${quote(wanted)} is the model itself; its values need another file.`
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

/** Links to nowhere are there too. */
async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
