/** Quantizes real numbers to codes and back, lazily. Both are linear maps that execute in one pass with casts and reorders. */
import { checkFlag, checkOptions, readInput } from '../caller_input.js'
import { isBlockDtype } from '../dtype/block_types.js'
import type { ScalingStep } from '../dtype/cast_step.js'
import { type CanonicalDtype, DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { type BlockNumbers, dequantized, isBlockNumbers } from './block_tensor.js'
import { changeElements } from './change_elements.js'
import { checkOnlyDense, isBlockTensor } from './check_tensor.js'
import { encodedBlocks, type QuantizedBlockDtype } from './encode_blocks.js'
import {
  blockedParameters,
  checkRules,
  isCodeType,
  type QuantizationParameters,
  type QuantizationRules,
  quantizationNames,
  resolveCodeType,
} from './quantization.js'
import type { AnyTensor, BlockTensor, DenseTensor } from './tensor.js'

export interface QuantizeOptions extends QuantizationParameters {
  /**
   * For float8 types: true (default) clamps overflow to the largest number; false gives an infinity, or NaN where the type has
   * no infinity. Integers always clamp.
   */
  readonly saturate?: boolean
  /**
   * `onnx` (default): `round(x / scale) + zeroPoint`, ties to even. `tmfile`, as Tengine's tools:
   * `round(x / scale + zeroPoint)`, ties away from zero, int8 from -127.
   */
  readonly rules?: QuantizationRules
}

export interface DequantizeOptions<Name extends DtypeName = DtypeName> extends QuantizationParameters {
  /** Type of the result: float32 by default, float16, bfloat16 or float64. */
  readonly dtype?: Name
}

/**
 * A tensor of real numbers as blocks, with the bits of the package gguf. Lazy: reads throw ERR_QUANTIZATION for numbers that are
 * not finite, and where a scale overflows float16.
 *
 * @param tensor - a dense tensor in any layout; its last axis is a multiple of the elements of a block
 * @throws TileworkError ERR_LAYOUT_SHAPE for rows that are no whole blocks; ERR_DTYPE, ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_NO_DATA
 */
export function quantize(tensor: AnyTensor, dtype: QuantizedBlockDtype): BlockTensor
/**
 * The codes of a tensor of real numbers, with the same name, shape and layout. Lazy, one pass over memory together with
 * casts, slices and reorders before and after it.
 *
 * Integers: `round(x / scale) + zeroPoint`, clamped to the type, ONNX's QuantizeLinear; NaN becomes the zero point. The
 * quotient is a float32, a float64 for float64 and for integers of 32 bits and more. float8 and float4: the quotient,
 * cast. docs/quantization.md has every rule.
 *
 * @param tensor - a dense tensor of real numbers in any layout
 * @param dtype - int2 to int32, uint2 to uint16, a float8 type but float8_e8m0fnu, a float6 type, float4_e2m1fn
 * @throws TileworkError now, not later: ERR_QUANTIZATION for scales that are not above 0 and finite, for zero points that
 * are not codes, and where there are not as many as the tensor has indices or blocks; ERR_DTYPE, ERR_ARGUMENT,
 * ERR_UNSUPPORTED, ERR_NO_DATA
 */
export function quantize<Name extends DtypeName>(
  tensor: AnyTensor,
  dtype: Name,
  options: QuantizeOptions,
): DenseTensor<CanonicalDtype<Name>>
export function quantize(
  tensor: AnyTensor,
  dtype: DtypeName | QuantizedBlockDtype,
  options?: QuantizeOptions,
): DenseTensor | BlockTensor {
  const dense = checkNumbers(tensor, 'quantize')
  if (!isBlockDtype(dtype)) return quantizeCodes(dense, dtype, options!)
  checkOptions(options ?? {}, 'quantize to blocks', [])
  return encodedBlocks(dense, dtype)
}

/** As `quantize` to codes. */
export function quantizeCodes(dense: DenseTensor, dtype: DtypeName, options: QuantizeOptions): DenseTensor {
  const to = resolveCodeType(dtype)
  const { kind } = DTYPES[dense.dtype]
  if (kind === 'complex') throw notReal(dense)
  checkOptions(options, 'quantize', ['scale', 'zeroPoint', 'axis', 'blockSize', 'saturate', 'rules'])
  return changeElements(
    dense,
    readInput('The options of quantize', () => quantizeStep(dense, to, options)),
  )
}

function quantizeStep(dense: DenseTensor, to: Dtype, options: QuantizeOptions): ScalingStep {
  const { scale, zeroPoint = 0, axis, blockSize, saturate = true, rules = 'onnx' } = options
  checkRules(rules)
  checkFlag(saturate, 'saturate')
  const { bits } = DTYPES[dense.dtype]
  const isWide = (bits >= 32 && dense.dtype !== 'float32') || to === 'int32'
  const names = quantizationNames(to, isWide)
  const parameters = blockedParameters(dense.shape, scale, zeroPoint, { axis, blockSize }, names)
  return { kind: 'quantize', from: dense.dtype, to, rules, saturate, ...parameters }
}

/** What `dequantize` takes for a tensor of blocks, which has its own scales. */
export interface BlockDequantizeOptions<Name extends BlockNumbers = BlockNumbers> {
  /** Type of the result: float32 by default, float16 or bfloat16. */
  readonly dtype?: Name
}

/**
 * The numbers of a tensor of blocks as a dense row-major tensor of the same name and shape, exact for float32 and rounded once
 * from it for float16 and bfloat16. Lazy.
 *
 * @throws TileworkError ERR_DTYPE for another element type, ERR_ARGUMENT for other options
 */
export function dequantize<Name extends BlockNumbers = 'float32'>(
  tensor: BlockTensor,
  options?: BlockDequantizeOptions<Name>,
): DenseTensor<Name>
/**
 * The real numbers of a tensor of codes, `(code - zeroPoint) * scale`, with the same name, shape and layout, as ONNX's
 * DequantizeLinear. Lazy.
 *
 * @param tensor - a dense tensor of an element type that `quantize` makes, in any layout
 * @throws TileworkError as `quantize`
 */
export function dequantize<Name extends DtypeName = 'float32'>(
  tensor: AnyTensor,
  options: DequantizeOptions<Name>,
): DenseTensor<CanonicalDtype<Name>>
export function dequantize(
  tensor: AnyTensor,
  options: DequantizeOptions | BlockDequantizeOptions = {},
): DenseTensor {
  if (isBlockTensor(tensor)) return dequantizeBlocks(tensor, options as BlockDequantizeOptions)
  return dequantizeCodes(tensor, options as DequantizeOptions)
}

function dequantizeCodes(tensor: AnyTensor, options: DequantizeOptions): DenseTensor {
  const dense = checkNumbers(tensor, 'dequantize')
  if (!isCodeType(dense.dtype)) {
    throw new TileworkError(
      'ERR_DTYPE',
      `tensor "${dense.name}" is ${dense.dtype}, which is not a type of codes.`,
    )
  }
  checkOptions(options, 'dequantize', ['scale', 'zeroPoint', 'axis', 'blockSize', 'dtype'])
  return changeElements(
    dense,
    readInput('The options of dequantize', () => dequantizeStep(dense, options)),
  )
}

function dequantizeBlocks(tensor: BlockTensor, options: BlockDequantizeOptions): DenseTensor {
  checkOptions(options, 'dequantize', ['dtype'])
  const to = readInput('The options of dequantize', () => resolveDtype(options.dtype ?? 'float32'))
  if (isBlockNumbers(to)) return dequantized(tensor, to)
  throw new TileworkError(
    'ERR_DTYPE',
    `blocks are dequantized to float32, float16 or bfloat16; dtype is ${to}`,
  )
}

/** As `dequantize`; scales may also be below 0, which onnxruntime's tools give to symmetric blocks. */
export function dequantizeSigned(dense: DenseTensor, parameters: QuantizationParameters): DenseTensor {
  return changeElements(dense, dequantizeStep(dense, parameters, true))
}

const REAL_TYPES: readonly Dtype[] = ['float32', 'float16', 'bfloat16', 'float64']

function dequantizeStep(dense: DenseTensor, options: DequantizeOptions, isSigned = false): ScalingStep {
  const { scale, zeroPoint = 0, axis, blockSize, dtype = 'float32' } = options
  const to = resolveDtype(dtype)
  if (!REAL_TYPES.includes(to)) {
    throw new TileworkError('ERR_DTYPE', `dequantize cannot give ${to}; allowed are ${REAL_TYPES.join(', ')}`)
  }
  const names = quantizationNames(dense.dtype, to === 'float64', isSigned)
  const parameters = blockedParameters(dense.shape, scale, zeroPoint, { axis, blockSize }, names)
  return { kind: 'dequantize', from: dense.dtype, to, rules: 'onnx', saturate: true, ...parameters }
}

/** @param call - the called function, for messages. @throws TileworkError ERR_ARGUMENT, ERR_UNSUPPORTED for other kinds */
export function checkNumbers(tensor: AnyTensor, call: string): DenseTensor {
  return checkOnlyDense(tensor, call, `can be given to ${call}`)
}

export function notReal({ name, dtype }: DenseTensor): TileworkError {
  return new TileworkError('ERR_DTYPE', `tensor "${name}" is ${dtype}; its elements must be real numbers.`)
}
