/** Reads the header of each array of an archive. */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { InflatedSource } from '../../../zip/inflated_source.js'
import { STORED } from '../../../zip/schema.js'
import { type Content, type Kept, walkMembers } from '../../../zip/walk.js'
import { Budget } from '../../budget.js'
import type { Limits } from '../../format.js'
import { quote } from '../../quote.js'
import type { Report } from '../../report.js'
import { ArraySpan } from '../array_span.js'
import { type NpyHeader, readHeader } from '../header.js'
import { DEFAULT_LIMITS } from '../schema.js'
import { DEFAULT_NPZ_LIMITS, FORMAT_NAME, MEMBER_ENDING } from './npz_schema.js'

/** A member, and the array that it is. */
export interface ArrayContent extends Content {
  /** Undefined for a member that is not an array, or one that cannot be read. */
  readonly array: NamedArray | undefined
}

export interface NamedArray {
  readonly name: string
  readonly header: NpyHeader
  readonly span: ArraySpan
}

/** As `walkMembers`, but of several members with one name only the last is kept. */
export async function walkArrays<Made>(
  source: ByteSource,
  limits: Limits,
  report: Report,
  make: (content: ArrayContent) => Made | Promise<Made>,
): Promise<Made[] | undefined> {
  const budget = new Budget(limits, DEFAULT_NPZ_LIMITS, source.byteLength)
  const arrays = new ArrayReader(budget, limits, report)
  const kept = await walkMembers(source, { format: FORMAT_NAME, budget, report }, async (content) => {
    const array = await arrays.read(content)
    if (content.source instanceof InflatedSource) content.source.rewind()
    return make({ ...content, array })
  })
  return kept && withoutRepeated(kept, report).map(({ made }) => made)
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

class ArrayReader {
  readonly #budget: Budget
  /** Limit of the header of one array, far below the limit of all headers together. */
  readonly #maxHeaderBytes: number
  readonly #report: Report

  constructor(budget: Budget, limits: Limits, report: Report) {
    this.#budget = budget
    this.#maxHeaderBytes = new Budget(limits, DEFAULT_LIMITS).limit('headerBytes')
    this.#report = report
  }

  async read(content: Content): Promise<NamedArray | undefined> {
    const { entry, place } = content
    if (!entry.name.endsWith(MEMBER_ENDING)) {
      const message = `members[${entry.index}] (${quote(entry.name)}) is not an array: array names end in ${MEMBER_ENDING}.`
      this.#report.note('ERR_UNSUPPORTED', message, place)
      return undefined
    }
    const span = spanOf(content, this.#report)
    const header = await this.#readHeader(content, span)
    if (!header) return undefined
    const excess =
      this.#budget.spend('headerBytes', header.headerBytes) ??
      this.#budget.spend('totalBytes', header.dataBytes)
    if (excess === undefined) {
      return { name: entry.name.slice(0, -MEMBER_ENDING.length), header, span }
    }
    this.#report.broken('ERR_LIMIT', excess, place)
    return undefined
  }

  async #readHeader({ reader }: Content, span: ArraySpan): Promise<NpyHeader | undefined> {
    try {
      return await readHeader(reader, span, this.#maxHeaderBytes)
    } catch (error) {
      if (!(error instanceof TileworkError) || error.code !== 'ERR_COMPRESSED') throw error
      span.broken(error.code, error.message, 'header', 0)
      return undefined
    }
  }
}

/** Offsets inside a stored member are mapped to file offsets; for a deflated member only its start is known. */
function spanOf({ entry, place, dataStart, start, end }: Content, report: Report): ArraySpan {
  const isStored = entry.method === STORED
  return new ArraySpan({
    start,
    end,
    report,
    member: { path: place.path, name: quote(entry.name) },
    offsetOf: (at) => (isStored ? dataStart + Math.min(at, entry.bytes) : dataStart),
  })
}
