/**
 * Rules that must hold before indices become references and tensors get data: every index is in range, and every
 * constant fits in its buffer. A file that breaks one cannot be read.
 */
import { DTYPES } from '../../../dtype/dtypes.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { Budget } from '../../budget.js'
import type { Limits } from '../../format.js'
import type { Report } from '../../report.js'
import type { FileRecords, TensorRecord, VectorRecord } from '../decode/records.js'
import { DTYPE_OF_CODE, roleOf, TENSOR_TYPE, TENSOR_TYPES } from '../enums.js'
import { Location } from '../location.js'
import { DEFAULT_LIMITS, WORD_BYTES } from '../schema.js'

/** Names a tensor in messages: `tensors[12] "conv1/w"`. */
export function tensorTitle({ name }: TensorRecord, index: number): string {
  return name ? `tensors[${index}] ${quote(name.text)}` : `tensors[${index}]`
}

/** Maximum characters of a name in a message. */
const MAX_SHOWN_LENGTH = 80

/** A name from a file, quoted and truncated. */
export function quote(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, MAX_SHOWN_LENGTH))}…`
}

/** The list that an index refers to. */
interface Targets {
  readonly what: string
  readonly count: number
}

export function checkLinks(records: FileRecords, limits: Limits, report: Report): void {
  const { graph } = records
  const [nodeCount, tensorCount] = [graph.nodes.list.length, graph.tensors.list.length]
  const nodes = { what: 'node', count: nodeCount }
  const tensors = { what: 'tensor', count: tensorCount }
  const check = (
    vector: VectorRecord | undefined,
    name: string,
    { what, count }: Targets,
    owner?: Location,
  ): void => {
    if (!vector?.entries.some((index) => index >= count)) return
    const location = new Location(vector.offset, name, owner)
    for (const [position, index] of vector.entries.entries()) {
      if (index < count) continue
      const entry = location.child(position, vector.offset + WORD_BYTES * (1 + position))
      report.broken('ERR_RANGE', `${entry.path} is ${what} ${index}; the file has ${count} ${what}s.`, entry)
    }
  }
  check(graph.inputs, 'inputs', nodes)
  check(graph.outputs, 'outputs', nodes)
  for (const [index, node] of graph.nodes.list.entries()) {
    if (!node) continue
    const owner = new Location(node.offset, `nodes[${index}]`)
    check(node.inputs, 'inputs', tensors, owner)
    check(node.outputs, 'outputs', tensors, owner)
  }
  for (const [index, device] of graph.devices?.list.entries() ?? []) {
    if (!device) continue
    const owner = new Location(device.offset, `devices[${index}]`)
    check(device.nodes, 'nodes', nodes, owner)
    check(device.inputs, 'inputs', tensors, owner)
    check(device.outputs, 'outputs', tensors, owner)
  }
  checkTensors(records, new Budget(limits, DEFAULT_LIMITS, records.byteLength), report)
}

function checkTensors(records: FileRecords, budget: Budget, report: Report): void {
  for (const [index, tensor] of records.graph.tensors.list.entries()) {
    if (!tensor || !checkTensor(tensor, index, report)) continue
    if (tensor.values.type !== TENSOR_TYPE.constant) continue
    const excess = budget.spend('totalBytes', checkConstant(tensor, index, records, report))
    if (excess === undefined) continue
    report.broken('ERR_LIMIT', excess, { path: `tensors[${index}]`, offset: tensor.offset })
    return
  }
}

const TENSORS = new Location(0, 'tensors')

/** False for an invalid tensor, which is reported. */
function checkTensor(tensor: TensorRecord, index: number, report: Report): boolean {
  const { values, dims } = tensor
  const location = new Location(tensor.offset, index, TENSORS)
  if (!DTYPE_OF_CODE.has(values.data_type)) {
    const message = `${tensorTitle(tensor, index)} has the data type ${values.data_type}; it must be 0 to ${DTYPE_OF_CODE.size - 1}.`
    report.broken('ERR_DTYPE', message, location)
    return false
  }
  if (!roleOf(values.type)) {
    const message = `${tensorTitle(tensor, index)} has the tensor type ${values.type}; it must be 0 to ${TENSOR_TYPES.length - 1}.`
    report.broken('ERR_VALUE', message, location)
    return false
  }
  const rank = dims?.entries.length ?? 0
  if (rank > MAX_AXES) {
    const message = `${tensorTitle(tensor, index)} has rank ${rank}; the limit is ${MAX_AXES}.`
    report.broken('ERR_RANK', message, location)
    return false
  }
  if (byteLengthOf(tensor) > Number.MAX_SAFE_INTEGER) {
    const shape = dims!.entries.join(', ')
    const message = `${tensorTitle(tensor, index)} has the shape [${shape}], which is more than 2^53 - 1 bytes.`
    report.broken('ERR_OVERFLOW', message, location)
    return false
  }
  return true
}

/** Size of a tensor in bytes, by its shape and dtype. Rounded where it exceeds 2^53. */
export function byteLengthOf({ dims, values }: TensorRecord): number {
  const dtype = DTYPE_OF_CODE.get(values.data_type)
  if (!dtype || !dims) return 0
  const extents = dims.entries
  if (extents.some((extent) => extent <= 0)) return 0
  return extents.reduce((product, extent) => product * extent, DTYPES[dtype].bits / 8)
}

/** Checks a constant against its buffer. Returns the size of its data in the file. */
function checkConstant(tensor: TensorRecord, index: number, { graph }: FileRecords, report: Report): number {
  const refuse = (reason: string): void =>
    report.broken(
      'ERR_RANGE',
      `${tensorTitle(tensor, index)} ${reason}.`,
      new Location(tensor.offset, index, TENSORS),
    )
  const { buffer_id } = tensor.values
  const buffers = graph.buffers?.list ?? []
  if (buffer_id >= buffers.length) {
    refuse(`has its data in buffer ${buffer_id}; the file has ${buffers.length} buffers`)
    return 0
  }
  const negative = tensor.dims?.entries.find((extent) => extent < 0)
  if (negative !== undefined) {
    refuse(`is a constant with the dimension ${negative}; dimensions of constants must be 0 or more`)
    return 0
  }
  const buffer = buffers[buffer_id]
  const needed = byteLengthOf(tensor)
  if (buffer && buffer.values.size < needed) {
    refuse(`needs ${needed} bytes; buffer ${buffer_id} has ${buffer.values.size}`)
  }
  return buffer && buffer.values.data !== 0 ? needed : 0
}
