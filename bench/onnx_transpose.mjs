/**
 * A reorder as one Transpose of an ONNX model. A layout without holes is a dense array over its digits; cut where the
 * other layout's digits end, source and destination hold the same digits in another order.
 * Source of the field numbers: onnx/onnx.proto of the ONNX project.
 */
import { parseLayout } from '../dist/index.js'

/** Element types as ONNX numbers them, those that onnxruntime's JavaScript API takes. */
const ELEMENT_TYPES = { float32: 1, uint8: 2, int8: 3, float16: 10 }
const IR_VERSION = 8
const OPSET_VERSION = 13
/** AttributeProto.AttributeType of a list of integers. */
const INTS = 7

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
  const type = ELEMENT_TYPES[dtype]
  if (type === undefined) return undefined
  const attribute = [text(1, 'perm'), ...permutation.map((axis) => integer(8, axis)), integer(20, INTS)]
  const node = [text(1, 'x'), text(2, 'y'), text(4, 'Transpose'), message(5, attribute)]
  const graph = [
    message(1, node),
    text(2, 'reorder'),
    message(11, valueInfo('x', type, dims)),
    message(
      12,
      valueInfo(
        'y',
        type,
        permutation.map((axis) => dims[axis]),
      ),
    ),
  ]
  const model = [integer(1, IR_VERSION), message(7, graph), message(8, [integer(2, OPSET_VERSION)])]
  return Uint8Array.from(model.flat())
}

function valueInfo(name, type, dims) {
  const shape = dims.map((extent) => message(1, [integer(1, extent)]))
  const tensorType = [integer(1, type), message(2, shape)]
  return [text(1, name), message(2, [message(1, tensorType)])]
}

function message(field, parts) {
  const bytes = parts.flat()
  return [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes]
}

function text(field, value) {
  return message(field, [[...new TextEncoder().encode(value)]])
}

function integer(field, value) {
  return [...varint(field << 3), ...varint(value)]
}

/** Seven bits a byte, the lowest first; the top bit says that more follow. */
function varint(value) {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
