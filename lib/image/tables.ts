/**
 * What a sample becomes, as a table: one element for each value that a sample can have, per channel of the result. A table gives
 * any rule exactly, and one lookup per sample replaces its arithmetic.
 */
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { affine } from '../tensor/affine.js'
import { cast } from '../tensor/cast.js'
import { tensor } from '../tensor/from_values.js'
import { isCodeType } from '../tensor/quantization.js'
import { quantize } from '../tensor/quantize.js'
import type { DenseTensor } from '../tensor/tensor.js'
import { RecentValues } from './recent_values.js'

/** From samples to elements: `(sample - mean) / std`, then the element type. */
export interface Numbers {
  readonly mean?: number | readonly number[] | undefined
  readonly std?: number | readonly number[] | undefined
  readonly dtype: Dtype
  /** Of quantized results: `round(x / scale) + zeroPoint`, saturated. */
  readonly scale?: number | undefined
  readonly zeroPoint?: number | undefined
}

export interface Tables {
  readonly dtype: Dtype
  readonly elementBytes: number
  /** [channels, values of a sample] elements. */
  readonly tables: Uint8Array
  /** The element that stands for the number 0. */
  readonly zero: Uint8Array
}

/** Thousands of tables of 8-bit samples, or eight of the largest for 16 bits. */
const MAX_CACHED_TABLE_BYTES = 16_777_216

const recent = new RecentValues<Tables>(MAX_CACHED_TABLE_BYTES, ({ tables }) => tables.byteLength)

/**
 * @param channels - of the result
 * @throws TileworkError as `affine` and `quantize`
 */
export function tablesOf(numbers: Numbers, channels: number, sampleBytes: 1 | 2): Tables {
  return recent.get(JSON.stringify(['affine', numbers, channels, sampleBytes]), () => {
    const { mean, std, dtype } = numbers
    const isPerChannel = typeof mean === 'object' || typeof std === 'object'
    const scaling = { ...(mean !== undefined && { mean }), ...(std !== undefined && { std }) }
    const isFloat = DTYPES[dtype].kind === 'float' && numbers.scale === undefined
    const normal = affine(samplesOf(channels, sampleBytes), {
      ...scaling,
      ...(isPerChannel && { axis: 0 }),
      dtype: isFloat ? dtype : 'float32',
    })
    return { ...encoded(normal, numbers), zero: encoded(constant(0), numbers).tables }
  })
}

/** Tables of float32 values that the caller computes: of each channel, one per value of a sample of 8 bits. */
export function tablesOfValues(key: string, numbers: Numbers, values: () => readonly Float32Array[]): Tables {
  return recent.get(JSON.stringify([key, numbers]), () => {
    const channels = values()
    const all = new Float32Array(channels.length * 256)
    for (const [channel, row] of channels.entries()) all.set(row, channel * 256)
    return { ...encoded(tensor(all), numbers), zero: encoded(constant(0), numbers).tables }
  })
}

function constant(value: number): DenseTensor {
  return tensor(Float32Array.of(value))
}

/** Every value of a sample, once per channel. */
function samplesOf(channels: number, sampleBytes: 1 | 2): DenseTensor {
  const count = sampleBytes === 1 ? 256 : 65_536
  const Samples = sampleBytes === 1 ? Uint8Array : Uint16Array
  // Typed arrays keep the low bits of a number.
  const samples = new Samples(Array.from({ length: channels * count }, (_, at) => at))
  return tensor(samples, { shape: [channels, count] })
}

function encoded(values: DenseTensor, numbers: Numbers): Omit<Tables, 'zero'> {
  const { dtype } = numbers
  const tables = new Uint8Array(elementsOf(values, numbers).bytesSync())
  return { dtype, elementBytes: packedByteLength(dtype, 1), tables }
}

/** The numbers in their element type. @throws TileworkError as `quantize` and `cast` */
export function elementsOf(values: DenseTensor, { dtype, scale, zeroPoint }: Numbers): DenseTensor {
  if (isCodeType(dtype) && (DTYPES[dtype].kind !== 'float' || scale !== undefined)) {
    return quantize(values, dtype, { scale: scale ?? 1, zeroPoint: zeroPoint ?? 0 })
  }
  if (scale !== undefined || zeroPoint !== undefined) {
    const message = `dtype is ${dtype}; scale and zeroPoint make quantized elements, such as uint8 and int8.`
    throw new TileworkError('ERR_DTYPE', message)
  }
  if (values.dtype === dtype) return values
  // Wider integers hold every code of int32, and samples are far below its limits.
  const isInteger = DTYPES[dtype].kind === 'int' || DTYPES[dtype].kind === 'uint'
  return cast(isInteger ? quantize(values, 'int32', { scale: 1 }) : values, dtype)
}
