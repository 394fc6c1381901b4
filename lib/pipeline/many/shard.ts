/** A part of a list, for schedulers that start one process a part. */
import { TileworkError } from '../../errors.js'

export interface Shard {
  /** From 1. */
  readonly index: number
  readonly count: number
}

/** More parts than any cluster has machines; a typing error should not leave every list empty. */
const MAX_SHARDS = 1_000_000

/**
 * `2/8` is the second of eight parts.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function parseShard(text: string): Shard {
  const [, first, second] = /^(\d{1,7})\/(\d{1,7})$/.exec(text) ?? []
  const shard = { index: Number(first), count: Number(second) }
  if (shard.index >= 1 && shard.index <= shard.count && shard.count <= MAX_SHARDS) return shard
  throw new TileworkError(
    'ERR_ARGUMENT',
    `A shard is i/n with 1 <= i <= n <= ${MAX_SHARDS}, for example 1/8; "${text}" is none.`,
  )
}

/** Every `count`-th item from the `index`-th on: the parts of all shards together are the list, each item once. */
export function takeShard<T>(items: readonly T[], shard: Shard | undefined): readonly T[] {
  if (!shard) return items
  return items.filter((_item, position) => position % shard.count === shard.index - 1)
}
