/** Inflates a member at once or as a stream, and enforces its declared length. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createInflateRaw, type InflateRaw, inflateRawSync } from 'node:zlib'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'

/** Bytes per read of compressed data, and per chunk of inflated data. */
const WINDOW_BYTES = 64 * 1024

export interface Deflated {
  readonly source: ByteSource
  /** Range of the compressed bytes in the source. */
  readonly start: number
  readonly end: number
  /** Declared length of the inflated data. */
  readonly byteLength: number
  /** Path for errors, for example `members[2]`. */
  readonly path: string
  /** Name of the format of the archive, for errors. */
  readonly format: string
}

/**
 * Inflates a small member at once.
 *
 * @throws TileworkError ERR_COMPRESSED, and what the source throws
 */
export async function inflateAtOnce(
  deflated: Deflated,
): Promise<{ readonly bytes: Uint8Array; readonly unusedBytes: number }> {
  const { source, start, end, byteLength } = deflated
  const compressed = await source.read(start, end)
  // zlib takes no maximum of 0; a surplus byte is detected below.
  const { buffer, engine } = inflateInfo(deflated, compressed, Math.max(1, byteLength))
  if (buffer.byteLength > byteLength) throw tooMuch(deflated)
  if (buffer.byteLength < byteLength) throw tooLittle(deflated, buffer.byteLength)
  return { bytes: buffer, unusedBytes: compressed.byteLength - engine.bytesWritten }
}

/** The result of zlib with `info: true`, which its types lack. */
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
  return damaged(deflated, `continue after the ${deflated.byteLength} declared bytes`)
}

function damaged({ path, start, format }: Deflated, how: string, cause?: unknown): TileworkError {
  return new TileworkError('ERR_COMPRESSED', `The compressed data of ${path} ${how}.`, {
    format,
    path,
    offset: start,
    ...(cause !== undefined && { cause }),
  })
}

/** A single forward pass over the inflated bytes of a member. */
export class InflateStream {
  /** Inflated bytes taken so far. */
  position = 0
  readonly #deflated: Deflated
  readonly #inflate: InflateRaw
  readonly #chunks: AsyncIterator<Buffer>
  /** Inflated bytes that are not taken yet. */
  #pending: Uint8Array = new Uint8Array(0)

  constructor(deflated: Deflated) {
    this.#deflated = deflated
    this.#inflate = createInflateRaw({ chunkSize: WINDOW_BYTES })
    const compressed = Readable.from(windows(deflated), { objectMode: false, highWaterMark: WINDOW_BYTES })
    // The iterator throws the same error, and it is reported there.
    pipeline(compressed, this.#inflate).catch(() => undefined)
    this.#chunks = this.#inflate[Symbol.asyncIterator]()
  }

  /** Compressed bytes after the end of the deflate stream. */
  get unusedBytes(): number {
    return this.#deflated.end - this.#deflated.start - this.#inflate.bytesWritten
  }

  /** Takes `count` bytes into `target`, or skips them where it is undefined. */
  async take(count: number, target: Uint8Array | undefined): Promise<void> {
    for (let done = 0; done < count; ) {
      if (this.#pending.byteLength === 0) {
        const next = await this.#next()
        if (!next) throw tooLittle(this.#deflated, this.position)
        this.#pending = next
      }
      const chunk = this.#pending.subarray(0, count - done)
      target?.set(chunk, done)
      done += chunk.byteLength
      this.position += chunk.byteLength
      this.#pending = this.#pending.subarray(chunk.byteLength)
    }
  }

  /** Checks that no more bytes follow. */
  async finish(): Promise<void> {
    if (this.#pending.byteLength > 0 || (await this.#next())) {
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
