/**
 * Random access to the structs of a file: small pages, so that the records between the weights of a large model cost a
 * few bytes each and the weights nothing; a bound on all that is read, so that structs which share bytes cannot make a
 * small file a large model.
 */
import { lostBytesError } from '../../../bytes/check_range.js'
import { drive } from '../../../bytes/drive.js'
import { readInto } from '../../../bytes/read_into.js'
import type { ByteSource } from '../../../bytes/source.js'
import type { Limits } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { ALIGNMENT, DEFAULT_HEADER_BYTES_LIMIT, HEADER_BYTES_LIMIT_IN_FILES } from '../schema.js'

/** A page of the system: less would be read all the same. */
const PAGE_BYTES = 4096

/** Pages that are kept: those of a node, its operator and its names lie together. */
const KEPT_PAGES = 16

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
 * there: a promise for each of them, or a generator more, would cost more than reading it.
 */
export type Reading<T> = Generator<Need, T, void>

export class FileBytes {
  readonly byteLength: number
  readonly #source: ByteSource
  readonly #report: Report
  readonly #limit: number
  /** Pages by number, and the memory that they share: one for each would be more work for the collector than reading. */
  readonly #pages = new Map<number, Uint8Array>()
  readonly #memory: Uint8Array
  /** The last range that lies on several pages. */
  #span: { readonly start: number; readonly bytes: Uint8Array } | undefined
  #spent = 0
  #fetches = 0

  constructor(source: ByteSource, limits: Limits, report: Report) {
    this.byteLength = source.byteLength
    this.#source = source
    this.#report = report
    const pages = Math.min(KEPT_PAGES, Math.ceil(source.byteLength / PAGE_BYTES))
    this.#memory = new Uint8Array(pages * PAGE_BYTES)
    const shared = Math.max(LEAST_LIMIT_BYTES, HEADER_BYTES_LIMIT_IN_FILES * source.byteLength)
    this.#limit = limits.headerBytes ?? Math.min(DEFAULT_HEADER_BYTES_LIMIT, shared)
  }

  /** Runs a reading to its end. */
  run<T>(reading: Reading<T>): Promise<T> {
    return drive(reading, (need) => this.#fetch(need))
  }

  /**
   * Whether a struct may be read; where it does not lie in the file, or is too much, that is reported.
   *
   * @param what - names the struct in a sentence, before its place
   */
  admits(at: number, byteLength: number, what: string, place: Place): boolean {
    if (at !== 0 && at <= this.byteLength) {
      return this.#fits(at, byteLength, what, place) && this.#spend(byteLength, what, place)
    }
    const why =
      at === 0 ? 'its offset is not set' : `its offset ${at} is behind the file's ${this.byteLength} bytes`
    this.#report.broken('ERR_OFFSET_RANGE', `${titleOf(what, place)} is missing: ${why}.`, place)
    return false
  }

  /** As `admits`, for a struct or vector, which lies at a multiple of 4. */
  admitsAligned(at: number, byteLength: number, what: string, place: Place): boolean {
    if (at % ALIGNMENT !== 0) {
      const message = `${titleOf(what, place)} lies at ${at}, which is no multiple of ${ALIGNMENT}.`
      this.#report.deviation('ERR_MISALIGNED', message, place)
    }
    return this.admits(at, byteLength, what, place)
  }

  /** What a reading has to wait for before it may `view` bytes that lie in the file. */
  need(at: number, byteLength: number): Need | undefined {
    // Nothing may lie anywhere, also behind the end.
    if (byteLength === 0) return undefined
    if (!isOnOnePage(at, byteLength)) {
      const isHeld = this.#span?.start === at && this.#span.bytes.byteLength === byteLength
      return isHeld ? undefined : { start: at, end: at + byteLength }
    }
    const start = at - (at % PAGE_BYTES)
    if (this.#pages.has(start / PAGE_BYTES) || this.#fetchAtOnce(start)) return undefined
    return { start, end: this.#endOfPage(start) }
  }

  /** Bytes that nothing is to be waited for, until the next are asked for. */
  view(at: number, byteLength: number): DataView {
    if (byteLength === 0) return new DataView(new ArrayBuffer(0))
    if (!isOnOnePage(at, byteLength)) return new DataView(this.#span!.bytes.buffer, 0, byteLength)
    const page = this.#pages.get(Math.floor(at / PAGE_BYTES))!
    return new DataView(page.buffer, page.byteOffset + (at % PAGE_BYTES), byteLength)
  }

  /** Bytes that are known to lie in the file, until the next are asked for. */
  *read(at: number, byteLength: number): Reading<DataView> {
    const need = this.need(at, byteLength)
    if (need) yield need
    return this.view(at, byteLength)
  }

  #endOfPage(start: number): number {
    return Math.min(this.byteLength, start + PAGE_BYTES)
  }

  /** The records between the weights of a model are a page each; false where the source cannot, or others have a turn. */
  #fetchAtOnce(start: number): boolean {
    const isTurn = ++this.#fetches % FETCHES_OF_A_TURN === 0
    if (isTurn || !this.#source.readSync) return false
    const page = this.#newPage(start)
    if (this.#source.readIntoSync) this.#source.readIntoSync(start, page)
    else copyAll(this.#source.readSync(start, start + page.byteLength), page, this.#source.label)
    this.#pages.set(start / PAGE_BYTES, page)
    return true
  }

  // Always a copy: the bytes may be memory of the caller's, who may write to it between two looks.
  async #fetch({ start, end }: Need): Promise<void> {
    if (!isOnOnePage(start, end - start)) {
      const bytes = new Uint8Array(await this.#source.read(start, end))
      if (bytes.byteLength !== end - start) throw lostBytesError(this.#source.label)
      this.#span = { start, bytes }
      return
    }
    const page = this.#newPage(start)
    await readInto(this.#source, start, page)
    this.#pages.set(start / PAGE_BYTES, page)
  }

  /** Memory for a page: some that is left, or that of the oldest. */
  #newPage(start: number): Uint8Array {
    const capacity = this.#memory.byteLength / PAGE_BYTES
    let at = this.#pages.size * PAGE_BYTES
    if (this.#pages.size === capacity) {
      const [oldest, page] = this.#pages.entries().next().value!
      this.#pages.delete(oldest)
      at = page.byteOffset
    }
    return this.#memory.subarray(at, at + this.#endOfPage(start) - start)
  }

  #fits(at: number, byteLength: number, what: string, place: Place): boolean {
    if (byteLength <= this.byteLength - at) return true
    const message = `${titleOf(what, place)} has ${byteLength} bytes at ${at} and the file ends at ${this.byteLength}.`
    this.#report.broken('ERR_TRUNCATED', message, place)
    return false
  }

  #spend(byteLength: number, what: string, place: Place): boolean {
    this.#spent += byteLength
    if (this.#spent <= this.#limit) return true
    const message = `All structs up to this one have ${this.#spent} bytes; limits.headerBytes is ${this.#limit}.`
    this.#report.broken('ERR_LIMIT', `${titleOf(what, place)} is one too many. ${message}`, place)
    return false
  }
}

/** Names a struct at the start of a sentence. */
function titleOf(what: string, { path }: Place): string {
  return `The ${what} of ${path || 'the file'}`
}

function isOnOnePage(at: number, byteLength: number): boolean {
  return (at % PAGE_BYTES) + byteLength <= PAGE_BYTES
}

function copyAll(bytes: Uint8Array, target: Uint8Array, label: string | undefined): void {
  if (bytes.byteLength !== target.byteLength) throw lostBytesError(label)
  target.set(bytes)
}
