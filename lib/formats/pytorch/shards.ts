/** Opens the shards of an index as one checkpoint. */
import type { ByteSource } from '../../bytes/source.js'
import type { ReadOptions } from '../format.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import { checkTotal, openShard, placeOf, readIndex, shardsOf } from '../weight_map.js'
import type { Checkpoint, NamedTensor } from './checkpoint.js'
import { type WalkOptions, walkCheckpoint } from './walk.js'

/** A shard, and the report on it. */
interface Shard {
  readonly checkpoint: Checkpoint
  readonly report: Report
}

/** Undefined where the index cannot be read, which is reported. Tensors are in the order of the weight map. */
export async function walkShards(
  source: ByteSource,
  options: WalkOptions,
  sibling: ReadOptions['sibling'],
): Promise<Pick<Checkpoint, 'tensors' | 'values'> | undefined> {
  const { budget, report } = options
  const index = await readIndex(source, budget, report)
  const names = index && shardsOf(index, report)
  if (!names) return undefined
  const shards = new Map<string, Shard>()
  for (const [name, at] of names) {
    const file = await openShard(name, at, sibling, report)
    if (!file) continue
    budget.addFile(file.byteLength)
    const part = report.forPart(name)
    const checkpoint = await walkCheckpoint(file, { ...options, report: part })
    if (checkpoint) shards.set(name, { checkpoint, report: part })
  }
  const tensors = matchTensors(index, shards, report)
  if (shards.size === names.size)
    checkTotal(
      index,
      tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0),
      report,
    )
  return { tensors, values: new Map() }
}

type Index = NonNullable<Awaited<ReturnType<typeof readIndex>>>

function matchTensors(
  { weightMap }: Index,
  shards: ReadonlyMap<string, Shard>,
  report: Report,
): NamedTensor[] {
  const byName = new Map([...shards].map(([shard, { checkpoint }]) => [shard, namesOf(checkpoint)]))
  const found: NamedTensor[] = []
  for (const [name, { shard, at }] of weightMap) {
    const names = byName.get(shard)
    const tensor = names?.get(name)
    if (tensor) found.push(tensor)
    else if (names) {
      const message = `The shard ${quote(shard)} has no tensor ${quote(name)}, which the index assigns to it.`
      report.omission('a rule', 'ERR_NO_DATA', message, placeOf(name, at))
    }
  }
  for (const [shard, { checkpoint, report: part }] of shards) {
    for (const { name } of checkpoint.tensors) {
      if (weightMap.get(name)?.shard === shard) continue
      const message = `The tensor ${quote(name)} is not in the index, or in another shard there, and is omitted.`
      part.deviation('ERR_HEADER', message, { path: `tensors[${quote(name)}]`, offset: 0 })
    }
  }
  return withinShards(found)
}

function namesOf({ tensors }: Checkpoint): ReadonlyMap<string, NamedTensor> {
  return new Map(tensors.map((tensor) => [tensor.name, tensor]))
}

/** An alias stays one only where its first name is in the index too. */
function withinShards(tensors: readonly NamedTensor[]): NamedTensor[] {
  const names = new Set(tensors.map(({ name }) => name))
  return tensors.map(({ aliasOf, ...tensor }) =>
    aliasOf !== undefined && names.has(aliasOf) ? { ...tensor, aliasOf } : tensor,
  )
}

function bytesOf({ form }: NamedTensor): number {
  if (form.kind === 'sparse') return 0
  return form.shape.reduce((product, extent) => product * extent, form.type.bytes)
}
