/**
 * The names that nodes use and produce, as numbers of a table: a pass over 100,000 nodes makes no strings and no sets of them.
 */
import { NumberList } from '../../../formats/number_list.js'
import { NumberLists } from '../../../formats/number_lists.js'
import { NameTable } from '../../../formats/onnx/name_table.js'
import type { Message, TextVisit } from '../../../formats/onnx/protobuf/message.js'
import { fieldInfo, fieldNumber, type MessageName } from '../../../formats/onnx/schema.js'
import type { Graph, Node } from './types.js'

const INPUT = fieldNumber('NodeProto', 'input')
const OUTPUT = fieldNumber('NodeProto', 'output')
const OP_TYPE = fieldNumber('NodeProto', 'op_type')
const DOMAIN = fieldNumber('NodeProto', 'domain')
/** Bit sets of fields. */
export const INPUTS = 1 << INPUT
const NAMES = INPUTS | (1 << OUTPUT)
const OPERATOR_AND_NAMES = NAMES | (1 << OP_TYPE) | (1 << DOMAIN)
const ATTRIBUTE = 1 << fieldNumber('NodeProto', 'attribute')

/** Gets the name `bytes[start, end)`. */
type NameVisit = (bytes: Uint8Array, start: number, end: number) => void

/** In the place of the index of a node, where no node produces a name. */
export const NO_NODE = -1

/** Makes no Graph objects: most nodes have no subgraph. */
export function hasSubgraphs({ message }: Node): boolean {
  return message.hasInside('attribute', 'g', 'graphs')
}

/**
 * Visits the names of the inputs and outputs of a node that are not empty.
 *
 * @returns true for a node with subgraphs
 */
export function visitNames(node: Node, input: NameVisit, output: NameVisit): boolean {
  return (node.message.eachText(NAMES, visitOf(input, output)) & ATTRIBUTE) !== 0 && hasSubgraphs(node)
}

/**
 * As `visitNames`, for all nodes of a graph in turn.
 *
 * @param end - called after each node; true for one with attributes, among which may be subgraphs
 */
export function visitNamesOfAll(
  graph: Message,
  input: NameVisit,
  output: NameVisit,
  end: (hasAttributes: boolean) => void,
): void {
  graph.eachTextInside('node', NAMES, visitOf(input, output), (seen) => end((seen & ATTRIBUTE) !== 0))
}

function visitOf(input: NameVisit, output: NameVisit): TextVisit {
  return (bytes, start, end, field) => {
    if (end > start) (field === INPUT ? input : output)(bytes, start, end)
  }
}

/** The number of the last text of a field, as in `Message.text`. */
export function numberOfField(table: NameTable, message: Message, field: string): number {
  let number = -1
  message.eachText(1 << fieldNumber(message.type, field), (bytes, start, end) => {
    number = table.numberOf(bytes, start, end)
  })
  return number < 0 ? table.numberOfText('') : number
}

/** As `numberOfField`, for each message of a list of a graph. */
export function numbersOfField(table: NameTable, graph: Message, list: string, field: string): NumberList {
  const numbers = new NumberList(Uint32Array)
  const { kind } = fieldInfo(graph.type, list)
  let number = -1
  graph.eachTextInside(
    list,
    1 << fieldNumber(kind as MessageName, field),
    (bytes, start, end) => {
      number = table.numberOf(bytes, start, end)
    },
    () => {
      numbers.push(number < 0 ? table.numberOfText('') : number)
      number = -1
    },
  )
  return numbers
}

/** What nodes say, found in one scan. */
export class NodeNames {
  readonly table = new NameTable()
  /** For each node the names that it or its subgraphs use; no empty ones. */
  readonly used = new NumberLists()
  /** For each node the names of its outputs; no empty ones. */
  readonly made = new NumberLists()
  /** How many of the used names are inputs of the node itself, which come first. */
  readonly inputCounts = new NumberList(Uint32Array)
  /** Operators and domains that some node has, and those of each node; domains as the file has them. */
  readonly operators = new NameTable()
  readonly domains = new NameTable()
  readonly operatorOf = new NumberList(Uint32Array)
  readonly domainOf = new NumberList(Uint32Array)
  /** Indices of the nodes with attributes, and of those with several outputs. */
  readonly withAttributes = new NumberList(Uint32Array)
  readonly withOutputs = new NumberList(Uint32Array)
  /** Indices of the nodes that omit an input or an output. */
  readonly withOmitted = new Set<number>()
  /** Whether a node has a subgraph. */
  hasSubgraphs = false

  constructor(nodes: Iterable<Node>) {
    const { table, used, made, operators, domains } = this
    let index = 0
    let [inputs, outputs, operator, domain] = [0, 0, 0, 0]
    const visit: TextVisit = (bytes, start, end, field) => {
      if (field === OP_TYPE) operator = operators.numberOf(bytes, start, end)
      else if (field === DOMAIN) domain = domains.numberOf(bytes, start, end)
      else {
        if (field === OUTPUT) outputs += 1
        if (end === start) this.withOmitted.add(index)
        else if (field === OUTPUT) made.push(table.numberOf(bytes, start, end))
        else {
          inputs += 1
          used.push(table.numberOf(bytes, start, end))
        }
      }
    }
    const [noOperator, noDomain] = [operators.numberOfText(''), domains.numberOfText('')]
    for (const node of nodes) {
      ;[inputs, outputs, operator, domain] = [0, 0, noOperator, noDomain]
      const seen = node.message.eachText(OPERATOR_AND_NAMES, visit)
      this.inputCounts.push(inputs)
      this.operatorOf.push(operator)
      this.domainOf.push(domain)
      if (outputs > 1) this.withOutputs.push(index)
      if ((seen & ATTRIBUTE) !== 0) this.#addAttributes(node, index)
      used.endList()
      made.endList()
      index += 1
    }
  }

  #addAttributes(node: Node, index: number): void {
    this.withAttributes.push(index)
    if (!hasSubgraphs(node)) return
    this.hasSubgraphs = true
    for (const name of usedInside(node)) this.used.push(this.table.numberOfText(name))
  }
}

/** By the message of a graph, as it was at a count of edits. */
const kept = new WeakMap<Message, { readonly edits: number; readonly names: NodeNames }>()

/** The names of all nodes of a graph: the same object until the graph is edited, if no node has subgraphs. */
export function nodeNamesOf(graph: Graph): NodeNames {
  const { message } = graph
  const { edits } = message
  const known = kept.get(message)
  if (known?.edits === edits) return known.names
  const names = new NodeNames(graph.nodes)
  // An edit of a subgraph counts there.
  if (!names.hasSubgraphs) kept.set(message, { edits, names })
  return names
}

/** Whether the nodes were found to have no subgraphs. */
export function isKnownFlat(message: Message): boolean {
  return kept.get(message)?.edits === message.edits
}

/** Frees the memory of `nodeNamesOf`. */
export function forgetNodeNames({ message }: Graph): void {
  kept.delete(message)
}

/** Names that a node uses: its inputs, and names that its subgraphs take from outside. */
export function* usedNames(node: Node): Generator<string> {
  for (const name of node.inputs) if (name !== '') yield name
  if (hasSubgraphs(node)) yield* usedInside(node)
}

/** Without the names that a subgraph defines itself: a later node outside may produce a value of the same name. */
function* usedInside(node: Node): Generator<string> {
  for (const graph of node.subgraphs) yield* graph.outerNames()
}
