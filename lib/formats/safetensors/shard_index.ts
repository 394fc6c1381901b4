/**
 * Reads the index of a model in several files, which maps each tensor to a file of the same folder. Every file name is
 * checked before a file is opened, and only `sibling` opens files.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { type JsonHandler, readJson } from './json_events.js'
import { FORMAT_NAME, MAX_SHARDS, quote } from './schema.js'
import type { WalkedFile } from './tensor_list.js'
import { spendHeader, walkFile } from './walk.js'

/** An index and its open shards. */
export interface WalkedIndex {
  readonly files: readonly WalkedFile[]
  /** The report of each file. */
  readonly reports: readonly Report[]
  /** Index in `files` by tensor name, in the order of the weight map; only tensors that exist. */
  readonly fileOf: ReadonlyMap<string, number>
}

/** Checks the index and every entry of its shards; undefined when the index cannot be read, which is reported. */
export async function walkIndex(
  source: ByteSource,
  budget: Budget,
  report: Report,
  sibling: ReadOptions['sibling'],
): Promise<WalkedIndex | undefined> {
  const index = await readIndex(source, budget, report)
  if (!index) return undefined
  const shards = shardsOf(index, report)
  if (!shards) return undefined
  const files: WalkedFile[] = []
  const reports: Report[] = []
  const positions = new Map<string, number>()
  for (const [name, at] of shards) {
    const shard = await openShard(name, at, sibling, report)
    if (!shard) continue
    const part = report.forPart(name)
    const header = await walkFile(shard, budget, part)
    if (!header) continue
    positions.set(name, files.length)
    files.push({ source: shard, header })
    reports.push(part)
  }
  const fileOf = matchTensors(index, { files, reports, positions }, report)
  if (files.length === shards.size) checkTotal(index, files, report)
  return { files, reports, fileOf }
}

/** Collects the content of an index. */
class IndexEvents implements JsonHandler {
  /** By tensor in the order of the text: the shard and the offset of its name. */
  readonly weightMap = new Map<string, { shard: string; at: number }>()
  total: { text: string; at: number } | undefined
  hasWeightMap = false
  readonly #budget: Budget
  readonly #report: Report
  /** Keys from the root to the current value; undefined inside an array. */
  readonly #keys: (string | undefined)[] = []

  constructor(budget: Budget, report: Report) {
    this.#budget = budget
    this.#report = report
  }

  beginObject(at: number): void {
    if (this.#isWeightMap() && this.#keys.length === 1) this.hasWeightMap = true
    else this.#refuseNested(at)
    this.#keys.push('')
  }

  endObject(): void {
    this.#keys.pop()
  }

  beginArray(at: number): void {
    this.#refuseNested(at)
    this.#keys.push(undefined)
  }

  endArray(): void {
    this.#keys.pop()
  }

  key(name: string): void {
    this.#keys[this.#keys.length - 1] = name
  }

  value(kind: 'string' | 'number' | 'literal', text: string, at: number): void {
    const name = this.#keys[1]
    if (this.#keys.length === 2 && this.#keys[0] === 'metadata' && name === 'total_size') {
      this.total = { text: kind === 'number' ? text : '', at }
      return
    }
    if (!this.#isWeightMap() || this.#keys.length !== 2 || name === undefined) return
    if (kind !== 'string') {
      this.#refuse(name, at)
      return
    }
    if (this.weightMap.has(name)) {
      const message = `The weight map has the tensor ${quote(name)} twice; the last one counts.`
      this.#report.deviation('ERR_DUPLICATE', message, placeOf(name, at))
    }
    this.weightMap.set(name, { shard: text, at })
    // Checked here, because the largest index could have ten million short entries that take far more memory.
    this.#budget.require('tensors', this.weightMap.size, at)
  }

  #isWeightMap(): boolean {
    return this.#keys[0] === 'weight_map'
  }

  #refuseNested(at: number): void {
    const name = this.#keys[1]
    if (this.#isWeightMap() && this.#keys.length === 2 && name !== undefined) this.#refuse(name, at)
  }

  #refuse(name: string, at: number): void {
    const message = `The weight map entry of ${quote(name)} must be a file name.`
    this.#report.broken('ERR_HEADER', message, placeOf(name, at))
  }
}

function placeOf(name: string, offset: number): { path: string; offset: number } {
  return { path: `weight_map[${quote(name)}]`, offset }
}

/**
 * The weight map alone, with the offsets of the shard names' opening quotes. Violations are ignored. Undefined where the
 * text cannot be read to its end; empty where the index has no weight map.
 */
export async function readWeightMap(
  source: ByteSource,
  budget: Budget,
): Promise<IndexEvents['weightMap'] | undefined> {
  const events = await readEvents(source, budget, new Report(FORMAT_NAME, 'lenient', 'collect'))
  return events?.weightMap
}

async function readIndex(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<IndexEvents | undefined> {
  const events = await readEvents(source, budget, report)
  if (!events || events.hasWeightMap) return events
  report.broken('ERR_HEADER', 'The index has no weight_map object.', { path: '', offset: 0 })
  return undefined
}

async function readEvents(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<IndexEvents | undefined> {
  budget.addFile(source.byteLength)
  if (!spendHeader(source.byteLength, budget, report)) return undefined
  const events = new IndexEvents(budget, report)
  try {
    await readJson(source, 0, source.byteLength, events)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
    return undefined
  }
  return events
}

/** File names with their offsets, in the order of their first tensors; undefined when one may not be opened. */
function shardsOf({ weightMap }: IndexEvents, report: Report): Map<string, number> | undefined {
  const shards = new Map<string, number>()
  for (const [name, { shard, at }] of weightMap) {
    if (shards.has(shard)) continue
    const fault = faultOfName(shard)
    if (fault !== undefined) {
      const message = `The index names the file ${quote(shard)} for ${quote(name)}, which ${fault}.`
      report.broken('ERR_PATH_ESCAPE', message, placeOf(name, at))
      return undefined
    }
    shards.set(shard, at)
    if (shards.size > MAX_SHARDS) {
      report.broken('ERR_LIMIT', `The index names more than ${MAX_SHARDS} files.`, placeOf(name, at))
      return undefined
    }
  }
  return shards
}

/** Maximum length of a file name on common file systems. */
const MAX_NAME_BYTES = 255

/** Why a name from an index is not a file name in its folder; undefined where it is one. */
function faultOfName(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name === '.' || name === '..') return 'is a folder'
  if (/[/\\]/.test(name)) return 'has a path separator'
  if (name.includes('\0')) return 'contains NUL'
  // On Windows a colon names another drive or an alternate stream of the file.
  if (name.includes(':')) return 'has a colon'
  return Buffer.byteLength(name) > MAX_NAME_BYTES ? `is longer than ${MAX_NAME_BYTES} bytes` : undefined
}

async function openShard(
  name: string,
  at: number,
  sibling: ReadOptions['sibling'],
  report: Report,
): Promise<ByteSource | undefined> {
  const place = { path: quote(name), offset: at }
  try {
    return await sibling(name)
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    if (error.code === 'ERR_PATH_ESCAPE' || error.code === 'ERR_UNSUPPORTED') {
      report.broken(error.code, error.message, place)
      return undefined
    }
    if (!isMissing(error)) throw error
    const message = `The shard ${quote(name)} does not exist, so its tensors are omitted: ${error.message}`
    report.omission('a rule', 'ERR_IO', message, place)
    return undefined
  }
}

/** Other failures, such as missing permission or too many open files, must not silently shrink a model. */
function isMissing({ code, cause }: TileworkError): boolean {
  const { code: reason } = Object(cause) as { code?: unknown }
  return code === 'ERR_IO' && reason === 'ENOENT'
}

interface Shards {
  readonly files: readonly WalkedFile[]
  readonly reports: readonly Report[]
  /** Index by file name. */
  readonly positions: ReadonlyMap<string, number>
}

/** Finds the file of each tensor in the weight map, and reports tensors that the map does not list. */
function matchTensors(
  { weightMap }: IndexEvents,
  { files, reports, positions }: Shards,
  report: Report,
): Map<string, number> {
  const fileOf = new Map<string, number>()
  for (const [name, { shard, at }] of weightMap) {
    const position = positions.get(shard)
    if (position === undefined) continue
    const { table } = files[position]!.header
    const index = table.find(name)
    if (index === undefined) {
      const message = `The shard ${quote(shard)} has no tensor ${quote(name)}, which the index assigns to it.`
      report.omission('a rule', 'ERR_NO_DATA', message, placeOf(name, at))
    } else if (table.isTensor(index)) {
      fileOf.set(name, position)
    }
  }
  for (const [shard, position] of positions) {
    const { table, order } = files[position]!.header
    for (const index of order) {
      const name = table.name(index)
      const owner = weightMap.get(name)?.shard
      if (owner === shard) continue
      const isTwice = owner !== undefined
      const message = isTwice
        ? `The tensor ${quote(name)} is also in ${quote(owner)}, the shard that the index names.`
        : `The tensor ${quote(name)} is not in the index and is omitted.`
      const place = { path: `tensors[${quote(name)}]`, offset: table.nameAt(index) }
      reports[position]!.deviation(isTwice ? 'ERR_DUPLICATE' : 'ERR_HEADER', message, place)
    }
  }
  return fileOf
}

function checkTotal({ total }: IndexEvents, files: readonly WalkedFile[], report: Report): void {
  if (total === undefined) return
  const bytes = files.reduce((sum, { header }) => sum + entryBytes(header), 0)
  // Some writers compute it as a float and write 16.0.
  if (total.text !== '' && Number(total.text) === bytes) return
  const message = `total_size is ${quote(total.text)}; the tensors have ${bytes} bytes.`
  report.deviation('ERR_HEADER', message, { path: 'metadata.total_size', offset: total.at })
}

/** Bytes of all entries, unsupported types included: the writer of the index counts them. */
function entryBytes({ table }: WalkedFile['header']): number {
  let sum = 0
  for (let index = 0; index < table.length; index++) sum += table.end(index) - table.begin(index)
  return sum
}
