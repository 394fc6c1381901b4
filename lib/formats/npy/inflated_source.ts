/**
 * A deflated member as a source. Deflate can only be read from the front, so there is one stream that goes forward; a
 * read behind it starts a new one. Who reads backwards once will do so again: then the whole is kept, if it is
 * small enough. What comes out is held to the declared length, so a bomb ends where it lies.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createInflateRaw, type InflateRaw } from 'node:zlib'
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { TileworkError } from '../../errors.js'
import { FORMAT_NAME } from './zip_schema.js'

/** Compressed bytes that are read at a time, and inflated ones that are given on. */
const WINDOW_BYTES = 64 * 1024

/** Streams of one archive that may stand open: each holds some 100 KiB, and archives have thousands of members. */
const MAX_STREAMS = 8

/** Bytes of one archive that may be kept inflated, over all members. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024

/** What the members of one archive share: a bound on streams and on memory. Those used longest ago give way. */
export class InflatePool {
  readonly #running = new Set<InflatedSource>()
  readonly #kept = new Map<InflatedSource, Uint8Array>()
  #keptBytes = 0

  /** The stream of `source` runs; may stop that of another. */
  runs(source: InflatedSource): void {
    this.#running.delete(source)
    this.#running.add(source)
    const [oldest] = this.#running
    if (this.#running.size > MAX_STREAMS && oldest) oldest.stop()
  }

  stopped(source: InflatedSource): void {
    this.#running.delete(source)
  }

  canKeep(byteLength: number): boolean {
    return byteLength <= MAX_KEPT_BYTES
  }

  keep(source: InflatedSource, bytes: Uint8Array): void {
    this.#kept.set(source, bytes)
    this.#keptBytes += bytes.byteLength
    for (const [other, otherBytes] of this.#kept) {
      if (this.#keptBytes <= MAX_KEPT_BYTES) break
      this.#kept.delete(other)
      this.#keptBytes -= otherBytes.byteLength
    }
  }

  kept(source: InflatedSource): Uint8Array | undefined {
    return this.#kept.get(source)
  }
}

export interface Deflated {
  readonly source: ByteSource
  /** The compressed bytes in the source. */
  readonly start: number
  readonly end: number
  /** Bytes that must come out. */
  readonly byteLength: number
  /** Name and place for errors, for example `members[2]`. */
  readonly path: string
  readonly pool: InflatePool
}

export class InflatedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #deflated: Deflated
  #stream: InflateStream | undefined
  /** Where the last stream stood, also when it is gone. */
  #position = 0
  #unusedBytes = 0
  /** Reads go one after the other: there is one stream. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(deflated: Deflated) {
    this.#deflated = deflated
    this.byteLength = deflated.byteLength
    this.label = `${deflated.source.label ?? 'archive'} ${deflated.path}`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = this.#last.then(() => this.#read(start, end))
    this.#last = bytes.catch(() => undefined)
    return bytes
  }

  /** Gives the stream back; the next read starts anew. */
  stop(): void {
    this.#stream?.destroy()
    this.#stream = undefined
    this.#deflated.pool.stopped(this)
  }

  /** As after opening: what was read so far does not count as a read backwards. */
  rewind(): void {
    this.stop()
    this.#position = 0
  }

  /** Bytes behind the compressed data that the member has and the stream did not need, once it was read to its end. */
  get unusedBytes(): number {
    return this.#unusedBytes
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const { source, pool } = this.#deflated
    // What is kept or under way would otherwise be given out after the file was closed.
    await source.read(this.#deflated.start, this.#deflated.start)
    if (start === end) return new Uint8Array(0)
    const kept = pool.kept(this)
    if (kept) return kept.subarray(start, end)
    if (start < this.#position && pool.canKeep(this.byteLength)) {
      const whole = await this.#forward(0, this.byteLength)
      pool.keep(this, whole)
      return whole.subarray(start, end)
    }
    return this.#forward(start, end)
  }

  async #forward(start: number, end: number): Promise<Uint8Array> {
    if (!this.#stream || this.#stream.position > start) {
      this.stop()
      this.#stream = new InflateStream(this.#deflated)
    }
    const stream = this.#stream
    this.#deflated.pool.runs(this)
    try {
      await stream.take(start - stream.position, undefined)
      const bytes = allocateBytes(end - start)
      await stream.take(bytes.byteLength, bytes)
      this.#position = end
      if (end === this.byteLength) {
        await stream.finish()
        this.#unusedBytes = stream.unusedBytes
        this.stop()
      }
      return bytes
    } catch (error) {
      this.stop()
      throw error
    }
  }
}

/** One way through the compressed bytes, from the front. */
class InflateStream {
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
        if (!chunk)
          throw this.#damaged(`end after ${this.position} bytes; ${this.#deflated.byteLength} are declared`)
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
      throw this.#damaged(`go on behind the ${this.#deflated.byteLength} bytes that are declared`)
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
      throw this.#damaged(`are damaged (${(cause as Error).message})`, cause)
    }
  }

  #damaged(how: string, cause?: unknown): TileworkError {
    const { path, start } = this.#deflated
    return new TileworkError('ERR_COMPRESSED', `The compressed data of ${path} ${how}.`, {
      format: FORMAT_NAME,
      path,
      offset: start,
      ...(cause !== undefined && { cause }),
    })
  }
}

async function* windows({ source, start, end }: Deflated): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; at += WINDOW_BYTES)
    yield await source.read(at, Math.min(end, at + WINDOW_BYTES))
}
