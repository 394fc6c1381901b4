/** Rounds float32 values to float16 or bfloat16 after clipping them to what the type can represent, as onnxruntime's tool does. */
import { MemorySource } from '../../bytes/memory.js'
import { throwIfAborted } from '../../cancel.js'
import { cast } from '../../tensor/cast.js'
import { StoredTensor } from '../../tensor/dense.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import { type ClipCounts, clipMagnitudes } from '../../tensor/number_blocks.js'
import type { DenseTensor } from '../../tensor/tensor.js'
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
      const bytes = new Uint8Array(2 * (to - from))
      halvesOf(numbers, dtype, clip, bytes)
      return bytes.subarray(start - 2 * from, end - 2 * from)
    })
  })
}

/** A weight as a half type, and how many of its values are clipped. */
export interface ConvertedWeight extends ClipCounts {
  readonly changed: DenseTensor
}

/** Elements of a weight that is converted when it is read to count, instead of being read again when the model is saved. */
const SMALL_ELEMENTS = 16 * 1024
/** Bytes that such weights of one model may take in memory. */
const SMALL_BYTES = 32 * 1024 * 1024

/** Converts the weights of a model. */
export class HalfWeights {
  readonly #dtype: HalfDtype
  readonly #clip: Clip
  readonly #signal: AbortSignal | undefined
  #smallBytes = 0

  constructor(dtype: HalfDtype, clip: Clip, signal: AbortSignal | undefined) {
    this.#dtype = dtype
    this.#clip = clip
    this.#signal = signal
  }

  /** Large weights become lazy tensors. */
  async convert(tensor: DenseTensor): Promise<ConvertedWeight> {
    const bytes = 2 * tensor.size
    if (tensor.size <= SMALL_ELEMENTS && this.#smallBytes + bytes <= SMALL_BYTES) {
      this.#smallBytes += bytes
      return this.#small(tensor)
    }
    const counts = await countClipped(tensor, this.#clip, this.#signal)
    return { changed: halfTensor(tensor, this.#dtype, this.#clip), ...counts }
  }

  async #small(tensor: DenseTensor): Promise<ConvertedWeight> {
    throwIfAborted(this.#signal)
    const { name, shape, size } = tensor
    const dtype = this.#dtype
    const bytes = new Uint8Array(2 * size)
    const counts = await withWindow(size, async (numbers) => {
      await new FloatReader(tensor).fill(0, numbers)
      return halvesOf(numbers, dtype, this.#clip, bytes)
    })
    const source = new MemorySource(bytes, `tensor "${name}"`)
    return { changed: new StoredTensor({ source, start: 0, dtype, shape, name }), ...counts }
  }
}

/** Clips the numbers in place and writes them to `bytes`. */
function halvesOf(
  numbers: Float32Array<ArrayBuffer>,
  dtype: HalfDtype,
  clip: Clip,
  bytes: Uint8Array,
): ClipCounts {
  const counts = clipMagnitudes(numbers, clip.min, clip.max)
  cast(tensorOf(numbers), dtype).copyToSync(bytes)
  return counts
}

/** Reads the tensor once and counts the values that `halfTensor` clips. */
async function countClipped(tensor: DenseTensor, clip: Clip, signal?: AbortSignal): Promise<ClipCounts> {
  let [clipped, lifted] = [0, 0]
  await new FloatReader(tensor).each(signal, (numbers) => {
    const counts = clipMagnitudes(numbers, clip.min, clip.max)
    clipped += counts.clipped
    lifted += counts.lifted
  })
  return { clipped, lifted }
}
