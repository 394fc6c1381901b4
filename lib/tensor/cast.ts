/** Converts the elements of a tensor to another type, lazily. Casts, reorders and slices execute in one pass over memory. */
import { checkOptions, readInput } from '../caller_input.js'
import type { CastOptions, CastStep } from '../dtype/cast_step.js'
import { type CanonicalDtype, DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { dequantized, isBlockNumbers } from './block_tensor.js'
import { changeElements } from './change_elements.js'
import { checkOnlyDense, isBlockTensor } from './check_tensor.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

const MODES = ['spec', 'onnx'] as const
const ROUNDS = ['up', 'nearest', 'down'] as const

/**
 * The tensor with its elements converted to `dtype`, with the same name, shape and layout. Lazy.
 *
 * | from, to | rule |
 * |---|---|
 * | float to float | rounded once, to nearest with ties to even; overflow gives an infinity, or see `saturate` |
 * | float to integer | toward zero; out of range clamps, NaN gives 0; to 4 and 2 bits: to nearest even, then the low bits |
 * | integer to integer | the low bits |
 * | any to bool | 0 and -0 are false, all other values are true |
 * | real to complex | the imaginary half is 0 |
 *
 * A second cast rounds a second time, as it does for a tensor in memory. docs/casts.md has every rule.
 *
 * @param tensor - a dense tensor in any layout, or a tensor of blocks, whose numbers are cast from float32
 * @throws TileworkError at once: ERR_DTYPE for an unknown type and for complex to real, ERR_UNSUPPORTED for strings and for
 * tensors that are not dense; ERR_ARGUMENT, ERR_NO_DATA
 */
export function cast<Name extends DtypeName>(
  tensor: AnyTensor,
  dtype: Name,
  options?: CastOptions,
): DenseTensor<CanonicalDtype<Name>>
export function cast(tensor: AnyTensor, dtype: DtypeName, options: CastOptions = {}): DenseTensor {
  const to = resolveDtype(dtype)
  // In one pass, and the same numbers: float16 and bfloat16 round float32 once.
  if (isBlockTensor(tensor) && isBlockNumbers(to)) return dequantized(tensor, to)
  const dense = checkOnlyDense(tensor, 'cast', 'can be cast')
  const step = stepOf(dense, to, options)
  return dense.dtype === step.to ? dense : changeElements(dense, step)
}

function stepOf(tensor: DenseTensor, to: Dtype, options: CastOptions): CastStep {
  if (to === 'string') {
    throw new TileworkError('ERR_UNSUPPORTED', `tensor "${tensor.name}" cannot be cast to string.`)
  }
  if (DTYPES[tensor.dtype].kind === 'complex' && DTYPES[to].kind !== 'complex') {
    throw new TileworkError(
      'ERR_DTYPE',
      `tensor "${tensor.name}" is ${tensor.dtype}; a cast to ${to} would drop the imaginary half.`,
    )
  }
  checkOptions(options, 'cast', ['mode', 'saturate', 'round'])
  const { mode, saturate, round } = readInput('The options of cast', () => readOptions(options))
  return { from: tensor.dtype, to, mode, saturate, round }
}

function readOptions({ mode = 'spec', saturate = true, round = 'up' }: CastOptions): Required<CastOptions> {
  if (!MODES.includes(mode)) throw wrongOption('mode', mode, MODES)
  if (!ROUNDS.includes(round)) throw wrongOption('round', round, ROUNDS)
  if (typeof saturate !== 'boolean') throw wrongOption('saturate', saturate, [true, false])
  return { mode, saturate, round }
}

function wrongOption(name: string, value: unknown, allowed: readonly unknown[]): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `${name} is ${valueText(value)}; it must be ${allowed.join(' or ')}.`,
  )
}
