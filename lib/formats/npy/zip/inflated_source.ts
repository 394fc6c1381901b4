/**
 * A deflated member as a source. Deflate can only be read from the front, so there is one stream that goes forward; a
 * read behind it starts a new one. Who reads backwards once will do so again: then the whole is kept, if it is
 * small enough. What comes out is held to the declared length, so a bomb ends where it lies.
 */
import { checkRange } from '../../../bytes/check_range.js'
import type { ByteSource } from '../../../bytes/source.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { type Deflated, InflateStream, inflateAtOnce } from './inflate.js'

/** Up to this length a member is inflated as a whole whenever it is read: starting a stream costs more. */
const SMALL_BYTES = 64 * 1024

/** Streams of one archive that may stand open: each holds some 100 KiB, and archives have thousands of members. */
const MAX_STREAMS = 8

/** Bytes of one archive that may be kept inflated, over all members. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024

/** What the members of one archive share: a bound on streams and on memory. Those used longest ago give way. */
export class InflatePool {
  readonly #running = new Set<InflatedSource>()
  readonly #kept = new Map<InflatedSource, Uint8Array>()
  #keptBytes = 0

  /** The stream of `source` runs; may stop that of another that nobody reads at the moment. */
  runs(source: InflatedSource): void {
    this.#running.delete(source)
    this.#running.add(source)
    if (this.#running.size <= MAX_STREAMS) return
    for (const other of this.#running) {
      if (other.isReading) continue
      other.stop()
      break
    }
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

export class InflatedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #deflated: Deflated
  readonly #pool: InflatePool
  #stream: InflateStream | undefined
  /** Where the last stream stood, also when it is gone. */
  #position = 0
  #unusedBytes = 0
  #isReading = false
  /** Reads go one after the other: there is one stream. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(deflated: Deflated, pool: InflatePool) {
    this.#deflated = deflated
    this.#pool = pool
    this.byteLength = deflated.byteLength
    this.label = `${deflated.source.label ?? 'archive'} ${deflated.path}`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = this.#last.then(() => this.#read(start, end))
    // Without its result, which would stay in memory until the next read.
    this.#last = bytes.then(
      () => undefined,
      () => undefined,
    )
    return bytes
  }

  /** Gives the stream back; the next read starts anew. */
  stop(): void {
    this.#stream?.destroy()
    this.#stream = undefined
    this.#pool.stopped(this)
  }

  /** As after opening: what was read so far does not count as a read backwards. */
  rewind(): void {
    this.stop()
    this.#position = 0
  }

  /** Bytes behind the compressed data that the member has and nobody needed, once it was read to its end. */
  get unusedBytes(): number {
    return this.#unusedBytes
  }

  /** True while bytes are taken from the stream, which must not be stopped then. */
  get isReading(): boolean {
    return this.#isReading
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const { source } = this.#deflated
    const pool = this.#pool
    // What is kept or under way would otherwise be given out after the file was closed.
    await source.read(this.#deflated.start, this.#deflated.start)
    if (start === end) return new Uint8Array(0)
    if (this.#isSmall) return (await this.#inflateAll()).subarray(start, end)
    const kept = pool.kept(this)
    if (kept) return kept.subarray(start, end)
    if (start < this.#position && pool.canKeep(this.byteLength)) {
      const whole = await this.#forward(0, this.byteLength)
      pool.keep(this, whole)
      return whole.subarray(start, end)
    }
    return this.#forward(start, end)
  }

  get #isSmall(): boolean {
    const { start, end } = this.#deflated
    return this.byteLength <= SMALL_BYTES && end - start <= SMALL_BYTES
  }

  async #inflateAll(): Promise<Uint8Array> {
    const { bytes, unusedBytes } = await inflateAtOnce(this.#deflated)
    this.#unusedBytes = unusedBytes
    return bytes
  }

  async #forward(start: number, end: number): Promise<Uint8Array> {
    if (!this.#stream || this.#stream.position > start) {
      this.stop()
      this.#stream = new InflateStream(this.#deflated)
    }
    const stream = this.#stream
    this.#isReading = true
    this.#pool.runs(this)
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
    } finally {
      this.#isReading = false
    }
  }
}
