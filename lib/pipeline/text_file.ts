/**
 * Text files under the name of a tensor format: an error page of a server, a pointer file of a version control system,
 * a list. Readers report the number that the first letters make; the useful answer is that the file holds text.
 */
import { extname } from 'node:path'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import type { FormatEntry } from '../formats/format.js'

/** Enough to decide: every binary format has a NUL or another control character in its first numbers. */
const SAMPLE_BYTES = 512

// All control characters of ISO 6429 except tab, line feed, form feed and carriage return.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const BINARY = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/

/** An error for the file at `path`, which the reader of `format` refused, where it holds text; else undefined. */
export async function textFileError(
  source: ByteSource,
  path: string | undefined,
  format: FormatEntry,
): Promise<TileworkError | undefined> {
  // An index of shards is JSON, and its reader has the better message.
  if (path === undefined || extname(path) === '.json' || !(await isText(source))) return undefined
  const name = format.name === 'btf' ? 'BTF' : format.name
  const message = `${path} is not a ${name} file: it holds text.`
  return new TileworkError('ERR_UNKNOWN_FORMAT', message, { format: format.name })
}

async function isText(source: ByteSource): Promise<boolean> {
  try {
    const bytes = await source.read(0, Math.min(SAMPLE_BYTES, source.byteLength))
    // `stream` accepts a character that is cut at the end of the sample.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return text !== '' && !BINARY.test(text)
  } catch {
    return false
  }
}
