/** Writes ONNX models of a given size for the benchmarks, encoded by hand so that no library is required. */
import { closeSync, fsyncSync, openSync, writeFileSync, writeSync } from 'node:fs'

/** Field numbers (onnx.proto). */
const MODEL = { irVersion: 1, graph: 7, opsetImport: 8 }
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12, valueInfo: 13 }
const NODE = { input: 1, output: 2, name: 3, opType: 4, attribute: 5 }
const ATTRIBUTE = { name: 1, ints: 8, type: 20 }
const ATTRIBUTE_INTS = 7
const TENSOR = { dims: 1, dataType: 2, name: 8, rawData: 9 }
const FLOAT = 1

function varint(value) {
  const bytes = []
  let remaining = value
  for (; remaining >= 128; remaining = Math.floor(remaining / 128)) bytes.push((remaining % 128) | 128)
  bytes.push(remaining)
  return Buffer.from(bytes)
}

const int = (number, value) => Buffer.concat([varint(number * 8), varint(value)])
const head = (number, byteLength) => Buffer.concat([varint(number * 8 + 2), varint(byteLength)])

function field(number, value) {
  const bytes = Buffer.from(value)
  return Buffer.concat([head(number, bytes.length), bytes])
}

const version = [int(MODEL.irVersion, 8)]
const opset = field(MODEL.opsetImport, int(2, 17))

/** @returns {string} the name of the initializer with the index */
export const initializerName = (index) => `block.${index}.weight`

/**
 * Writes a model without nodes and with float32 initializers of `bytes` bytes in total, all of them non-zero.
 *
 * @returns {number} elements per initializer
 */
export function writeInitializers(path, { bytes, count }) {
  const elements = Math.floor(bytes / count / 4)
  const values = new Uint32Array(elements)
  const tensorAt = (index) =>
    Buffer.concat([
      int(TENSOR.dims, elements),
      int(TENSOR.dataType, FLOAT),
      field(TENSOR.name, initializerName(index)),
      head(TENSOR.rawData, 4 * elements),
    ])
  let graphBytes = field(GRAPH.name, 'g').length
  for (let index = 0; index < count; index++) {
    const tensorBytes = tensorAt(index).length + 4 * elements
    graphBytes += head(GRAPH.initializer, tensorBytes).length + tensorBytes
  }
  const descriptor = openSync(path, 'w')
  writeSync(descriptor, Buffer.concat([...version, head(MODEL.graph, graphBytes), field(GRAPH.name, 'g')]))
  let state = 1
  for (let index = 0; index < count; index++) {
    for (let i = 0; i < elements; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      values[i] = state | 1
    }
    const tensor = tensorAt(index)
    writeSync(descriptor, head(GRAPH.initializer, tensor.length + 4 * elements))
    writeSync(descriptor, tensor)
    writeSync(descriptor, new Uint8Array(values.buffer))
  }
  writeSync(descriptor, opset)
  fsyncSync(descriptor)
  closeSync(descriptor)
  return elements
}

/** Writes a chain of nodes, each with an attribute and an initializer as the second input. */
export function writeNodes(path, count) {
  const chunks = [field(GRAPH.name, 'chain')]
  const operators = ['Conv', 'Relu', 'Add', 'Transpose', 'MatMul']
  const tensor = Buffer.concat([
    int(TENSOR.dims, 1),
    int(TENSOR.dataType, FLOAT),
    field(TENSOR.name, 'w'),
    field(TENSOR.rawData, Buffer.alloc(4, 1)),
  ])
  for (let index = 0; index < count; index++) {
    const attribute = Buffer.concat([
      field(ATTRIBUTE.name, 'perm'),
      int(ATTRIBUTE.ints, 1),
      int(ATTRIBUTE.ints, 0),
      int(ATTRIBUTE.type, ATTRIBUTE_INTS),
    ])
    const node = [
      field(NODE.input, `value_${index}`),
      field(NODE.input, 'w'),
      field(NODE.output, `value_${index + 1}`),
      field(NODE.name, `node_${index}`),
      field(NODE.opType, operators[index % operators.length]),
      field(NODE.attribute, attribute),
    ]
    chunks.push(field(GRAPH.node, Buffer.concat(node)))
  }
  chunks.push(field(GRAPH.initializer, tensor))
  chunks.push(field(GRAPH.input, field(1, 'value_0')), field(GRAPH.output, field(1, `value_${count}`)))
  writeFileSync(path, Buffer.concat([...version, field(MODEL.graph, Buffer.concat(chunks)), opset]))
}

/** A multiple of no prime factor of a round number, to put nodes out of order. */
const SHUFFLE_STEP = 7919

/**
 * Writes a valid chain `value_0` → `value_1` → … in which each value has a type.
 *
 * @param {boolean} options.isShuffled - nodes are not in topological order
 */
export function writeTypedChain(path, count, { isShuffled = false } = {}) {
  const operators = ['Add', 'Relu', 'Add', 'Transpose', 'Mul']
  const extent = field(1, int(1, 4))
  const type = field(2, field(1, Buffer.concat([int(1, FLOAT), field(2, Buffer.concat([extent, extent]))])))
  const attribute = field(
    NODE.attribute,
    Buffer.concat([
      field(ATTRIBUTE.name, 'perm'),
      int(ATTRIBUTE.ints, 1),
      int(ATTRIBUTE.ints, 0),
      int(ATTRIBUTE.type, ATTRIBUTE_INTS),
    ]),
  )
  const value = (index) => Buffer.concat([field(1, `value_${index}`), type])
  const chunks = [field(GRAPH.name, 'chain')]
  for (let at = 0; at < count; at++) {
    const index = isShuffled ? (at * SHUFFLE_STEP) % count : at
    const operator = operators[index % operators.length]
    const isBinary = operator === 'Add' || operator === 'Mul'
    const node = [
      field(NODE.input, `value_${index}`),
      ...(isBinary ? [field(NODE.input, 'w')] : []),
      field(NODE.output, `value_${index + 1}`),
      field(NODE.name, `node_${index}`),
      field(NODE.opType, operator),
      ...(operator === 'Transpose' ? [attribute] : []),
    ]
    chunks.push(field(GRAPH.node, Buffer.concat(node)))
    if (at > 0) chunks.push(field(GRAPH.valueInfo, value(at)))
  }
  const weight = Buffer.concat([
    int(TENSOR.dims, 4),
    int(TENSOR.dims, 4),
    int(TENSOR.dataType, FLOAT),
    field(TENSOR.name, 'w'),
    field(TENSOR.rawData, Buffer.alloc(64, 1)),
  ])
  chunks.push(field(GRAPH.initializer, weight))
  chunks.push(field(GRAPH.input, value(0)), field(GRAPH.output, value(count)))
  writeFileSync(path, Buffer.concat([...version, field(MODEL.graph, Buffer.concat(chunks)), opset]))
}
