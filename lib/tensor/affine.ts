/** Scales and shifts the elements of a tensor, lazily: the normalisation of images and features before inference. */
import { checkOptions, readInput } from '../caller_input.js'
import type { ScalingStep } from '../dtype/cast_step.js'
import { type CanonicalDtype, DTYPES, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { changeElements } from './change_elements.js'
import {
  type BlockedParameters,
  blockedParameters,
  type ParameterNames,
  quantizationError,
} from './quantization.js'
import { checkNumbers, notReal } from './quantize.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/** Either `scale` and `bias`, or `mean` and `std`: one number for all elements, or one per index of `axis`. */
export interface AffineOptions<Name extends DtypeName = DtypeName> {
  /** Default 1. */
  readonly scale?: number | ArrayLike<number>
  /** Default 0. */
  readonly bias?: number | ArrayLike<number>
  /** The result is `(x - mean) / std`. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Not 0. Default 1. */
  readonly std?: number | ArrayLike<number>
  /** The axis whose indices have their own numbers; a negative axis counts from the last. */
  readonly axis?: number
  /** Element type of the result: any float; default float32. */
  readonly dtype?: Name
}

/**
 * `x * scale + bias` for every element, with the same name, shape and layout. Rounded once, to float32 (to float64 for
 * float64 input, integers of 32 bits and more, and a float64 result), then cast to `dtype`. Lazy: together with a reorder from
 * NHWC to NCHW it is one pass over memory.
 *
 * @param tensor - a dense tensor of real numbers in any layout
 * @throws TileworkError at once: ERR_QUANTIZATION for numbers that are not finite, for a std of 0, and for another count of
 * numbers than `axis` has indices; ERR_DTYPE, ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_NO_DATA
 */
export function affine<Name extends DtypeName = 'float32'>(
  tensor: AnyTensor,
  options: AffineOptions<Name>,
): DenseTensor<CanonicalDtype<Name>>
export function affine(tensor: AnyTensor, options: AffineOptions): DenseTensor {
  const dense = checkNumbers(tensor, 'affine')
  if (DTYPES[dense.dtype].kind === 'complex') throw notReal(dense)
  checkOptions(options, 'affine', ['scale', 'bias', 'mean', 'std', 'axis', 'dtype'])
  return changeElements(
    dense,
    readInput('The options of affine', () => affineStep(dense, options)),
  )
}

function affineStep(dense: DenseTensor, options: AffineOptions): ScalingStep {
  const { scale, bias, mean, std, axis, dtype = 'float32' } = options
  const to = resolveDtype(dtype)
  if (DTYPES[to].kind !== 'float') {
    throw new TileworkError('ERR_DTYPE', `affine makes floats; dtype is ${to}.`)
  }
  const isNormal = mean !== undefined || std !== undefined
  if (isNormal && (scale !== undefined || bias !== undefined)) {
    throw new TileworkError('ERR_ARGUMENT', 'affine takes scale and bias, or mean and std, not both.')
  }
  const { bits } = DTYPES[dense.dtype]
  const isWide = (bits >= 32 && dense.dtype !== 'float32') || to === 'float64'
  const names = affineNames(isNormal, isWide)
  const given = isNormal
    ? normalizing(blockedParameters(dense.shape, std ?? 1, mean ?? 0, { axis }, names), isWide)
    : blockedParameters(dense.shape, scale ?? 1, bias ?? 0, { axis }, names)
  return { kind: 'affine', from: dense.dtype, to, rules: 'onnx', saturate: true, ...given }
}

/** `(x - mean) / std` as `x * (1 / std) + (-mean / std)`. @param isWide - computed in float64, else in float32 */
function normalizing(given: BlockedParameters, isWide: boolean): BlockedParameters {
  const { scales: stds, offsets: means, blocks } = given
  const offsets = means.map((mean, at) => -mean / stds[at]!)
  const bad = offsets.findIndex((offset) => !Number.isFinite(isWide ? offset : Math.fround(offset)))
  if (bad >= 0) {
    const type = isWide ? 'float64' : 'float32'
    throw quantizationError(
      `mean[${bad}] is ${means[bad]} and std[${bad}] ${stds[bad]}; mean / std is beyond ${type}`,
    )
  }
  return { scales: stds.map((std) => 1 / std), offsets, blocks }
}

/** The names and bounds of the numbers. @param isWide - computed in float64, else in float32 */
function affineNames(isNormal: boolean, isWide: boolean): ParameterNames {
  const staysFinite = (value: number): boolean => Number.isFinite(isWide ? value : Math.fround(value))
  const refuseInfinite = (value: number): string | undefined =>
    staysFinite(value) ? undefined : 'it must be finite'
  const refuseStd = (value: number): string | undefined =>
    staysFinite(1 / value) && 1 / value !== 0 ? undefined : 'it must be finite and not 0'
  return isNormal
    ? { scale: 'std', offset: 'mean', refuseScale: refuseStd, refuseOffset: refuseInfinite }
    : { scale: 'scale', offset: 'bias', refuseScale: refuseInfinite, refuseOffset: refuseInfinite }
}
