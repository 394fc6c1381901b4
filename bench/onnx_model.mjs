/**
 * Encodes ONNX models of one node, for onnxruntime. Source of the field numbers: onnx/onnx.proto of the ONNX project.
 */
import { DTYPES } from '../dist/index.js'

const IR_VERSION = 10
const OPSET_VERSION = 21
/** AttributeProto.AttributeType. */
const INT = 2
const INTS = 7

/**
 * A serialized model with input `x` and output `y`.
 * @param {string} operator
 * @param {Record<string, number | readonly number[]>} attributes
 * @param {{ dtype: string, dims: readonly number[] }} x
 * @param {{ dtype: string, dims: readonly number[] }} y
 */
export function modelOfNode(operator, attributes, x, y) {
  const listed = Object.entries(attributes).map(([name, value]) => message(5, attribute(name, value)))
  const node = [text(1, 'x'), text(2, 'y'), text(4, operator), ...listed]
  const graph = [
    message(1, node),
    text(2, 'node'),
    message(11, valueInfo('x', x)),
    message(12, valueInfo('y', y)),
  ]
  const model = [integer(1, IR_VERSION), message(7, graph), message(8, [integer(2, OPSET_VERSION)])]
  return Uint8Array.from(model.flat())
}

function attribute(name, value) {
  return typeof value === 'number'
    ? [text(1, name), integer(3, value), integer(20, INT)]
    : [text(1, name), ...value.map((each) => integer(8, each)), integer(20, INTS)]
}

function valueInfo(name, { dtype, dims }) {
  const shape = dims.map((extent) => message(1, [integer(1, extent)]))
  const tensorType = [integer(1, DTYPES[dtype].onnx), message(2, shape)]
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

/** Protobuf varint: 7 bits per byte, lowest first; the top bit means that more follow. */
function varint(value) {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
