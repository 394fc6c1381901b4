/** Float16Array, which Node has from version 24 on; its type is not among those that this library is compiled with. */
import { TileworkError } from '../errors.js'

/** What a Float16Array is, for compilers that do not know it. */
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
    `This runtime (${process.version}) has no Float16Array; Node has it from version 24 on.`,
  )
}
