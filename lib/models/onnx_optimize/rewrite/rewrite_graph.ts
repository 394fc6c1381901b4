/**
 * A model while it is rewritten: nodes and values that know each other, so that a change costs what it touches, however large the
 * model is. Messages stay as they are until all rules have run; see write_back.ts.
 *
 * A value belongs to the graph that defines it, and is used by nodes of that graph and of graphs inside.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { NameTable } from '../../../formats/onnx/name_table.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import type { Attribute, AttributeType, Graph, Node, ValueType } from '../../onnx/document/types.js'
import { constantOf } from '../../onnx/document/value.js'
import { dimsOf } from '../../onnx/evaluate/dims.js'
import { mayHaveValues } from '../../onnx/evaluate/evaluate.js'
import type { Value as Elements } from '../../onnx/evaluate/value.js'
import { type Known, knownOfTensor, readOrNone } from '../../onnx/infer/node_view.js'
import { defaultOf } from '../../onnx/schemas/signatures.js'

/** What the parts of a rewritten model ask of it. */
export interface RewriteContext {
  /** Version of the operator set of a domain; 0 where the model does not import it. */
  opsetOf(domain: string): number
  /** What is known of a value that is no constant. */
  knownOf(value: RewriteValue): Known | undefined
}

const NO_GRAPHS: readonly RewriteGraph[] = []
const NO_NODES: readonly RewriteNode[] = []

export class RewriteGraph {
  readonly source: Graph
  /** The node that has this graph in an attribute; undefined for a main graph. */
  readonly owner: RewriteNode | undefined
  readonly inputs: RewriteValue[] = []
  /** Values of the outputs, in order. */
  outputs: RewriteValue[] = []
  /** Nodes of the file, in topological order, also those that are gone; see `present`. */
  nodes: readonly RewriteNode[] = []
  /** Initializers that are no inputs, and constants that rules made. */
  readonly constants = new Set<RewriteValue>()
  /** Names of values that are gone, so that their declared types go, too. */
  readonly goneNames: string[] = []
  isChanged = false
  /** Whether its nodes are those of the graph around now. */
  isInlined = false

  constructor(source: Graph, owner?: RewriteNode) {
    this.source = source
    this.owner = owner
  }

  /** The nodes that are in the graph now: new ones are where the one was that they were made for. */
  *present(): Generator<RewriteNode> {
    const waiting: RewriteNode[] = []
    for (const first of this.nodes) {
      waiting.push(first)
      for (let node = waiting.pop(); node; node = waiting.pop()) {
        if (!node.isRemoved && node.graph === this) yield node
        for (let at = node.followers.length - 1; at >= 0; at--) waiting.push(node.followers[at]!)
      }
    }
  }
}

/** What a value is made of. */
interface NewValue {
  readonly names?: NameTable
  readonly number?: number
  readonly tensor?: Tensor | (() => Tensor | undefined)
}

/** Nodes that use a value, each once: a set for two and more, because most values have one user and a set takes 200 bytes. */
class Users implements Iterable<RewriteNode> {
  #only: RewriteNode | undefined
  #more: Set<RewriteNode> | undefined

  get size(): number {
    return this.#more?.size ?? (this.#only ? 1 : 0)
  }

  has(node: RewriteNode): boolean {
    return this.#more?.has(node) ?? this.#only === node
  }

  add(node: RewriteNode): void {
    if (this.#more) this.#more.add(node)
    else if (!this.#only) this.#only = node
    else if (this.#only !== node) this.#more = new Set([this.#only, node])
  }

  delete(node: RewriteNode): void {
    if (this.#more) this.#more.delete(node)
    else if (this.#only === node) this.#only = undefined
  }

  clear(): void {
    this.#only = undefined
    this.#more = undefined
  }

  [Symbol.iterator](): IterableIterator<RewriteNode> {
    if (this.#more) return this.#more.values()
    return (this.#only ? [this.#only] : NO_NODES).values()
  }
}

/** A value of a graph: an input, an initializer, or the output of a node. */
export class RewriteValue {
  /** @internal */
  readonly context: RewriteContext
  /** @internal The graph that defines it. */
  graph: RewriteGraph
  /** @internal The graph of the file that defined it; undefined for a new one. */
  readonly source: Graph | undefined
  /** The name that it had in the file, as a number: few values are asked for theirs. */
  readonly #names: NameTable | undefined
  readonly #number: number
  #name: string | undefined
  /** The node whose output it is. */
  producer: RewriteNode | undefined
  /** @internal Nodes that use it, here and in graphs inside. */
  readonly users = new Users()
  /** Whether it is an output of its graph. */
  isOutput = false
  /** @internal Whether a quantization annotation, or what is not part of the model, refers to the name. */
  isPinned = false
  /** Whether it is an input of its graph. */
  isInput = false
  /** @internal Whether a node that used it is gone. */
  hasLostUsers = false
  #tensor: Tensor | (() => Tensor | undefined) | undefined
  #known: Known | undefined | 'unread' = 'unread'

  /** @param made - `names` and `number`: the name of a value of the file; a new value has none yet */
  constructor(context: RewriteContext, graph: RewriteGraph, made: NewValue) {
    this.context = context
    this.graph = graph
    this.source = made.names && graph.source
    this.#names = made.names
    this.#number = made.number ?? -1
    this.#name = made.names ? undefined : ''
    this.#tensor = made.tensor
  }

  /** Empty for a new value that has none yet. */
  get name(): string {
    this.#name ??= this.sourceName
    return this.#name
  }

  set name(name: string) {
    this.#name = name
  }

  /** @internal The name that it had in the file. */
  get sourceName(): string {
    return this.#names?.text(this.#number) ?? ''
  }

  /** Whether it is an initializer that no caller can replace, or a constant that a rule made. */
  get isInitializer(): boolean {
    return this.#tensor !== undefined
  }

  /** The tensor of an initializer that no caller can replace, or of a Constant node. */
  get constant(): Tensor | undefined {
    if (typeof this.#tensor === 'function') this.#tensor = this.#tensor()
    if (this.#tensor || !this.producer?.is('Constant')) return this.#tensor
    this.#tensor = undefined
    return constantOf(this.producer.source)
  }

  /** As `constant`, where it is a dense tensor that has data. */
  get weight(): DenseTensor | undefined {
    const { constant } = this
    return constant?.kind === 'dense' && constant.hasData ? constant : undefined
  }

  /** @internal */
  get known(): Known | undefined {
    if (this.#known === 'unread') {
      const constant = this.isInitializer ? readOrNone(() => this.constant) : undefined
      // Which may note it itself, and it is the same then.
      this.#known = constant ? knownOfTensor(constant) : this.context.knownOf(this)
    }
    return this.#known
  }

  /** @internal Whether `known` needs no inference. */
  get isInferred(): boolean {
    return this.#known !== 'unread'
  }

  /** @internal */
  noteKnown(known: Known | undefined): void {
    this.#known = known
  }

  get type(): ValueType | undefined {
    return this.known?.type
  }

  /** The element type; undefined where it does not follow, and for sequences, maps and the like. */
  get dtype(): Dtype | undefined {
    const { type } = this
    return type?.kind === 'tensor' && typeof type.dtype === 'string' ? type.dtype : undefined
  }

  /** Extents, symbolic names and null for unknown ones; undefined for an unknown rank. */
  get shape(): readonly (number | string | null)[] | undefined {
    const { type } = this
    return type?.kind === 'tensor' ? dimsOf(type.shape) : undefined
  }

  get rank(): number | undefined {
    return this.shape?.length
  }

  /** @internal Elements of a small value, as far as they follow; types are inferred only for a value that may have some. */
  get elements(): Elements | undefined {
    return this.mayBeKnown ? this.known?.value : undefined
  }

  /** @internal False where no element is known, as it follows from operators. */
  get mayBeKnown(): boolean {
    if (this.producer) return this.producer.mayHaveValues
    return this.isInitializer || this.graph.owner !== undefined
  }

  /** @internal Whether nothing needs it. */
  get isUnused(): boolean {
    return this.users.size === 0 && !this.isOutput && !this.isPinned
  }

  /** The only node that uses it; undefined for an output of the graph, and where there are others. */
  get onlyUser(): RewriteNode | undefined {
    if (this.users.size !== 1 || this.isOutput || this.isPinned) return undefined
    const [user] = this.users
    return user
  }
}

/** A node, and what it was found to have. */
interface NodeParts {
  readonly source: Node
  readonly opType: string
  readonly domain: string
  readonly subgraphs: readonly Graph[]
}

/** A node of a graph that is rewritten. */
export class RewriteNode {
  /** @internal The node of the file, or one of the graph in which new ones are made. */
  readonly source: Node
  /** @internal */
  readonly context: RewriteContext
  /** @internal */
  graph: RewriteGraph
  readonly opType: string
  /** Empty for the operators of ONNX itself. */
  readonly domain: string
  #values: Map<string, unknown> | undefined
  #inputs: (RewriteValue | undefined)[] = []
  #outputs: (RewriteValue | undefined)[] = []
  /** @internal Graphs in its attributes. */
  readonly subgraphs: readonly RewriteGraph[]
  /** @internal Whether names of inputs or outputs are other ones than in `source`. */
  isChanged = false
  /** @internal */
  isRemoved = false
  /** @internal */
  isQueued = false
  /** @internal Whether elements of its outputs may be known; `noteInputs` finds it. */
  mayHaveValues = true
  /** @internal New nodes that stand behind this one. */
  followers: readonly RewriteNode[] = NO_NODES
  /** @internal How many rules made it, one from what the other made; 0 for nodes of the file. */
  readonly generation: number
  /** @internal Position in the file; that of the node that it was made for. */
  readonly position: number

  /** @param from - the node that it is made for, or its position in the file */
  constructor(
    context: RewriteContext,
    graph: RewriteGraph,
    { source, opType, domain, subgraphs }: NodeParts,
    from: RewriteNode | number,
  ) {
    this.context = context
    this.graph = graph
    this.source = source
    this.generation = typeof from === 'number' ? 0 : from.generation + 1
    this.position = typeof from === 'number' ? from : from.position
    this.opType = opType
    this.domain = domain
    this.subgraphs =
      subgraphs.length === 0 ? NO_GRAPHS : subgraphs.map((each) => new RewriteGraph(each, this))
  }

  /** Undefined for an omitted input. */
  get inputs(): (RewriteValue | undefined)[] {
    return this.#inputs
  }

  get outputs(): (RewriteValue | undefined)[] {
    return this.#outputs
  }

  /** @internal Whole lists: one that grows by `push` has room for 17 values. */
  setInputs(inputs: (RewriteValue | undefined)[]): void {
    this.#inputs = inputs
  }

  /** @internal Call it when inputs are set, and whether elements of them may be known. */
  noteInputs(): void {
    const { opType, domain, subgraphs } = this
    if (domain !== '' || subgraphs.length > 0 || opType === 'Constant') return
    const operator = { opType, domain, count: this.#inputs.length }
    this.mayHaveValues = mayHaveValues(operator, (at) => this.#inputs[at]?.mayBeKnown ?? true)
  }

  /** @internal */
  setOutputs(outputs: (RewriteValue | undefined)[]): void {
    this.#outputs = outputs
  }

  /** @internal A name for values that are made for it. */
  get baseName(): string {
    return this.outputs.find((output) => output && output.name !== '')?.name ?? this.opType
  }

  /** Version of the operator set; 0 where the model does not import it. */
  get opset(): number {
    return this.context.opsetOf(this.domain)
  }

  /** Whether it is one of these operators of ONNX. */
  is(opTypes: string | readonly string[] | ReadonlySet<string>): boolean {
    if (this.domain !== '') return false
    if (typeof opTypes === 'string') return this.opType === opTypes
    return opTypes instanceof Set
      ? opTypes.has(this.opType)
      : (opTypes as readonly string[]).includes(this.opType)
  }

  /** The value of an input; undefined where it is omitted. */
  input(at: number): RewriteValue | undefined {
    return this.inputs[at]
  }

  /** The value of an output; undefined where it is omitted. */
  output(at = 0): RewriteValue | undefined {
    return this.outputs[at]
  }

  /** The node that makes an input, if it is one of these operators of ONNX. */
  producer(at: number, opTypes: string | readonly string[] | ReadonlySet<string>): RewriteNode | undefined {
    const producer = this.inputs[at]?.producer
    return producer?.is(opTypes) ? producer : undefined
  }

  /** As it is written; see `int` and the others for values with defaults. */
  attribute(name: string): Attribute | undefined {
    return this.source.attribute(name)
  }

  /** An integer attribute, or its default; undefined where it has neither, and for one that refers to a function's. */
  int(name: string): number | undefined {
    const value = this.#value(name, 'INT')
    return Number.isSafeInteger(value) ? (value as number) : undefined
  }

  ints(name: string): readonly number[] | undefined {
    const value = this.#value(name, 'INTS')
    return Array.isArray(value) && value.every(Number.isSafeInteger) ? value : undefined
  }

  float(name: string): number | undefined {
    return this.#value(name, 'FLOAT') as number | undefined
  }

  text(name: string): string | undefined {
    const value = this.#value(name, 'STRING')
    return value instanceof Uint8Array ? Buffer.from(value).toString() : (value as string | undefined)
  }

  /** Undefined for an attribute of another type, as damaged files have it. Rules ask for the same ones again and again. */
  #value(name: string, type: AttributeType): unknown {
    this.#values ??= new Map()
    const key = `${type} ${name}`
    if (!this.#values.has(key)) this.#values.set(key, this.#readValue(name, type))
    return this.#values.get(key)
  }

  #readValue(name: string, type: AttributeType): unknown {
    const attribute = this.source.attribute(name)
    const found = attribute ?? defaultOf(this.domain, this.opType, this.opset, name)
    if (found?.type !== type || (attribute && attribute.refName !== '')) return undefined
    return found.value
  }
}
