/**
 * What must hold before indices become references and tensors have bytes: every index of the file leads somewhere, and
 * every constant's buffer holds it. A file that breaks one of these cannot be read as the model it claims to be.
 */
import { DTYPES, dtypesBy } from '../../dtype/dtypes.js'
import { MAX_AXES } from '../../tensor/shape.js'
import type { Report } from '../report.js'
import { TENSOR_TYPE } from './enums.js'
import { roleOf } from './model.js'
import type { FileRecords, TensorRecord, VectorRecord } from './records.js'
import { TOTAL_BYTES_LIMIT_IN_FILES } from './schema.js'

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

export function checkLinks(records: FileRecords, totalLimit: number | undefined, report: Report): void {
  const { graph } = records
  const [nodeCount, tensorCount] = [graph.nodes.list.length, graph.tensors.list.length]
  const check = (vector: VectorRecord | undefined, path: string, count: number, what: string): void => {
    for (const [at, index] of vector?.entries.entries() ?? []) {
      if (index < count) continue
      const message = `${path}[${at}] is ${what} ${index}; there are ${count}.`
      report.broken('ERR_RANGE', message, { path: `${path}[${at}]`, offset: vector!.at + 4 + 4 * at })
    }
  }
  check(graph.inputs, 'inputs', nodeCount, 'node')
  check(graph.outputs, 'outputs', nodeCount, 'node')
  for (const [index, node] of graph.nodes.list.entries()) {
    check(node?.inputs, `nodes[${index}].inputs`, tensorCount, 'tensor')
    check(node?.outputs, `nodes[${index}].outputs`, tensorCount, 'tensor')
  }
  for (const [index, device] of graph.devices?.list.entries() ?? []) {
    check(device?.nodes, `devices[${index}].nodes`, nodeCount, 'node')
    check(device?.inputs, `devices[${index}].inputs`, tensorCount, 'tensor')
    check(device?.outputs, `devices[${index}].outputs`, tensorCount, 'tensor')
  }
  checkTensors(records, totalLimit, report)
}

function checkTensors(records: FileRecords, totalLimit: number | undefined, report: Report): void {
  const limit = totalLimit ?? TOTAL_BYTES_LIMIT_IN_FILES * records.byteLength
  let totalBytes = 0
  for (const [index, tensor] of records.graph.tensors.list.entries()) {
    if (!tensor || !checkTensor(tensor, index, report)) continue
    if (tensor.values.type !== TENSOR_TYPE.constant) continue
    totalBytes += checkConstant(tensor, index, records, report)
    if (totalBytes <= limit) continue
    const message = `The constants up to ${tensorTitle(tensor, index)} have ${totalBytes} bytes; limits.totalBytes is ${limit}.`
    report.broken('ERR_LIMIT', message, { path: `tensors[${index}]`, offset: tensor.at })
    return
  }
}

/** False for what cannot be a tensor, which is reported. */
function checkTensor(tensor: TensorRecord, index: number, report: Report): boolean {
  const { values, dims, at } = tensor
  const title = tensorTitle(tensor, index)
  const place = { path: `tensors[${index}]`, offset: at }
  if (!DTYPE_OF_CODE.has(values.data_type)) {
    const message = `${title} has the data type ${values.data_type}; there are 0 to ${DTYPE_OF_CODE.size - 1}.`
    report.broken('ERR_DTYPE', message, place)
    return false
  }
  if (!roleOf(values.type)) {
    report.broken('ERR_VALUE', `${title} has the tensor type ${values.type}; there are 0 to 4.`, place)
    return false
  }
  const rank = dims?.entries.length ?? 0
  if (rank > MAX_AXES) {
    report.broken('ERR_RANK', `${title} has ${rank} axes; the limit is ${MAX_AXES}.`, place)
    return false
  }
  if (byteLengthOf(tensor) > Number.MAX_SAFE_INTEGER) {
    const message = `${title} has more bytes than 2^53 - 1: its shape is [${dims!.entries.join(', ')}].`
    report.broken('ERR_OVERFLOW', message, place)
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
  const title = tensorTitle(tensor, index)
  const place = { path: `tensors[${index}]`, offset: tensor.at }
  const { buffer_id } = tensor.values
  const buffers = graph.buffers?.list ?? []
  if (buffer_id >= buffers.length) {
    report.broken(
      'ERR_RANGE',
      `${title} has its data in buffer ${buffer_id}; there are ${buffers.length}.`,
      place,
    )
    return 0
  }
  const negative = tensor.dims?.entries.find((extent) => extent < 0)
  if (negative !== undefined) {
    report.broken(
      'ERR_RANGE',
      `${title} is a constant with the extent ${negative}; constants have known shapes.`,
      place,
    )
    return 0
  }
  const buffer = buffers[buffer_id]
  const needed = byteLengthOf(tensor)
  if (buffer && buffer.values.size < needed) {
    const message = `${title} needs ${needed} bytes; buffer ${buffer_id} has ${buffer.values.size}.`
    report.broken('ERR_RANGE', message, place)
  }
  return buffer && buffer.values.data !== 0 ? needed : 0
}
