/**
 * Random access to the structs of a file through a small page cache: the records between the weights of a large model
 * cost one page each, and the weights are never read. Everything read counts towards a limit, so that structs that share
 * bytes cannot turn a small file into a huge model.
 */
import { lostBytesError } from '../../../bytes/check_range.js'
import { drive } from '../../../bytes/drive.js'
import { expectReads } from '../../../bytes/expected_reads.js'
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

/** A read that suspends where bytes are not in memory yet, and resumes once they are. */
export type ReadTask<T> = Generator<ByteRange, T, void>

/** Thrown by `view` for bytes that are not in memory; `attempt` fetches them and starts again. */
export class MissingBytes {
  constructor(readonly range: ByteRange) {}
}

export class PagedFile {
  readonly byteLength: number
  readonly budget: Budget
  readonly #source: ByteSource
  readonly #report: Report
  /** Page number to its memory. All pages share one allocation, which spares the garbage collector. */
  readonly #pages = new Map<number, Uint8Array>()
  readonly #memory: Uint8Array
  /** Ranges that cross a page boundary, by start, and pages that were fetched for the current record: it may need all of them. */
  readonly #spans = new Map<number, Uint8Array>()
  readonly #pinned = new Set<number>()
  #fetches = 0

  constructor(source: ByteSource, limits: Limits, report: Report) {
    this.byteLength = source.byteLength
    this.#source = source
    this.#report = report
    const pages = Math.min(MAX_CACHED_PAGES, Math.ceil(source.byteLength / PAGE_BYTES))
    // Not cleared: every page is read before it is used.
    this.#memory = Buffer.allocUnsafeSlow(pages * PAGE_BYTES)
    this.budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  }

  /** Runs a task to completion. */
  run<T>(task: ReadTask<T>): Promise<T> {
    return drive(task, (range) => this.#fetch(range))
  }

  /** Records will be read at these offsets, which usually ascend. */
  expect(offsets: Iterable<number>): void {
    expectReads(this.#source, { starts: pagesOf(offsets), byteLength: PAGE_BYTES })
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

  /**
   * Decodes one record with what it refers to, synchronously: almost all of its bytes are on pages in memory, and a generator or
   * a promise for each struct would cost more than decoding it. Where bytes are missing they are fetched, and `decode` runs again.
   */
  *attempt<T>(decode: () => T): ReadTask<T> {
    for (;;) {
      const result = this.tryDecode(decode, undefined)
      if (!(result instanceof MissingBytes)) return result
      yield result.range
    }
  }

  /** The result of `decode`, or what it misses. Findings and charges of a decoding that did not end are taken back. */
  tryDecode<T, Given>(decode: (given: Given) => T, given: Given): T | MissingBytes {
    const [charged, findings] = [this.budget.spent('headerBytes'), this.#report.mark()]
    try {
      const result = decode(given)
      this.#release()
      return result
    } catch (error) {
      if (!(error instanceof MissingBytes)) throw error
      this.budget.restore('headerBytes', charged)
      this.#report.restore(findings)
      return error
    }
  }

  /** What a task must yield before it may `view` the range; undefined where the bytes are in memory. */
  missingRange(offset: number, byteLength: number): ByteRange | undefined {
    // An empty range may have any offset, even one beyond the end.
    if (byteLength === 0) return undefined
    if (!isOnOnePage(offset, byteLength)) {
      const isHeld =
        this.#spans.get(offset)?.byteLength === byteLength || this.#fetchSpanSync(offset, byteLength)
      return isHeld ? undefined : { start: offset, end: offset + byteLength }
    }
    const start = offset - (offset % PAGE_BYTES)
    if (this.#pages.has(start / PAGE_BYTES) || this.#fetchSync(start)) return undefined
    return { start, end: this.#endOfPage(start) }
  }

  /**
   * The bytes of a range, valid until the next record is decoded.
   *
   * @throws MissingBytes where they are not in memory
   */
  view(offset: number, byteLength: number): DataView {
    const missing = this.missingRange(offset, byteLength)
    if (missing) throw new MissingBytes(missing)
    if (byteLength === 0) return new DataView(new ArrayBuffer(0))
    if (!isOnOnePage(offset, byteLength)) return new DataView(this.#spans.get(offset)!.buffer, 0, byteLength)
    const page = this.#pages.get(Math.floor(offset / PAGE_BYTES))!
    return new DataView(page.buffer, page.byteOffset + (offset % PAGE_BYTES), byteLength)
  }

  /** The bytes of a range inside the file. The view is valid until the next range is requested. */
  *read(offset: number, byteLength: number): ReadTask<DataView> {
    this.#release()
    const range = this.missingRange(offset, byteLength)
    if (range) yield range
    return this.view(offset, byteLength)
  }

  /** Ends the record whose pages may not be evicted. */
  #release(): void {
    if (this.#spans.size > 0) this.#spans.clear()
    if (this.#pinned.size > 0) this.#pinned.clear()
    for (const page of this.#pages.keys()) {
      if (this.#pages.size * PAGE_BYTES <= this.#memory.byteLength) break
      this.#pages.delete(page)
    }
  }

  #endOfPage(start: number): number {
    return Math.min(this.byteLength, start + PAGE_BYTES)
  }

  /** Whether the source may be read synchronously now, and not only after a yield to the event loop. */
  #mayReadSync(): boolean {
    const mustYield = ++this.#fetches % SYNC_FETCHES_PER_YIELD === 0
    return !mustYield && this.#source.readSync !== undefined
  }

  /** Reads a page synchronously; false where the source cannot, or where it must yield to the event loop. */
  #fetchSync(start: number): boolean {
    if (!this.#mayReadSync()) return false
    const page = this.#newPage(start)
    const target = page.subarray(0, this.#endOfPage(start) - start)
    if (this.#source.readIntoSync) this.#source.readIntoSync(start, target)
    else copyAll(this.#source.readSync!(start, start + target.byteLength), target, this.#source.label)
    this.#pages.set(start / PAGE_BYTES, page)
    return true
  }

  #fetchSpanSync(start: number, byteLength: number): boolean {
    if (!this.#mayReadSync()) return false
    this.#keepSpan(start, byteLength, this.#source.readSync!(start, start + byteLength))
    return true
  }

  #keepSpan(start: number, byteLength: number, read: Uint8Array): void {
    // A copy, in an allocation of its own.
    const bytes = new Uint8Array(read)
    if (bytes.byteLength !== byteLength) throw lostBytesError(this.#source.label)
    this.#spans.set(start, bytes)
  }

  // Always a copy: the bytes may be the caller's memory, which the caller may change between two reads.
  async #fetch({ start, end }: ByteRange): Promise<void> {
    if (!isOnOnePage(start, end - start)) {
      this.#keepSpan(start, end - start, await this.#source.read(start, end))
      return
    }
    const page = this.#newPage(start)
    await readInto(this.#source, start, page.subarray(0, this.#endOfPage(start) - start))
    this.#pages.set(start / PAGE_BYTES, page)
  }

  /** Memory for a page: unused memory, the memory of the oldest page that is not pinned, or more memory where all are. */
  #newPage(start: number): Uint8Array {
    this.#pinned.add(start / PAGE_BYTES)
    const used = this.#pages.size * PAGE_BYTES
    if (used < this.#memory.byteLength) return this.#memory.subarray(used, used + PAGE_BYTES)
    for (const [number, page] of this.#pages) {
      if (this.#pinned.has(number)) continue
      this.#pages.delete(number)
      return page
    }
    return new Uint8Array(PAGE_BYTES)
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

function* pagesOf(offsets: Iterable<number>): Generator<number> {
  for (const offset of offsets) yield offset - (offset % PAGE_BYTES)
}

function isOnOnePage(offset: number, byteLength: number): boolean {
  return (offset % PAGE_BYTES) + byteLength <= PAGE_BYTES
}

function copyAll(bytes: Uint8Array, target: Uint8Array, label: string | undefined): void {
  if (bytes.byteLength !== target.byteLength) throw lostBytesError(label)
  target.set(bytes)
}
