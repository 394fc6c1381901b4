/**
 * A reorder as one Transpose of an ONNX model. A layout without holes is a dense array over its digits; cut where the
 * other layout's digits end, source and destination hold the same digits in another order.
 */
import { parseLayout } from '../dist/index.js'
import { modelOfNode } from './onnx_model.mjs'

/** Element types that are measured and that onnxruntime's JavaScript API takes. */
const ONNXRUNTIME_TYPES = ['float32', 'uint8', 'int8', 'float16']

/**
 * The axes that are transposed and their new order, or undefined where layouts have holes or digits of several axes.
 * @returns {{ dims: number[], permutation: number[] } | undefined}
 */
export function transposeOf({ shape, from, to, dtype }) {
  const [source, destination] = [from, to].map((name) => parseLayout(name).storage(shape, { dtype }))
  const isDense = ({ elements, digits }) =>
    elements === shape.reduce((product, extent) => product * extent, 1) &&
    digits.every(({ positions }) => positions.length === 1)
  if (!isDense(source) || !isDense(destination)) return undefined
  const order = source.digits.flatMap((digit) => cutDigit(digit, destination.digits))
  const wanted = destination.digits.flatMap((digit) => cutDigit(digit, source.digits))
  const permutation = wanted.map(({ position, weight, radix }) =>
    order.findIndex((each) => each.position === position && each.weight === weight && each.radix === radix),
  )
  return permutation.includes(-1) ? undefined : { dims: order.map(({ radix }) => radix), permutation }
}

function cutDigit({ positions: [position], radix, weight }, others) {
  const end = weight * radix
  const cuts = others
    .filter((other) => other.positions[0] === position && other.weight > weight && other.weight < end)
    .map((other) => other.weight)
  const bounds = [weight, ...new Set(cuts), end].sort((a, b) => b - a)
  return bounds.slice(1).map((least, i) => ({ position, weight: least, radix: bounds[i] / least }))
}

/** A serialized model with input `x` and output `y`, or undefined for types that onnxruntime-node has not. */
export function transposeModel(dtype, { dims, permutation }) {
  if (!ONNXRUNTIME_TYPES.includes(dtype)) return undefined
  const outputDims = permutation.map((axis) => dims[axis])
  return modelOfNode('Transpose', { perm: permutation }, { dtype, dims }, { dtype, dims: outputDims })
}
