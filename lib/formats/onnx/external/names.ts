/**
 * Names of new external data files. Files of other models are never overwritten. Until the new model replaces the old one,
 * the old model needs its data, so the new data have other names, unless the caller asks for the old name.
 */
import { lstat } from 'node:fs/promises'
import { basename, dirname, join, posix } from 'node:path'
import { checkNewSibling } from '../../../bytes/sibling.js'
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME, MAX_EXTERNAL_FILES, quote } from '../schema.js'
import { ownData } from './named_files.js'
import type { CheckedExternal } from './options.js'

/** A name, and whether a file that has it is replaced. */
export interface DataName {
  readonly name: string
  readonly replaces: boolean
}

/**
 * Names for `count` data files: unused ones, and with `location` also those of the data of the replaced model.
 *
 * @param path - path of the model
 * @param options - the requested name, relative to the model's folder, or the format that decides
 * @throws TileworkError ERR_PATH_ESCAPE for a location outside of the folder, ERR_ARGUMENT for the name of the model,
 * ERR_LIMIT, ERR_IO
 */
export async function namesForData(
  path: string,
  { location, format }: Pick<CheckedExternal, 'location' | 'format'>,
  count: number,
): Promise<readonly DataName[]> {
  if (count > MAX_EXTERNAL_FILES) {
    const message = `The values need ${count} files; the limit is ${MAX_EXTERNAL_FILES}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, path })
  }
  const wanted = location ?? defaultName(basename(path), format)
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
    const isTaken = await Promise.all(names.map((name) => isThere(join(dirname(path), name))))
    const taken = names.filter((_, at) => isTaken[at])
    const own = location !== undefined && taken.length > 0 ? await ownData(path, taken) : new Set()
    if (taken.every((name) => own.has(name))) {
      return names.map((name, at) => ({ name, replaces: isTaken[at]! }))
    }
  }
}

/** `model.onnx.data`, and `model.safetensors` as the Python package onnx-safetensors chooses it. */
function defaultName(model: string, format: CheckedExternal['format']): string {
  return format === 'raw' ? `${model}.data` : `${model.replace(/\.onnx$/i, '')}.safetensors`
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
