/**
 * Random access to the structs of a file through a small page cache: the records between the weights of a large model
 * cost one page each, and the weights are never read. Everything read counts towards a limit, so that structs that share
 * bytes cannot turn a small file into a huge model.
 */
import { lostBytesError } from '../../../bytes/check_range.js'
import { drive } from '../../../bytes/drive.js'
import { readInto } from '../../../bytes/fill_memory.js'
import type { ByteSource } from '../../../bytes/source.js'
import { Budget } from '../../budget.js'
import { rangeFault } from '../../exact_size.js'
import type { Limits } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { ALIGNMENT, DEFAULT_LIMITS } from '../schema.js'

/** The page size of the operating system: a smaller read costs the same. */
const PAGE_BYTES = 4096

/** The records of a node, its operator and its names are usually on the same few pages. */
const MAX_CACHED_PAGES = 16

/** Synchronous reads before a yield to the event loop: under 1 ms for pages in the file cache. */
const SYNC_FETCHES_PER_YIELD = 64

/** Bytes that a task needs before it can continue. */
interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * A read that suspends where bytes are not in memory yet, and resumes once they are. Most structs are on a cached page: a
 * promise for each of them would cost more than decoding it.
 */
export type ReadTask<T> = Generator<ByteRange, T, void>

export class PagedFile {
  readonly byteLength: number
  readonly budget: Budget
  readonly #source: ByteSource
  readonly #report: Report
  /** Page number to page. All pages share one allocation, which spares the garbage collector. */
  readonly #pages = new Map<number, Uint8Array>()
  readonly #memory: Uint8Array
  /** The last range that crossed a page boundary. */
  #span: { readonly start: number; readonly bytes: Uint8Array } | undefined
  #fetches = 0

  constructor(source: ByteSource, limits: Limits, report: Report) {
    this.byteLength = source.byteLength
    this.#source = source
    this.#report = report
    const pages = Math.min(MAX_CACHED_PAGES, Math.ceil(source.byteLength / PAGE_BYTES))
    this.#memory = new Uint8Array(pages * PAGE_BYTES)
    this.budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  }

  /** Runs a task to completion. */
  run<T>(task: ReadTask<T>): Promise<T> {
    return drive(task, (range) => this.#fetch(range))
  }

  /**
   * Whether a struct may be read. A range outside the file, or beyond the limit, is reported.
   *
   * @param what - names the struct in messages, for example `vector`
   */
  checkRange(offset: number, byteLength: number, what: string, place: Place): boolean {
    if (offset !== 0 && offset <= this.byteLength) {
      return this.#checkEnd(offset, byteLength, what, place) && this.#charge(byteLength, what, place)
    }
    const reason =
      offset === 0
        ? 'its offset is not set'
        : `its offset ${offset} is beyond the end of the file at ${this.byteLength}`
    this.#report.broken('ERR_OFFSET_RANGE', `${titleOf(what, place)} is missing: ${reason}.`, place)
    return false
  }

  /** Like `checkRange`, for a struct or vector, which must be aligned. */
  checkAlignedRange(offset: number, byteLength: number, what: string, place: Place): boolean {
    if (offset % ALIGNMENT !== 0) {
      const message = `${titleOf(what, place)} is at offset ${offset}, which is not a multiple of ${ALIGNMENT}.`
      this.#report.deviation('ERR_MISALIGNED', message, place)
    }
    return this.checkRange(offset, byteLength, what, place)
  }

  /** What a task must yield before it may `view` the range; undefined where the bytes are in memory. */
  missingRange(offset: number, byteLength: number): ByteRange | undefined {
    // An empty range may have any offset, even one beyond the end.
    if (byteLength === 0) return undefined
    if (!isOnOnePage(offset, byteLength)) {
      const isHeld = this.#span?.start === offset && this.#span.bytes.byteLength === byteLength
      return isHeld ? undefined : { start: offset, end: offset + byteLength }
    }
    const start = offset - (offset % PAGE_BYTES)
    if (this.#pages.has(start / PAGE_BYTES) || this.#fetchSync(start)) return undefined
    return { start, end: this.#endOfPage(start) }
  }

  /** The bytes of a range that is in memory. The view is valid until the next range is requested. */
  view(offset: number, byteLength: number): DataView {
    if (byteLength === 0) return new DataView(new ArrayBuffer(0))
    if (!isOnOnePage(offset, byteLength)) return new DataView(this.#span!.bytes.buffer, 0, byteLength)
    const page = this.#pages.get(Math.floor(offset / PAGE_BYTES))!
    return new DataView(page.buffer, page.byteOffset + (offset % PAGE_BYTES), byteLength)
  }

  /** The bytes of a range inside the file. The view is valid until the next range is requested. */
  *read(offset: number, byteLength: number): ReadTask<DataView> {
    const range = this.missingRange(offset, byteLength)
    if (range) yield range
    return this.view(offset, byteLength)
  }

  #endOfPage(start: number): number {
    return Math.min(this.byteLength, start + PAGE_BYTES)
  }

  /** Reads a page synchronously; false where the source cannot, or where it must yield to the event loop. */
  #fetchSync(start: number): boolean {
    const mustYield = ++this.#fetches % SYNC_FETCHES_PER_YIELD === 0
    if (mustYield || !this.#source.readSync) return false
    const page = this.#newPage(start)
    if (this.#source.readIntoSync) this.#source.readIntoSync(start, page)
    else copyAll(this.#source.readSync(start, start + page.byteLength), page, this.#source.label)
    this.#pages.set(start / PAGE_BYTES, page)
    return true
  }

  // Always a copy: the bytes may be the caller's memory, which the caller may change between two reads.
  async #fetch({ start, end }: ByteRange): Promise<void> {
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

  /** Memory for a page: unused memory, or the memory of the oldest page. */
  #newPage(start: number): Uint8Array {
    const capacity = this.#memory.byteLength / PAGE_BYTES
    let memoryOffset = this.#pages.size * PAGE_BYTES
    if (this.#pages.size === capacity) {
      const [oldest, page] = this.#pages.entries().next().value!
      this.#pages.delete(oldest)
      memoryOffset = page.byteOffset
    }
    return this.#memory.subarray(memoryOffset, memoryOffset + this.#endOfPage(start) - start)
  }

  #checkEnd(offset: number, byteLength: number, what: string, place: Place): boolean {
    const fault = rangeFault(offset, byteLength, this.byteLength)
    if (fault === undefined) return true
    this.#report.broken('ERR_TRUNCATED', `${titleOf(what, place)} ${fault}.`, place)
    return false
  }

  #charge(byteLength: number, what: string, place: Place): boolean {
    const excess = this.budget.spend('headerBytes', byteLength)
    if (excess === undefined) return true
    this.#report.broken('ERR_LIMIT', `${titleOf(what, place)} exceeds the limit. ${excess}`, place)
    return false
  }
}

/** Names a struct at the start of a sentence. A path may name it already: `root`, or `nodes[3]` for a node. */
function titleOf(what: string, { path }: Place): string {
  if (path === what) return `The ${what}`
  const last = path.slice(path.lastIndexOf('.') + 1)
  if (last === what || last.startsWith(`${what}s[`)) return path
  return `The ${what} of ${path || 'the file'}`
}

function isOnOnePage(offset: number, byteLength: number): boolean {
  return (offset % PAGE_BYTES) + byteLength <= PAGE_BYTES
}

function copyAll(bytes: Uint8Array, target: Uint8Array, label: string | undefined): void {
  if (bytes.byteLength !== target.byteLength) throw lostBytesError(label)
  target.set(bytes)
}
