/**
 * An index of the names of one graph: producers, users, declarations, initializers.
 *
 * Without it each look-up would visit all nodes. It is built on first use and updated by the edits of the graph and its
 * nodes; any other edit of the message leaves it out of date (see `edits`), and the graph builds a new one.
 */
import type { Message } from '../protobuf/message.js'
import type { Graph, InitializerField, Node, Use } from './types.js'

/** Lists of a GraphProto whose messages refer to a value by name, and the field with the name. */
const NAMED_LISTS = {
  input: 'name',
  output: 'name',
  value_info: 'name',
  quantization_annotation: 'tensor_name',
} as const

export type NamedList = keyof typeof NAMED_LISTS

export const NAMED_FIELDS = Object.entries(NAMED_LISTS) as readonly [NamedList, string][]

/** Most names have one object of a kind, which needs no set. */
type Some<T> = T | Set<T> | undefined

/** Where a name occurs. */
class Occurrences {
  producer: Some<Node> = undefined
  user: Some<Node> = undefined
  input: Some<Message> = undefined
  output: Some<Message> = undefined
  value_info: Some<Message> = undefined
  quantization_annotation: Some<Message> = undefined
  initializer: InitializerField | undefined = undefined
}

export class GraphNames {
  /** Edit count of the graph's message that the index matches. */
  edits: number
  /** Nodes with subgraphs, which may use names of this graph. */
  readonly subgraphs = new Map<Node, readonly Graph[]>()
  /** Whether a name has several initializers, of which the first wins. */
  readonly repeatsInitializers: boolean
  readonly #message: Message
  readonly #byName = new Map<string, Occurrences>()
  /** Names of inputs and outputs in file order, made when they are asked for. */
  readonly #ends: Partial<Record<NamedList, Set<string>>> = {}

  constructor(graph: Graph, initializers: readonly InitializerField[]) {
    this.edits = graph.message.edits
    this.#message = graph.message
    for (const [list, field] of NAMED_FIELDS)
      for (const message of graph.message.messages(list)) this.declare(list, message.text(field), message)
    // The first of equal names wins.
    for (const each of initializers) this.#entry(each.name).initializer ??= each
    this.repeatsInitializers = initializers.some(({ name, field }) => this.initializer(name)?.field !== field)
    for (const node of graph.nodes) this.add(node)
  }

  get inputs(): ReadonlySet<string> {
    return this.#namesOf('input')
  }

  get outputs(): ReadonlySet<string> {
    return this.#namesOf('output')
  }

  initializer(name: string): InitializerField | undefined {
    return this.#byName.get(name)?.initializer
  }

  setInitializer(name: string, initializer: InitializerField | undefined): void {
    this.#entry(name).initializer = initializer
  }

  /** Messages of a list that refer to the name. */
  declarations(list: NamedList, name: string): readonly Message[] {
    return listOf(this.#byName.get(name)?.[list])
  }

  /** The ValueInfoProto of a name; inputs win over outputs, outputs over `value_info`. */
  declared(name: string): Message | undefined {
    const found = this.#byName.get(name)
    return listOf(found?.input ?? found?.output ?? found?.value_info).at(-1)
  }

  declare(list: NamedList, name: string, message: Message): void {
    const entry = this.#entry(name)
    entry[list] = withItem(entry[list], message)
    this.#ends[list]?.add(name)
  }

  producerOf(name: string): Node | undefined {
    const found = this.#byName.get(name)?.producer
    return found instanceof Set ? found.values().next().value : found
  }

  producersOf(name: string): readonly Node[] {
    return listOf(this.#byName.get(name)?.producer)
  }

  isUsed(name: string): boolean {
    return this.#byName.get(name)?.user !== undefined
  }

  isInput(name: string): boolean {
    return this.#byName.get(name)?.input !== undefined
  }

  isOutput(name: string): boolean {
    return this.#byName.get(name)?.output !== undefined
  }

  /** Nodes of this graph with the name among their inputs. */
  usersOf(name: string): readonly Node[] {
    return listOf(this.#byName.get(name)?.user)
  }

  usesOf(name: string): readonly Use[] {
    const uses: Use[] = []
    for (const node of this.usersOf(name))
      for (const [index, input] of node.inputs.entries()) if (input === name) uses.push({ node, index })
    return uses
  }

  /** True for an input, an initializer or an output of a node. */
  defines(name: string): boolean {
    const found = this.#byName.get(name)
    return (found?.input ?? found?.producer ?? found?.initializer) !== undefined
  }

  add(node: Node): void {
    const [inputs, outputs] = node.message.textLists('input', 'output')
    for (const name of outputs) {
      if (name === '') continue
      const entry = this.#entry(name)
      entry.producer = withItem(entry.producer, node)
    }
    for (const name of inputs) {
      if (name === '') continue
      const entry = this.#entry(name)
      entry.user = withItem(entry.user, node)
    }
    if (hasSubgraphs(node)) this.subgraphs.set(node, node.subgraphs)
  }

  /** Removes a node, which must be as it was when it was added. */
  delete(node: Node): void {
    this.subgraphs.delete(node)
    const [inputs, outputs] = node.message.textLists('input', 'output')
    for (const name of outputs) {
      const entry = this.#entry(name)
      entry.producer = withoutItem(entry.producer, node)
    }
    for (const name of inputs) {
      const entry = this.#entry(name)
      entry.user = withoutItem(entry.user, node)
    }
  }

  /** Follows a rename to a name that the graph does not have. */
  rename(name: string, other: string): void {
    const found = this.#byName.get(name)
    if (!found) return
    this.#byName.delete(name)
    this.#byName.set(other, found)
    if (found.input || found.output) this.#forgetEnds()
  }

  /** Follows the replacement of a name among inputs of nodes and outputs of the graph. */
  replaceUses(name: string, other: string): void {
    const [from, to] = [this.#entry(name), this.#entry(other)]
    for (const node of listOf(from.user)) to.user = withItem(to.user, node)
    for (const message of listOf(from.output)) to.output = withItem(to.output, message)
    if (from.output) this.#forgetEnds()
    if (from === to) return
    from.user = undefined
    from.output = undefined
  }

  #entry(name: string): Occurrences {
    const found = this.#byName.get(name)
    if (found) return found
    const made = new Occurrences()
    this.#byName.set(name, made)
    return made
  }

  #namesOf(list: NamedList): ReadonlySet<string> {
    this.#ends[list] ??= new Set(this.#message.messages(list).map((value) => value.text('name')))
    return this.#ends[list]
  }

  #forgetEnds(): void {
    delete this.#ends.input
    delete this.#ends.output
  }
}

function listOf<T extends object>(some: Some<T>): readonly T[] {
  if (some === undefined) return []
  return some instanceof Set ? [...some] : [some]
}

function withItem<T extends object>(some: Some<T>, item: T): Some<T> {
  if (some === undefined || some === item) return item
  return some instanceof Set ? some.add(item) : new Set([some, item])
}

function withoutItem<T extends object>(some: Some<T>, item: T): Some<T> {
  if (!(some instanceof Set)) return some === item ? undefined : some
  some.delete(item)
  return some.size > 0 ? some : undefined
}

/** Makes no Graph objects: most nodes have no subgraph. */
export function hasSubgraphs({ message }: Node): boolean {
  return message.hasInside('attribute', 'g', 'graphs')
}
