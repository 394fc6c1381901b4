/**
 * Files of text under the name of a tensor format: a page of a server that said "not found", a pointer of a version
 * control system, a list. Readers report the number that the first letters make; what helps is to say that it is text.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { extname } from 'node:path'
import { TileworkError } from '../../index.js'

/** Enough to tell: every binary format has a NUL or another control character in its first numbers. */
const LOOK_BYTES = 512

// All control characters of ISO 6429 except tab, line feed, form feed and carriage return.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const BINARY = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/

/** An error that says so, where the reader of `format` failed at the text file `path`; else undefined. */
export function textFileError(path: string, format: string | undefined): TileworkError | undefined {
  // An index of a file of several parts is JSON; its reader knows better.
  if (format === undefined || extname(path) === '.json' || !isText(path)) return undefined
  const name = format === 'btf' ? 'BTF' : format
  const message = `${path} is not a ${name} file: it holds text.`
  return new TileworkError('ERR_UNKNOWN_FORMAT', message, { format })
}

function isText(path: string): boolean {
  try {
    const bytes = firstBytes(path)
    // `stream` accepts a character that the end of the look cuts.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return text !== '' && !BINARY.test(text)
  } catch {
    return false
  }
}

function firstBytes(path: string): Uint8Array {
  const descriptor = openSync(path, 'r')
  try {
    const bytes = new Uint8Array(LOOK_BYTES)
    return bytes.subarray(0, readSync(descriptor, bytes, 0, LOOK_BYTES, 0))
  } finally {
    closeSync(descriptor)
  }
}
