/** Rounds float32 values to float16 or bfloat16 after clipping them to what the type can represent, as onnxruntime's tool does. */
import { cast } from '../../../tensor/cast.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import { type ClipCounts, clipMagnitudes } from '../../../tensor/number_blocks.js'
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

/** The tensor as a half type, clipped. Lazy. */
export function halfTensor(tensor: DenseTensor, dtype: HalfDtype, clip: Clip): DenseTensor {
  const reader = new FloatReader(tensor)
  const { name, shape } = tensor
  return computedTensor({ name, dtype, shape }, (start, end) => {
    const [from, to] = [Math.floor(start / 2), Math.ceil(end / 2)]
    return withWindow(to - from, async (numbers) => {
      await reader.fill(from, numbers)
      clipMagnitudes(numbers, clip.min, clip.max)
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
    const counts = clipMagnitudes(numbers, clip.min, clip.max)
    clipped += counts.clipped
    lifted += counts.lifted
  })
  return { clipped, lifted }
}
