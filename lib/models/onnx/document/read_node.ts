/** A node whose texts were read once: a getter of `Node` reads the message of the node each time, and a pass asks many times. */
import { standardDomain } from './node.js'
import { hasSubgraphs } from './node_names.js'
import type { Graph, Node } from './types.js'

/** What names the operator of a node. */
export type Operator = Pick<Node, 'domain' | 'opType'>

/** Follows changes that are made through it, and no others. */
export class ReadNode {
  readonly node: Node
  readonly opType: string
  /** Empty for ONNX itself. */
  readonly domain: string
  readonly overload: string
  readonly name: string
  readonly hasAttributes: boolean
  readonly subgraphs: readonly Graph[]
  #inputs: readonly string[]
  #outputs: readonly string[]

  constructor(node: Node) {
    const [opTypes, domains, overloads, names, inputs, outputs] = node.message.textLists(
      'op_type',
      'domain',
      'overload',
      'name',
      'input',
      'output',
    )
    this.node = node
    this.opType = opTypes.at(-1) ?? ''
    this.domain = standardDomain(domains.at(-1) ?? '')
    this.overload = overloads.at(-1) ?? ''
    this.name = names.at(-1) ?? ''
    this.hasAttributes = node.message.has('attribute')
    this.subgraphs = this.hasAttributes && hasSubgraphs(node) ? node.subgraphs : []
    this.#inputs = inputs
    this.#outputs = outputs
  }

  get inputs(): readonly string[] {
    return this.#inputs
  }

  set inputs(names: readonly string[]) {
    this.node.inputs = names
    this.#inputs = names
  }

  get outputs(): readonly string[] {
    return this.#outputs
  }

  set outputs(names: readonly string[]) {
    this.node.outputs = names
    this.#outputs = names
  }
}
