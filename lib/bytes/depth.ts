/**
 * Bounds how deep lazy sources may be nested. A read of a source recursively reads the sources below it; thousands of levels
 * would overflow the stack, where no error can be reported.
 */
import { TileworkError } from '../errors.js'
import type { ByteSource } from './source.js'

/** Each level takes several stack frames; 3,000 levels overflow the stack of Node's main thread. */
const MAX_DEPTH = 256

/** A source that reads from other sources. */
interface Nested {
  /** Number of lazy sources on the longest way down to bytes. */
  readonly depth: number
}

/**
 * The depth of a source above `below`.
 *
 * @throws TileworkError ERR_LIMIT
 */
export function depthAbove(below: Iterable<ByteSource>): number {
  let depth = 0
  for (const source of below) depth = Math.max(depth, (source as Partial<Nested>).depth ?? 0)
  if (depth < MAX_DEPTH) return depth + 1
  const message = `The tensor is computed by more than ${MAX_DEPTH} nested lazy operations; materialize an intermediate tensor.`
  throw new TileworkError('ERR_LIMIT', message)
}
