/**
 * Maps every byte of a file to the object that owns it, and finds padding, unowned bytes and overlaps. A check reports
 * unowned bytes and overlaps; a rewrite keeps objects at their offsets by the same list.
 */

import type {
  DeviceRecord,
  FileRecords,
  NodeRecord,
  OperatorRecord,
  QuantizationRecord,
  SubgraphRecord,
  TensorRecord,
  TextRecord,
  VectorRecord,
} from '../decode/records.js'
import { ALIGNMENT, STRUCT_LAYOUTS, WORD_BYTES } from '../schema.js'
import { ELEMENT_BYTES } from '../struct_layout.js'

/** An object of the file and its byte range. */
export interface OwnedRange {
  readonly start: number
  readonly end: number
  /** For example `nodes[3].operator`. */
  readonly path: string
}

export interface Coverage {
  /** Every object, by offset; an object that two others share is listed once for each. */
  readonly objects: readonly OwnedRange[]
  /** Up to 3 bytes of alignment padding between a text or buffer and the next struct. */
  readonly paddingBytes: number
  /** Bytes that are neither owned by an object nor padding. */
  readonly unowned: readonly OwnedRange[]
  /** Objects that start inside another object. An equal range is sharing, not an overlap. */
  readonly overlaps: readonly { readonly object: OwnedRange; readonly inside: OwnedRange }[]
}

export function coverageOf(records: FileRecords): Coverage {
  const objects = [...rangesOf(records)].sort((one, other) => one.start - other.start || one.end - other.end)
  const unowned: OwnedRange[] = []
  const overlaps: { object: OwnedRange; inside: OwnedRange }[] = []
  let paddingBytes = 0
  let last: OwnedRange = { start: 0, end: 0, path: '' }
  const addGap = (start: number, end: number): void => {
    // Padding aligns the next struct to 4 bytes; anything longer was written on purpose.
    if (end - start < ALIGNMENT && end % ALIGNMENT === 0) paddingBytes += end - start
    else unowned.push({ start, end, path: '' })
  }
  for (const object of objects) {
    // An empty object may have any offset: a constant without elements, an empty text.
    if (object.start === object.end) continue
    if (object.start > last.end) addGap(last.end, object.start)
    else if (object.start < last.end && !isSame(object, last)) {
      overlaps.push({ object, inside: last })
    }
    if (object.end > last.end) last = object
  }
  if (last.end < records.byteLength) unowned.push({ start: last.end, end: records.byteLength, path: '' })
  return { objects, paddingBytes, unowned, overlaps }
}

function isSame(one: OwnedRange, other: OwnedRange): boolean {
  return one.start === other.start && one.end === other.end
}

/** Every object of a file, in no particular order. */
export function* rangesOf({ header, root, name, subgraphs, graph }: FileRecords): Generator<OwnedRange> {
  yield range('header', 0, STRUCT_LAYOUTS.header.byteLength)
  yield range('root', header.root, STRUCT_LAYOUTS.root.byteLength)
  if (root.name !== 0) yield* textRanges(name, 'name')
  yield* vectorRanges(subgraphs, 'subgraphs')
  yield* graphRanges(graph)
}

function* graphRanges(graph: SubgraphRecord): Generator<OwnedRange> {
  yield range('subgraphs[0]', graph.offset, graph.byteLength)
  yield* textRanges(graph.name, 'subgraphs[0].name')
  yield* vectorRanges(graph.inputs, 'inputs')
  yield* vectorRanges(graph.outputs, 'outputs')
  for (const list of ['nodes', 'tensors', 'buffers', 'devices'] as const) {
    yield* vectorRanges(graph[list]?.vector, list)
  }
  for (const [index, node] of graph.nodes.list.entries()) if (node) yield* nodeRanges(node, `nodes[${index}]`)
  for (const [index, tensor] of graph.tensors.list.entries()) {
    if (tensor) yield* tensorRanges(tensor, `tensors[${index}]`)
  }
  for (const [index, buffer] of graph.buffers?.list.entries() ?? []) {
    if (!buffer) continue
    yield range(`buffers[${index}]`, buffer.offset, STRUCT_LAYOUTS.buffer.byteLength)
    const { data, size } = buffer.values
    if (data !== 0) yield range(`buffers[${index}].data`, data, size)
  }
  for (const [index, device] of graph.devices?.list.entries() ?? []) {
    if (device) yield* deviceRanges(device, `devices[${index}]`)
  }
}

function* nodeRanges(node: NodeRecord, path: string): Generator<OwnedRange> {
  yield range(path, node.offset, STRUCT_LAYOUTS.node.byteLength)
  yield* textRanges(node.name, `${path}.name`)
  yield* vectorRanges(node.inputs, `${path}.inputs`)
  yield* vectorRanges(node.outputs, `${path}.outputs`)
  yield* operatorRanges(node.operator, path)
  if (!node.attributes) return
  yield* vectorRanges(node.attributes.vector, `${path}.attributes`)
  for (const [index, { offset, name, value }] of node.attributes.list.entries()) {
    const owner = `${path}.attributes[${index}]`
    yield range(owner, offset, STRUCT_LAYOUTS.attribute.byteLength)
    yield* textRanges(name, `${owner}.name`)
    if (value) {
      yield range(`${owner}.value`, value.offset, STRUCT_LAYOUTS.text.byteLength)
      yield range(`${owner}.value.bytes`, value.bytesOffset, value.bytes.byteLength)
    }
  }
}

function* operatorRanges({ offset, block }: OperatorRecord, path: string): Generator<OwnedRange> {
  yield range(`${path}.operator`, offset, STRUCT_LAYOUTS.operator.byteLength)
  if (!block) return
  yield range(`${path}.params`, block.offset, block.byteLength)
  for (const [name, vector] of block.vectors) yield* vectorRanges(vector, `${path}.params.${name}`)
  for (const [name, text] of block.texts) yield* textRanges(text, `${path}.params.${name}`)
}

function* tensorRanges(tensor: TensorRecord, path: string): Generator<OwnedRange> {
  yield range(path, tensor.offset, STRUCT_LAYOUTS.tensor.byteLength)
  yield* textRanges(tensor.name, `${path}.name`)
  yield* vectorRanges(tensor.dims, `${path}.dims`)
  if (tensor.quantization) yield* quantizationRanges(tensor.quantization, `${path}.quantization`)
}

function* quantizationRanges({ vector }: QuantizationRecord, path: string): Generator<OwnedRange> {
  yield* vectorRanges(vector, path)
  for (const [index, offset] of vector.entries.entries()) {
    yield range(`${path}[${index}]`, offset, STRUCT_LAYOUTS.quantization.byteLength)
  }
}

function* deviceRanges(device: DeviceRecord, path: string): Generator<OwnedRange> {
  yield range(path, device.offset, STRUCT_LAYOUTS.device.byteLength)
  yield* textRanges(device.name, `${path}.name`)
  for (const list of ['nodes', 'inputs', 'outputs'] as const)
    yield* vectorRanges(device[list], `${path}.${list}`)
}

function* textRanges(text: TextRecord | undefined, path: string): Generator<OwnedRange> {
  if (!text) return
  yield range(path, text.offset, STRUCT_LAYOUTS.text.byteLength)
  yield range(`${path}.bytes`, text.bytesOffset, text.byteLength)
}

function* vectorRanges(vector: VectorRecord | undefined, path: string): Generator<OwnedRange> {
  if (vector) yield range(path, vector.offset, WORD_BYTES + vector.entries.length * ELEMENT_BYTES.i32)
}

function range(path: string, start: number, byteLength: number): OwnedRange {
  return { start, end: start + byteLength, path }
}
