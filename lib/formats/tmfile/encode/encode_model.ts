/**
 * Encodes a model as the chunks of a file, in the order in which the reference writes them: nodes, tensors, buffers, graph
 * inputs and outputs, device subgraphs, subgraph, root, header.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import type { DeviceRecord, FileRecords, NodeRecord, TensorRecord } from '../decode/records.js'
import { UNWRITTEN_NUL_BYTES } from '../decode/walk.js'
import { isConstant, NHWC, typeOfRole } from '../enums.js'
import { FORMAT_NAME, NO_BUFFER, OLD_SUBGRAPH_BYTES, STRUCT_LAYOUTS } from '../schema.js'
import type { TmfileBuffer, TmfileDevice, TmfileModelFields, TmfileNode, TmfileTensor } from '../types.js'
import { type Chunk, type OriginalRange, offsetOf, type WriteMode } from './chunk.js'
import { ChunkBuilder } from './chunk_builder.js'
import { encodeOperator } from './encode_operator.js'

/** What a file lists, and an index in it stands for. */
export type IndexedObject = TmfileNode | TmfileTensor | TmfileBuffer | TmfileDevice

/** Where the objects of a model were in the file that it was read from. */
export interface Origin {
  readonly source: ByteSource
  /** Index in the file's list; undefined for an object that is not from the file. */
  indexOf(object: IndexedObject): number | undefined
}

/** The file that a model was read from, and its records: the source of every byte that a rewrite keeps. */
export interface OriginalFile {
  readonly origin: Origin
  readonly records: FileRecords
}

/** All chunks of the file, the header last. */
export function encodeModel(
  model: TmfileModelFields,
  mode: WriteMode,
  original: OriginalFile | undefined,
): Chunk[] {
  return new ModelEncoder(model, mode, original).run()
}

class ModelEncoder {
  readonly #model: TmfileModelFields
  readonly #mode: WriteMode
  readonly #original: OriginalFile | undefined
  readonly #builder = new ChunkBuilder()
  readonly #nodeIndex: ReadonlyMap<TmfileNode, number>
  readonly #tensorIndex: ReadonlyMap<TmfileTensor, number>
  readonly #bufferIndex: ReadonlyMap<TmfileBuffer, number>

  constructor(model: TmfileModelFields, mode: WriteMode, original: OriginalFile | undefined) {
    this.#model = model
    this.#mode = mode
    this.#original = original
    this.#nodeIndex = indexed(model.graph.nodes)
    this.#tensorIndex = indexed(model.graph.tensors)
    this.#bufferIndex = indexed(model.graph.buffers)
  }

  run(): Chunk[] {
    const builder = this.#builder
    const { graph, version, originalFormat, subFormat } = this.#model
    const records = this.#original?.records
    const name = builder.text(this.#model.name, 'name', records?.name)
    const nodes = graph.nodes.map((node, index) => this.#node(node, index))
    const nodeVector = builder.vector(nodes, 'offset', 'nodes', { record: records?.graph.nodes.vector })
    const tensors = this.#tensors()
    const tensorVector = builder.vector(tensors, 'offset', 'tensors', {
      record: records?.graph.tensors.vector,
    })
    const buffers = graph.buffers.map((buffer, index) => this.#buffer(buffer, index))
    const bufferVector = this.#bufferVector(buffers)
    const subgraph = this.#subgraph({ nodeVector, tensorVector, bufferVector })
    const subgraphs = builder.vector([subgraph], 'offset', 'subgraphs', {
      record: records?.subgraphs,
      count: this.#subgraphCount(),
    })
    const root = builder.struct(
      'root',
      'root',
      () => ({
        orig_format: originalFormat,
        sub_format: subFormat,
        subgraphs: subgraphs.offset,
        name: offsetOf(name),
      }),
      { original: records && { offset: records.header.root, byteLength: STRUCT_LAYOUTS.root.byteLength } },
    )
    const [ver_main, ver_sub, ver_compile] = version
    builder.struct('header', 'header', () => ({ ver_main, ver_sub, ver_compile, root: root.offset }), {
      original: records && { offset: 0, byteLength: STRUCT_LAYOUTS.header.byteLength },
    })
    return builder.chunks
  }

  /** Index of an object in the original file; -1 for a new object. */
  #originalIndex(object: TmfileNode | TmfileTensor | TmfileBuffer | TmfileDevice): number {
    return this.#original?.origin.indexOf(object) ?? -1
  }

  #node(node: TmfileNode, index: number): Chunk {
    const builder = this.#builder
    const path = `nodes[${index}]`
    const originalIndex = this.#originalIndex(node)
    const record: NodeRecord | undefined = this.#original?.records.graph.nodes.list[originalIndex]
    const name = builder.text(node.name, `${path}.name`, record?.name)
    const inputs = this.#tensorIndices(node.inputs, `${path}.inputs`)
    const outputs = this.#tensorIndices(node.outputs, `${path}.outputs`)
    const inputVector = builder.optionalVector(inputs, `${path}.inputs`, record?.inputs)
    // The reference rejects a node without this vector, so a new node has it even when it is empty.
    const outputVector = builder.optionalVector(outputs, `${path}.outputs`, record?.outputs, {
      keepEmpty: !record || record.outputs !== undefined,
    })
    const attributes = this.#attributes(node, path, record)
    const operator = encodeOperator(builder, node, { path, record: record?.operator, mode: this.#mode })
    const values = () => ({
      id: idOf(index, originalIndex, record?.values.id),
      inputs: offsetOf(inputVector),
      outputs: offsetOf(outputVector),
      operator: operator.offset,
      name: offsetOf(name),
      attributes: offsetOf(attributes),
      // Any byte except 0 is true.
      dynamic_shape: node.dynamicShape ? record?.values.dynamic_shape || 1 : 0,
    })
    return builder.struct('node', path, values, { original: rangeOf('node', record) })
  }

  #attributes({ attributes }: TmfileNode, path: string, record: NodeRecord | undefined): Chunk | undefined {
    const original = record?.attributes
    if (attributes.length === 0 && !original) return undefined
    const builder = this.#builder
    const chunks = attributes.map(({ name, value, type }, index) => {
      const owner = `${path}.attributes[${index}]`
      const record = original?.list[index]
      // An absent name or value stays absent.
      const hasName = !record || record.name !== undefined || name !== ''
      const hasValue = !record || record.value !== undefined || value.byteLength > 0
      const nameText = hasName ? name : null
      const nameRecord = builder.text(nameText, `${owner}.name`, record?.name, UNWRITTEN_NUL_BYTES)
      const valueRecord = hasValue ? builder.rawText(value, `${owner}.value`, record?.value) : undefined
      const values = () => ({ name: offsetOf(nameRecord), value: offsetOf(valueRecord), type })
      return builder.struct('attribute', owner, values, { original: rangeOf('attribute', record) })
    })
    return builder.vector(chunks, 'offset', `${path}.attributes`, { record: original?.vector })
  }

  #tensors(): Chunk[] {
    // In every other tensor the reference stores the buffer index of the last constant before it.
    let lastBuffer = NO_BUFFER
    return this.#model.graph.tensors.map((tensor, index) => {
      if (isConstant(tensor)) lastBuffer = this.#bufferIndexOf(tensor, index)
      return this.#tensor(tensor, index, lastBuffer)
    })
  }

  #tensor(tensor: TmfileTensor, index: number, lastBuffer: number): Chunk {
    const builder = this.#builder
    const path = `tensors[${index}]`
    const originalIndex = this.#originalIndex(tensor)
    const record: TensorRecord | undefined = this.#original?.records.graph.tensors.list[originalIndex]
    const name = builder.text(tensor.name, `${path}.name`, record?.name)
    const dims =
      tensor.shape === null
        ? undefined
        : builder.vector(tensor.shape, 'i32', `${path}.dims`, { record: record?.dims })
    const quantization = this.#quantization(tensor, path, record)
    const keepsBufferId = this.#mode === 'exact' && record !== undefined && !isConstant(tensor)
    const values = () => ({
      id: idOf(index, originalIndex, record?.values.id),
      buffer_id: keepsBufferId ? record.values.buffer_id : lastBuffer,
      dims: offsetOf(dims),
      name: offsetOf(name),
      quantization: offsetOf(quantization),
      layout: this.#layoutOf(tensor),
      type: typeOfRole(tensor.role),
      data_type: DTYPES[tensor.dtype]?.tmfile as number,
    })
    return builder.struct('tensor', path, values, { original: rangeOf('tensor', record) })
  }

  #layoutOf(tensor: TmfileTensor): number {
    const isGarbage = isConstant(tensor) && tensor.layout !== 0 && tensor.layout !== NHWC
    return isGarbage && this.#mode !== 'exact' ? this.#model.graph.graphLayout : tensor.layout
  }

  #quantization(
    { quantization }: TmfileTensor,
    path: string,
    record: TensorRecord | undefined,
  ): Chunk | undefined {
    if (!quantization) return undefined
    const { scales, zeroPoints, widths } = quantization
    const original = record?.quantization
    const chunks = Array.from(scales, (scale, index) => {
      const offset = original?.vector.entries[index]
      const width = this.#mode === 'exact' ? widths[index]! : 0
      const values = () => ({ zero_point: zeroPoints[index]!, scale, width })
      return this.#builder.struct('quantization', `${path}.quantization[${index}]`, values, {
        original: rangeOf('quantization', offset === undefined ? undefined : { offset }),
      })
    })
    return this.#builder.vector(chunks, 'offset', `${path}.quantization`, { record: original?.vector })
  }

  #buffer(buffer: TmfileBuffer, index: number): Chunk {
    const path = `buffers[${index}]`
    const record = this.#original?.records.graph.buffers?.list[this.#originalIndex(buffer)]
    const { data } = buffer
    const isFromOriginal = data !== null && 'source' in data && data.source === this.#original?.origin.source
    const dataChunk = this.#builder.data(buffer, `${path}.data`, isFromOriginal ? data.start : undefined)
    const values = () => ({ size: buffer.byteLength, data: offsetOf(dataChunk) })
    return this.#builder.struct('buffer', path, values, { original: rangeOf('buffer', record) })
  }

  #bufferVector(buffers: readonly Chunk[]): Chunk | undefined {
    const records = this.#original?.records.graph
    const wasAbsent = records !== undefined && records.buffers === undefined
    if (wasAbsent && buffers.length === 0) return undefined
    return this.#builder.vector(buffers, 'offset', 'buffers', { record: records?.buffers?.vector })
  }

  #subgraph(vectors: {
    readonly nodeVector: Chunk
    readonly tensorVector: Chunk
    readonly bufferVector: Chunk | undefined
  }): Chunk {
    const builder = this.#builder
    const { graph } = this.#model
    const record = this.#original?.records.graph
    const nodeIndices = (list: 'inputs' | 'outputs') =>
      builder.optionalVector(this.#nodeIndices(graph[list], list), list, record?.[list], {
        keepEmpty: !record || record[list] !== undefined,
      })
    const inputs = nodeIndices('inputs')
    const outputs = nodeIndices('outputs')
    const devices = this.#devices()
    const name = builder.text(graph.name, 'subgraphs[0].name', record?.name)
    const values = () => ({
      id: graph.id,
      graph_layout: graph.graphLayout,
      model_layout: graph.modelLayout,
      inputs: offsetOf(inputs),
      outputs: offsetOf(outputs),
      nodes: vectors.nodeVector.offset,
      tensors: vectors.tensorVector.offset,
      buffers: offsetOf(vectors.bufferVector),
      name: offsetOf(name),
      devices: devices?.offset ?? this.#uninitialisedDevices(),
    })
    const isOldForm = record?.byteLength === OLD_SUBGRAPH_BYTES && this.#mode !== 'upgrade' && !devices
    const byteLength = isOldForm ? OLD_SUBGRAPH_BYTES : STRUCT_LAYOUTS.subgraph.byteLength
    return builder.struct('subgraph', 'subgraphs[0]', values, { original: record, byteLength })
  }

  /** Value of `devices` in a file without device subgraphs, where the writer leaves the field uninitialised. */
  #uninitialisedDevices(): number {
    const record = this.#original?.records.graph
    const isStored = record !== undefined && record.byteLength > OLD_SUBGRAPH_BYTES && !record.devices
    return this.#mode === 'exact' && isStored ? record.values.devices : 0
  }

  /** A count above 1 means that the file has device subgraphs; only the first entry is stored. */
  #subgraphCount(): number {
    const { devices } = this.#model.graph
    const original = this.#original?.records
    if (!devices) {
      const isCountKept = original && !original.graph.devices && this.#mode === 'exact'
      return isCountKept ? Math.max(1, original.subgraphs.count) : 1
    }
    const isUnchanged = original?.graph.devices?.list.length === devices.length
    return isUnchanged ? original.subgraphs.count : Math.max(2, devices.length)
  }

  #devices(): Chunk | undefined {
    const { devices } = this.#model.graph
    if (!devices) return undefined
    const chunks = devices.map((device, index) => this.#device(device, index))
    const record = this.#original?.records.graph.devices?.vector
    return this.#builder.vector(chunks, 'offset', 'devices', { record })
  }

  #device(device: TmfileDevice, index: number): Chunk {
    const builder = this.#builder
    const path = `devices[${index}]`
    const record: DeviceRecord | undefined =
      this.#original?.records.graph.devices?.list[this.#originalIndex(device)]
    const nodes = this.#nodeIndices(device.nodes, `${path}.nodes`)
    const nodeVector = builder.optionalVector(nodes, `${path}.nodes`, record?.nodes)
    const inputs = this.#tensorIndices(device.inputs, `${path}.inputs`)
    const inputVector = builder.optionalVector(inputs, `${path}.inputs`, record?.inputs)
    const outputs = this.#tensorIndices(device.outputs, `${path}.outputs`)
    const outputVector = builder.optionalVector(outputs, `${path}.outputs`, record?.outputs)
    const name = builder.text(device.name, `${path}.name`, record?.name)
    const values = () => ({
      id: device.id,
      input_wait_count: device.inputWaitCount,
      data_type: device.dataType,
      nodes: offsetOf(nodeVector),
      inputs: offsetOf(inputVector),
      outputs: offsetOf(outputVector),
      name: offsetOf(name),
    })
    return builder.struct('device', path, values, { original: rangeOf('device', record) })
  }

  #nodeIndices(nodes: readonly TmfileNode[], path: string): number[] {
    return nodes.map((node, position) => {
      const index = this.#nodeIndex.get(node)
      return index ?? refuse(`${path}[${position}] is a node that is not in graph.nodes.`, path)
    })
  }

  #tensorIndices(tensors: readonly TmfileTensor[], path: string): number[] {
    return tensors.map((tensor, position) => {
      const index = this.#tensorIndex.get(tensor)
      return index ?? refuse(`${path}[${position}] is a tensor that is not in graph.tensors.`, path)
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

/** All writers store the index as the id, and no reader uses it; an id that differs is kept. */
function idOf(index: number, originalIndex: number, originalId: number | undefined): number {
  return originalId === undefined || originalId === originalIndex ? index : originalId
}

/** Range of a struct in the original file. */
function rangeOf(
  struct: 'node' | 'tensor' | 'buffer' | 'device' | 'attribute' | 'quantization',
  record: { readonly offset: number } | undefined,
): OriginalRange | undefined {
  return record && { offset: record.offset, byteLength: STRUCT_LAYOUTS[struct].byteLength }
}

function refuse(message: string, path: string): never {
  throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME, path })
}
