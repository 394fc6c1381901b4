/** Inflates the bytes of a member, at once or window by window, and holds what comes out to the declared length. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createInflateRaw, type InflateRaw, inflateRawSync } from 'node:zlib'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME } from './zip_schema.js'

/** Compressed bytes that are read at a time, and inflated ones that are given on. */
const WINDOW_BYTES = 64 * 1024

export interface Deflated {
  readonly source: ByteSource
  /** The compressed bytes in the source. */
  readonly start: number
  readonly end: number
  /** Bytes that must come out. */
  readonly byteLength: number
  /** Name and place for errors, for example `members[2]`. */
  readonly path: string
}

/**
 * All bytes of a small member.
 *
 * @throws TileworkError ERR_COMPRESSED, and what the source throws
 */
export async function inflateAtOnce(
  deflated: Deflated,
): Promise<{ readonly bytes: Uint8Array; readonly unusedBytes: number }> {
  const { source, start, end, byteLength } = deflated
  const compressed = await source.read(start, end)
  // Zero is no length to zlib; one byte too many is then seen below.
  const { buffer, engine } = inflateInfo(deflated, compressed, Math.max(1, byteLength))
  if (buffer.byteLength > byteLength) throw tooMuch(deflated)
  if (buffer.byteLength < byteLength) throw tooLittle(deflated, buffer.byteLength)
  return { bytes: buffer, unusedBytes: compressed.byteLength - engine.bytesWritten }
}

/** What zlib gives for `info: true`, which its types do not have. */
interface Inflated {
  readonly buffer: Uint8Array
  readonly engine: { readonly bytesWritten: number }
}

function inflateInfo(deflated: Deflated, compressed: Uint8Array, maxOutputLength: number): Inflated {
  const options = { maxOutputLength, info: true }
  try {
    return inflateRawSync(compressed, options) as unknown as Inflated
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooMuch(deflated)
    throw damaged(deflated, `are damaged (${message})`, cause)
  }
}

function tooLittle(deflated: Deflated, position: number): TileworkError {
  return damaged(deflated, `end after ${position} bytes; ${deflated.byteLength} are declared`)
}

function tooMuch(deflated: Deflated): TileworkError {
  return damaged(deflated, `go on behind the ${deflated.byteLength} bytes that are declared`)
}

function damaged({ path, start }: Deflated, how: string, cause?: unknown): TileworkError {
  return new TileworkError('ERR_COMPRESSED', `The compressed data of ${path} ${how}.`, {
    format: FORMAT_NAME,
    path,
    offset: start,
    ...(cause !== undefined && { cause }),
  })
}

/** One way through the compressed bytes, from the front. */
export class InflateStream {
  /** Inflated bytes that were taken. */
  position = 0
  readonly #deflated: Deflated
  readonly #inflate: InflateRaw
  readonly #chunks: AsyncIterator<Buffer>
  /** What came and was not taken yet. */
  #rest: Uint8Array = new Uint8Array(0)

  constructor(deflated: Deflated) {
    this.#deflated = deflated
    this.#inflate = createInflateRaw({ chunkSize: WINDOW_BYTES })
    const compressed = Readable.from(windows(deflated), { objectMode: false, highWaterMark: WINDOW_BYTES })
    // Its error reaches the iterator too, where it is told.
    pipeline(compressed, this.#inflate).catch(() => undefined)
    this.#chunks = this.#inflate[Symbol.asyncIterator]()
  }

  /** Compressed bytes behind the end of the deflate stream. */
  get unusedBytes(): number {
    return this.#deflated.end - this.#deflated.start - this.#inflate.bytesWritten
  }

  /** Takes `count` bytes, into `target` or to nowhere. */
  async take(count: number, target: Uint8Array | undefined): Promise<void> {
    for (let done = 0; done < count; ) {
      if (this.#rest.byteLength === 0) {
        const chunk = await this.#next()
        if (!chunk) throw tooLittle(this.#deflated, this.position)
        this.#rest = chunk
      }
      const piece = this.#rest.subarray(0, count - done)
      target?.set(piece, done)
      done += piece.byteLength
      this.position += piece.byteLength
      this.#rest = this.#rest.subarray(piece.byteLength)
    }
  }

  /** Sees that nothing more comes. */
  async finish(): Promise<void> {
    if (this.#rest.byteLength > 0 || (await this.#next())) {
      throw tooMuch(this.#deflated)
    }
  }

  destroy(): void {
    this.#inflate.destroy()
  }

  async #next(): Promise<Uint8Array | undefined> {
    try {
      const { value, done } = await this.#chunks.next()
      return done ? undefined : value
    } catch (cause) {
      if (cause instanceof TileworkError) throw cause
      throw damaged(this.#deflated, `are damaged (${(cause as Error).message})`, cause)
    }
  }
}

async function* windows({ source, start, end }: Deflated): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; at += WINDOW_BYTES)
    yield await source.read(at, Math.min(end, at + WINDOW_BYTES))
}
