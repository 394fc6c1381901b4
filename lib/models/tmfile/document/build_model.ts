/** Builds the model from the records of a file, after its links are checked: indices become references. */
import type { ByteSource } from '../../../bytes/source.js'
import type {
  DeviceRecord,
  FileRecords,
  NodeRecord,
  TensorRecord,
  VectorRecord,
} from '../../../formats/tmfile/decode/records.js'
import { DTYPE_OF_CODE, isConstant, roleOf } from '../../../formats/tmfile/enums.js'
import type {
  TmfileBuffer,
  TmfileDevice,
  TmfileDtype,
  TmfileNode,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import { TmfileModel } from './model.js'
import { rememberOrigin } from './origin.js'

export function buildModel(source: ByteSource, records: FileRecords): TmfileModel {
  const { graph, header, root, name } = records
  // Every record is present, because a read throws at the first broken one.
  const buffers = graph.buffers?.list.map((buffer) => bufferOf(buffer!, source)) ?? []
  const tensors = graph.tensors.list.map((tensor) => tensorOf(tensor!, buffers))
  const nodes = graph.nodes.list.map((node) => nodeOf(node!, tensors))
  const model = new TmfileModel({
    id: graph.values.id,
    name: graph.name?.text ?? null,
    graphLayout: graph.values.graph_layout,
    modelLayout: graph.values.model_layout,
    nodes,
    tensors,
    buffers,
    inputs: pick(nodes, graph.inputs),
    outputs: pick(nodes, graph.outputs),
    devices: graph.devices?.list.map((device) => deviceOf(device!, nodes, tensors)) ?? null,
  })
  model.version = [header.ver_main, header.ver_sub, header.ver_compile]
  model.originalFormat = root.orig_format
  model.subFormat = root.sub_format
  model.name = name?.text ?? null
  rememberOrigin(model, source)
  return model
}

function pick<T>(list: readonly T[], indices: VectorRecord | undefined): T[] {
  return indices?.entries.map((index) => list[index]!) ?? []
}

function bufferOf(
  { values: { size, data } }: { readonly values: { readonly size: number; readonly data: number } },
  source: ByteSource,
): TmfileBuffer {
  return { byteLength: size, data: data === 0 ? null : { source, start: data } }
}

function tensorOf(record: TensorRecord, buffers: readonly TmfileBuffer[]): TmfileTensor {
  const { values, name, dims, quantization } = record
  const tensor: TmfileTensor = {
    name: name?.text ?? null,
    dtype: DTYPE_OF_CODE.get(values.data_type) as TmfileDtype,
    shape: dims ? [...dims.entries] : null,
    role: roleOf(values.type)!,
    layout: values.layout,
    quantization: null,
    buffer: null,
  }
  if (quantization) {
    const { scales, zeroPoints, widths } = quantization
    tensor.quantization = { scales, zeroPoints, widths }
  }
  // For any other tensor the buffer index has no meaning.
  if (isConstant(tensor)) tensor.buffer = buffers[values.buffer_id] ?? null
  return tensor
}

function nodeOf(record: NodeRecord, tensors: readonly TmfileTensor[]): TmfileNode {
  const { name, values, operator, inputs, outputs, attributes } = record
  return {
    name: name?.text ?? null,
    operator: operator.schema?.name ?? `operator ${operator.values.number}`,
    operatorNumber: operator.values.number,
    operatorVersion: operator.values.version,
    params: operator.params,
    opaqueParams: operator.block?.opaque ?? null,
    inputs: pick(tensors, inputs),
    outputs: pick(tensors, outputs),
    attributes:
      attributes?.list.map(({ type, name, value }) => ({
        type,
        name: name?.text ?? '',
        value: value?.bytes ?? new Uint8Array(0),
      })) ?? [],
    dynamicShape: values.dynamic_shape !== 0,
    // `params` has the type of `operator`: both come from the schema of the operator number.
  } as TmfileNode
}

function deviceOf(
  { values, name, nodes, inputs, outputs }: DeviceRecord,
  allNodes: readonly TmfileNode[],
  allTensors: readonly TmfileTensor[],
): TmfileDevice {
  return {
    id: values.id,
    inputWaitCount: values.input_wait_count,
    dataType: values.data_type,
    nodes: pick(allNodes, nodes),
    inputs: pick(allTensors, inputs),
    outputs: pick(allTensors, outputs),
    name: name?.text ?? null,
  }
}
