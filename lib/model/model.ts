/**
 * An ONNX model: the graph, functions and properties of a file as objects. Nothing is read until it is asked for; what was
 * not changed is written as it stands, byte for byte.
 */
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import { Message, type MessageFile } from '../formats/onnx/message.js'
import { tensorOfField } from '../formats/onnx/message_tensor.js'
import { DEFAULT_DEPTH_LIMIT, FORMAT_NAME } from '../formats/onnx/schema.js'
import { tensorFields } from '../formats/onnx/tensor_fields.js'
import { WireCursor } from '../formats/onnx/wire.js'
import type { Tensor } from '../tensor/tensor.js'
import { Attribute } from './attribute.js'
import { Graph } from './graph.js'
import { Node } from './node.js'

/** A tensor and where it is in the model. */
export interface PlacedTensor {
  /** For example `graph.node[3].attribute[0].t`. */
  readonly path: string
  readonly tensor: Tensor
}

/** A function of the model's own. */
export interface ModelFunction {
  readonly domain: string
  readonly name: string
  readonly overload: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Names of attributes without a default. */
  readonly attributeNames: readonly string[]
  /** Attributes with their defaults. */
  readonly attributes: readonly Attribute[]
  readonly nodes: readonly Node[]
}

export interface OnnxModelInit {
  readonly source: ByteSource
  /** Open files of external data by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  readonly depthLimit?: number
}

export class OnnxModel {
  /** For code of the library itself. */
  readonly message: Message
  readonly file: MessageFile

  /** For code of the library itself: models come from `open`. */
  constructor({ source, files, depthLimit = DEFAULT_DEPTH_LIMIT }: OnnxModelInit) {
    this.file = { source, cursor: new WireCursor(source), files, depthLimit }
    this.message = new Message('ModelProto', { file: this.file, start: 0, end: source.byteLength })
  }

  /** True when anything is not as it was read. */
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
    this.message.setText('producer_name', name)
  }

  get producerVersion(): string {
    return this.message.text('producer_version')
  }

  get domain(): string {
    return this.message.text('domain')
  }

  get modelVersion(): number | bigint {
    return this.message.int('model_version') ?? 0
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  set docString(text: string) {
    this.message.setText('doc_string', text)
  }

  /** Versions of operator sets by domain; the empty one is that of ONNX itself. */
  get opsetImports(): ReadonlyMap<string, number | bigint> {
    const imports = this.message.messages('opset_import')
    return new Map(imports.map((each) => [each.text('domain'), each.int('version') ?? 0]))
  }

  /** Properties of the model. Where a key occurs twice the last one counts. */
  get metadata(): ReadonlyMap<string, string> {
    const properties = this.message.messages('metadata_props')
    return new Map(properties.map((each) => [each.text('key'), each.text('value')]))
  }

  setMetadata(key: string, value: string): void {
    const known = this.message.messages('metadata_props').findLast((each) => each.text('key') === key)
    const property = known ?? this.message.insert('metadata_props')
    if (!known) property.setText('key', key)
    property.setText('value', value)
  }

  /** The main graph. @throws TileworkError ERR_GRAPH where the file has none */
  get graph(): Graph {
    const graph = this.message.message('graph')
    if (graph) return Graph.of(graph)
    throw new TileworkError('ERR_GRAPH', 'The model has no graph.', { format: FORMAT_NAME })
  }

  get functions(): readonly ModelFunction[] {
    return this.message.messages('functions').map((message) => ({
      domain: message.text('domain'),
      name: message.text('name'),
      overload: message.text('overload'),
      inputs: message.texts('input'),
      outputs: message.texts('output'),
      attributeNames: message.texts('attribute'),
      attributes: message.messages('attribute_proto').map((each) => new Attribute(each)),
      nodes: message.messages('node').map((each) => Node.of(each)),
    }))
  }

  /** Graphs of training: how values begin, and one step. */
  get trainingInfo(): readonly { readonly initialization?: Graph; readonly algorithm?: Graph }[] {
    return this.message.messages('training_info').map((message) => {
      const [initialization, algorithm] = ['initialization', 'algorithm'].map((name) => message.message(name))
      return {
        ...(initialization && { initialization: Graph.of(initialization) }),
        ...(algorithm && { algorithm: Graph.of(algorithm) }),
      }
    })
  }

  /**
   * Every tensor wherever it sits: initializers, attributes, subgraphs, functions, training.
   *
   * @throws TileworkError at the first whose rules do not hold
   */
  *allTensors(): Generator<PlacedTensor> {
    for (const { owner, field, path } of tensorFields(this.message, '', false)) {
      yield { path, tensor: tensorOfField(owner, field) }
    }
  }
}
