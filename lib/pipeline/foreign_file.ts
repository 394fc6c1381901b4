/**
 * Names the kind of files that tilework does not read, for better errors: instead of a wrong number, which is the first letters
 * of an HTML page, the error says that the file is an HTML page.
 */
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import { FileHead } from '../formats/file_head.js'
import { type ForeignKind, foreignKind } from '../formats/foreign_files.js'
import { type DetectedFormat, FORMATS } from './registry.js'

/** The error for an input that no format reads. */
export async function unknownFormatError(source: ByteSource): Promise<TileworkError> {
  const label = source.label ?? 'the input'
  if (source.byteLength === 0) {
    return new TileworkError('ERR_TRUNCATED', `${label} is empty; ${formatsSentence()}`)
  }
  const head = await headOf(source)
  const kind = head && foreignKind(head)
  const what = kind ? kindText(kind) : 'of no format that is known here'
  return new TileworkError('ERR_UNKNOWN_FORMAT', `${label} is ${what}; ${formatsSentence()}`)
}

/** The error for an input that a reader refused, if it is of another known kind. */
export async function foreignFileError(
  source: ByteSource,
  { entry, detection }: DetectedFormat,
): Promise<TileworkError | undefined> {
  // The content matches the format, so the reader's error is better.
  if (detection !== undefined) return undefined
  const head = await headOf(source)
  const kind = head && foreignKind(head)
  if (!kind || (kind.isZip && entry.name === 'npz')) return undefined
  if (kind.isPickle && entry.name === 'pytorch') return undefined
  // The caller named the format, and nothing was detected before.
  if ((await entry.detect(head)) !== false) return undefined
  const label = source.label ?? 'the input'
  // An index of shards is JSON, and its reader's error is better.
  if (kind.isJson && label.endsWith('.json')) return undefined
  const name = entry.name === 'btf' ? 'BTF' : entry.name
  const message = `${label} is not a file of the format ${name}: it is ${kindText(kind)}; ${formatsSentence()}`
  return new TileworkError('ERR_UNKNOWN_FORMAT', message, { format: entry.name })
}

/** The start of an input; undefined where it cannot be read, which the reader's own error describes. */
async function headOf(source: ByteSource): Promise<FileHead | undefined> {
  try {
    return await FileHead.read(source)
  } catch {
    return undefined
  }
}

function kindText({ name, advice }: ForeignKind): string {
  return advice === undefined ? name : `${name} (${advice})`
}

function formatsSentence(): string {
  const names = Object.keys(FORMATS)
  return `the formats that are read are ${names.slice(0, -1).join(', ')} and ${names.at(-1)}.`
}
