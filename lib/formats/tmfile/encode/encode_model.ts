/**
 * A model as the parts of a file, in the order in which the reference writes them: nodes, tensors, buffers, the ends of
 * the graph, device subgraphs, subgraph, root, header.
 */

import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import type { DeviceRecord, FileRecords, NodeRecord, TensorRecord } from '../decode/records.js'
import { UNWRITTEN_NUL } from '../decode/walk.js'
import { isConstant, NHWC, typeOfRole } from '../enums.js'
import type { TmfileModel } from '../model/model.js'
import type { Origin } from '../model/origin.js'
import type { TmfileBuffer, TmfileDevice, TmfileNode, TmfileTensor } from '../model/types.js'
import { FORMAT_NAME, NO_BUFFER, OLD_SUBGRAPH_BYTES, PLACED } from '../schema.js'
import { offsetOf, type Piece, type WriteMode } from './chunk.js'
import { PieceList } from './chunk_builder.js'
import { layOutOperator } from './encode_operator.js'

/** What a model was, for parts that are still the same. */
export interface Previous {
  readonly origin: Origin
  readonly records: FileRecords
}

/** All parts, the header last. */
export function layOutModel(model: TmfileModel, mode: WriteMode, previous: Previous | undefined): Piece[] {
  return new ModelLayOut(model, mode, previous).run()
}

class ModelLayOut {
  readonly #model: TmfileModel
  readonly #mode: WriteMode
  readonly #previous: Previous | undefined
  readonly #parts = new PieceList()
  readonly #nodeIndex: ReadonlyMap<TmfileNode, number>
  readonly #tensorIndex: ReadonlyMap<TmfileTensor, number>
  readonly #bufferIndex: ReadonlyMap<TmfileBuffer, number>

  constructor(model: TmfileModel, mode: WriteMode, previous: Previous | undefined) {
    this.#model = model
    this.#mode = mode
    this.#previous = previous
    this.#nodeIndex = indexed(model.graph.nodes)
    this.#tensorIndex = indexed(model.graph.tensors)
    this.#bufferIndex = indexed(model.graph.buffers)
  }

  run(): Piece[] {
    const parts = this.#parts
    const { graph, version, originalFormat, subFormat } = this.#model
    const records = this.#previous?.records
    const name = parts.text(this.#model.name, 'name', records?.name)
    const nodes = graph.nodes.map((node, index) => this.#node(node, index))
    const nodeVector = parts.vector(nodes, 'offset', 'nodes', { record: records?.graph.nodes.vector })
    const tensors = this.#tensors()
    const tensorVector = parts.vector(tensors, 'offset', 'tensors', { record: records?.graph.tensors.vector })
    const buffers = graph.buffers.map((buffer, index) => this.#buffer(buffer, index))
    const bufferVector = this.#bufferVector(buffers)
    const subgraph = this.#subgraph({ nodeVector, tensorVector, bufferVector })
    const subgraphs = parts.vector([subgraph], 'offset', 'subgraphs', {
      record: records?.subgraphs,
      count: this.#subgraphCount(),
    })
    const root = parts.struct(
      'root',
      'root',
      () => ({
        orig_format: originalFormat,
        sub_format: subFormat,
        subgraphs: subgraphs.at,
        name: offsetOf(name),
      }),
      { base: records && { at: records.header.root, byteLength: PLACED.root.byteLength } },
    )
    const [ver_main, ver_sub, ver_compile] = version
    parts.struct('header', 'header', () => ({ ver_main, ver_sub, ver_compile, root: root.at }), {
      base: records && { at: 0, byteLength: PLACED.header.byteLength },
    })
    return parts.pieces
  }

  #recordIndex(object: TmfileNode | TmfileTensor | TmfileBuffer | TmfileDevice): number {
    return this.#previous?.origin.indexOf(object) ?? -1
  }

  #node(node: TmfileNode, index: number): Piece {
    const parts = this.#parts
    const path = `nodes[${index}]`
    const oldIndex = this.#recordIndex(node)
    const record: NodeRecord | undefined = this.#previous?.records.graph.nodes.list[oldIndex]
    const name = parts.text(node.name, `${path}.name`, record?.name)
    const inputs = this.#tensorIndices(node.inputs, `${path}.inputs`)
    const outputs = this.#tensorIndices(node.outputs, `${path}.outputs`)
    const inputVector = parts.optionalVector(inputs, `${path}.inputs`, record?.inputs)
    // The reference refuses a node without this vector, so a new node has it even when it is empty.
    const outputVector = parts.optionalVector(outputs, `${path}.outputs`, record?.outputs, {
      keepEmpty: !record || record.outputs !== undefined,
    })
    const attributes = this.#attributes(node, path, record)
    const operator = layOutOperator(parts, node, { path, record: record?.operator, mode: this.#mode })
    const values = () => ({
      id: idOf(index, oldIndex, record?.values.id),
      inputs: offsetOf(inputVector),
      outputs: offsetOf(outputVector),
      operator: operator.at,
      name: offsetOf(name),
      attributes: offsetOf(attributes),
      // Any byte but 0 is true.
      dynamic_shape: node.dynamicShape ? record?.values.dynamic_shape || 1 : 0,
    })
    return parts.struct('node', path, values, { base: record && baseOf('node', record) })
  }

  #attributes({ attributes }: TmfileNode, path: string, record: NodeRecord | undefined): Piece | undefined {
    const old = record?.attributes
    if (attributes.length === 0 && !old) return undefined
    const parts = this.#parts
    const pieces = attributes.map(({ name, value, type }, index) => {
      const owner = `${path}.attributes[${index}]`
      const record = old?.list[index]
      // What was absent stays so.
      const hasName = !record || record.name !== undefined || name !== ''
      const hasValue = !record || record.value !== undefined || value.byteLength > 0
      const nameText = hasName ? name : null
      const nameRecord = parts.text(nameText, `${owner}.name`, record?.name, UNWRITTEN_NUL)
      const valueRecord = hasValue ? parts.rawText(value, `${owner}.value`, record?.value) : undefined
      const values = () => ({ name: offsetOf(nameRecord), value: offsetOf(valueRecord), type })
      const base = record && { at: record.at, byteLength: PLACED.attribute.byteLength }
      return parts.struct('attribute', owner, values, { base })
    })
    return parts.vector(pieces, 'offset', `${path}.attributes`, { record: old?.vector })
  }

  #tensors(): Piece[] {
    // The number of the last constant's buffer so far is what the reference leaves in every other tensor.
    let lastBuffer = NO_BUFFER
    return this.#model.graph.tensors.map((tensor, index) => {
      if (isConstant(tensor)) lastBuffer = this.#bufferIndexOf(tensor, index)
      return this.#tensor(tensor, index, lastBuffer)
    })
  }

  #tensor(tensor: TmfileTensor, index: number, lastBuffer: number): Piece {
    const parts = this.#parts
    const path = `tensors[${index}]`
    const oldIndex = this.#recordIndex(tensor)
    const record: TensorRecord | undefined = this.#previous?.records.graph.tensors.list[oldIndex]
    const name = parts.text(tensor.name, `${path}.name`, record?.name)
    const dims =
      tensor.shape === null
        ? undefined
        : parts.vector(tensor.shape, 'i32', `${path}.dims`, { record: record?.dims })
    const quantization = this.#quantization(tensor, path, record)
    const keepsBufferId = this.#mode === 'exact' && record !== undefined && !isConstant(tensor)
    const values = () => ({
      id: idOf(index, oldIndex, record?.values.id),
      buffer_id: keepsBufferId ? record.values.buffer_id : lastBuffer,
      dims: offsetOf(dims),
      name: offsetOf(name),
      quantization: offsetOf(quantization),
      layout: this.#layoutOf(tensor),
      type: typeOfRole(tensor.role),
      data_type: DTYPES[tensor.dtype]?.tmfile as number,
    })
    return parts.struct('tensor', path, values, { base: record && baseOf('tensor', record) })
  }

  #layoutOf(tensor: TmfileTensor): number {
    const isGarbage = isConstant(tensor) && tensor.layout !== 0 && tensor.layout !== NHWC
    return isGarbage && this.#mode !== 'exact' ? this.#model.graph.graphLayout : tensor.layout
  }

  #quantization(
    { quantization }: TmfileTensor,
    path: string,
    record: TensorRecord | undefined,
  ): Piece | undefined {
    if (!quantization) return undefined
    const { scales, zeroPoints, widths } = quantization
    const old = record?.quantization
    const pieces = Array.from(scales, (scale, index) => {
      const at = old?.vector.entries[index]
      const width = this.#mode === 'exact' ? widths[index]! : 0
      const values = () => ({ zero_point: zeroPoints[index]!, scale, width })
      return this.#parts.struct('quantization', `${path}.quantization[${index}]`, values, {
        base: at === undefined ? undefined : { at, byteLength: PLACED.quantization.byteLength },
      })
    })
    return this.#parts.vector(pieces, 'offset', `${path}.quantization`, { record: old?.vector })
  }

  #buffer(buffer: TmfileBuffer, index: number): Piece {
    const path = `buffers[${index}]`
    const record = this.#previous?.records.graph.buffers?.list[this.#recordIndex(buffer)]
    const { data } = buffer
    const isOld = data !== null && 'source' in data && data.source === this.#previous?.origin.source
    const numbers = this.#parts.data(buffer, `${path}.data`, isOld ? data.start : undefined)
    const values = () => ({ size: buffer.byteLength, data: offsetOf(numbers) })
    return this.#parts.struct('buffer', path, values, { base: record && baseOf('buffer', record) })
  }

  #bufferVector(buffers: readonly Piece[]): Piece | undefined {
    const records = this.#previous?.records.graph
    const wasAbsent = records !== undefined && records.buffers === undefined
    if (wasAbsent && buffers.length === 0) return undefined
    return this.#parts.vector(buffers, 'offset', 'buffers', { record: records?.buffers?.vector })
  }

  #subgraph(vectors: {
    readonly nodeVector: Piece
    readonly tensorVector: Piece
    readonly bufferVector: Piece | undefined
  }): Piece {
    const parts = this.#parts
    const { graph } = this.#model
    const record = this.#previous?.records.graph
    const ends = (list: 'inputs' | 'outputs') =>
      parts.optionalVector(this.#nodeIndices(graph[list], list), list, record?.[list], {
        keepEmpty: !record || record[list] !== undefined,
      })
    const inputs = ends('inputs')
    const outputs = ends('outputs')
    const devices = this.#devices()
    const name = parts.text(graph.name, 'subgraphs[0].name', record?.name)
    const values = () => ({
      id: graph.id,
      graph_layout: graph.graphLayout,
      model_layout: graph.modelLayout,
      inputs: offsetOf(inputs),
      outputs: offsetOf(outputs),
      nodes: vectors.nodeVector.at,
      tensors: vectors.tensorVector.at,
      buffers: offsetOf(vectors.bufferVector),
      name: offsetOf(name),
      devices: devices?.at ?? this.#unsetDevices(),
    })
    const isOldForm = record?.byteLength === OLD_SUBGRAPH_BYTES && this.#mode !== 'upgrade' && !devices
    const byteLength = isOldForm ? OLD_SUBGRAPH_BYTES : PLACED.subgraph.byteLength
    const base = record && { at: record.at, byteLength: record.byteLength }
    return parts.struct('subgraph', 'subgraphs[0]', values, { base, byteLength })
  }

  /** Without device subgraphs nobody sets the field. */
  #unsetDevices(): number {
    const record = this.#previous?.records.graph
    const isStored = record !== undefined && record.byteLength > OLD_SUBGRAPH_BYTES && !record.devices
    return this.#mode === 'exact' && isStored ? record.values.devices : 0
  }

  /** A count above 1 says that there are device subgraphs; only the first entry is stored. */
  #subgraphCount(): number {
    const { devices } = this.#model.graph
    const old = this.#previous?.records
    if (!devices)
      return old && old.subgraphs.count > 1 && !old.graph.devices && this.#mode === 'exact'
        ? old.subgraphs.count
        : 1
    const isUnchanged = old?.graph.devices?.list.length === devices.length
    return isUnchanged ? old.subgraphs.count : Math.max(2, devices.length)
  }

  #devices(): Piece | undefined {
    const { devices } = this.#model.graph
    if (!devices) return undefined
    const pieces = devices.map((device, index) => this.#device(device, index))
    const record = this.#previous?.records.graph.devices?.vector
    return this.#parts.vector(pieces, 'offset', 'devices', { record })
  }

  #device(device: TmfileDevice, index: number): Piece {
    const parts = this.#parts
    const path = `devices[${index}]`
    const record: DeviceRecord | undefined =
      this.#previous?.records.graph.devices?.list[this.#recordIndex(device)]
    const nodes = this.#nodeIndices(device.nodes, `${path}.nodes`)
    const nodeVector = parts.optionalVector(nodes, `${path}.nodes`, record?.nodes)
    const inputs = this.#tensorIndices(device.inputs, `${path}.inputs`)
    const inputVector = parts.optionalVector(inputs, `${path}.inputs`, record?.inputs)
    const outputs = this.#tensorIndices(device.outputs, `${path}.outputs`)
    const outputVector = parts.optionalVector(outputs, `${path}.outputs`, record?.outputs)
    const name = parts.text(device.name, `${path}.name`, record?.name)
    const values = () => ({
      id: device.id,
      input_wait_count: device.inputWaitCount,
      data_type: device.dataType,
      nodes: offsetOf(nodeVector),
      inputs: offsetOf(inputVector),
      outputs: offsetOf(outputVector),
      name: offsetOf(name),
    })
    return parts.struct('device', path, values, { base: record && baseOf('device', record) })
  }

  #nodeIndices(nodes: readonly TmfileNode[], path: string): number[] {
    return nodes.map((node, at) => {
      const index = this.#nodeIndex.get(node)
      return index ?? refuse(`${path}[${at}] is a node that is not in graph.nodes.`, path)
    })
  }

  #tensorIndices(tensors: readonly TmfileTensor[], path: string): number[] {
    return tensors.map((tensor, at) => {
      const index = this.#tensorIndex.get(tensor)
      return index ?? refuse(`${path}[${at}] is a tensor that is not in graph.tensors.`, path)
    })
  }

  #bufferIndexOf({ buffer, name }: TmfileTensor, index: number): number {
    const path = `tensors[${index}]`
    if (!buffer) return refuse(`${path} "${name ?? ''}" is a constant without a buffer.`, path)
    return this.#bufferIndex.get(buffer) ?? refuse(`The buffer of ${path} is not in graph.buffers.`, path)
  }
}

function indexed<T>(list: readonly T[]): ReadonlyMap<T, number> {
  return new Map(list.map((entry, index): [T, number] => [entry, index]))
}

/** Everyone numbers by position and nobody reads the number; one that differs is kept. */
function idOf(index: number, oldIndex: number, oldId: number | undefined): number {
  return oldId === undefined || oldId === oldIndex ? index : oldId
}

function baseOf(
  struct: 'node' | 'tensor' | 'buffer' | 'device',
  { at }: { readonly at: number },
): { readonly at: number; readonly byteLength: number } {
  return { at, byteLength: PLACED[struct].byteLength }
}

function refuse(message: string, path: string): never {
  throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME, path })
}
