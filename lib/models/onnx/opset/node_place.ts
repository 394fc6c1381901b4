/** Where an adapter works: a node in its list, of a graph or a function, with new nodes around it and the types of its values. */
import { decodeAll } from '../../../dtype/decode.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { GRAPHS } from '../document/graph.js'
import { checkNewNode, ProtoNode } from '../document/node.js'
import type { Dimension, Graph, NewNode, Node, ValueType } from '../document/types.js'

/** Makes names that no value of the model has. */
export type FreshName = (base: string) => string

/** What an adapter may ask about the conversion. */
export interface Surroundings {
  /** The version of the operator set that the conversion leads to. */
  readonly target: number
  readonly fresh: FreshName
  readonly typeOf: (name: string) => ValueType | undefined
  /** Whether a node, or an output of a graph or function, uses a value. */
  readonly isUsed: (name: string) => boolean
  /** Says that a graph is now a copy of it, at another place. */
  readonly moved: (from: Graph, to: Graph) => void
}

export class NodePlace {
  readonly node: Node
  readonly target: number
  readonly isUsed: (name: string) => boolean
  readonly #fresh: FreshName
  readonly #moved: Surroundings['moved']
  readonly #typeOf: (name: string) => ValueType | undefined

  constructor(node: Node, { target, fresh, typeOf, isUsed, moved }: Surroundings) {
    this.node = node
    this.target = target
    this.isUsed = isUsed
    this.#fresh = fresh
    this.#moved = moved
    this.#typeOf = typeOf
  }

  /** The shape of an input; undefined where it is absent or not known. */
  shapeOf(input: number): readonly Dimension[] | undefined {
    const type = this.#type(input)
    return type?.kind === 'tensor' ? type.shape : undefined
  }

  /** The number of dimensions of an input; undefined where it is absent or not known. */
  rankOf(input: number): number | undefined {
    return this.shapeOf(input)?.length
  }

  /** The element type of an input; undefined where it is absent or not known. */
  dtypeOf(input: number): string | undefined {
    const type = this.#type(input)
    return type?.kind === 'tensor' && typeof type.dtype === 'string' ? type.dtype : undefined
  }

  #type(input: number): ValueType | undefined {
    const name = this.node.inputs[input]
    return name ? this.#typeOf(name) : undefined
  }

  /** The floats of an input that is a constant; undefined for others. */
  constantFloats(input: number): readonly number[] | undefined {
    const name = this.node.inputs[input]
    const constant = name ? this.node.graph?.value(name)?.constant : undefined
    if (constant?.kind !== 'dense' || DTYPES[constant.dtype].kind !== 'float' || !constant.hasData)
      return undefined
    return Array.from(decodeAll(constant.dtype, constant.bytesSync(), constant.size), Number)
  }

  /** Replaces the body of the node by a graph whose first node has a copy of that body. */
  wrapBody(outer: Graph): void {
    const bodyOf = (node: Node): Graph => node.attribute('body')?.value as Graph
    const before = bodyOf(this.node)
    this.node.setAttribute('body', { type: 'GRAPH', value: outer })
    this.#moved(before, bodyOf(bodyOf(this.node).nodes[0]!))
  }

  /** A name that no value of the model has. */
  name(base: string): string {
    return this.#fresh(base)
  }

  /** Adds a constant before the node. @returns its name */
  constant(base: string, value: Tensor): string {
    const name = this.#fresh(base)
    this.before({ opType: 'Constant', outputs: [name], attributes: { value: { type: 'TENSOR', value } } })
    return name
  }

  before(node: NewNode): void {
    this.#insert(node, 0)
  }

  after(node: NewNode): void {
    this.#insert(node, 1)
  }

  #insert(node: NewNode, distance: number): void {
    const owner = this.node.message.parent!
    const checked = checkNewNode(owner, node, GRAPHS)
    const at = owner.indexOf(this.node.message) + distance
    ProtoNode.of(owner.insert('node', at), GRAPHS).fill(checked)
  }
}
