/** A part of a list of files, for schedulers that start one process for each part. */
import { readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'

/** The `index`-th of `count` equal parts: every `count`-th file of the sorted list. */
export interface Shard {
  /** From 1 to `count`. */
  readonly index: number
  readonly count: number
}

/** More shards than any cluster has machines: a typo must not make every shard empty. */
const MAX_SHARDS = 1_000_000

/** @throws TileworkError ERR_ARGUMENT */
export function checkShard(shard: Shard): void {
  const { index, count } = readInput('shard', () => ({ index: shard?.index, count: shard?.count }))
  const isWhole = Number.isInteger(index) && Number.isInteger(count)
  if (isWhole && index >= 1 && index <= count && count <= MAX_SHARDS) return
  const found = isWhole ? `${index} of ${count}` : valueText(shard)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `shard must have 1 <= index <= count <= ${MAX_SHARDS}; it is ${found}.`,
  )
}

/** Every `count`-th item from the `index`-th on. Each item is in exactly one shard. */
export function takeShard<T>(items: readonly T[], shard: Shard | undefined): readonly T[] {
  if (!shard) return items
  return items.filter((_item, position) => position % shard.count === shard.index - 1)
}
