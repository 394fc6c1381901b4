/**
 * A deflated member as a source. Deflate has no random access, so one stream moves forward and a read before its position
 * starts a new one. After one backward read others are likely, so a member that is small enough is then cached whole.
 * The declared length is enforced, which stops decompression bombs.
 */
import { checkRange } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { type Deflated, InflateStream, inflateAtOnce } from './inflate.js'

/** Up to this size every read inflates the whole member, which costs less than starting a stream. */
const SMALL_BYTES = 64 * 1024

/** Maximum open streams per archive: each holds about 100 KiB, and archives have thousands of members. */
const MAX_STREAMS = 8

/** Maximum inflated bytes that are cached per archive. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024

/** Bounds the streams and the cache that the members of an archive share; the least recently used are released. */
export class InflatePool {
  readonly #running = new Set<InflatedSource>()
  readonly #kept = new Map<InflatedSource, Uint8Array>()
  #keptBytes = 0

  /** Registers the running stream of `source`; may stop an idle stream of another member. */
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
  /** Position of the last stream, also after it has stopped. */
  #position = 0
  #unusedBytes = 0
  #isReading = false
  /** Serialises reads, because there is one stream. */
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
    // Drops the result, which would otherwise stay in memory until the next read.
    this.#last = bytes.then(
      () => undefined,
      () => undefined,
    )
    return bytes
  }

  /** Releases the stream; the next read starts a new one. */
  stop(): void {
    this.#stream?.destroy()
    this.#stream = undefined
    this.#pool.stopped(this)
  }

  /** Resets to the state after opening, so that the next read does not count as a backward read. */
  rewind(): void {
    this.stop()
    this.#position = 0
  }

  /** Unused bytes after the compressed data; known after a read to the end. */
  get unusedBytes(): number {
    return this.#unusedBytes
  }

  /** True while bytes are taken from the stream, which must not stop then. */
  get isReading(): boolean {
    return this.#isReading
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const { source } = this.#deflated
    const pool = this.#pool
    // Throws ERR_CLOSED: cached bytes must not outlive the file.
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
