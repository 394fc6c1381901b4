/** Recognises the index of a model in several files by its start, without the code that reads it. */
import type { FileHead } from './file_head.js'

/** The weight map of an index starts within this many bytes; only small metadata come before it. */
const MAX_WEIGHT_MAP_START = 64 * 1024

/** Names of the first shard in the first bytes of a weight map. */
const FIRST_SHARD = /"weight_map"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*"((?:[^"\\]|\\.)*)"/

/** True for JSON with a weight map whose first shard has a name that matches. */
export async function isWeightMap(head: FileHead, shardName: RegExp): Promise<boolean> {
  if (!/^\s*\{/.test(Buffer.from(head.bytes.subarray(0, 8)).toString('latin1'))) return false
  const view = await head.range(0, Math.min(MAX_WEIGHT_MAP_START, head.byteLength))
  if (!view) return false
  const text = Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString('latin1')
  const shard = FIRST_SHARD.exec(text)?.[1]
  return shard !== undefined && shardName.test(shard)
}
