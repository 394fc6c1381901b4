/** Access to Float16Array, which Node has since version 24 and the compiler's library does not declare. */
import { TileworkError } from '../errors.js'

/** The type of a Float16Array, for compilers that do not declare it. */
export interface Float16Numbers extends ArrayBufferView, Iterable<number> {
  readonly length: number
  readonly [index: number]: number
}

type Float16ArrayConstructor = new (buffer: ArrayBufferLike) => Float16Numbers

/** @throws TileworkError ERR_UNSUPPORTED where the runtime has none */
export function float16Array(buffer: ArrayBufferLike): Float16Numbers {
  const Float16 = (globalThis as { Float16Array?: Float16ArrayConstructor }).Float16Array
  if (Float16) return new Float16(buffer)
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `this runtime (${process.version}) has no Float16Array; it needs Node 24 or later`,
  )
}
