/** Recognises tensors by their fields and methods, tilework's own and the caller's. */

import { readInput } from '../caller_input.js'
import { isBlockDtype } from '../dtype/block_types.js'
import { isDtypeName } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { dequantized } from './block_tensor.js'
import type { AnyTensor, BlockTensor, DenseTensor, SparseTensor, StringTensor, Tensor } from './tensor.js'

/**
 * @param call - the called function, for the message
 * @throws TileworkError ERR_ARGUMENT unless `value` has the fields and methods of a dense tensor
 */
export function checkDense(value: unknown, call: string): DenseTensor {
  return readInput('The tensor', () => {
    if (isDenseTensor(value)) return value
    const message = `${call} takes a dense tensor; ${valueText(value)} was given. asTensor makes tensors of arrays and onnxruntime's outputs.`
    throw new TileworkError('ERR_ARGUMENT', message)
  })
}

/**
 * As `checkDense`, for operations that only dense tensors support. Of blocks it gives the float32 numbers.
 *
 * @param only - end of the sentence "only dense tensors …", for example `can be cast`
 * @throws TileworkError ERR_ARGUMENT for a value that is not a tensor, ERR_UNSUPPORTED for a tensor of another kind
 */
export function checkOnlyDense(value: AnyTensor, call: string, only: string): DenseTensor {
  return readInput('The tensor', () => {
    if (value?.kind === 'sparse' || value?.kind === 'string') {
      const message = `tensor "${value.name}" is a ${value.kind} tensor; only dense tensors ${only}.`
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    return isBlockTensor(value) ? dequantized(value) : checkDense(value, call)
  })
}

/**
 * @param call - the called function, for the message
 * @param blocks - given where tensors of blocks are taken too
 * @throws TileworkError ERR_ARGUMENT unless `value` has the fields and methods of a tensor of its kind
 */
export function checkTensor(value: unknown, call: string): Tensor
export function checkTensor(value: unknown, call: string, blocks: 'or blocks'): AnyTensor
export function checkTensor(value: unknown, call: string, blocks?: 'or blocks'): AnyTensor {
  return readInput('The tensor', () => {
    if (isDenseTensor(value) || isSparseTensor(value) || isStringTensor(value)) return value
    if (blocks && isBlockTensor(value)) return value
    throw new TileworkError('ERR_ARGUMENT', `${call} takes tensors; ${valueText(value)} was given.`)
  })
}

/** True for an object with the fields and methods of a dense tensor, whatever its class. */
export function isDenseTensor(value: unknown): value is DenseTensor {
  if (!isNamed(value, 'dense')) return false
  const { dtype, shape, storage, bytes, bytesSync } = value as Partial<DenseTensor>
  if (!isDtypeName(dtype) || !Array.isArray(shape)) return false
  if (typeof bytes !== 'function' || typeof bytesSync !== 'function') return false
  if (typeof storage !== 'object' || storage === null) return false
  const { layout, byteLength, lower, upper } = storage
  return typeof layout === 'string' && isCount(byteLength) && Array.isArray(lower) && Array.isArray(upper)
}

function isSparseTensor(value: unknown): value is SparseTensor {
  if (!isNamed(value, 'sparse')) return false
  const { dtype, shape, entryCount, indices, values } = value as Partial<SparseTensor>
  if (!isDtypeName(dtype) || !Array.isArray(shape) || !isCount(entryCount)) return false
  return typeof indices === 'function' && typeof values === 'function'
}

function isStringTensor(value: unknown): value is StringTensor {
  return isNamed(value, 'string') && typeof (value as Partial<StringTensor>).strings === 'function'
}

/** True for an object with the fields and methods of a tensor of blocks. */
export function isBlockTensor(value: unknown): value is BlockTensor {
  return readInput('The tensor', () => hasBlocks(value))
}

function hasBlocks(value: unknown): boolean {
  if (!isNamed(value, 'block')) return false
  const { dtype, shape, byteLength, bytes, bytesSync } = value as Partial<BlockTensor>
  if (!isBlockDtype(dtype) || !Array.isArray(shape) || !isCount(byteLength)) return false
  return typeof bytes === 'function' && typeof bytesSync === 'function'
}

function isNamed(value: unknown, kind: AnyTensor['kind']): boolean {
  if (typeof value !== 'object' || value === null) return false
  const tensor = value as Partial<AnyTensor>
  return tensor.kind === kind && typeof tensor.name === 'string'
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
