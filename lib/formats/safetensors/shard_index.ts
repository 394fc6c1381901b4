/**
 * Reads the index of a model in several files, which maps each tensor to a file of the same folder. Every file name is
 * checked before a file is opened, and only `sibling` opens files.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import { checkTotal, type IndexEvents, openShard, placeOf, readIndex, shardsOf } from '../weight_map.js'
import { quote } from './schema.js'
import type { WalkedFile } from './tensor_list.js'
import { walkFile } from './walk.js'

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
  if (files.length === shards.size)
    checkTotal(
      index,
      files.reduce((sum, { header }) => sum + entryBytes(header), 0),
      report,
    )
  return { files, reports, fileOf }
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

/** Bytes of all entries, unsupported types included: the writer of the index counts them. */
function entryBytes({ table }: WalkedFile['header']): number {
  let sum = 0
  for (let index = 0; index < table.length; index++) sum += table.end(index) - table.begin(index)
  return sum
}
