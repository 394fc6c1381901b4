/**
 * Walks a file: header length, header, entries, and whether the entries cover the byte buffer. Read and check share this walk
 * at both levels; the report decides what a violation does.
 *
 * Memory on hostile files: a window of the header, its strings, and per entry four numbers and its dimensions; an entry takes
 * about 50 bytes of the header.
 */

import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { NO_METADATA } from '../../tensor/base_tensor.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { readJson } from '../json_events.js'
import type { Report } from '../report.js'
import { checkEntry } from './entry_rules.js'
import { EntryTable } from './entry_table.js'
import { type HeaderEntry, HeaderEvents } from './header_events.js'
import { type Placement, readLayoutEntries, withoutLayoutEntries } from './layout_entries.js'
import { FORMAT_HEADER_BYTES, LENGTH_BYTES, tensorPath } from './schema.js'

/** The checked header of an open file. */
export interface Header {
  readonly table: EntryTable
  /** Entries that are tensors, in the order of their bytes. */
  readonly order: Uint32Array
  /** The metadata without layout entries. */
  readonly metadata: ReadonlyMap<string, string>
  /** Layouts of blocked tensors, by entry. */
  readonly placements: ReadonlyMap<number, Placement>
  /** Byte offset of the byte buffer in the file. */
  readonly dataStart: number
}

const BRACE = 0x7b
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/** Checks every entry of the file; undefined when the header cannot be read to its end, which is reported. */
export async function walkFile(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<Header | undefined> {
  budget.addFile(source.byteLength)
  const dataStart = await readLength(source, budget, report)
  if (dataStart === undefined) return undefined
  const table = new EntryTable()
  const bufferBytes = source.byteLength - dataStart
  const events = new HeaderEvents(report, (entry) => addEntry(entry, bufferBytes))
  try {
    await readJson(source, LENGTH_BYTES, dataStart, events)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
    return undefined
  }
  await checkPadding(source, dataStart, report)
  const metadata = events.metadata ?? NO_METADATA
  const all = orderOf(table)
  checkCover(table, all, { dataStart, bufferBytes, isComplete: events.unreadable === 0 }, report)
  return {
    table,
    order: all.filter((index) => table.isTensor(index)),
    metadata: withoutLayoutEntries(metadata),
    placements: readLayoutEntries(metadata, events.metadataAt, table, report),
    dataStart,
  }

  function addEntry(spelled: HeaderEntry, bufferLength: number): void {
    const entry = checkEntry(spelled, bufferLength, report)
    if (!entry) {
      events.unreadable += 1
      return
    }
    if (table.find(entry.name) !== undefined) {
      const place = { path: tensorPath(entry.name), offset: entry.nameAt }
      report.deviation(
        'ERR_DUPLICATE',
        `${place.path} occurs twice in the header; the last one counts.`,
        place,
      )
    }
    budget.demand('tensors', 1, entry.nameAt)
    budget.demand('totalBytes', entry.end - entry.begin, entry.nameAt)
    table.add(entry, entry.typeRank)
  }
}

/** End offset of the header; undefined when the header is missing or too long, which is reported. */
async function readLength(source: ByteSource, budget: Budget, report: Report): Promise<number | undefined> {
  const place = { path: '', offset: 0 }
  const { byteLength } = source
  if (byteLength < LENGTH_BYTES) {
    report.broken(
      'ERR_TRUNCATED',
      `The file has ${byteLength} bytes; a safetensors file has at least 10.`,
      place,
    )
    return undefined
  }
  const reader = new ByteReader(source, LENGTH_BYTES + 1)
  await reader.load(Math.min(byteLength, LENGTH_BYTES + 1))
  const length = reader.u64()
  if (!spendHeader(length, budget, report)) return undefined
  if (length > byteLength - LENGTH_BYTES) {
    const message = `The header has ${length} bytes; the file has ${byteLength - LENGTH_BYTES} after the length field.`
    report.broken('ERR_TRUNCATED', message, place)
    return undefined
  }
  if (length === 0) {
    report.broken('ERR_HEADER', 'The header is empty; it must be at least {}.', place)
    return undefined
  }
  return checkFirst(reader.u8(), report) ? LENGTH_BYTES + Number(length) : undefined
}

/** Charges a header to the budget before it is read; false where it is too long, which is reported. */
export function spendHeader(byteLength: number | bigint, budget: Budget, report: Report): boolean {
  const place = { path: '', offset: 0 }
  const excess = budget.spend('headerBytes', Number(byteLength))
  if (excess !== undefined) {
    // Compared exactly: the budget counts in doubles, which would round a hostile length.
    const limit = budget.limit('headerBytes')
    const message =
      byteLength > limit ? `The header has ${byteLength} bytes; limits.headerBytes is ${limit}.` : excess
    report.broken('ERR_LIMIT', message, place)
    return false
  }
  if (byteLength > FORMAT_HEADER_BYTES) {
    const message = `The header has ${byteLength} bytes; the limit of the format is ${FORMAT_HEADER_BYTES}.`
    report.deviation('ERR_LIMIT', message, place)
  }
  return true
}

/** The format requires a brace as the ninth byte, which makes files recognisable; the reference also accepts whitespace. */
function checkFirst(first: number, report: Report): boolean {
  if (first === BRACE) return true
  const place = { path: '', offset: LENGTH_BYTES }
  const message = `The header starts with byte ${first}; expected "{" (${BRACE}).`
  if (!BLANKS.has(first)) {
    report.broken('ERR_HEADER', message, place)
    return false
  }
  report.deviation('ERR_HEADER', message, place)
  return true
}

/** The format pads headers with spaces; the reference also accepts the other whitespace of JSON. */
async function checkPadding(source: ByteSource, dataStart: number, report: Report): Promise<void> {
  const [last] = await source.read(dataStart - 1, dataStart)
  if (last === undefined || last === 0x20 || !BLANKS.has(last)) return
  const message = `The header ends in byte ${last}; only spaces (32) may pad it.`
  report.deviation('ERR_HEADER', message, { path: '', offset: dataStart - 1 })
}

/** Entries sorted by start, then end; equal ranges in the order of the header. */
function orderOf(table: EntryTable): Uint32Array {
  const order = new Uint32Array(allocateBytes(4 * table.length).buffer)
  let isAscending = true
  for (let index = 0; index < order.length; index++) {
    order[index] = index
    if (index > 0 && compare(table, index - 1, index) > 0) isAscending = false
  }
  // Known writers write front to back; sorting a million sorted entries would dominate the time of an open.
  return isAscending ? order : order.sort((one, other) => compare(table, one, other))
}

function compare(table: EntryTable, one: number, other: number): number {
  return table.begin(one) - table.begin(other) || table.end(one) - table.end(other) || one - other
}

interface Buffer {
  readonly dataStart: number
  readonly bufferBytes: number
  /** False when an entry could not be read: bytes that look unused may belong to it. */
  readonly isComplete: boolean
}

/** Reports entries that overlap and bytes that belong to none. */
function checkCover(
  table: EntryTable,
  order: Uint32Array,
  { dataStart, bufferBytes, isComplete }: Buffer,
  report: Report,
): void {
  let end = 0
  let owner = -1
  for (const index of order) {
    const begin = table.begin(index)
    if (begin < end) {
      const path = tensorPath(table.name(index))
      const message = `${path} starts at ${begin} of the byte buffer, inside ${tensorPath(table.name(owner))}, which ends at ${end}.`
      report.deviation('ERR_OVERLAP', message, { path, offset: table.nameAt(index) })
    } else {
      checkGap(begin)
    }
    if (table.end(index) < end) continue
    end = table.end(index)
    owner = index
  }
  checkGap(bufferBytes)

  function checkGap(next: number): void {
    if (next <= end || !isComplete) return
    const message = `${next - end} bytes at ${end} of the byte buffer belong to no tensor.`
    report.deviation('ERR_GAP', message, { path: '', offset: dataStart + end })
  }
}
