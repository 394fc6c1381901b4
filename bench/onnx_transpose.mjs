/**
 * Expresses a reorder as one ONNX Transpose. A layout without holes is a dense array over its digits. Split at the digit
 * boundaries of the other layout, source and destination have the same digits in different orders.
 */
import { parseLayout } from '../dist/index.js'
import { modelOfNode } from './onnx_model.mjs'

/** Measured element types that onnxruntime's JavaScript API supports. */
const ONNXRUNTIME_TYPES = ['float32', 'uint8', 'int8', 'float16']

/**
 * Dimensions and permutation of the Transpose; undefined where a layout has holes, digits of several axes or no digits.
 * @returns {{ dims: number[], permutation: number[] } | undefined}
 */
export function transposeOf({ shape, from, to, dtype }) {
  const [source, destination] = [from, to].map((name) => parseLayout(name).storage(shape, { dtype }))
  const isDense = ({ elements, digits }) =>
    digits !== undefined &&
    elements === shape.reduce((product, extent) => product * extent, 1) &&
    digits.every(({ positions }) => positions.length === 1)
  if (!isDense(source) || !isDense(destination)) return undefined
  const order = source.digits.flatMap((digit) => splitDigit(digit, destination.digits))
  const wanted = destination.digits.flatMap((digit) => splitDigit(digit, source.digits))
  const permutation = wanted.map(({ position, weight, radix }) =>
    order.findIndex((each) => each.position === position && each.weight === weight && each.radix === radix),
  )
  return permutation.includes(-1) ? undefined : { dims: order.map(({ radix }) => radix), permutation }
}

function splitDigit({ positions: [position], radix, weight }, others) {
  const end = weight * radix
  const boundaries = others
    .filter((other) => other.positions[0] === position && other.weight > weight && other.weight < end)
    .map((other) => other.weight)
  const bounds = [weight, ...new Set(boundaries), end].sort((a, b) => b - a)
  return bounds.slice(1).map((lower, i) => ({ position, weight: lower, radix: bounds[i] / lower }))
}

/** A serialized model with input `x` and output `y`; undefined for types that onnxruntime-node lacks. */
export function transposeModel(dtype, { dims, permutation }) {
  if (!ONNXRUNTIME_TYPES.includes(dtype)) return undefined
  const outputDims = permutation.map((axis) => dims[axis])
  return modelOfNode('Transpose', { perm: permutation }, { dtype, dims }, { dtype, dims: outputDims })
}
