/** Walks the members of an archive in ascending order of offset and reads the header of each array. */
import { expectReads } from '../../../bytes/expected_reads.js'
import { ByteReader } from '../../../bytes/reader.js'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { Budget } from '../../budget.js'
import type { Limits } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { ArraySpan } from '../array_span.js'
import { type NpyHeader, readHeader } from '../header.js'
import { quote } from '../literal.js'
import { DEFAULT_LIMITS } from '../schema.js'
import { InflatedSource, InflatePool } from './inflated_source.js'
import { type Directory, type DirectoryEntry, readDirectory } from './zip_directory.js'
import { descriptorEnd, type Member, readLocalHeader } from './zip_member.js'
import { DEFAULT_NPZ_LIMITS, MEMBER_ENDING, STORED } from './zip_schema.js'

/** Bytes per read of a local header and the array header after it; one read covers several small arrays. */
const WINDOW_BYTES = 4096

/** A member and its uncompressed content. */
export interface Content extends Member {
  /** Contains the content from `start` to `end`. */
  readonly source: ByteSource
  readonly start: number
  readonly end: number
  /** Undefined for a member that is not an array, or one that cannot be read. */
  readonly array: NamedArray | undefined
}

export interface NamedArray {
  readonly name: string
  readonly header: NpyHeader
  readonly span: ArraySpan
}

/** What is kept of a member. */
interface Kept<Made> {
  readonly entry: DirectoryEntry
  readonly made: Made
}

/**
 * What `make` returns for each member, in the order of the directory; undefined when there is no directory, which is reported.
 * Members are made one by one: an archive may have more of them than memory has room for their contents.
 */
export async function walkMembers<Made>(
  source: ByteSource,
  limits: Limits,
  report: Report,
  make: (content: Content) => Made | Promise<Made>,
): Promise<Made[] | undefined> {
  const budget = new Budget(limits, DEFAULT_NPZ_LIMITS, source.byteLength)
  const directory = await readDirectory(source, budget, report)
  if (!directory) return undefined
  const walk = new Walk(source, directory, { budget, report, maxHeaderBytes: maxHeaderBytes(limits) })
  const byOffset = directory.entries.toSorted((one, other) => one.localOffset - other.localOffset)
  const starts = byOffset.map(({ localOffset }) => localOffset)
  expectReads(source, { starts, byteLength: WINDOW_BYTES })
  const kept: Kept<Made>[] = []
  for (const [position, entry] of byOffset.entries()) {
    const next = byOffset[position + 1]?.localOffset ?? directory.start
    const content = await walk.member(entry, next)
    if (walk.isOverLimit) return undefined
    if (content) kept.push({ entry, made: await make(content) })
  }
  walk.finish()
  kept.sort((one, other) => one.entry.index - other.entry.index)
  return withoutRepeated(kept, report).map(({ made }) => made)
}

/** Keeps the last of several members with one name, as numpy does. */
function withoutRepeated<Made>(kept: readonly Kept<Made>[], report: Report): Kept<Made>[] {
  const last = new Map<string, number>()
  for (const { entry } of kept) last.set(entry.name, entry.index)
  return kept.filter(({ entry }) => {
    if (last.get(entry.name) === entry.index) return true
    const place = { path: `members[${entry.index}]`, offset: entry.localOffset }
    const message = `${place.path} has the name ${quote(entry.name)} of a later member, which numpy reads instead.`
    report.deviation('ERR_DUPLICATE', message, place)
    return false
  })
}

class Walk {
  /** True once a limit is exceeded: the members read so far must not be used. */
  isOverLimit = false
  readonly #source: ByteSource
  readonly #directory: Directory
  readonly #budget: Budget
  /** Limit for the header of one array. */
  readonly #maxHeaderBytes: number
  readonly #report: Report
  readonly #reader: ByteReader
  readonly #pool = new InflatePool()
  /** End offset of all members so far; unknown after one that cannot be read. */
  #end: number | undefined = 0

  constructor(
    source: ByteSource,
    directory: Directory,
    { budget, maxHeaderBytes, report }: { budget: Budget; maxHeaderBytes: number; report: Report },
  ) {
    this.#source = source
    this.#directory = directory
    this.#budget = budget
    this.#maxHeaderBytes = maxHeaderBytes
    this.#report = report
    this.#reader = new ByteReader(source, WINDOW_BYTES)
  }

  async member(entry: DirectoryEntry, next: number): Promise<Content | undefined> {
    this.#checkGap(entry.localOffset)
    this.#end = undefined
    const member = await readLocalHeader(this.#reader, entry, next, this.#report)
    if (!member) return undefined
    const { place } = member
    this.#end = await descriptorEnd(this.#reader, member, next, this.#report)
    if (!this.#spend('headerBytes', member.dataStart - entry.localOffset, place)) return undefined
    const content = this.#open(member)
    const array = await this.#readArray(content)
    // The streams of members that are never read must not stay open.
    if (content.source instanceof InflatedSource) content.source.rewind()
    return { ...content, array }
  }

  finish(): void {
    this.#checkGap(this.#directory.start)
  }

  #checkGap(next: number): void {
    if (this.#end === undefined || next <= this.#end) return
    const message = `${next - this.#end} bytes at ${this.#end} belong to no member.`
    this.#report.deviation('ERR_GAP', message, { path: '', offset: this.#end })
  }

  #open(member: Member): Omit<Content, 'array'> {
    const { entry, dataStart, dataEnd, place } = member
    if (entry.method === STORED) return { ...member, source: this.#source, start: dataStart, end: dataEnd }
    const range = { start: dataStart, end: dataEnd, byteLength: entry.bytes }
    const source = new InflatedSource({ source: this.#source, ...range, path: place.path }, this.#pool)
    return { ...member, source, start: 0, end: entry.bytes }
  }

  async #readArray(content: Omit<Content, 'array'>): Promise<NamedArray | undefined> {
    const { entry, place, source } = content
    if (!entry.name.endsWith(MEMBER_ENDING)) {
      const message = `members[${entry.index}] (${quote(entry.name)}) is not an array: array names end in ${MEMBER_ENDING}.`
      this.#report.note('ERR_UNSUPPORTED', message, place)
      return undefined
    }
    const span = spanOf(content, this.#report)
    const reader = source === this.#source ? this.#reader : new ByteReader(source, WINDOW_BYTES)
    const header = await this.#readHeader(reader, span)
    if (!header || !this.#spend('headerBytes', header.headerBytes, place)) return undefined
    if (!this.#spend('totalBytes', header.dataBytes, place)) return undefined
    return { name: entry.name.slice(0, -MEMBER_ENDING.length), header, span }
  }

  async #readHeader(reader: ByteReader, span: ArraySpan): Promise<NpyHeader | undefined> {
    try {
      return await readHeader(reader, span, this.#maxHeaderBytes)
    } catch (error) {
      if (!(error instanceof TileworkError) || error.code !== 'ERR_COMPRESSED') throw error
      span.broken(error.code, error.message, 'header', 0)
      return undefined
    }
  }

  #spend(limit: 'headerBytes' | 'totalBytes', bytes: number, place: Place): boolean {
    const excess = this.#budget.spend(limit, bytes)
    if (excess === undefined) return true
    this.#report.broken('ERR_LIMIT', excess, place)
    this.isOverLimit = true
    return false
  }
}

/** The limit for the header of one array, which is far below the limit for all headers. */
function maxHeaderBytes(limits: Limits): number {
  return new Budget(limits, DEFAULT_LIMITS).limit('headerBytes')
}

/** Offsets in a stored member map to file offsets; in a deflated one only its start does. */
function spanOf({ entry, place, dataStart, start, end }: Omit<Content, 'array'>, report: Report): ArraySpan {
  const isStored = entry.method === STORED
  return new ArraySpan({
    start,
    end,
    report,
    member: { path: place.path, name: quote(entry.name) },
    offsetOf: (at) => (isStored ? dataStart + Math.min(at, entry.bytes) : dataStart),
  })
}
