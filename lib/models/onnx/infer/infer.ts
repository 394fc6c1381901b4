/**
 * Infers types and shapes of the values of a model from its inputs, initializers and operators, without running it.
 *
 * Nodes are visited in topological order, those of subgraphs and functions for each node that runs them. What does not follow
 * is left open: operators that are not known, and shapes that depend on data. Declared types win over inferred ones.
 */
import { TileworkError } from '../../../errors.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { functionKey, type ModelFunction } from '../document/model_function.js'
import { orderedNodes } from '../document/node_order.js'
import type { Attribute, Graph, Node, ValueType } from '../document/types.js'
import { type Dims, dimsOf, isKnown, MAX_INFERRED_RANK, merged } from '../evaluate/dims.js'
import { Evaluator } from '../evaluate/evaluate.js'
import { containerTypeOf } from './containers.js'
import { type Known, knownOfInitializer, type NodeContext, NodeView, type Scope } from './node_view.js'
import { shapesOf } from './shapes.js'
import { subgraphOutputs } from './subgraphs.js'
import { outputTypeOf } from './types.js'

/** A declared type that contradicts the type of the initializer or the type that follows from the node. */
export interface TypeConflict {
  readonly graph: Graph
  readonly name: string
  readonly declared: ValueType
  readonly inferred: ValueType
}

export interface Inference {
  /** Types of values of which something is known, by graph and name. */
  readonly types: ReadonlyMap<Graph, ReadonlyMap<string, ValueType>>
  /** The same with the elements of values that describe shapes. */
  readonly known: ReadonlyMap<Graph, ReadonlyMap<string, Known>>
  readonly conflicts: readonly TypeConflict[]
}

interface InferOptions {
  readonly graph: Graph
  /** Versions of operator sets by domain. */
  readonly opsets: ReadonlyMap<string, number | bigint>
  readonly functions: readonly ModelFunction[]
  /** What is known of the inputs of the graph beside their declared types, by position. */
  readonly inputs?: readonly (Known | undefined)[]
  /** True for an IR version in which every initializer is an input as well, and so need not be a default. */
  readonly hasOldInitializers?: boolean
  /** Whether the declared shape of a value is not used; of a subgraph also for inputs. */
  readonly isOpen?: (graph: Graph, name: string) => boolean
  /**
   * Is called for each node when its inputs are known, for one of a subgraph or function at each visit. Returns what to assume
   * of its outputs.
   */
  readonly visit?: (node: NodeView, outputs: readonly (Known | undefined)[]) => readonly (Known | undefined)[]
  /** Whether elements of values that describe shapes are computed; default true. Constants are known anyway. */
  readonly computesValues?: boolean
  /** True: values that an iteration of Loop or Scan passes to the next one keep the shape of the first iteration. */
  readonly keepsStates?: boolean
}

/**
 * Types of the values of the main graph, as far as they follow from inputs, initializers and operators, declared types
 * included. The model does not change. Unknown extents are null, and extents that are sums of symbolic ones are texts as
 * `2*N + 1`.
 */
export function inferTypes(model: OnnxModel): ReadonlyMap<string, ValueType> {
  checkModel(model, 'inferTypes')
  return inferModel(model).types.get(model.graph)!
}

/** Types of the main graph and its subgraphs; see `InferOptions` for the others. */
export function inferModel(
  {
    graph,
    functions,
    opsetImports: opsets,
    irVersion,
  }: Pick<OnnxModel, 'graph' | 'functions' | 'opsetImports' | 'irVersion'>,
  options: Pick<InferOptions, 'inputs' | 'isOpen' | 'keepsStates' | 'visit' | 'computesValues'> = {},
): Inference {
  const hasOldInitializers = Number(irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS
  return inferGraph({ ...options, graph, functions, opsets, hasOldInitializers })
}

function inferGraph(options: InferOptions): Inference {
  const run = new InferenceRun(options)
  run.graph(options.graph, options.inputs ?? [], { opsets: options.opsets, outer: () => undefined })
  return run
}

/** Where the nodes of a graph or function are. */
interface Place {
  readonly opsets: ReadonlyMap<string, number | bigint>
  /** Finds values of enclosing graphs. */
  readonly outer: Scope
  /** Inside a function. */
  readonly attributeOf?: (name: string) => Attribute | undefined
}

/**
 * Nodes of subgraphs and functions that are visited at most, counting each visit: functions that call others twice would
 * double the work with each level (CWE-400).
 */
const MAX_INNER_VISITS = 200_000

/** Subgraphs and functions inside each other that are followed; a chain of functions may be as long as the file. */
const MAX_NESTING = 100

/** Elements of a value that is followed: lists that describe shapes, tables of positions, small weights. */
export const MAX_VALUE_ELEMENTS = 4096

/** Elements that are read and made in one inference; those that are made stay in memory while it runs (CWE-770). */
export const MAX_VALUE_WORK = 2 ** 22

/** No shape follows from these, and folding them would undo the quantization of weights. */
export const QUANTIZATION: ReadonlySet<string> = new Set(['QuantizeLinear', 'DequantizeLinear'])

class InferenceRun implements Inference {
  readonly known = new Map<Graph, Map<string, Known>>()
  readonly #conflicts = new Map<string, TypeConflict>()
  readonly #functions = new Map<string, ModelFunction>()
  readonly #main: Graph
  readonly #hasOldInitializers: boolean
  readonly #isOpen: (graph: Graph, name: string) => boolean
  readonly #visit: InferOptions['visit']
  readonly #keepsStates: boolean
  /** Undefined where no elements are computed. */
  readonly #evaluator: Evaluator | undefined
  /** Functions that are being inferred: one that calls itself is not followed. */
  readonly #open = new Set<ModelFunction>()
  readonly #orders = new Map<Graph | ModelFunction, readonly Node[]>()
  #types: ReadonlyMap<Graph, ReadonlyMap<string, ValueType>> | undefined
  #visits = 0
  #nesting = 0

  constructor(options: InferOptions) {
    this.#visit = options.visit
    this.#evaluator =
      (options.computesValues ?? true)
        ? new Evaluator({ maxElements: MAX_VALUE_ELEMENTS, maxWork: MAX_VALUE_WORK })
        : undefined
    this.#main = options.graph
    this.#hasOldInitializers = options.hasOldInitializers ?? false
    this.#isOpen = options.isOpen ?? (() => false)
    this.#keepsStates = options.keepsStates ?? false
    for (const each of options.functions)
      this.#functions.set(functionKey(each.domain, each.name, each.overload), each)
  }

  /** Made when they are asked for: folds need what is known. */
  get types(): ReadonlyMap<Graph, ReadonlyMap<string, ValueType>> {
    this.#types ??= new Map([...this.known].map(([graph, known]) => [graph, typesOf(known)]))
    return this.#types
  }

  get conflicts(): readonly TypeConflict[] {
    return [...this.#conflicts.values()]
  }

  /** @returns what is known of the outputs; undefined beyond the limits of visits and nesting */
  graph(
    graph: Graph,
    inputs: readonly (Known | undefined)[],
    place: Place,
  ): readonly (Known | undefined)[] | undefined {
    const known = new Map<string, Known>()
    this.known.set(graph, known)
    const note = (name: string, found: Known): void => {
      known.set(name, found)
    }
    const { inputNames } = graph
    for (const name of graph.initializerNames) {
      const found = knownOfInitializer(graph, name)
      // An initializer that is an input is a default, which a caller may replace.
      const isDefault = inputNames.has(name) && !this.#hasOldInitializers
      if (!found) continue
      note(name, isDefault ? { type: found.type } : found)
      const declared = graph.typeOf(name)
      if (declared.kind === 'tensor' && joined(declared, found.type).isConflict) {
        this.#addConflict({ graph, name, declared, inferred: found.type })
      }
    }
    for (const [at, { name, type }] of graph.inputs.entries()) {
      const given = inputs[at] ?? known.get(name)
      const declared = graph === this.#main ? type : this.#opened(graph, name, type)
      const { type: own, isConflict } = joined(declared, given?.type ?? NONE)
      if (isConflict && inputs[at]) this.#addConflict({ graph, name, declared, inferred: inputs[at].type })
      const found = withType(given, own)
      if (found) note(name, found)
    }
    const scope: Scope = (name) => known.get(name) ?? place.outer(name)
    const declared = (name: string): ValueType => this.#opened(graph, name, graph.typeOf(name))
    const isWhole = this.#nodes(
      graph,
      this.#ordered(graph, graph.nodes),
      { ...place, outer: scope },
      (name, found) => {
        const { type, isConflict } = joined(declared(name), found?.type ?? NONE)
        if (isConflict) this.#addConflict({ graph, name, declared: type, inferred: found!.type })
        const result = withType(found, type)
        if (result) note(name, result)
      },
    )
    if (!isWhole) return undefined
    return graph.outputs.map(({ name, type }) => this.#outputOf(scope(name), this.#opened(graph, name, type)))
  }

  #opened(graph: Graph, name: string, type: ValueType): ValueType {
    return this.#isOpen(graph, name) ? withoutShape(type) : type
  }

  /** The declared type of an output of a subgraph that names a value of an enclosing graph holds as well. */
  #outputOf(found: Known | undefined, declared: ValueType): Known | undefined {
    return withType(found, joined(declared, found?.type ?? NONE).type)
  }

  #addConflict(conflict: TypeConflict): void {
    this.#conflicts.set(`${conflict.graph.message.edits} ${conflict.graph.name} ${conflict.name}`, conflict)
  }

  /** @returns false beyond the limits of visits and nesting */
  #nodes(
    owner: Graph | ModelFunction,
    nodes: readonly Node[],
    place: Place,
    note: (name: string, found: Known | undefined) => void,
  ): boolean {
    if (owner !== this.#main) this.#visits += nodes.length
    if (this.#visits > MAX_INNER_VISITS || this.#nesting === MAX_NESTING) return false
    this.#nesting += 1
    const { opsets, outer: scope, attributeOf } = place
    const context: NodeContext = {
      opsetOf: (domain) => Number(opsets.get(domain) ?? 0),
      scope,
      ...(attributeOf && { attributeOf }),
      keepsStates: this.#keepsStates,
      inferGraph: (graph, inputs) => this.graph(graph, inputs, place),
    }
    for (const node of nodes) {
      const view = new NodeView(node, context)
      const inferred = this.#outputsOf(view)
      const outputs = this.#visit ? this.#visit(view, inferred) : inferred
      for (const [at, name] of view.outputs.entries()) if (name !== '') note(name, outputs[at])
    }
    this.#nesting -= 1
    return true
  }

  #outputsOf(view: NodeView): readonly (Known | undefined)[] {
    const called = this.#functionOf(view)
    return called ? (this.#call(called, view) ?? []) : inferNode(view, this.#evaluator)
  }

  #functionOf({ domain, opType, node }: NodeView): ModelFunction | undefined {
    return this.#functions.size === 0
      ? undefined
      : this.#functions.get(functionKey(domain, opType, node.overload))
  }

  #call(called: ModelFunction, view: NodeView): readonly (Known | undefined)[] | undefined {
    if (this.#open.has(called)) return undefined
    this.#open.add(called)
    const known = new Map<string, Known>()
    for (const [at, name] of called.inputs.entries()) {
      const found = view.known(at)
      if (found) known.set(name, found)
    }
    const defaults = new Map(called.attributes.map((attribute) => [attribute.name, attribute]))
    const declared = called.valueTypes
    const place: Place = {
      opsets: called.opsetImports,
      outer: (name) => known.get(name),
      attributeOf: (name) => view.attribute(name) ?? defaults.get(name),
    }
    const isWhole = this.#nodes(called, this.#ordered(called, called.nodes), place, (name, found) => {
      const result = withType(found, joined(declared.get(name) ?? NONE, found?.type ?? NONE).type)
      if (result) known.set(name, result)
    })
    this.#open.delete(called)
    return isWhole ? called.outputs.map((name) => known.get(name)) : undefined
  }

  #ordered(owner: Graph | ModelFunction, nodes: readonly Node[]): readonly Node[] {
    const order = this.#orders.get(owner) ?? ordered(nodes)
    this.#orders.set(owner, order)
    return order
  }
}

function typesOf(known: ReadonlyMap<string, Known>): ReadonlyMap<string, ValueType> {
  const types = new Map<string, ValueType>()
  for (const [name, { type }] of known) types.set(name, type)
  return types
}

/** The type without its shape, and without the shapes of what it contains. */
export function withoutShape(type: ValueType): ValueType {
  if (type.kind === 'tensor') return { kind: 'tensor', dtype: type.dtype }
  return type.kind === 'sequence' || type.kind === 'optional'
    ? { kind: type.kind, of: withoutShape(type.of) }
    : type
}

export const NONE: ValueType = { kind: 'none' }

/** In file order where the nodes cannot be sorted: what is used too early is unknown. */
function ordered(nodes: readonly Node[]): readonly Node[] {
  try {
    return orderedNodes(nodes)
  } catch (error) {
    if (error instanceof TileworkError && error.code === 'ERR_GRAPH') return nodes
    throw error
  }
}

/** What follows for the outputs of a node that is no call of a function of the model. */
export function inferNode(view: NodeView, evaluator: Evaluator | undefined): readonly (Known | undefined)[] {
  const inner = subgraphOutputs(view)
  if (inner) return inner
  const isStandard = view.domain === ''
  const constant = isStandard ? view.constant() : undefined
  if (constant) return [constant]
  const shapes = shapesOf(view)
  const values = QUANTIZATION.has(view.opType) ? undefined : evaluator?.outputsOf(view)
  return view.outputs.map((_, output) => {
    const type =
      (output === 0 ? containerTypeOf(view) : undefined) ??
      withShape(outputTypeOf(view, output), shapes[output], view.type(0))
    const value = values?.[output]
    const isFollowed = type?.kind === 'tensor' && type.dtype === value?.dtype
    return isFollowed ? { type: { ...type, shape: value.shape }, value } : type && { type }
  })
}

/** @param like - the same object where it is the same type: most operators give a value the type of their first input */
function withShape(
  type: ValueType | undefined,
  shape: Dims | undefined,
  like: ValueType | undefined,
): ValueType | undefined {
  if (type?.kind !== 'tensor' || !shape || shape.length > MAX_INFERRED_RANK) return type
  const isLike = like?.kind === 'tensor' && like.dtype === type.dtype && like.shape === shape
  return isLike ? like : { ...type, shape }
}

function withType(found: Known | undefined, type: ValueType): Known | undefined {
  return type.kind === 'none' ? undefined : { ...found, type }
}

/** Whether what containers hold has other types. Shapes may differ from element to element. */
function hasOtherElements(one: ValueType, other: ValueType): boolean {
  let [left, right] = [one, other]
  while (left.kind === 'sequence' || left.kind === 'optional') {
    if (right.kind !== left.kind) return right.kind !== 'none'
    ;[left, right] = [left.of, right.of]
  }
  if (left.kind === 'none' || right.kind === 'none') return false
  if (left.kind !== right.kind) return true
  return left.kind === 'tensor' && right.kind === 'tensor' && left.dtype !== 0 && right.dtype !== 0
    ? left.dtype !== right.dtype
    : false
}

/** The declared type; of tensors with extents that it leaves open. */
export function joined(
  declared: ValueType,
  inferred: ValueType,
): { readonly type: ValueType; readonly isConflict: boolean } {
  if (declared.kind === 'none') return { type: inferred, isConflict: false }
  const own = { type: declared, isConflict: false }
  if (inferred.kind === 'none') return own
  if (declared.kind !== inferred.kind) return { type: declared, isConflict: true }
  if (declared.kind === 'sequence' || declared.kind === 'optional')
    return { type: declared, isConflict: hasOtherElements(declared, inferred) }
  if (declared.kind !== 'tensor' || inferred.kind !== 'tensor') return own
  if (declared.dtype === 0)
    return { type: { ...inferred, ...declared, dtype: inferred.dtype }, isConflict: false }
  if (declared.dtype !== inferred.dtype) return { type: declared, isConflict: true }
  const [known, other] = [dimsOf(declared.shape), dimsOf(inferred.shape)]
  if (!other || (declared.shape && !known)) return own
  if (!known) return { type: { ...declared, shape: other }, isConflict: false }
  if (other.length !== known.length) return { type: declared, isConflict: true }
  const dims = known.map((dim, axis) => (isKnown(dim) ? dim : merged(dim, other[axis]!)!))
  const isConflict = known.some((dim, axis) => merged(dim, other[axis]!) === undefined)
  return { type: { ...declared, shape: dims }, isConflict }
}
