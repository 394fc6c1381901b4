/**
 * Copies an index and its shards unchanged. Where the target folder has other files under the shards' names, the copied
 * shards get free names and the copied index refers to these: an index already there must find its shards unchanged.
 */
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { TileworkError } from '../../errors.js'
import { Budget } from '../budget.js'
import type { WritePlan } from '../format.js'
import { readWeightMap } from '../weight_map.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { ShardFolder } from './shard_folder.js'

/** By tensor: the shard, and the offset of the opening quote of its name in the index. */
type WeightMap = NonNullable<Awaited<ReturnType<typeof readWeightMap>>>

/** See `Format.planCopy`. */
export async function planCopy(
  source: ByteSource,
  siblings: ReadonlyMap<string, ByteSource>,
  { path }: { readonly path: string },
): Promise<WritePlan> {
  const folder = await ShardFolder.of(path)
  const weightMap = await weightMapOf(source)
  const names = new Set([...weightMap.values()].map(({ shard }) => shard))
  const renames = await chooseNames(folder, names, siblings)
  const index = renames ? await renamed(source, weightMap, renames) : undefined
  return {
    ...(index ? inMemory(index) : whole(source)),
    siblings: [...siblings].map(([name, sibling]) => {
      const own = renames?.get(name) ?? name
      return { ...whole(sibling), name: own, replaces: folder.has(own) }
    }),
    replaced: await folder.replacedShards(),
  }
}

function whole(source: ByteSource): WritePlan {
  const { byteLength } = source
  return { byteLength, segments: [{ kind: 'range', source, start: 0, end: byteLength }] }
}

function inMemory(bytes: Uint8Array): WritePlan {
  return { byteLength: bytes.byteLength, segments: [{ kind: 'bytes', bytes }] }
}

async function weightMapOf(source: ByteSource): Promise<WeightMap> {
  // The length was checked when the index was opened.
  const weightMap = await readWeightMap(
    source,
    new Budget({ headerBytes: source.byteLength }, DEFAULT_LIMITS),
  )
  if (weightMap) return weightMap
  const message = `${source.label ?? 'The index'} has changed since it was opened.`
  throw new TileworkError('ERR_FILE_CHANGED', message, { format: FORMAT_NAME })
}

/** New names by old name; undefined where all shards keep theirs. */
async function chooseNames(
  folder: ShardFolder,
  names: ReadonlySet<string>,
  siblings: ReadonlyMap<string, ByteSource>,
): Promise<ReadonlyMap<string, string> | undefined> {
  const kept = await Promise.all([...names].map((name) => canKeep(folder, name, siblings.get(name))))
  if (!kept.includes(false)) return undefined
  // A missing shard must stay missing, so no file with its new name may exist.
  const isComplete = siblings.size === names.size
  const free = await folder.freeNames(names.size, isComplete)
  return new Map([...names].map((name, at) => [name, free[at]!]))
}

async function canKeep(folder: ShardFolder, name: string, sibling: ByteSource | undefined): Promise<boolean> {
  if (!sibling) return !folder.has(name)
  return (await folder.isFree(name)) || (await folder.isSource(name, sibling))
}

/** The text of an index with other shard names and every other byte unchanged. */
async function renamed(
  source: ByteSource,
  weightMap: WeightMap,
  renames: ReadonlyMap<string, string>,
): Promise<Uint8Array> {
  const text = await source.read(0, source.byteLength)
  const quoted = new Map([...renames].map(([name, other]) => [name, Buffer.from(JSON.stringify(other))]))
  // Sorted by offset, because a repeated tensor keeps its first position in the map but has its last offset.
  const names = [...weightMap.values()]
    .map(({ shard, at }) => ({ at, end: endOfText(text, at), name: quoted.get(shard)! }))
    .sort((one, other) => one.at - other.at)
  const growth = names.reduce((sum, { at, end, name }) => sum + name.length - (end - at), 0)
  const result = allocateBytes(text.byteLength + growth)
  let [from, to] = [0, 0]
  for (const { at, end, name } of names) {
    result.set(text.subarray(from, at), to)
    to += at - from
    result.set(name, to)
    to += name.length
    from = end
  }
  result.set(text.subarray(from), to)
  return result
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The offset after the closing quote. */
function endOfText(text: Uint8Array, openingQuote: number): number {
  let at = openingQuote + 1
  while (at < text.byteLength && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at + 1
}
