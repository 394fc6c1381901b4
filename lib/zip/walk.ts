/** Walks the members of an archive in ascending order of offset, checks each against its neighbours, and opens its content. */
import { expectReads } from '../bytes/expected_reads.js'
import { ByteReader } from '../bytes/reader.js'
import type { ByteSource } from '../bytes/source.js'
import type { Budget } from '../formats/budget.js'
import type { Report } from '../formats/report.js'
import { type Directory, type DirectoryEntry, readDirectory } from './directory.js'
import { InflatedSource, InflatePool } from './inflated_source.js'
import { descriptorEnd, type Member, readLocalHeader } from './member.js'
import { STORED } from './schema.js'

/** Bytes per read of a local header and what follows it; one read covers several small members. */
export const WALK_WINDOW_BYTES = 4096

/** A member and its uncompressed content. */
export interface Content extends Member {
  /** Contains the content from `start` to `end`. */
  readonly source: ByteSource
  readonly start: number
  readonly end: number
  /** Reads `source`; of stored members it is the reader of the whole archive. */
  readonly reader: ByteReader
}

/** What is kept of a member. */
export interface Kept<Made> {
  readonly entry: DirectoryEntry
  readonly made: Made
}

export interface WalkOptions {
  /** Name of the format, for errors of compressed data. */
  readonly format: string
  readonly budget: Budget
  readonly report: Report
}

/**
 * What `make` returns for each member that can be read, in the order of the directory; undefined when there is no directory or
 * a limit is exceeded, which is reported. Members are made one by one: an archive may have more of them than memory has room
 * for their contents. A `make` that reads a deflated member rewinds it: streams of members that are never read again must not
 * stay open.
 */
export async function walkMembers<Made>(
  source: ByteSource,
  options: WalkOptions,
  make: (content: Content) => Made | Promise<Made>,
): Promise<Kept<Made>[] | undefined> {
  const { budget, report } = options
  const directory = await readDirectory(source, budget, report)
  if (!directory) return undefined
  const walk = new Walk(source, directory, options)
  const byOffset = directory.entries.toSorted((one, other) => one.localOffset - other.localOffset)
  const starts = byOffset.map(({ localOffset }) => localOffset)
  expectReads(source, { starts, byteLength: WALK_WINDOW_BYTES })
  const kept: Kept<Made>[] = []
  for (const [position, entry] of byOffset.entries()) {
    const next = byOffset[position + 1]?.localOffset ?? directory.start
    const content = await walk.member(entry, next)
    if (content) kept.push({ entry, made: await make(content) })
    // The members read so far must not be used.
    if (budget.left('headerBytes') < 0 || budget.left('totalBytes') < 0) return undefined
  }
  walk.finish()
  return kept.sort((one, other) => one.entry.index - other.entry.index)
}

class Walk {
  readonly #source: ByteSource
  readonly #directory: Directory
  readonly #options: WalkOptions
  readonly #reader: ByteReader
  readonly #pool = new InflatePool()
  /** End offset of all members so far; unknown after one that cannot be read. */
  #end: number | undefined = 0

  constructor(source: ByteSource, directory: Directory, options: WalkOptions) {
    this.#source = source
    this.#directory = directory
    this.#options = options
    this.#reader = new ByteReader(source, WALK_WINDOW_BYTES)
  }

  async member(entry: DirectoryEntry, next: number): Promise<Content | undefined> {
    const { budget, report } = this.#options
    this.#checkGap(entry.localOffset)
    this.#end = undefined
    const member = await readLocalHeader(this.#reader, entry, next, report)
    if (!member) return undefined
    this.#end = await descriptorEnd(this.#reader, member, next, report)
    const excess = budget.spend('headerBytes', member.dataStart - entry.localOffset)
    if (excess === undefined) return this.#open(member)
    report.broken('ERR_LIMIT', excess, member.place)
    return undefined
  }

  finish(): void {
    this.#checkGap(this.#directory.start)
  }

  #checkGap(next: number): void {
    if (this.#end === undefined || next <= this.#end) return
    const message = `${next - this.#end} bytes at ${this.#end} belong to no member.`
    this.#options.report.deviation('ERR_GAP', message, { path: '', offset: this.#end })
  }

  #open(member: Member): Content {
    const { entry, dataStart, dataEnd, place } = member
    if (entry.method === STORED) {
      const [source, reader] = [this.#source, this.#reader]
      // Named one by one: a spread takes a microsecond per property, and an archive may have a million members.
      return { entry, dataStart, dataEnd, place, source, start: dataStart, end: dataEnd, reader }
    }
    const range = { start: dataStart, end: dataEnd, byteLength: entry.bytes }
    const about = { path: place.path, format: this.#options.format }
    const source = new InflatedSource({ source: this.#source, ...range, ...about }, this.#pool)
    return {
      ...member,
      source,
      start: 0,
      end: entry.bytes,
      reader: new ByteReader(source, WALK_WINDOW_BYTES),
    }
  }
}
