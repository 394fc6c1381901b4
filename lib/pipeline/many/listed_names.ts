/** A list of names from a stream, as `find` and other programs write it. */
import { TileworkError } from '../../errors.js'
import { type Chunks, splitRecords } from './records.js'

/** Eight times the longest path of Linux: what is longer is no list of names but a file of something else. */
const MAX_NAME_BYTES = 32 * 1024

const LINE_FEED = 0x0a
const NUL = 0x00

/**
 * The names of a stream: one a line, or each ended by a NUL byte, which allows names with line breaks. Empty names are
 * left out. Names are taken literally, never as patterns.
 *
 * @throws TileworkError ERR_ARGUMENT for bytes that are no UTF-8 or hold NUL bytes in lines; ERR_LIMIT for names of
 * more than 32 KiB
 */
export async function* listedNames(chunks: Chunks, isNulEnded: boolean): AsyncGenerator<string> {
  // Without `ignoreBOM` a name that begins with a byte order mark would lose it.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let position = 0
  for await (const { bytes } of splitRecords(chunks, isNulEnded ? NUL : LINE_FEED, MAX_NAME_BYTES)) {
    position++
    if (bytes === undefined) {
      const limit = `${MAX_NAME_BYTES} bytes`
      throw new TileworkError('ERR_LIMIT', `Name ${position} of the list is longer than ${limit}.`)
    }
    if (bytes.includes(NUL)) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `Line ${position} of the list has NUL bytes; read it with --null.`,
      )
    }
    const name = decode(decoder, bytes, position)
    if (name !== '') yield name
  }
}

function decode(decoder: { decode(bytes: Uint8Array): string }, bytes: Buffer, position: number): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new TileworkError('ERR_ARGUMENT', `Name ${position} of the list is not UTF-8.`, { cause })
  }
}
