/** Tells a dense tensor, tilework's own or a user's, from what is none. */
import { isDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { readInput } from './caller_input.js'
import { StoredTensor } from './dense.js'
import type { DenseTensor } from './tensor.js'
import { valueText } from './value_text.js'

/**
 * @param call - names the function in the message
 * @throws TileworkError ERR_ARGUMENT unless `value` has what every dense tensor has
 */
export function checkDense(value: unknown, call: string): DenseTensor {
  if (value instanceof StoredTensor || readInput('The tensor', () => isDenseTensor(value))) {
    return value as DenseTensor
  }
  throw new TileworkError('ERR_ARGUMENT', `${call} takes a dense tensor; ${valueText(value)} was given.`)
}

/** True for an object with the fields and methods of a dense tensor, whatever its class. */
export function isDenseTensor(value: unknown): value is DenseTensor {
  if (typeof value !== 'object' || value === null) return false
  const { kind, name, dtype, shape, storage, bytes, bytesSync } = value as Partial<DenseTensor>
  if (kind !== 'dense' || typeof name !== 'string' || !isDtype(dtype) || !Array.isArray(shape)) return false
  if (typeof bytes !== 'function' || typeof bytesSync !== 'function') return false
  if (typeof storage !== 'object' || storage === null) return false
  const { layout, byteLength, lower, upper } = storage
  return (
    typeof layout === 'string' &&
    Number.isSafeInteger(byteLength) &&
    byteLength >= 0 &&
    Array.isArray(lower) &&
    Array.isArray(upper)
  )
}
