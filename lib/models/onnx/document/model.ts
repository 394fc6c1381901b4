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
import { extractModel } from '../compose/extract.js'
import { expandOutputDims } from '../compose/output_dims.js'
import { addPrefix, type PrefixOptions } from '../compose/prefix.js'
import { addFunction, type NewFunction, removeFunction } from '../edit/function_edits.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../edit/graph_passes.js'
import { declareTypes, type InferredShapes } from '../infer/declare_types.js'
import { type Inference, inferTypes } from '../infer/infer.js'
import { type InputShapeChange, setBatch, setInputShape } from '../infer/input_shapes.js'
import { convertOpset, type OpsetConversion } from '../opset/convert.js'
import { type OptimizeChange, type OptimizeOptions, optimize } from '../optimize/optimize.js'
import { ProtoGraph } from './graph.js'
import { metadataOf, removeMetadata, setMetadata, setOptionalText } from './metadata.js'
import { ModelFunction } from './model_function.js'
import { standardDomain } from './node.js'
import type { Dimension, Graph, ValueType } from './types.js'

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

/** Devices that a model is annotated for. */
export interface DeviceConfiguration {
  readonly name: string
  readonly deviceCount: number
  readonly devices: readonly string[]
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

  /**
   * Converts the model to a later version of the operator set of ONNX: nodes whose operator changed are rewritten, with constants
   * and further nodes where they need them, in subgraphs and functions too. Other domains and the IR version stay.
   *
   * @param version - from the present version to 28
   * @throws TileworkError ERR_ARGUMENT for another number; ERR_UNSUPPORTED for an earlier version and for nodes that cannot be
   * converted, all of which the error names; ERR_GRAPH for a cycle of nodes and for a model without that operator set. Nothing
   * is changed then
   */
  convertOpset(version: number): OpsetConversion {
    return convertOpset(this, version)
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
    checkText('The domain of an operator set', domain)
    checkInt64('The version of an operator set', version)
    const known = this.message
      .messages('opset_import')
      .findLast((each) => standardDomain(each.text('domain')) === standardDomain(domain))
    const entry = known ?? this.message.insert('opset_import')
    if (!known && domain !== '') entry.setText('domain', domain)
    entry.setInt('version', version)
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
   * Adds a function and imports its domain into the model.
   *
   * @throws TileworkError ERR_ARGUMENT for a key that is taken, for the domain of ONNX itself, for empty or repeated names,
   * for values that are defined twice or used before their definition, and for domains without an import; ERR_GRAPH for
   * a function that calls itself; ERR_UNSUPPORTED below IR version 8, or 10 for overloads; ERR_LIMIT
   */
  addFunction(added: NewFunction): ModelFunction {
    return addFunction(this, added)
  }

  /** @throws TileworkError ERR_ARGUMENT for an unknown function, and for one that a node calls */
  removeFunction(domain: string, name: string, overload = ''): void {
    removeFunction(this, domain, name, overload)
  }

  /**
   * An independent copy of the model as it is now. It reads the same file, so it is valid while that file is open.
   */
  copy(): OnnxModel {
    return new OnnxModel({ message: this.message.copy(), file: this.file })
  }

  /**
   * A model of the nodes of the main graph between the given inputs and outputs, with the initializers, types and functions
   * that they use. Its inputs and outputs have the given order; an initializer given as an input loses its value. Training
   * graphs are omitted. This model does not change; the new one reads the same file.
   *
   * @param inputs - names of values; empty where the outputs depend on initializers only
   * @param outputs - names of values, at least one
   * @throws TileworkError ERR_ARGUMENT for unknown or repeated names, for an input whose type is not declared and does not follow, where the
   * outputs need a graph input that is not given, and where a needed node also produces one of the inputs
   */
  extract(inputs: readonly string[], outputs: readonly string[]): OnnxModel {
    return extractModel(this, inputs, outputs)
  }

  /**
   * Puts a text before names: of values and nodes, also in subgraphs, and of functions, wherever they are defined and used.
   * Empty names stay empty. Names of attributes and of values inside functions stay.
   *
   * @param options - which names change; default: all
   * @throws TileworkError ERR_ARGUMENT for unknown options, and where a value that keeps its name has one of the new names
   */
  addPrefix(prefix: string, options: PrefixOptions = {}): void {
    addPrefix(this, prefix, options)
  }

  /**
   * Inserts a dimension of extent 1 into every output, by an Unsqueeze node before it.
   *
   * @param axis - index of the new dimension; negative ones count from the end, as for Unsqueeze
   * @throws TileworkError ERR_ARGUMENT for an axis outside of a declared shape; ERR_GRAPH for an output that is no dense
   * tensor; ERR_UNSUPPORTED for an output that no node computes. Nothing is changed then
   */
  expandOutputDims(axis: number): void {
    expandOutputDims(this, axis)
  }

  /**
   * Types of the values of the main graph, as far as they follow from inputs, initializers and operators, declared types
   * included. The model does not change. Unknown extents are null, and extents that are sums of symbolic ones are texts as
   * `2*N + 1`.
   */
  inferTypes(): ReadonlyMap<string, ValueType> {
    return this.infer().types.get(this.graph)!
  }

  /** @internal Types of the main graph and its subgraphs. */
  infer(isOpen?: (graph: Graph, name: string) => boolean): Inference {
    const { graph, functions, opsetImports: opsets } = this
    const hasOldInitializers = Number(this.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS
    return inferTypes({ graph, functions, opsets, hasOldInitializers, ...(isOpen && { isOpen }) })
  }

  /**
   * Declares the types and shapes that follow from inputs, initializers and operators: of intermediate values in
   * `graph.valueInfo`, of outputs where the graph leaves them open; in subgraphs too.
   */
  inferShapes(): InferredShapes {
    return declareTypes(this)
  }

  /**
   * Sets the shape of an input. Declared types of dependent values follow, and so do constant targets of `Reshape` nodes of
   * the main graph that contain the old first extent.
   *
   * @param shape - extents, names of symbolic dimensions, or null for unknown ones; the rank stays
   * @throws TileworkError ERR_ARGUMENT for an invalid shape and for another rank; ERR_GRAPH for a name that is not an
   * input, for an input that is no dense tensor, and for a cycle of nodes
   */
  setInputShape(name: string, shape: readonly Dimension[]): InputShapeChange {
    return setInputShape(this, name, shape)
  }

  /**
   * Sets the first dimension of every input with a rank above 0, as `setInputShape`.
   *
   * @param batch - an extent or the name of a symbolic dimension
   * @throws TileworkError as `setInputShape`; ERR_GRAPH for an input without a shape
   */
  setBatch(batch: number | string): InputShapeChange {
    return setBatch(this, batch)
  }

  /**
   * Runs passes that make the model simpler or smaller and keep its outputs; docs/onnx.md lists them in their order. Changes the
   * model in place, and nothing where it is optimized already. Inputs and outputs keep names, order and types.
   *
   * Passes are repeated until none finds anything to do. Below IR version 4 those that add initializers do nothing. Bodies of
   * functions stay as they are, but for default attributes.
   *
   * @returns what each pass changed, in their order
   * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for a model with training graphs; ERR_GRAPH for a cycle of nodes;
   * ERR_LIMIT for functions that grow to more than 1,048,576 nodes; ERR_ABORTED; errors of reading tensors
   */
  optimize(options: OptimizeOptions = {}): Promise<readonly OptimizeChange[]> {
    return optimize(this, options)
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
    return this.message.messages('configuration').map((message) => ({
      name: message.text('name'),
      deviceCount: Number(message.int('num_devices') ?? 0),
      devices: message.texts('device'),
    }))
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
