/** Elements of small values of which all are known. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { filled, type KnownElements } from '../../onnx/evaluate/value.js'
import type { RewriteValue } from './rewrite_graph.js'

/** Element types of which each number is rounded. */
export const FLOATS: ReadonlySet<unknown> = new Set(['float16', 'bfloat16', 'float32', 'float64'])

/** Undefined where an element is not known. */
export function elementsOf(value: RewriteValue | undefined): KnownElements | undefined {
  const elements = value?.elements
  return elements && !elements.isPartial ? (elements.elements as KnownElements) : undefined
}

/** Whether all elements are a number, rounded as their type rounds it, and of its sign. */
export function isAll(value: RewriteValue | undefined, number: number | bigint | boolean): boolean {
  const elements = elementsOf(value) as ArrayLike<number | bigint> | undefined
  if (!elements || elements.length === 0) return false
  const wanted = asElement(value!.dtype, number)
  for (let at = 0; at < elements.length; at++) if (!Object.is(elements[at], wanted)) return false
  return true
}

/** The number as an element of a type; undefined where it has none. */
function asElement(dtype: Dtype | undefined, number: number | bigint | boolean): number | bigint | undefined {
  const value = Number(number)
  if (dtype === 'int64' || dtype === 'uint64') {
    if (typeof number === 'bigint') return number
    return Number.isInteger(value) ? BigInt(value) : undefined
  }
  // There is one 0 among integers.
  return FLOATS.has(dtype) ? filled(dtype as 'float32', 1, () => value)[0] : value + 0
}
