/** Quantization parameters: which scales and zero points are valid, and which elements each applies to. */
import { types } from 'node:util'
import { checkOneOf, readInput } from '../caller_input.js'
import type { ScalingStep } from '../dtype/cast_step.js'
import { DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** The numbers that map codes to real values: `real = (code - zeroPoint) * scale`. */
export interface QuantizationParameters {
  /** One for the whole tensor, one per index of `axis`, or one per block in row-major order. */
  readonly scale: number | ArrayLike<number>
  /** The code of the real value 0: one for all scales, or one per scale. Default 0. */
  readonly zeroPoint?: number | ArrayLike<number>
  /** The axis along which scales differ; a negative axis counts from the last. Required for more than one scale. */
  readonly axis?: number
  /**
   * Elements along `axis` that share a scale, as ONNX's block_size; the last block may be shorter. Every index of the other axes
   * has its own scales, so scales have the tensor's shape with the extent of `axis` divided by `blockSize`, rounded up.
   */
  readonly blockSize?: number
}

/** Scales and offsets per block, as a scaling step takes them. */
export type BlockedParameters = Pick<ScalingStep, 'scales' | 'offsets' | 'blocks'>

/** The names of the numbers in messages, and which values are refused. */
export interface ParameterNames {
  readonly scale: string
  readonly offset: string
  /** @returns why the number is refused, or undefined */
  readonly refuseScale: (value: number) => string | undefined
  readonly refuseOffset: (value: number) => string | undefined
}

/**
 * Checked parameters for the elements of a tensor of `shape`.
 *
 * @throws TileworkError ERR_QUANTIZATION, ERR_ARGUMENT
 */
export function blockedParameters(
  shape: readonly number[],
  scale: unknown,
  offset: unknown,
  place: { readonly axis?: unknown; readonly blockSize?: unknown },
  names: ParameterNames,
): BlockedParameters {
  const scales = numbersOf(scale, names.scale, names.refuseScale)
  const offsets = numbersOf(offset, names.offset, names.refuseOffset)
  if (scales.length !== offsets.length && scales.length !== 1 && offsets.length !== 1) {
    throw quantizationError(
      `${count(scales, names.scale)} and ${count(offsets, names.offset)} were given; the counts must be equal, or one of them 1`,
    )
  }
  const length = Math.max(scales.length, offsets.length)
  const blocks = blocksOf(shape, length, place, scales.length < length ? names.offset : names.scale)
  return { scales: spread(scales, length), offsets: spread(offsets, length), blocks }
}

function count(numbers: Float64Array, name: string): string {
  return `${numbers.length} ${name}${numbers.length === 1 ? '' : 's'}`
}

function spread(numbers: Float64Array, length: number): Float64Array {
  return numbers.length === length ? numbers : new Float64Array(length).fill(numbers[0]!)
}

function numbersOf(
  value: unknown,
  name: string,
  refuse: (value: number) => string | undefined,
): Float64Array {
  const numbers = readInput(`The ${name}`, () => {
    if (typeof value === 'number') return Float64Array.of(value)
    const list = value as ArrayLike<unknown>
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))
    if (!isList || list.length === 0) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${name} is ${valueText(value)}; it must be a number or a list of numbers.`,
      )
    }
    // Numbers already: a check of each takes longer than all else for a million blocks.
    if (types.isFloat64Array(value) || types.isFloat32Array(value)) return new Float64Array(value)
    const copy = new Float64Array(list.length)
    for (let at = 0; at < copy.length; at++) {
      const number = list[at]
      if (typeof number !== 'number' && typeof number !== 'bigint') {
        const message = `${name}[${at}] is ${valueText(number)}; it must be a number.`
        throw new TileworkError('ERR_ARGUMENT', message)
      }
      copy[at] = Number(number)
    }
    return copy
  })
  for (let at = 0; at < numbers.length; at++) {
    const reason = refuse(numbers[at]!)
    if (reason) throw quantizationError(`${name}[${at}] is ${numbers[at]}; ${reason}`)
  }
  return numbers
}

function blocksOf(
  shape: readonly number[],
  length: number,
  { axis, blockSize }: { readonly axis?: unknown; readonly blockSize?: unknown },
  name: string,
): readonly number[] {
  const at = axis === undefined ? undefined : checkAxis(axis, shape)
  if (blockSize !== undefined) checkBlockSize(blockSize, at)
  if (length === 1) return shape
  if (at === undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${length} ${name}s were given without 'axis', which is required for more than one.`,
    )
  }
  const blocks = shape.map((extent, other) => {
    if (blockSize === undefined) return other === at ? 1 : Math.max(extent, 1)
    return other === at ? (blockSize as number) : 1
  })
  const counts = shape.map((extent, other) => Math.ceil(extent / blocks[other]!))
  const needed = counts.reduce((product, counted) => product * counted, 1)
  // An empty tensor takes any number of scales.
  if (needed !== length && !shape.includes(0)) {
    const whose =
      blockSize === undefined ? `axis ${at} takes` : `blocks of ${blockSize} along axis ${at} take`
    throw quantizationError(`${length} ${name}s were given; ${whose} ${needed} for the shape [${shape}]`)
  }
  return blocks
}

function checkAxis(axis: unknown, shape: readonly number[]): number {
  const rank = shape.length
  if (Number.isInteger(axis) && (axis as number) >= -rank && (axis as number) < rank) {
    return (axis as number) < 0 ? (axis as number) + rank : (axis as number)
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `axis is ${valueText(axis)}; it must be a whole number from ${-rank} to ${rank - 1}.`,
  )
}

function checkBlockSize(blockSize: unknown, axis: number | undefined): void {
  if (!Number.isSafeInteger(blockSize) || (blockSize as number) < 1) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `blockSize is ${valueText(blockSize)}; it must be a whole number of at least 1.`,
    )
  }
  if (axis === undefined)
    throw new TileworkError(
      'ERR_ARGUMENT',
      `blockSize is ${valueText(blockSize)} without 'axis'; a block extends along an axis.`,
    )
}

export function quantizationError(reason: string): TileworkError {
  return new TileworkError('ERR_QUANTIZATION', `${reason}.`)
}

/** Whose arithmetic makes codes and their parameters: ONNX's operators, or the tools that write tmfiles. */
export type QuantizationRules = ScalingStep['rules']

/** @throws TileworkError ERR_ARGUMENT for unknown rules */
export function checkRules(rules: unknown): QuantizationRules {
  return checkOneOf(rules, 'rules', ['onnx', 'tmfile'])
}

/** @throws TileworkError ERR_DTYPE unless it is an element type that holds quantized codes */
export function resolveCodeType(name: DtypeName): Dtype {
  const dtype = resolveDtype(name)
  if (isCodeType(dtype)) return dtype
  const message = `element type ${dtype} holds no quantized codes; allowed are integers up to 32 bits, uint16, float8 types except float8_e8m0fnu, float6 types, and float4_e2m1fn`
  throw new TileworkError('ERR_DTYPE', message)
}

/** True for types of which some values, and not only codes, are meant: no codes are made of them by scaling. */
export function isCodeType(dtype: Dtype): boolean {
  const { kind, bits } = DTYPES[dtype]
  if (kind === 'float') return bits <= 8 && dtype !== 'float8_e8m0fnu'
  return (kind === 'int' && bits <= 32) || (kind === 'uint' && bits <= 16)
}

/**
 * The names and bounds of quantization parameters. A scale of 0, which files write for "unknown", is refused.
 *
 * @param codes - element type of the codes
 * @param isWide - scales are computed in float64, else in float32
 * @param isSigned - scales may be below 0
 */
export function quantizationNames(codes: Dtype, isWide: boolean, isSigned = false): ParameterNames {
  const { kind, limits } = DTYPES[codes]
  const refuseScale = (value: number): string | undefined => {
    const used = (isWide ? value : Math.fround(value)) * (isSigned && value < 0 ? -1 : 1)
    return used > 0 && used < Number.POSITIVE_INFINITY ? undefined : 'a scale must be finite and above 0'
  }
  const refuseOffset = (value: number): string | undefined => {
    if (kind === 'float') return value === 0 ? undefined : `the zero point of ${codes} must be 0`
    const isCode = Number.isInteger(value) && value >= limits!.min && value <= limits!.max
    return isCode
      ? undefined
      : `a zero point of ${codes} must be a whole number from ${limits!.min} to ${limits!.max}`
  }
  return { scale: 'scale', offset: 'zeroPoint', refuseScale, refuseOffset }
}
