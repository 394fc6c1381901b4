/**
 * What must hold before indices become references and tensors have bytes: every index of the file leads somewhere, and
 * every constant's buffer holds it. A file that breaks one of these cannot be read as the model it claims to be.
 */
import { DTYPES, dtypesBy } from '../../../dtype/dtypes.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { Budget } from '../../budget.js'
import type { Limits } from '../../format.js'
import type { Report } from '../../report.js'
import type { FileRecords, TensorRecord, VectorRecord } from '../decode/records.js'
import { roleOf, TENSOR_TYPE } from '../enums.js'
import { Location } from '../location.js'
import { DEFAULT_LIMITS, WORD_BYTES } from '../schema.js'

const DTYPE_OF_CODE = dtypesBy('tmfile')

/** Names a tensor in messages: `tensors[12] "conv1/w"`. */
export function tensorTitle({ name }: TensorRecord, index: number): string {
  return name ? `tensors[${index}] ${quote(name.text)}` : `tensors[${index}]`
}

/** Characters of a name in a message: names may be long. */
const SHOWN_LENGTH = 80

/** A name from a file, quoted and short. */
export function quote(text: string): string {
  return text.length <= SHOWN_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, SHOWN_LENGTH))}…`
}

/** What an index leads to, and how many there are. */
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
    const spot = new Location(vector.offset, name, owner)
    for (const [at, index] of vector.entries.entries()) {
      if (index < count) continue
      const entry = spot.child(at, vector.offset + WORD_BYTES * (1 + at))
      report.broken('ERR_RANGE', `${entry.path} is ${what} ${index}; there are ${count}.`, entry)
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

/** False for what cannot be a tensor, which is reported. */
function checkTensor(tensor: TensorRecord, index: number, report: Report): boolean {
  const { values, dims } = tensor
  const spot = new Location(tensor.offset, index, TENSORS)
  if (!DTYPE_OF_CODE.has(values.data_type)) {
    const message = `${tensorTitle(tensor, index)} has the data type ${values.data_type}; there are 0 to ${DTYPE_OF_CODE.size - 1}.`
    report.broken('ERR_DTYPE', message, spot)
    return false
  }
  if (!roleOf(values.type)) {
    const message = `${tensorTitle(tensor, index)} has the tensor type ${values.type}; there are 0 to 4.`
    report.broken('ERR_VALUE', message, spot)
    return false
  }
  const rank = dims?.entries.length ?? 0
  if (rank > MAX_AXES) {
    const message = `${tensorTitle(tensor, index)} has ${rank} axes; the limit is ${MAX_AXES}.`
    report.broken('ERR_RANK', message, spot)
    return false
  }
  if (byteLengthOf(tensor) > Number.MAX_SAFE_INTEGER) {
    const shape = dims!.entries.join(', ')
    const message = `${tensorTitle(tensor, index)} has more bytes than 2^53 - 1: its shape is [${shape}].`
    report.broken('ERR_OVERFLOW', message, spot)
    return false
  }
  return true
}

/** Bytes that a tensor's shape and type ask for; at least, where they are too many to count. */
export function byteLengthOf({ dims, values }: TensorRecord): number {
  const dtype = DTYPE_OF_CODE.get(values.data_type)
  if (!dtype || !dims) return 0
  const extents = dims.entries
  if (extents.some((extent) => extent <= 0)) return 0
  return extents.reduce((product, extent) => product * extent, DTYPES[dtype].bits / 8)
}

/** The bytes that the file holds for a constant. */
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
    refuse(`has its data in buffer ${buffer_id}; there are ${buffers.length}`)
    return 0
  }
  const negative = tensor.dims?.entries.find((extent) => extent < 0)
  if (negative !== undefined) {
    refuse(`is a constant with the extent ${negative}; constants have known shapes`)
    return 0
  }
  const buffer = buffers[buffer_id]
  const needed = byteLengthOf(tensor)
  if (buffer && buffer.values.size < needed) {
    refuse(`needs ${needed} bytes; buffer ${buffer_id} has ${buffer.values.size}`)
  }
  return buffer && buffer.values.data !== 0 ? needed : 0
}
