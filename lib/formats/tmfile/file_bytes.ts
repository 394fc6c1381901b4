/**
 * Random access to the structs of a file: small pages, so that the records between the weights of a large model cost a
 * few bytes each and the weights nothing; a bound on all that is read, so that structs which share bytes cannot make a
 * small file a large model.
 */
import { lostBytesError } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import type { Limits } from '../format.js'
import type { Place, Report } from '../report.js'
import { ALIGNMENT, DEFAULT_HEADER_BYTES_LIMIT, HEADER_BYTES_LIMIT_IN_FILES } from './schema.js'

/** A page of the system: less would be read all the same. */
const PAGE_BYTES = 4096

/** Pages that are kept: those of a node, its operator and its names lie together. */
const KEPT_PAGES = 64

/** Pages that are read before others may have their turn: less than a millisecond of a disk that has them in memory. */
const FETCHES_OF_A_TURN = 64

/** What a tiny file may read beside the limit in file sizes: the same few structs several times. */
const LEAST_LIMIT_BYTES = 4096

/** Bytes that a reading needs before it can go on. */
interface Need {
  readonly start: number
  readonly end: number
}

/**
 * Reading that stops where bytes are not in memory yet, and goes on when they are. Most structs lie on a page that is
 * there: a promise for each of them would cost more than reading it.
 */
export type Reading<T> = Generator<Need, T, void>

export class FileBytes {
  readonly byteLength: number
  readonly #source: ByteSource
  readonly #report: Report
  readonly #limit: number
  readonly #pages = new Map<number, Uint8Array>()
  /** The last range that lies on several pages. */
  #span: { readonly start: number; readonly bytes: Uint8Array } | undefined
  #spent = 0
  #fetches = 0

  constructor(source: ByteSource, limits: Limits, report: Report) {
    this.byteLength = source.byteLength
    this.#source = source
    this.#report = report
    const shared = Math.max(LEAST_LIMIT_BYTES, HEADER_BYTES_LIMIT_IN_FILES * source.byteLength)
    this.#limit = limits.headerBytes ?? Math.min(DEFAULT_HEADER_BYTES_LIMIT, shared)
  }

  /** Runs a reading to its end. */
  async run<T>(reading: Reading<T>): Promise<T> {
    let step = reading.next()
    while (!step.done) {
      await this.#fetch(step.value)
      step = reading.next()
    }
    return step.value
  }

  /**
   * The bytes of a struct; undefined where they do not lie in the file, or are too many, which is reported.
   *
   * @param what - names the struct at the start of a sentence
   */
  *load(at: number, byteLength: number, what: string, place: Place): Reading<DataView | undefined> {
    if (at === 0 || at > this.byteLength) {
      const why =
        at === 0 ? 'its offset is not set' : `its offset ${at} is behind the file's ${this.byteLength} bytes`
      this.#report.broken('ERR_OFFSET_RANGE', `${what} is missing: ${why}.`, place)
      return undefined
    }
    if (!this.#fits(at, byteLength, what, place) || !this.#spend(byteLength, what, place)) return undefined
    return yield* this.read(at, byteLength)
  }

  /** As `load`, for a struct or vector, which lies at a multiple of 4. */
  *loadAligned(at: number, byteLength: number, what: string, place: Place): Reading<DataView | undefined> {
    if (at % ALIGNMENT !== 0) {
      const message = `${what} lies at ${at}, which is no multiple of ${ALIGNMENT}.`
      this.#report.deviation('ERR_MISALIGNED', message, place)
    }
    return yield* this.load(at, byteLength, what, place)
  }

  /** Bytes that are known to lie in the file. */
  *read(at: number, byteLength: number): Reading<DataView> {
    // Nothing may lie anywhere, also behind the end.
    if (byteLength === 0) return new DataView(new ArrayBuffer(0))
    const index = Math.floor(at / PAGE_BYTES)
    const start = index * PAGE_BYTES
    if (at + byteLength <= start + PAGE_BYTES) {
      if (!this.#pages.has(index)) yield { start, end: Math.min(this.byteLength, start + PAGE_BYTES) }
      const page = this.#pages.get(index)!
      return new DataView(page.buffer, page.byteOffset + at - start, byteLength)
    }
    const isHeld = this.#span?.start === at && this.#span.bytes.byteLength === byteLength
    if (!isHeld) yield { start: at, end: at + byteLength }
    return new DataView(this.#span!.bytes.buffer, 0, byteLength)
  }

  async #fetch({ start, end }: Need): Promise<void> {
    // A copy: the bytes may be memory of the caller's, who may write to it between two looks.
    const bytes = new Uint8Array(await this.#read(start, end))
    if (start % PAGE_BYTES !== 0 || end - start > PAGE_BYTES) {
      this.#span = { start, bytes }
      return
    }
    if (this.#pages.size === KEPT_PAGES) this.#pages.delete(this.#pages.keys().next().value!)
    this.#pages.set(start / PAGE_BYTES, bytes)
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const bytes = await this.#bytesOf(start, end)
    if (bytes.byteLength !== end - start) throw lostBytesError(this.#source.label)
    return bytes
  }

  /** At once where the source can: the records between the weights of a model are a page each. */
  #bytesOf(start: number, end: number): Uint8Array | Promise<Uint8Array> {
    const isTurn = ++this.#fetches % FETCHES_OF_A_TURN === 0
    if (isTurn || end - start > PAGE_BYTES || !this.#source.readSync) return this.#source.read(start, end)
    return this.#source.readSync(start, end)
  }

  #fits(at: number, byteLength: number, what: string, place: Place): boolean {
    if (byteLength <= this.byteLength - at) return true
    const message = `${what} has ${byteLength} bytes at ${at} and the file ends at ${this.byteLength}.`
    this.#report.broken('ERR_TRUNCATED', message, place)
    return false
  }

  #spend(byteLength: number, what: string, place: Place): boolean {
    this.#spent += byteLength
    if (this.#spent <= this.#limit) return true
    const message = `All structs up to this one have ${this.#spent} bytes; limits.headerBytes is ${this.#limit}.`
    this.#report.broken('ERR_LIMIT', `${what} is one too many. ${message}`, place)
    return false
  }
}
