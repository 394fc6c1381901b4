/** Rules for shapes, quantization and buffers that the runtime relies on without checking them. */
import { DTYPES } from '../../../dtype/dtypes.js'
import type { Report } from '../../report.js'
import type { FileRecords, QuantizationRecord, SubgraphRecord, TensorRecord } from '../decode/records.js'
import { DTYPE_OF_CODE, NHWC, TENSOR_TYPE } from '../enums.js'
import { Location } from '../location.js'
import { RUNTIME_LIMITS } from '../schema.js'
import { byteLengthOf, tensorTitle } from './link_rules.js'

const TENSORS = new Location(0, 'tensors')

export function checkTensors({ graph }: FileRecords, report: Report): void {
  let bytesWithoutData = 0
  for (const [index, tensor] of graph.tensors.list.entries()) {
    if (!tensor) continue
    checkShape(tensor, index, report)
    checkQuantization(tensor, index, report)
    checkLayout(tensor, index, graph, report)
    bytesWithoutData += bytesOfAbsent(tensor, index, graph, report)
  }
  if (bytesWithoutData < RUNTIME_LIMITS.fileBytes) return
  const message = `Constants without data have ${bytesWithoutData} bytes; the runtime allocates all of them, and fails from ${RUNTIME_LIMITS.fileBytes}.`
  report.deviation('ERR_LIMIT', message, { path: 'buffers', offset: graph.buffers!.vector.offset })
}

function checkShape(tensor: TensorRecord, index: number, report: Report): void {
  const { dims, values } = tensor
  if (!dims) return
  const deviate = (code: 'ERR_RANK' | 'ERR_RANGE' | 'ERR_OVERFLOW', reason: string): void => {
    const place = { path: `tensors[${index}].dims`, offset: dims.offset }
    report.deviation(code, `${tensorTitle(tensor, index)} ${reason}.`, place)
  }
  const rank = dims.entries.length
  if (rank > RUNTIME_LIMITS.dims) {
    deviate(
      'ERR_RANK',
      `has rank ${rank}; the runtime stores ${RUNTIME_LIMITS.dims} dimensions and writes past the end of its array`,
    )
  }
  const isConstant = values.type === TENSOR_TYPE.constant
  const minExtent = isConstant ? 0 : 1
  const invalid = dims.entries.find((extent) => extent < minExtent && extent !== -1)
  if (invalid !== undefined) {
    deviate(
      'ERR_RANGE',
      `has the dimension ${invalid}; a dimension is at least ${minExtent}, or -1 where it is unknown`,
    )
  }
  const dtype = DTYPE_OF_CODE.get(values.data_type)
  const elements = dtype ? byteLengthOf(tensor) / (DTYPES[dtype].bits / 8) : 0
  if (elements < RUNTIME_LIMITS.elements) return
  deviate('ERR_OVERFLOW', `has ${elements} elements; the runtime counts them in a signed 32-bit number`)
}

function checkQuantization(tensor: TensorRecord, index: number, report: Report): void {
  const { quantization, dims, values } = tensor
  if (!quantization) return
  const { scales, vector } = quantization
  const place = { path: `tensors[${index}].quantization`, offset: vector.offset }
  const title = tensorTitle(tensor, index)
  const count = scales.length
  if (count > RUNTIME_LIMITS.quantization) {
    const message = `${title} has ${count} quantization records; the runtime holds at most ${RUNTIME_LIMITS.quantization}.`
    report.deviation('ERR_LIMIT', message, place)
  }
  const channels = dims?.entries[0]
  if (count > 1 && count !== channels) {
    const message = `${title} has ${count} quantization records; it must have 1, or one for each of the ${channels ?? 0} entries of axis 0.`
    report.deviation('ERR_QUANTIZATION', message, place)
  }
  checkParameters(quantization, values.data_type, title, place, report)
}

function checkParameters(
  { scales, zeroPoints }: QuantizationRecord,
  dataType: number,
  title: string,
  place: { readonly path: string; readonly offset: number },
  report: Report,
): void {
  // 0 means that the scale is unknown; files without quantization may have such records for every tensor.
  const bad = scales.findIndex((scale) => !(scale >= 0 && scale < Number.POSITIVE_INFINITY))
  if (bad >= 0) {
    const message = `${title} has the scale ${scales[bad]} in record ${bad}; a scale must be finite and at least 0.`
    report.deviation('ERR_QUANTIZATION', message, place)
  }
  const dtype = DTYPE_OF_CODE.get(dataType)
  const limits = dtype && DTYPES[dtype].limits
  if (!dtype || !limits || DTYPES[dtype].kind === 'float') return
  const outside = zeroPoints.findIndex((zeroPoint) => zeroPoint < limits.min || zeroPoint > limits.max)
  if (outside < 0) return
  const message = `${title} has the zero point ${zeroPoints[outside]} in record ${outside}; ${dtype} ranges from ${limits.min} to ${limits.max}.`
  report.deviation('ERR_QUANTIZATION', message, place)
}

/** Old converters left the layout of constants uninitialised; other tensors have a real one. */
function checkLayout(tensor: TensorRecord, index: number, graph: SubgraphRecord, report: Report): void {
  const { layout, type } = tensor.values
  const place = new Location(tensor.offset, index, TENSORS)
  if (layout !== 0 && layout !== NHWC && type !== TENSOR_TYPE.constant) {
    const message = `${tensorTitle(tensor, index)} has the layout ${layout}; it must be 0 (NCHW) or 1 (NHWC).`
    report.deviation('ERR_VALUE', message, place)
  }
  const dtype = DTYPE_OF_CODE.get(tensor.values.data_type)
  const isTransposed = dtype === 'float32' || dtype === 'int8' || dtype === 'uint8'
  const isTransposable = type === TENSOR_TYPE.constant && tensor.dims?.entries.length === 4
  if (graph.values.model_layout !== NHWC || !isTransposable || isTransposed) return
  const message = `${tensorTitle(tensor, index)} is ${dtype}: the runtime converts its shape from NHWC to NCHW, but not its data.`
  report.note('NHWC_NOT_TRANSPOSED', message, place)
}

/** Bytes that the runtime allocates for a constant without data in the file. */
function bytesOfAbsent(tensor: TensorRecord, index: number, graph: SubgraphRecord, report: Report): number {
  const { type, buffer_id } = tensor.values
  const buffer = type === TENSOR_TYPE.constant ? graph.buffers?.list[buffer_id] : undefined
  if (!buffer) return 0
  const needed = byteLengthOf(tensor)
  const { size, data } = buffer.values
  if (size > needed) {
    const message = `${tensorTitle(tensor, index)} needs ${needed} bytes; buffer ${buffer_id} has ${size}.`
    report.note('BUFFER_LARGER', message, { path: `buffers[${buffer_id}]`, offset: buffer.offset })
  }
  return data === 0 ? needed : 0
}
