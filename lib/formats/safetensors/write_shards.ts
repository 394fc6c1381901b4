/**
 * Plans a model in several files: an index, and shards beside it with Hugging Face's names. As in Hugging Face's writer, tensors
 * fill the shards in the given order: a shard ends where the next tensor would exceed the limit.
 */
import { basename } from 'node:path'
import { TileworkError } from '../../errors.js'
import type { SiblingPlan, WritePlan } from '../format.js'
import { MAX_SHARDS } from '../weight_map.js'
import { compareCodePoints } from './code_points.js'
import { FORMAT_NAME, INDEX_EXTENSION } from './schema.js'
import { ShardFolder } from './shard_folder.js'

/** The fields of a tensor that the distribution over shards needs. */
interface ShardedTensor {
  readonly name: string
  readonly byteLength: number
}

export interface ShardOptions<T extends ShardedTensor> {
  readonly maxShardBytes: number
  /** Path of the main file. */
  readonly path: string | undefined
  /** Whether `path` is the path of an index. */
  readonly isIndex: boolean
  /** Plans the file of one shard. */
  readonly write: (tensors: readonly T[]) => WritePlan
}

/** @throws TileworkError ERR_UNSUPPORTED, ERR_ARGUMENT, ERR_LIMIT, ERR_IO */
export async function planShards<T extends ShardedTensor>(
  tensors: readonly T[],
  { maxShardBytes, path, isIndex, write }: ShardOptions<T>,
): Promise<WritePlan> {
  const parts = splitTensors(tensors, maxShardBytes)
  if (parts.length === 1 && !isIndex) return write(parts[0]!)
  if (path === undefined) {
    const message = `The tensors need ${parts.length} shards of ${maxShardBytes} bytes; save them to a path, as an index and its shards.`
    throw new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
  }
  if (!isIndex) {
    const stem = basename(path).replace(/\.[^.]*$/, '')
    const message = `The tensors need ${parts.length} shards of ${maxShardBytes} bytes; the path must then end in ${INDEX_EXTENSION}, for example ${stem}.safetensors${INDEX_EXTENSION}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  if (parts.length > MAX_SHARDS) {
    const message = `The tensors need ${parts.length} shards of ${maxShardBytes} bytes; the limit is ${MAX_SHARDS}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
  }
  const folder = await ShardFolder.of(path)
  const names = await folder.freeNames(parts.length)
  const siblings = parts.map(
    (part, at): SiblingPlan => ({
      ...write(part),
      name: names[at]!,
      replaces: folder.has(names[at]!),
    }),
  )
  const bytes = indexOf(parts, names)
  const segments = [{ kind: 'bytes', bytes } as const]
  return { byteLength: bytes.byteLength, segments, siblings, replaced: await folder.replacedShards() }
}

function splitTensors<T extends ShardedTensor>(tensors: readonly T[], maxShardBytes: number): T[][] {
  const parts: T[][] = []
  let part: T[] = []
  let bytes = 0
  for (const tensor of tensors) {
    if (part.length > 0 && bytes + tensor.byteLength > maxShardBytes) {
      parts.push(part)
      part = []
      bytes = 0
    }
    part.push(tensor)
    bytes += tensor.byteLength
  }
  return [...parts, part]
}

/** The index as Hugging Face writes it: indented by two spaces, sorted keys, a final line feed. */
function indexOf(parts: readonly (readonly ShardedTensor[])[], names: readonly string[]): Uint8Array {
  const total = parts.flat().reduce((sum, { byteLength }) => sum + byteLength, 0)
  const lines = parts
    .flatMap((part, at) => part.map(({ name }) => ({ name, file: names[at]! })))
    .toSorted((one, other) => compareCodePoints(one.name, other.name))
    .map(({ name, file }) => `    ${JSON.stringify(name)}: ${JSON.stringify(file)}`)
  const map = lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n  }`
  return Buffer.from(`{\n  "metadata": {\n    "total_size": ${total}\n  },\n  "weight_map": ${map}\n}\n`)
}
