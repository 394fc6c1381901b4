/**
 * Whether a constant becomes float16, and its values then, as `save_model(compress_to_fp16=True)` of openvino 2026.4.1 decides:
 * measured on 600 random constants of 1 to 40 elements. Older versions know the limit of out-of-range values alone.
 */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { throwIfAborted } from '../../cancel.js'
import { asTensor } from '../../tensor/adapters.js'
import { cast } from '../../tensor/cast.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { DenseTensor } from '../../tensor/tensor.js'

/** Largest finite float16. */
const MAX_FLOAT16 = 65504
/** Smallest float16 above 0. */
const MIN_FLOAT16 = 2 ** -24
/** A constant stays if one of its values in range changes by more. */
const MAX_ABSOLUTE_CHANGE = 1
/** A value that changes by a larger part of itself counts as one that does not fit. */
const MAX_RELATIVE_CHANGE = 1e-3
/** The same for a constant of one element, such as 0.1. */
const MAX_RELATIVE_CHANGE_OF_ONE = 1e-4
/** A constant stays if this part of its values does not fit. */
const KEEP_SHARE = 0.75

/** Elements that are looked at at a time: a window and its rounded values stay in the cache of a core. */
const WINDOW_ELEMENTS = 2 ** 17

export interface Fit {
  /** Why it stays as it is; undefined where it becomes float16. */
  readonly reason?: string
  /** Values that are reduced to the largest magnitude, infinities included. */
  readonly clipped: number
  /** True where a cast alone gives other values than the reference: see `fitted`. */
  readonly needsFit: boolean
}

/** @param tensor - float32 or float64, plain and row-major */
export async function fitFloat16(tensor: DenseTensor, signal: AbortSignal | undefined): Promise<Fit> {
  const { size } = tensor
  const isDouble = tensor.dtype === 'float64'
  const most = size === 1 ? MAX_RELATIVE_CHANGE_OF_ONE : MAX_RELATIVE_CHANGE
  let [clipped, rejected, needsFit] = [0, 0, false]
  if (size === 0) return { reason: 'it has no elements', clipped, needsFit }
  for (let start = 0; start < size; start += WINDOW_ELEMENTS) {
    throwIfAborted(signal)
    const values = await windowOf(tensor, start, Math.min(size, start + WINDOW_ELEMENTS))
    const rounded = await cast(roundedTensor(values), 'float32').toTypedArray()
    for (let index = 0; index < values.length; index++) {
      const value = values[index]!
      const magnitude = Math.abs(value)
      if (magnitude <= MAX_FLOAT16 && (magnitude >= MIN_FLOAT16 || magnitude === 0)) {
        const change = Math.abs(value - rounded[index]!)
        if (change > MAX_ABSOLUTE_CHANGE)
          return { reason: `a value would change by ${change}`, clipped, needsFit }
        if (change > most * magnitude) rejected += 1
        continue
      }
      // A NaN of float64 has a float16.
      if (!isDouble || !Number.isNaN(value)) rejected += 1
      if (magnitude > MAX_FLOAT16) clipped += 1
      if (magnitude > MAX_FLOAT16 || isDouble === magnitude < MIN_FLOAT16) needsFit = true
    }
  }
  if (rejected / size < KEEP_SHARE) return { clipped, needsFit }
  return { reason: `${rejected} of ${size} values do not fit`, clipped, needsFit }
}

/**
 * The value before it is rounded. The reference clips to the range; it makes a NaN of float32 the largest number and keeps that of
 * float64; it rounds tiny numbers of float32 and makes those of float64 zero, also -0.
 */
function fitted(value: number, isDouble: boolean): number {
  if (Number.isNaN(value)) return isDouble ? value : MAX_FLOAT16
  if (isDouble && Math.abs(value) < MIN_FLOAT16) return 0
  return Math.max(-MAX_FLOAT16, Math.min(MAX_FLOAT16, value))
}

/** The values of a constant as float16. */
export function asFloat16(tensor: DenseTensor, { needsFit }: Fit): DenseTensor {
  // Numbers of float64 are rounded twice, as by the reference.
  if (!needsFit) return cast(cast(tensor, 'float32'), 'float16')
  const { shape, name } = tensor
  return new StoredTensor({ source: new FittedSource(tensor), start: 0, dtype: 'float16', shape, name })
}

type Values = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>

async function windowOf(tensor: DenseTensor, start: number, end: number): Promise<Values> {
  const values = tensor.dtype === 'float64' ? new Float64Array(end - start) : new Float32Array(end - start)
  await tensor.copyTo(new Uint8Array(values.buffer), { start: start * values.BYTES_PER_ELEMENT })
  return values
}

function roundedTensor(values: Values): DenseTensor {
  return cast(cast(asTensor(values, { shape: [values.length] }) as DenseTensor, 'float32'), 'float16')
}

const FLOAT16_BYTES = 2

/** Values as float16 where some are not what a cast gives. */
class FittedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #tensor: DenseTensor

  constructor(tensor: DenseTensor) {
    this.#tensor = tensor
    this.byteLength = FLOAT16_BYTES * tensor.size
    this.label = `tensor "${tensor.name}" as float16`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const first = Math.floor(start / FLOAT16_BYTES)
    const values = await windowOf(this.#tensor, first, Math.ceil(end / FLOAT16_BYTES))
    const isDouble = this.#tensor.dtype === 'float64'
    for (const [index, value] of values.entries()) values[index] = fitted(value, isDouble)
    const bytes = await roundedTensor(values).bytes()
    return bytes.subarray(start - first * FLOAT16_BYTES, end - first * FLOAT16_BYTES)
  }
}
