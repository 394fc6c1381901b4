/** Reads a list of paths from a stream, in the form that `find` and other programs write. */
import { checkFlag, checkOptions, readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { type ByteChunks, splitRecords } from './records.js'

/** Eight times the longest path on Linux: a longer record means that the stream is not a list of paths. */
const MAX_PATH_BYTES = 32 * 1024

const LINE_FEED = 0x0a
const NUL = 0x00

export interface PathListOptions {
  /** Paths end with NUL bytes, as `find -print0` writes them, and may contain line breaks. Default: one path a line. */
  readonly nul?: boolean
}

/**
 * The paths of a list in a stream, as inputs for `convertMany`. They are never interpreted as patterns. Empty lines are skipped.
 *
 * @throws TileworkError ERR_ARGUMENT for bytes that are not UTF-8 and for NUL bytes in lines; ERR_LIMIT for paths longer
 * than 32 KiB
 */
export async function* readPathList(
  stream: ByteChunks,
  options: PathListOptions = {},
): AsyncGenerator<{ readonly path: string }> {
  const nul = checkArguments(stream, options)
  // Without `ignoreBOM` a path that begins with a byte order mark would lose it.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let position = 0
  for await (const { bytes } of splitRecords(stream, nul ? NUL : LINE_FEED, MAX_PATH_BYTES)) {
    position++
    if (bytes === undefined) {
      throw new TileworkError(
        'ERR_LIMIT',
        `Path ${position} of the list is longer than ${MAX_PATH_BYTES} bytes.`,
      )
    }
    if (bytes.includes(NUL)) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `Line ${position} of the list has NUL bytes; read it with the option nul.`,
      )
    }
    const path = decode(decoder, bytes, position)
    if (path !== '') yield { path }
  }
}

/** @returns whether paths end with NUL bytes */
function checkArguments(stream: unknown, options: PathListOptions): boolean {
  checkOptions(options, 'readPathList', ['nul'])
  return readInput('The arguments of readPathList', () => {
    const nul = checkFlag(options.nul ?? false, 'nul')
    if (typeof (stream as Partial<ByteChunks> | null)?.[Symbol.asyncIterator] === 'function') return nul
    throw new TileworkError('ERR_ARGUMENT', `The list is ${valueText(stream)}; it must be a byte stream.`)
  })
}

function decode(decoder: { decode(bytes: Uint8Array): string }, bytes: Buffer, position: number): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new TileworkError('ERR_ARGUMENT', `Path ${position} of the list is not UTF-8.`, { cause })
  }
}
