/** Rounds float32 values to float16 or bfloat16 after clipping them to what the type can represent, as onnxruntime's tool does. */
import { cast } from '../../../tensor/cast.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { computedTensor } from './computed_source.js'
import { FloatReader, withWindow } from './float_window.js'

export type HalfDtype = 'float16' | 'bfloat16'

/** Magnitudes of finite values other than 0 are moved into `[min, max]`. */
export interface Clip {
  readonly min: number
  readonly max: number
}

/** The least and the greatest magnitude that each type represents; bfloat16 has every small number of float32. */
export const DEFAULT_CLIP: Readonly<Record<HalfDtype, Clip>> = {
  float16: { min: 2 ** -24, max: 65504 },
  bfloat16: { min: 0, max: 3.3895313892515355e38 },
}

/** Number of values that were reduced to the largest magnitude, and raised to the smallest. */
export interface ClipCounts {
  readonly clipped: number
  readonly lifted: number
}

const SIGN = 0x80000000
const INFINITY_BITS = 0x7f800000

function bitsOf(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0]!
}

/** Clips numbers in place. Infinities, NaN and zeros stay. */
export function clipNumbers(numbers: Float32Array<ArrayBuffer>, { min, max }: Clip): ClipCounts {
  const bits = new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.length)
  const [low, high] = [bitsOf(min), bitsOf(max)]
  let [clipped, lifted] = [0, 0]
  for (let at = 0; at < bits.length; at++) {
    const magnitude = bits[at]! & ~SIGN
    if (magnitude >= low && magnitude <= high) continue
    if (magnitude > high) {
      if (magnitude >= INFINITY_BITS) continue
      bits[at] = (bits[at]! & SIGN) | high
      clipped++
    } else if (magnitude !== 0) {
      bits[at] = (bits[at]! & SIGN) | low
      lifted++
    }
  }
  return { clipped, lifted }
}

/** The tensor as a half type, clipped. Lazy. */
export function halfTensor(tensor: DenseTensor, dtype: HalfDtype, clip: Clip): DenseTensor {
  const reader = new FloatReader(tensor)
  const { name, shape } = tensor
  return computedTensor({ name, dtype, shape }, (start, end) => {
    const [from, to] = [Math.floor(start / 2), Math.ceil(end / 2)]
    return withWindow(to - from, async (numbers) => {
      await reader.fill(from, numbers)
      clipNumbers(numbers, clip)
      const bytes = new Uint8Array(2 * (to - from))
      cast(tensorOf(numbers), dtype).copyToSync(bytes)
      return bytes.subarray(start - 2 * from, end - 2 * from)
    })
  })
}

/** Reads the tensor once and counts the values that `halfTensor` clips. */
export async function countClipped(
  tensor: DenseTensor,
  clip: Clip,
  signal?: AbortSignal,
): Promise<ClipCounts> {
  let [clipped, lifted] = [0, 0]
  await new FloatReader(tensor).each(signal, (numbers) => {
    const counts = clipNumbers(numbers, clip)
    clipped += counts.clipped
    lifted += counts.lifted
  })
  return { clipped, lifted }
}
