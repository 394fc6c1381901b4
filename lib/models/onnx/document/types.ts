/**
 * The object model of an ONNX graph as interfaces: graphs hold nodes, nodes hold attributes, attributes hold graphs.
 *
 * The interfaces share one file because they refer to each other; their implementations (graph.ts, node.ts,
 * attribute.ts, value.ts) import this file and form no import cycle. Facts: onnx.proto and the IR specification of ONNX.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import type { ATTRIBUTE_TYPES, INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import type { SparseTensor, Tensor } from '../../../tensor/tensor.js'

/** Name of an attribute's type. */
export type AttributeType = (typeof ATTRIBUTE_TYPES)[number]

/** One dimension of a shape: an extent, a symbolic name, or null where neither is known. */
export type Dimension = number | bigint | string | null

interface Denoted {
  /** Standard denotation of the value, for example `IMAGE` or `AUDIO`. */
  readonly denotation?: string
}

/** The type of a value. An absent `shape` means any rank; a number as `dtype` is a `data_type` code unknown to this library. */
export type ValueType =
  | ({
      readonly kind: 'tensor' | 'sparse'
      readonly dtype: Dtype | number
      readonly shape?: readonly Dimension[]
      /** Denotation of each axis, empty for none; absent where no axis has one. */
      readonly denotations?: readonly string[]
    } & Denoted)
  | ({ readonly kind: 'sequence' | 'optional'; readonly of: ValueType } & Denoted)
  | ({ readonly kind: 'map'; readonly key: Dtype | number; readonly value: ValueType } & Denoted)
  | ({ readonly kind: 'opaque'; readonly domain: string; readonly name: string } & Denoted)
  | ({ readonly kind: 'none' } & Denoted)

/** A value as the graph declares it: an input, an output or an intermediate value. */
export interface ValueInfo {
  readonly name: string
  readonly type: ValueType
  readonly docString: string
}

/** The value of an attribute, by the attribute's type. Strings are raw bytes; `Attribute.text` decodes them. */
export type AttributeValue =
  | undefined
  | number
  | bigint
  | Uint8Array
  | Tensor
  | Graph
  | ValueType
  | readonly (number | bigint)[]
  | readonly Uint8Array[]
  | readonly Tensor[]
  | readonly Graph[]
  | readonly ValueType[]

/** A value to set, with its type, or a reference. Strings are written as UTF-8; graphs are copied. */
export type NewAttribute = NewAttributeValue | NewAttributeReference

/** Inside a function: takes the value that a call gives for the attribute `refName` of the function. */
export interface NewAttributeReference {
  readonly type: NewAttributeValue['type']
  readonly refName: string
}

/** A value to set, with its type. */
export type NewAttributeValue =
  | { readonly type: 'FLOAT'; readonly value: number }
  | { readonly type: 'INT'; readonly value: number | bigint }
  | { readonly type: 'STRING'; readonly value: string | Uint8Array }
  | { readonly type: 'TENSOR'; readonly value: Tensor }
  | { readonly type: 'FLOATS'; readonly value: readonly number[] }
  | { readonly type: 'INTS'; readonly value: readonly (number | bigint)[] }
  | { readonly type: 'STRINGS'; readonly value: readonly (string | Uint8Array)[] }
  | { readonly type: 'TENSORS'; readonly value: readonly Tensor[] }
  | { readonly type: 'SPARSE_TENSOR'; readonly value: SparseTensor }
  | { readonly type: 'SPARSE_TENSORS'; readonly value: readonly SparseTensor[] }
  | { readonly type: 'GRAPH'; readonly value: Graph }
  | { readonly type: 'GRAPHS'; readonly value: readonly Graph[] }
  | { readonly type: 'TYPE_PROTO'; readonly value: ValueType }
  | { readonly type: 'TYPE_PROTOS'; readonly value: readonly ValueType[] }

/** A node to add. */
export interface NewNode {
  readonly opType: string
  readonly domain?: string
  readonly name?: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly attributes?: Readonly<Record<string, NewAttribute>>
}

/** An input of a node that reads a value. */
export interface Use {
  readonly node: Node
  /** Index among the inputs of the node. */
  readonly index: number
}

/** An attribute of a node: a name with a value of one of fourteen types, or a reference to an attribute of the function. */
export interface Attribute {
  /** @internal */
  readonly message: Message
  readonly name: string
  /** `UNDEFINED` where the file states no type or an unknown one. */
  readonly type: AttributeType
  /** Inside a function: name of the function attribute whose value this one takes; empty otherwise. */
  readonly refName: string
  readonly docString: string
  readonly value: AttributeValue
  /** A STRING as text. @throws TileworkError ERR_DTYPE for another type and for invalid UTF-8 */
  readonly text: string
  /** All tensors of the attribute, whatever its type. */
  readonly tensors: readonly Tensor[]
  /** All graphs of the attribute, whatever its type; the same objects each time. */
  readonly graphs: readonly Graph[]
  /**
   * Replaces the value and its type; name and doc string stay.
   *
   * @throws TileworkError ERR_ARGUMENT for an unknown type, a value of another type, and a graph inside itself;
   * ERR_UNSUPPORTED for a graph of another model whose tensors are external
   */
  set(attribute: NewAttribute): void
}

/** How one dimension of a value is split. Several parts are dimensions that a reshape made one. */
export interface ShardedDimension {
  /** Negative ones count from the last. */
  readonly axis: number
  readonly parts: readonly { readonly extent: Dimension; readonly shards: number }[]
}

/** How a value of a node is spread over devices; dimensions that are not listed are whole on each. */
export interface Sharding {
  /** An input or output of the node. */
  readonly value: string
  /** Index of a device for each shard, or a key of `deviceGroups`. */
  readonly devices?: readonly number[]
  /** Devices that hold copies of a shard, by a key that is no index, such as -1. */
  readonly deviceGroups?: ReadonlyMap<number, readonly number[]>
  readonly dims?: readonly ShardedDimension[]
}

/** What a node is annotated with for one device configuration of the model. */
export interface NodeDeviceConfiguration {
  /** Name of the configuration. */
  readonly configuration: string
  readonly pipelineStage?: number
  readonly shardings?: readonly Sharding[]
}

/** An operator with its inputs, outputs and attributes. An empty name stands for an omitted optional input or output. */
export interface Node {
  /** @internal */
  readonly message: Message
  name: string
  opType: string
  /** Empty for the operators of ONNX itself. */
  domain: string
  /** Selects one of several functions of the same name. */
  overload: string
  /** Empty where there is none; an empty text removes it. */
  docString: string
  readonly metadata: ReadonlyMap<string, string>
  inputs: readonly string[]
  /** A shorter list is refused (ERR_ARGUMENT) while an output that it drops is used. */
  outputs: readonly string[]
  /**
   * Annotations for several devices. @throws TileworkError ERR_ARGUMENT, when set, for a configuration that the model lacks, a value that is no
   * input or output of the node, a device beyond those of the configuration
   */
  deviceConfigurations: readonly NodeDeviceConfiguration[]
  readonly attributes: readonly Attribute[]
  /** @internal As `attributes`, for walks over whole models, which read each once: see `Message.fieldsOf`. */
  attributesOnce(): readonly Attribute[]
  /** Graphs in the attributes of the node. */
  readonly subgraphs: readonly Graph[]
  /** The graph that contains the node; undefined for a node of a function and for a removed node. */
  readonly graph: Graph | undefined
  /** Nodes of the same graph that produce the inputs, each once. */
  readonly predecessors: readonly Node[]
  /** Nodes that use the outputs, each once; see `Graph.usersOf`. */
  readonly successors: readonly Node[]
  setMetadata(key: string, value: string): void
  /** @returns false where there is no such entry */
  removeMetadata(key: string): boolean
  attribute(name: string): Attribute | undefined
  /** Sets an attribute; a new one is appended. @throws TileworkError as `Attribute.set` */
  setAttribute(name: string, value: NewAttribute): void
  /** @returns false where the node has no such attribute */
  removeAttribute(name: string): boolean
}

/** A named value of a graph, as the graph is now. */
export interface Value {
  readonly graph: Graph
  readonly name: string
  /** The declared type; `none` where the graph declares none. */
  readonly type: ValueType
  /** The node that produces the value; undefined for inputs and initializers. */
  readonly producer: Node | undefined
  /** Index among the outputs of `producer`; -1 without a producer. */
  readonly outputIndex: number
  /** Inputs of nodes that read the value, including those in subgraphs that do not hide the name. */
  readonly uses: readonly Use[]
  readonly isInput: boolean
  readonly isOutput: boolean
  readonly isInitializer: boolean
  /**
   * The value where it is known without running the graph: an initializer that is not an input, or the output of a
   * `Constant` node.
   *
   * @throws TileworkError for a tensor that breaks a rule of the format
   */
  readonly constant: Tensor | undefined
  /** See `Graph.replaceAllUses`. */
  replaceAllUses(other: Value | string): void
  /** See `Graph.rename`. This object keeps the old name, which no longer exists. @returns the renamed value */
  rename(name: string): Value
}

/** Named values and the nodes that produce them. Names are the only links, so edits check the users of a name first. */
export interface Graph {
  /** @internal */
  readonly message: Message
  name: string
  /** Empty where there is none; an empty text removes it. */
  docString: string
  readonly metadata: ReadonlyMap<string, string>
  setMetadata(key: string, value: string): void
  /** @returns false where there is no such entry */
  removeMetadata(key: string): boolean
  /** In file order; the same objects each time. */
  readonly nodes: readonly Node[]
  readonly inputs: readonly ValueInfo[]
  readonly outputs: readonly ValueInfo[]
  /** Declared types of intermediate values. */
  readonly valueInfo: readonly ValueInfo[]
  readonly inputNames: ReadonlySet<string>
  readonly outputNames: ReadonlySet<string>
  /** Names of all initializers, sparse ones last. */
  readonly initializerNames: readonly string[]

  /**
   * Appends an input. If an initializer has the name, the input can override it at run time.
   *
   * @throws TileworkError ERR_ARGUMENT for an invalid type and for a name that is empty, an input or the output of a node
   */
  addInput(name: string, type: ValueType): void
  /** Appends an output. @throws TileworkError ERR_ARGUMENT where the graph has no such value or already outputs it */
  addOutput(name: string, type: ValueType): void
  /**
   * Removes an input. An initializer of the name stays, as a value that callers cannot override.
   *
   * @throws TileworkError ERR_ARGUMENT where there is no such input, and where it is used and has no initializer
   */
  removeInput(name: string): void
  /** Removes an output; the value and its type stay. @throws TileworkError ERR_ARGUMENT where there is no such output */
  removeOutput(name: string): void
  /** @param names - all inputs, in their new order. @throws TileworkError ERR_ARGUMENT for other names */
  reorderInputs(names: readonly string[]): void
  /** @param names - all outputs, in their new order. @throws TileworkError ERR_ARGUMENT for other names */
  reorderOutputs(names: readonly string[]): void
  /** Sets the type of a value where the graph declares it, or else in `valueInfo`. */
  setType(name: string, type: ValueType): void
  /** The declared type of a value; `none` where the graph declares none. */
  typeOf(name: string): ValueType

  /** Graphs inside the nodes of this one, recursively, outermost first. */
  subgraphs(): Generator<Graph>
  /** Nodes of this graph and its subgraphs; each node precedes the nodes of its subgraphs. */
  allNodes(): Generator<Node>
  /** Names that this graph takes from enclosing graphs; for a main graph, names that nothing defines. */
  outerNames(): ReadonlySet<string>
  /** `base`, or `base` with a number: a name that neither this graph nor a subgraph uses or defines. */
  uniqueName(base: string): string

  /** The initializer of that name as the graph is now. @throws TileworkError for a tensor that breaks a rule of the format */
  initializer(name: string): Tensor | undefined
  /**
   * All initializers as the graph is now, made one at a time, sparse ones last. In an unedited model these are the
   * tensors of `file.tensors`, which keeps listing the file as it was opened.
   */
  initializers(): Generator<Tensor>
  /** True for the name of a dense or sparse initializer. */
  hasInitializer(name: string): boolean
  /**
   * Replaces the initializer of that name, or appends one. The tensor's own name is ignored. Its bytes are read when the
   * model is saved.
   *
   * @throws TileworkError ERR_ARGUMENT for a name that is empty or that a node produces, and for anything but a tensor
   */
  setInitializer(name: string, tensor: Tensor): void
  /** @throws TileworkError ERR_ARGUMENT where there is no such initializer, and where it is used */
  removeInitializer(name: string): void

  /** The node of this graph that produces a value. */
  producerOf(name: string): Node | undefined
  /** Nodes that use a value: of this graph, then of subgraphs that do not hide the name. */
  usersOf(name: string): readonly Node[]
  /** As `usersOf`, with the input index; a node that uses the value twice occurs twice. */
  usesOf(name: string): readonly Use[]
  /** The value of that name; undefined where no input, initializer or node of this graph defines it. */
  value(name: string): Value | undefined
  /** All values: inputs, initializers and outputs of nodes. */
  values(): readonly Value[]
  /** True for a node that is in this graph now; false for any other value. */
  contains(node: Node): boolean

  /**
   * Adds a node.
   *
   * @param at - index among the nodes; default: appended
   * @throws TileworkError ERR_ARGUMENT for an invalid node and for an output name that is taken
   */
  addNode(node: NewNode, at?: number): Node
  /** Adds a node in front of one of this graph. @throws TileworkError as `addNode`, and ERR_ARGUMENT for a node of another graph */
  insertBefore(node: Node, added: NewNode): Node
  /** Adds a node behind one of this graph. @throws TileworkError as `insertBefore` */
  insertAfter(node: Node, added: NewNode): Node
  /** @throws TileworkError ERR_ARGUMENT for a node of another graph, and for one whose outputs are used */
  removeNode(node: Node): void
  /**
   * Makes every user of a value use another one: nodes here and in subgraphs, and the outputs of the graph. The producer of
   * `other` is no exception, and `other` need not exist yet; `check` reports a graph that is left broken.
   *
   * @throws TileworkError ERR_ARGUMENT where a subgraph uses `name` and defines `other` itself; nothing is changed then
   */
  replaceAllUses(name: string, other: string): void
  /**
   * Renames a value wherever it is defined, declared and used.
   *
   * @throws TileworkError ERR_ARGUMENT for an unknown value, and where this graph or a subgraph has the new name
   */
  rename(name: string, other: string): void

  /** @internal The fields of one list of initializers. */
  initializerFields(list: InitializerList): readonly InitializerField[]
}

/** @internal A field of GraphProto that holds initializers. */
export type InitializerList = (typeof INITIALIZER_LISTS)[number]

/** @internal An initializer and its field in the message of the graph. */
export interface InitializerField {
  readonly list: InitializerList
  readonly field: MessageField
  readonly name: string
}

/** @internal What nodes and attributes need of the graph class, passed to them because graph.ts imports their files. */
export interface Graphs {
  /** The first own property, so that a clone of what has the graphs in a field is refused. */
  readonly uncloneable: symbol
  /** The graph of a GraphProto; the same object each time. */
  of(message: Message): Graph & GraphEdits
  isGraph(value: unknown): value is Graph
}

/** @internal */
export interface GraphEdits {
  /** Applies a change to one node of the graph and updates the name index for that node only. */
  changeNode(node: Node, change: () => void): void
}
