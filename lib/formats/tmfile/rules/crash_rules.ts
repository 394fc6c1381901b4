/**
 * Files that the runtime loads but that crash it later: constants of another dtype than the data of their node, constants with
 * the role of a variable, windows without a stride, axes outside the shape. Each crash was observed on the reference.
 */
import type { Report } from '../../report.js'
import type { FileRecords, NodeRecord, SubgraphRecord, TensorRecord } from '../decode/records.js'
import { DTYPE_OF_CODE, NHWC, TENSOR_TYPE } from '../enums.js'
import { Location } from '../location.js'
import { hasTypedConstants, mixedConstants } from '../mixed_types.js'
import { MAX_WINDOW } from '../schema.js'
import { tensorTitle } from './link_rules.js'
import { nodeTitle } from './operator_rules.js'

const NODES = new Location(0, 'nodes')

type Numbers = Readonly<Record<string, number>>

export function checkCrashes({ graph }: FileRecords, report: Report): void {
  for (const [index, node] of graph.nodes.list.entries()) {
    const operator = node?.operator.schema?.name
    if (operator === undefined) continue
    const place = () => new Location(node!.operator.offset, index, NODES)
    if (operator === 'Const') checkRole(node!, graph, place, report)
    if (hasTypedConstants(operator)) checkTypes(node!, graph, place, report)
    if (WINDOWED.has(operator)) checkWindow(node!, graph, place, report)
    if (operator === 'Concat') checkConcat(node!, graph, place, report)
  }
}

/** A location that is built only for a finding. */
type LazyPlace = () => Location

/** The runtime gives data to tensors of one role only; a Const node of another role has none. */
function checkRole(node: NodeRecord, { tensors }: SubgraphRecord, place: LazyPlace, report: Report): void {
  for (const index of node.outputs?.entries ?? []) {
    const tensor = tensors.list[index]
    if (!tensor || tensor.values.type === TENSOR_TYPE.constant) continue
    const title = `${nodeTitle(node, place())} makes ${tensorTitle(tensor, index)}`
    const message = `${title}, whose tensor type is ${tensor.values.type}; it must be ${TENSOR_TYPE.constant}, because the runtime crashes on others.`
    report.deviation('ERR_VALUE', message, place())
  }
}

/** The runtime assumes one dtype for the model: it reads past a constant of another dtype, or misinterprets its bits. */
function checkTypes(node: NodeRecord, { tensors }: SubgraphRecord, place: LazyPlace, report: Report): void {
  const indices = node.inputs?.entries ?? []
  const records = indices.map((index) => tensors.list[index])
  if (records.includes(undefined)) return
  const inputs = (records as readonly TensorRecord[]).map(({ values }) => ({
    dtype: DTYPE_OF_CODE.get(values.data_type) ?? 'float32',
    isConstant: values.type === TENSOR_TYPE.constant,
  }))
  for (const { index, allowed } of mixedConstants(node.operator.schema?.name ?? '', inputs)) {
    const [data, constant] = [inputs[0]!.dtype, inputs[index]!.dtype]
    const title = tensorTitle(records[index]!, indices[index]!)
    const message = `${nodeTitle(node, place())} takes ${title}, which is ${constant}; with data of ${data} it must be ${allowed.join(' or ')}, else the runtime crashes.`
    report.deviation('ERR_DTYPE', message, place())
  }
}

/** Convolution, Deconvolution and Pooling. */
const WINDOWED: ReadonlySet<string> = new Set(['Convolution', 'Deconvolution', 'Pooling'])

const WINDOW_FIELDS = [
  ...['kernel_h', 'kernel_w', 'stride_h', 'stride_w', 'dilation_h', 'dilation_w'],
  ...['pad_h0', 'pad_w0', 'pad_h1', 'pad_w1', 'output_pad_h0', 'output_pad_w0'],
]

function checkWindow(node: NodeRecord, graph: SubgraphRecord, place: LazyPlace, report: Report): void {
  if (!node.operator.block?.form) return
  const params = node.operator.params as Numbers
  const deviate = (message: string) =>
    report.deviation('ERR_RANGE', `${nodeTitle(node, place())} ${message}.`, place())
  for (const name of WINDOW_FIELDS) {
    const value = params[name] ?? 0
    if (Math.abs(value) <= MAX_WINDOW) continue
    deviate(`has ${name} ${value}; beyond ${MAX_WINDOW} the runtime overflows`)
    return
  }
  if (node.operator.schema!.name === 'Pooling') checkPooling(params, deviate)
  // Weights of a Deconvolution have the order of the framework that they come from.
  else if (node.operator.schema!.name === 'Convolution') checkKernel(node, graph, deviate)
}

/** A global Pooling uses the size of the image as kernel, and a stride of 1. */
function checkPooling(params: Numbers, deviate: (message: string) => void): void {
  if (params.global !== 0) return
  for (const name of ['kernel_h', 'kernel_w', 'stride_h', 'stride_w']) {
    if (params[name]! < 1)
      deviate(`has ${name} ${params[name]}; it must be at least 1, because the runtime divides by it`)
  }
}

/** Weights are o, i, h, w; o, h, w, i in an NHWC model. */
function checkKernel(node: NodeRecord, graph: SubgraphRecord, deviate: (message: string) => void): void {
  const params = node.operator.params as Numbers
  const channels = params.output_channel!
  if (channels < 0) deviate(`has output_channel ${channels}; the runtime writes in front of the output`)
  const weight = graph.tensors.list[node.inputs?.entries[1] ?? -1]
  const dims = weight?.values.type === TENSOR_TYPE.constant ? weight.dims?.entries : undefined
  if (dims?.length !== 4) return
  const isNhwc = graph.values.model_layout === NHWC
  const sizes = isNhwc ? [dims[1]!, dims[2]!] : [dims[2]!, dims[3]!]
  for (const [at, name] of ['kernel_h', 'kernel_w'].entries()) {
    // A Convolution treats 0 as 1.
    const kernel = params[name] === 0 ? 1 : params[name]
    if (kernel !== sizes[at])
      deviate(`has ${name} ${params[name]}, and weights of the shape [${dims.join(', ')}]`)
  }
  // The runtime indexes weights and outputs by this number: a larger one reads past the weights, a smaller one skips the rest.
  if (channels > dims[0]!)
    deviate(`has ${channels} output channels, and weights of the shape [${dims.join(', ')}]`)
}

/** The runtime indexes an array of four dimensions by the axis. */
function checkConcat(node: NodeRecord, { tensors }: SubgraphRecord, place: LazyPlace, report: Report): void {
  if (!node.operator.block?.form) return
  const { axis } = node.operator.params as { readonly axis: number }
  const ranks = (node.inputs?.entries ?? []).map((index) => tensors.list[index]?.dims?.entries.length ?? 0)
  const rank = ranks.find((each) => each > 0) ?? MAX_CONCAT_RANK
  if (axis >= -rank && axis < rank) return
  const message = `${nodeTitle(node, place())} has axis ${axis}; its inputs have ${rank} axes, and the runtime reads past them.`
  report.deviation('ERR_RANGE', message, place())
}

/** Length of the array of dimensions in the runtime's shape inference of Concat. */
const MAX_CONCAT_RANK = 4
