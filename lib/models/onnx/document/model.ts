/**
 * An ONNX model as objects: graph, functions and metadata. Objects are read on access, and unchanged fields are written
 * byte for byte.
 */
import { inspect } from 'node:util'
import { MemorySource } from '../../../bytes/memory.js'
import type { ByteSource } from '../../../bytes/source.js'
import { checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { MODEL_FORMAT } from '../../../formats/model_brand.js'
import type { MessageFile } from '../../../formats/onnx/protobuf/edited_bytes.js'
import { checkInt64, checkText } from '../../../formats/onnx/protobuf/field_input.js'
import { Message } from '../../../formats/onnx/protobuf/message.js'
import { WireCursor } from '../../../formats/onnx/protobuf/wire.js'
import { WireWriter } from '../../../formats/onnx/protobuf/wire_writer.js'
import { DEFAULT_LIMITS, FORMAT_NAME, fieldNumber } from '../../../formats/onnx/schema.js'
import { tensorFields } from '../../../formats/onnx/tensor/fields.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { uncloneable } from '../../../uncloneable.js'
import {
  addDeviceConfiguration,
  type DeviceConfiguration,
  deviceConfigurationsOf,
  forgetDeviceConfiguration,
} from './device_configuration.js'
import { ProtoGraph } from './graph.js'
import { metadataOf, removeMetadata, setMetadata, setOptionalText } from './metadata.js'
import { ModelFunction } from './model_function.js'
import { standardDomain } from './node.js'
import { setOpsetImport } from './opset_import.js'
import type { Graph } from './types.js'

/** A tensor and its path in the model. */
export interface PlacedTensor {
  /** For example `graph.node[3].attribute[0].t`. */
  readonly path: string
  readonly tensor: Tensor
}

/** A training method. Bindings name the output whose value is stored to an initializer after the graph has run. */
export interface TrainingInfo {
  /** Computes the initial values. */
  readonly initialization?: Graph
  /** Computes one training step. */
  readonly algorithm?: Graph
  /** Outputs of `initialization` by the name of the initializer that takes them. */
  readonly initializationBinding: ReadonlyMap<string, string>
  /** Outputs of `algorithm` by the name of the initializer that takes them. */
  readonly updateBinding: ReadonlyMap<string, string>
}

/** Options of a new model. */
export interface NewModel {
  /** Default 10, which has all element types except float4 (11), e8m0 (12), the 2-bit types (13) and float6 (14). */
  readonly irVersion?: number
  /** Version of the operator set of ONNX itself. Default 21. */
  readonly opset?: number
  readonly graphName?: string
}

const CURRENT_IR_VERSION = 10
const CURRENT_OPSET = 21

export interface OnnxModelInit {
  readonly source: ByteSource
  /** Open external data files by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  readonly depthLimit?: number
}

/** A copied message and its file. */
interface CopiedModel {
  readonly message: Message
  /** @internal */
  readonly file: MessageFile
}

const UNCLONEABLE = uncloneable('an ONNX model; send the bytes of serialize() instead')

/** An ONNX model that can be edited: its graph, functions, operator sets and metadata. What an edit does not touch keeps its bytes. */
export class OnnxModel {
  /** @internal The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  /** @internal */
  readonly message: Message
  /** @internal */
  readonly file: MessageFile

  get [MODEL_FORMAT](): 'onnx' {
    return 'onnx'
  }

  /** @internal */
  [inspect.custom](): string {
    return `OnnxModel (${this.graph.nodes.length} nodes)`
  }

  /** @internal Users get models from `open` and `OnnxModel.create`. */
  constructor(init: OnnxModelInit | CopiedModel) {
    if ('message' in init) {
      this.message = init.message
      this.file = init.file
      return
    }
    const { source, files, depthLimit = DEFAULT_LIMITS.depth } = init
    this.file = { source, cursor: new WireCursor(source), files, depthLimit }
    this.message = new Message('ModelProto', { file: this.file, start: 0, end: source.byteLength })
  }

  /**
   * A model with an empty graph.
   *
   * @throws TileworkError ERR_ARGUMENT for an unknown or invalid option
   */
  static create(options: NewModel = {}): OnnxModel {
    checkOptions(options, 'OnnxModel.create', ['irVersion', 'opset', 'graphName'])
    const given = readInput('The options of OnnxModel.create', () => ({ ...options }))
    const { irVersion = CURRENT_IR_VERSION, opset = CURRENT_OPSET, graphName = 'graph' } = given
    checkInt64('irVersion', irVersion)
    const graph = new WireWriter().text(fieldNumber('GraphProto', 'name'), checkText('graphName', graphName))
    const bytes = new WireWriter()
      .varint(fieldNumber('ModelProto', 'ir_version'), irVersion)
      .message(fieldNumber('ModelProto', 'graph'), graph)
      .finish()
    const model = new OnnxModel({ source: new MemorySource(bytes, 'a new model'), files: new Map() })
    model.setOpsetImport('', opset)
    return model
  }

  /** True after any edit. */
  get isChanged(): boolean {
    return this.message.isChanged
  }

  get irVersion(): number | bigint {
    return this.message.int('ir_version') ?? 0
  }

  set irVersion(version: number | bigint) {
    this.message.setInt('ir_version', version)
  }

  get producerName(): string {
    return this.message.text('producer_name')
  }

  set producerName(name: string) {
    setOptionalText(this.message, 'producer_name', name)
  }

  get producerVersion(): string {
    return this.message.text('producer_version')
  }

  set producerVersion(version: string) {
    setOptionalText(this.message, 'producer_version', version)
  }

  get domain(): string {
    return this.message.text('domain')
  }

  set domain(domain: string) {
    setOptionalText(this.message, 'domain', domain)
  }

  get modelVersion(): number | bigint {
    return this.message.int('model_version') ?? 0
  }

  set modelVersion(version: number | bigint) {
    this.message.setInt('model_version', version)
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  set docString(text: string) {
    setOptionalText(this.message, 'doc_string', text)
  }

  /** Versions of operator sets by domain; the empty domain is ONNX itself, also where the file has `ai.onnx`. */
  get opsetImports(): ReadonlyMap<string, number | bigint> {
    const imports = this.message.messages('opset_import')
    return new Map(imports.map((each) => [standardDomain(each.text('domain')), each.int('version') ?? 0]))
  }

  /** Metadata of the model; the last of equal keys wins. */
  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  setMetadata(key: string, value: string): void {
    setMetadata(this.message, key, value)
  }

  /** @returns false where the model has no such entry */
  removeMetadata(key: string): boolean {
    return removeMetadata(this.message, key)
  }

  /** Sets the version of an operator set and converts no node; the empty domain is ONNX itself. */
  setOpsetImport(domain: string, version: number | bigint): void {
    setOpsetImport(this.message, domain, version)
  }

  /** The main graph. @throws TileworkError ERR_GRAPH for a model without a graph */
  get graph(): Graph {
    const graph = this.message.message('graph')
    if (graph) return ProtoGraph.of(graph)
    throw new TileworkError('ERR_GRAPH', 'The model has no graph.', { format: FORMAT_NAME })
  }

  get functions(): readonly ModelFunction[] {
    return this.message.messages('functions').map((message) => new ModelFunction(message))
  }

  /**
   * An independent copy of the model as it is now. It reads the same file, so it is valid while that file is open.
   */
  copy(): OnnxModel {
    return new OnnxModel({ message: this.message.copy(), file: this.file })
  }

  /** Training graphs and their bindings. */
  get trainingInfo(): readonly TrainingInfo[] {
    return this.message.messages('training_info').map(readTraining)
  }

  /** The main graph, training graphs, and their subgraphs. */
  *graphs(): Generator<Graph> {
    const training = this.trainingInfo.flatMap(({ initialization, algorithm }) => [initialization, algorithm])
    for (const graph of [this.graph, ...training]) {
      if (!graph) continue
      yield graph
      yield* graph.subgraphs()
    }
  }

  /** Device configurations that the model is annotated for. */
  get deviceConfigurations(): readonly DeviceConfiguration[] {
    return deviceConfigurationsOf(this.message)
  }

  /**
   * Adds a device configuration, to which `deviceConfigurations` of nodes refer by its name.
   *
   * @param added - `deviceCount` defaults to the number of `devices`; their names may be absent
   * @throws TileworkError ERR_ARGUMENT for a name that is empty or taken, for no device, and for another number of names than devices
   */
  addDeviceConfiguration(
    added: Pick<DeviceConfiguration, 'name'> & Partial<Omit<DeviceConfiguration, 'name'>>,
  ): void {
    addDeviceConfiguration(this.message, added)
  }

  /**
   * Removes a device configuration, and what nodes of graphs and functions are annotated with for it.
   *
   * @returns false where the model has no such configuration
   */
  removeDeviceConfiguration(name: string): boolean {
    checkText('The name of a device configuration', name)
    const count = this.message.filter('configuration', (field) => (field as Message).text('name') !== name)
    if (count === 0) return false
    for (const graph of this.graphs())
      for (const { message } of graph.nodes) forgetDeviceConfiguration(message, name)
    for (const { nodes } of this.functions) {
      for (const node of nodes) {
        forgetDeviceConfiguration(node.message, name)
        for (const graph of node.subgraphs)
          for (const { message } of graph.allNodes()) forgetDeviceConfiguration(message, name)
      }
    }
    return true
  }

  /**
   * Every tensor of the model: initializers, attributes, subgraphs, functions, training graphs.
   *
   * @throws TileworkError at the first tensor that breaks a rule of the format
   */
  *allTensors(): Generator<PlacedTensor> {
    for (const { field, path } of tensorFields(this.message, '', false)) {
      yield { path, tensor: tensorOfField(field) }
    }
  }
}

function readTraining(message: Message): TrainingInfo {
  const [initialization, algorithm] = ['initialization', 'algorithm'].map((name) => message.message(name))
  return {
    ...(initialization && { initialization: ProtoGraph.of(initialization) }),
    ...(algorithm && { algorithm: ProtoGraph.of(algorithm) }),
    initializationBinding: bindingsOf(message, 'initialization_binding'),
    updateBinding: bindingsOf(message, 'update_binding'),
  }
}

function bindingsOf(message: Message, list: string): ReadonlyMap<string, string> {
  return new Map(message.messages(list).map((each) => [each.text('key'), each.text('value')]))
}
