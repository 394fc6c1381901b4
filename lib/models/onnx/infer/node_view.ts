/** What the rules of inference read of a node: attributes with defaults, types and known values of its inputs. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { hasValue, integersOf } from '../document/attribute.js'
import { standardDomain } from '../document/node.js'
import type { Attribute, Graph, Node, ValueType } from '../document/types.js'
import { constantOf } from '../document/value.js'
import { type Dim, type Dims, dimsOf } from '../evaluate/dims.js'
import { elementsOf, isValueDtype, Value } from '../evaluate/value.js'

/** What is known of a value. */
export interface Known {
  readonly type: ValueType
  /** Its elements, as far as they follow. */
  readonly value?: Value | undefined
  /** True for an initializer that nobody may replace, and for a Constant. */
  readonly isConstant?: true
  /** What a visitor notes of a value; it follows the value into subgraphs and functions. */
  readonly note?: unknown
}

export type Scope = (name: string) => Known | undefined

export interface NodeContext {
  /** Version of the operator set of a domain; 0 where the model does not import it. */
  readonly opsetOf: (domain: string) => number
  /** Finds a value by name. */
  readonly scope: Scope
  /** Inside a function: the attribute that a call gives, or its default. */
  readonly attributeOf?: (name: string) => Attribute | undefined
  /** See `InferOptions.keepsStates`. */
  readonly keepsStates?: boolean
  /** Infers a subgraph of the node. @returns what is known of its outputs; undefined beyond a limit */
  readonly inferGraph: (
    graph: Graph,
    inputs: readonly (Known | undefined)[],
  ) => readonly (Known | undefined)[] | undefined
}

/** Operator and values of a node; empty texts for omitted values. */
export interface NodeTexts {
  /** Empty for the operators of ONNX itself. */
  readonly domain: string
  readonly opType: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
}

/** In one scan of the message. */
export function textsOf({ message }: Node): NodeTexts {
  const [domains, opTypes, inputs, outputs] = message.textLists('domain', 'op_type', 'input', 'output')
  return { domain: standardDomain(domains.at(-1) ?? ''), opType: opTypes.at(-1) ?? '', inputs, outputs }
}

export class NodeView {
  readonly node: Node
  readonly opset: number
  readonly opType: string
  readonly domain: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly #context: NodeContext
  #attributes: readonly Attribute[] | undefined

  /** @param texts - what the message of the node says, where that was read before */
  constructor(node: Node, context: NodeContext, texts: NodeTexts = textsOf(node)) {
    this.node = node
    this.domain = texts.domain
    this.opset = context.opsetOf(this.domain)
    this.opType = texts.opType
    this.inputs = texts.inputs
    this.outputs = texts.outputs
    this.#context = context
  }

  has(input: number): boolean {
    return (this.inputs[input] ?? '') !== ''
  }

  known(input: number): Known | undefined {
    return this.has(input) ? this.#context.scope(this.inputs[input]!) : undefined
  }

  type(input: number): ValueType | undefined {
    const type = this.known(input)?.type
    return type?.kind === 'none' ? undefined : type
  }

  dtype(input: number): Dtype | number | undefined {
    const type = this.type(input)
    return type?.kind === 'tensor' && type.dtype !== 0 ? type.dtype : undefined
  }

  /** Undefined for an unknown rank. */
  dims(input: number): Dims | undefined {
    const type = this.type(input)
    return type?.kind === 'tensor' ? dimsOf(type.shape) : undefined
  }

  value(input: number): Value | undefined {
    return this.known(input)?.value
  }

  /** The elements of an input that is a short list, or a number; undefined where nothing is known of them. */
  values(input: number): Dims | undefined {
    return this.value(input)?.list
  }

  /** As `values`, with numbers beyond 2^53 - 1, which mean the end of an axis, cut to that. */
  bounds(input: number): Dims | undefined {
    const value = this.value(input)
    return value?.list?.map((dim, at) => dim ?? nearest(value.elements![at]!))
  }

  /** As `values`, where all are numbers. */
  numbers(input: number): readonly number[] | undefined {
    const values = this.values(input)
    return values?.every((value) => typeof value === 'number') ? (values as readonly number[]) : undefined
  }

  /** As `numbers`, where all are integers: a file may declare axes and counts as floats. */
  integers(input: number): readonly number[] | undefined {
    const numbers = this.numbers(input)
    return numbers?.every(Number.isSafeInteger) ? numbers : undefined
  }

  /**
   * Undefined where the node has none, and for a reference that nothing resolves. Outside functions onnx and onnxruntime read the value
   * beside a reference.
   */
  attribute(name: string): Attribute | undefined {
    this.#attributes ??= this.node.attributesOnce()
    const attribute = this.#attributes.find((each) => each.name === name)
    if (!attribute) return undefined
    const { refName } = attribute
    if (refName === '') return attribute
    const { attributeOf } = this.#context
    if (attributeOf) return attributeOf(refName)
    return hasValue(attribute) ? attribute : undefined
  }

  int(name: string, absent: number): number
  int(name: string): number | undefined
  int(name: string, absent?: number): number | undefined {
    const value = this.attribute(name)?.value
    return Number.isSafeInteger(value) ? (value as number) : absent
  }

  ints(name: string): readonly number[] | undefined {
    const attribute = this.attribute(name)
    const values = attribute && integersOf(attribute)
    return values?.every(Number.isSafeInteger) ? values : undefined
  }

  text(name: string): string | undefined {
    const attribute = this.attribute(name)
    return attribute?.type === 'STRING' ? attribute.text : undefined
  }

  graph(name: string): Graph | undefined {
    return this.attribute(name)?.graphs[0]
  }

  get keepsStates(): boolean {
    return this.#context.keepsStates === true
  }

  inferGraph(
    graph: Graph,
    inputs: readonly (Known | undefined)[],
  ): readonly (Known | undefined)[] | undefined {
    return this.#context.inferGraph(graph, inputs)
  }

  /** The value of a node `Constant`; undefined for other nodes. */
  constant(): Known | undefined {
    if (this.opType !== 'Constant') return undefined
    const tensor = readOrNone(() => constantOf(this.node, (name) => this.attribute(name)))
    const known = tensor && knownOfTensor(tensor)
    // A sparse value is stored in fewer bytes; the output of the node is dense.
    return known?.type.kind === 'sparse' ? { ...known, type: { ...known.type, kind: 'tensor' } } : known
  }
}

function nearest(element: Dim | bigint): Dim {
  if (typeof element !== 'bigint') return element
  return element > 0n ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
}

/** What an initializer or constant says of a value. */
export function knownOfTensor(tensor: Tensor): Known {
  const { dtype, shape } = tensor
  // Sparse initializers and constants are stored in fewer bytes; in the graph they are dense.
  const type: ValueType = { kind: 'tensor', dtype, shape }
  if (tensor.kind !== 'dense' || !isValueDtype(dtype)) return { type }
  return {
    type,
    value: new Value(dtype, shape, () => readOrNone(() => elementsOf(tensor))),
    isConstant: true,
  }
}

export function knownOfInitializer(graph: Graph, name: string): Known | undefined {
  const tensor = readOrNone(() => graph.initializer(name))
  return tensor && knownOfTensor(tensor)
}

/** A broken tensor is reported by `check`; nothing is known of it. */
export function readOrNone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof TileworkError) return undefined
    throw error
  }
}
