/**
 * Element types of all values of a model, without shapes: by the table of operators, by attributes, by subgraphs and
 * functions. Values of unknown operators have the type that the model declares, if any.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../formats/onnx/schema.js'
import { ownEntry } from '../../own_entry.js'
import type { OnnxModel } from '../onnx/document/model.js'
import type { ModelFunction } from '../onnx/document/model_function.js'
import { standardDomain } from '../onnx/document/node.js'
import { orderedNodes } from '../onnx/document/node_order.js'
import { ReadNode } from '../onnx/document/read_node.js'
import type { Graph, ValueType } from '../onnx/document/types.js'
import { type Opsets, signatureOf } from '../onnx/infer/slots.js'

/** The type of a value: of its elements, and whether it is a sequence or optional of tensors. */
export interface ElementType {
  readonly dtype: Dtype | number
  readonly isTensor: boolean
}

type Known = ElementType | undefined
type Lookup = (name: string) => Known

/** Element types by graph and name. */
export class ElementTypes {
  readonly #byGraph = new Map<Graph, ReadonlyMap<string, ElementType>>()
  readonly #nodes = new Map<Graph, readonly ReadNode[]>()
  readonly #functions: ReadonlyMap<string, ModelFunction>
  /** Types of the values of a function, by its key and the types that a call gives. */
  readonly #calls = new Map<string, Map<string, ElementType>>()
  /** Nodes of functions so far. */
  #visits = 0
  /** Functions that call each other. */
  #nesting = 0

  constructor(model: OnnxModel) {
    this.#functions = new Map(model.functions.map((each) => [functionKey(each), each]))
    this.#addGraph(model.graph, model.opsetImports, () => undefined)
  }

  /** Types of the values that a graph defines. */
  of(graph: Graph): ReadonlyMap<string, ElementType> {
    return this.#byGraph.get(graph) ?? new Map()
  }

  /** The nodes of a graph in topological order; the same objects each time. */
  nodesOf(graph: Graph): readonly ReadNode[] {
    const known = this.#nodes.get(graph)
    if (known) return known
    const nodes = orderedNodes(graph.nodes).map((node) => new ReadNode(node))
    this.#nodes.set(graph, nodes)
    return nodes
  }

  /** The function of the model that a node calls. */
  functionOf(node: ReadNode): ModelFunction | undefined {
    if (this.#functions.size === 0) return undefined
    return this.#functions.get(
      functionKey({ domain: node.domain, name: node.opType, overload: node.overload }),
    )
  }

  #addGraph(graph: Graph, opsets: Opsets, outer: Lookup, given: readonly Known[] = []): void {
    const types = new Map<string, ElementType>()
    this.#byGraph.set(graph, types)
    const note = (name: string, type: Known): void => {
      if (type && name !== '') types.set(name, type)
    }
    for (const [index, { name, type }] of graph.inputs.entries())
      note(name, elementTypeOf(type) ?? given[index])
    for (const tensor of graph.initializers()) note(tensor.name, { dtype: tensor.dtype, isTensor: true })
    const declared = (name: string): Known => elementTypeOf(graph.typeOf(name))
    this.#addNodes(this.nodesOf(graph), opsets, (name) => types.get(name) ?? outer(name), note, declared)
  }

  #addNodes(
    nodes: readonly ReadNode[],
    opsets: Opsets,
    lookup: Lookup,
    note: (name: string, type: Known) => void,
    declared: Lookup,
  ): void {
    for (const node of nodes) {
      const inputs = node.inputs.map(lookup)
      for (const graph of node.subgraphs) this.#addGraph(graph, opsets, lookup, givenTo(node, inputs))
      const body = node.subgraphs[0]
      const view = { node, opsets, inputs, lookup, body, bodyOutputs: body?.outputs ?? [] }
      for (const [index, name] of node.outputs.entries()) {
        note(name, this.#outputType(view, index) ?? declared(name))
      }
    }
  }

  #outputType(view: NodeView, output: number): Known {
    const { node, inputs, opsets } = view
    const called = this.functionOf(node)
    if (called) return this.#calledTypes(called, inputs).get(called.outputs[output] ?? '')
    if (node.domain === '') {
      const special = ownEntry(OUTPUT_TYPES, node.opType)
      if (special) return special(view)
      if (view.body) return this.#bodyType(view, view.body, output)
    }
    const signature = signatureOf(node, opsets)
    const slot = signature?.outputs.at(output)
    if (!signature || !slot) return undefined
    const fixed = DTYPE_OF_NAME[slot.type]
    if (fixed) return tensorOf(fixed)
    const from = signature.inputs.indexOf(slot.type)
    if (from >= 0) return inputs[from]
    // As of LayerNormalization's mean, where no other float but bfloat16 on request is allowed.
    return /^b?f$/.test(slot.letters) ? tensorOf('float32') : undefined
  }

  /** Of If: the output of a branch; of Loop and Scan: an output of the body, behind the condition of Loop. */
  #bodyType({ node, bodyOutputs }: NodeView, body: Graph, output: number): Known {
    const name = bodyOutputs[output + (node.opType === 'Loop' ? 1 : 0)]?.name
    const type = name === undefined ? undefined : this.of(body).get(name)
    return node.opType === 'SequenceMap' && type ? { ...type, isTensor: false } : type
  }

  #calledTypes(called: ModelFunction, given: readonly Known[]): ReadonlyMap<string, ElementType> {
    const key = JSON.stringify([functionKey(called), given])
    const known = this.#calls.get(key)
    if (known) return known
    const types = new Map<string, ElementType>()
    // Before its nodes: a function that calls itself finds what is known so far.
    this.#calls.set(key, types)
    this.#visits += called.nodes.length
    if (this.#visits > MAX_FUNCTION_VISITS || this.#nesting === MAX_FUNCTION_NESTING) return types
    this.#nesting += 1
    for (const [index, name] of called.inputs.entries()) if (given[index]) types.set(name, given[index])
    const declared = called.valueTypes
    this.#addNodes(
      orderedNodes(called.nodes).map((node) => new ReadNode(node)),
      called.opsetImports,
      (name) => types.get(name),
      (name, type) => type && types.set(name, type),
      (name) => elementTypeOf(declared.get(name) ?? { kind: 'none' }),
    )
    this.#nesting -= 1
    return types
  }
}

/** Calls with other types of inputs can be more than the square of the nodes; from here on types are unknown. */
const MAX_FUNCTION_VISITS = 200_000
/** Functions inside each other that are followed. */
const MAX_FUNCTION_NESTING = 100

function functionKey({
  domain,
  name,
  overload,
}: Pick<ModelFunction, 'domain' | 'name' | 'overload'>): string {
  return JSON.stringify([standardDomain(domain), name, overload])
}

/** Types of the inputs of a body, where the operator gives them: Loop after the counter and condition, Scan in order. */
function givenTo({ opType }: ReadNode, inputs: readonly Known[]): readonly Known[] {
  if (opType === 'Loop') return [tensorOf('int64'), tensorOf('bool'), ...inputs.slice(2)]
  if (opType === 'Scan') return inputs
  return inputs.map((type) => type && tensorOf(type.dtype))
}

export function elementTypeOf(type: ValueType): Known {
  if (type.kind === 'tensor' || type.kind === 'sparse')
    return type.dtype === 0 ? undefined : tensorOf(type.dtype)
  if (type.kind !== 'sequence' && type.kind !== 'optional') return undefined
  const inner = elementTypeOf(type.of)
  return inner && { ...inner, isTensor: false }
}

function tensorOf(dtype: Dtype | number): ElementType {
  return { dtype, isTensor: true }
}

/** Types of the table that are no variables. */
const DTYPE_OF_NAME: Readonly<Record<string, Dtype>> = {
  float: 'float32',
  float16: 'float16',
  bfloat16: 'bfloat16',
  double: 'float64',
  bool: 'bool',
  string: 'string',
  int8: 'int8',
  int16: 'int16',
  int32: 'int32',
  int64: 'int64',
  uint8: 'uint8',
  uint16: 'uint16',
  uint32: 'uint32',
  uint64: 'uint64',
}

interface NodeView {
  readonly node: ReadNode
  readonly opsets: Opsets
  readonly inputs: readonly Known[]
  readonly lookup: Lookup
  /** The first graph inside the node, and its outputs. */
  readonly body: Graph | undefined
  readonly bodyOutputs: readonly { readonly name: string }[]
}

/** A type given as an attribute with a code; without it that of input 0, or `absent`. */
function byCode(name: string, absent?: Dtype): (view: NodeView) => Known {
  return ({ node, inputs }) => {
    const code = Number(node.node.attribute(name)?.value ?? 0)
    if (code !== 0) return tensorOf(DTYPE_OF_CODE.get(code) ?? code)
    return absent === undefined ? inputs[0] && tensorOf(inputs[0].dtype) : tensorOf(absent)
  }
}

const sequenceOf = ({ inputs }: NodeView): Known => inputs[0] && { ...inputs[0], isTensor: false }
const elementOf = ({ inputs }: NodeView): Known => inputs[0] && tensorOf(inputs[0].dtype)

/** Attributes of Constant that are no tensors, with the element type of the output. */
const CONSTANT_TYPES: Readonly<Record<string, Dtype>> = {
  value_float: 'float32',
  value_floats: 'float32',
  value_int: 'int64',
  value_ints: 'int64',
  value_string: 'string',
  value_strings: 'string',
}

/** Operators of ONNX whose output type does not follow from type variables. */
const OUTPUT_TYPES: Readonly<Record<string, (view: NodeView) => Known>> = {
  Cast: byCode('to'),
  BitCast: byCode('to'),
  CastLike: ({ inputs }) => inputs[1],
  Constant: ({ node }) => {
    const [attribute] = node.node.attributes
    const dtype = attribute && (attribute.tensors[0]?.dtype ?? ownEntry(CONSTANT_TYPES, attribute.name))
    return dtype === undefined ? undefined : tensorOf(dtype)
  },
  ConstantOfShape: ({ node }) => tensorOf(node.node.attribute('value')?.tensors[0]?.dtype ?? 'float32'),
  EyeLike: byCode('dtype'),
  RandomNormalLike: byCode('dtype'),
  RandomUniformLike: byCode('dtype'),
  Bernoulli: byCode('dtype'),
  RandomNormal: byCode('dtype', 'float32'),
  RandomUniform: byCode('dtype', 'float32'),
  SequenceEmpty: (view) => {
    const type = byCode('dtype', 'float32')(view)
    return type && { ...type, isTensor: false }
  },
  HannWindow: byCode('output_datatype', 'float32'),
  HammingWindow: byCode('output_datatype', 'float32'),
  BlackmanWindow: byCode('output_datatype', 'float32'),
  MelWeightMatrix: byCode('output_datatype', 'float32'),
  Multinomial: byCode('dtype', 'int32'),
  QuantizeLinear: (view) => view.inputs[2] ?? byCode('output_dtype', 'uint8')(view),
  DequantizeLinear: (view) => {
    const code = Number(view.node.node.attribute('output_dtype')?.value ?? 0)
    return code === 0 ? view.inputs[1] : byCode('output_dtype')(view)
  },
  SequenceConstruct: sequenceOf,
  SplitToSequence: sequenceOf,
  Optional: sequenceOf,
  SequenceAt: elementOf,
  ConcatFromSequence: elementOf,
  OptionalGetElement: elementOf,
}
