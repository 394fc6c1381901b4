/**
 * An index of the names of one graph: producers, users, declarations, initializers.
 *
 * Without it each look-up would visit all nodes. It is built on first use and updated by the edits of the graph and its
 * nodes; any other edit of the message leaves it out of date (see `edits`), and the graph builds a new one.
 */
import type { NumberList } from '../../../formats/number_list.js'
import { NameTable } from '../../../formats/onnx/name_table.js'
import { isText } from '../../../formats/onnx/protobuf/edited_bytes.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import { hasSubgraphs, INPUTS, numbersOfField, visitNames, visitNamesOfAll } from './node_names.js'
import type { Graph, InitializerField, InitializerList, Node, Use } from './types.js'

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

/** What each name has of a kind, by the number of the name. */
class Column<T> {
  readonly #items: (T | undefined)[] = []

  /** @param name - a negative number for a name that is not in the table */
  at(name: number): T | undefined {
    return name < 0 || name >= this.#items.length ? undefined : this.#items[name]
  }

  set(name: number, item: T | undefined): void {
    if (item === undefined && name >= this.#items.length) return
    // An array with gaps becomes a slow dictionary.
    while (this.#items.length < name) this.#items.push(undefined)
    this.#items[name] = item
  }

  move(from: number, to: number): void {
    this.set(to, this.at(from))
    this.set(from, undefined)
  }
}

/** Messages of a list by the numbers of their names. */
class Declared {
  readonly #message: Message
  readonly #list: string
  /** The number of each message; undefined once their objects were asked for, which a large graph has by the hundred thousand. */
  #numbers: NumberList | undefined
  readonly #column = new Column<Some<Message>>()

  constructor(message: Message, list: string, numbers: NumberList) {
    this.#message = message
    this.#list = list
    this.#numbers = numbers
  }

  get column(): Column<Some<Message>> {
    const numbers = this.#numbers
    if (numbers === undefined) return this.#column
    this.#numbers = undefined
    const messages = this.#message.messages(this.#list)
    // One that was appended since is added by its own edit.
    for (let at = 0; at < numbers.length; at++) addItem(this.#column, numbers.at(at), messages[at]!)
    return this.#column
  }
}

export class GraphNames {
  /** Edit count of the graph's message that the index matches. */
  edits: number
  /** Nodes with subgraphs, which may use names of this graph. */
  readonly subgraphs = new Map<Node, readonly Graph[]>()
  /** Whether a name has several initializers, of which the first wins. */
  readonly repeatsInitializers: boolean
  readonly #message: Message
  readonly #table = new NameTable()
  readonly #producers = new Column<Some<Node>>()
  readonly #users = new Column<Some<Node>>()
  readonly #initializers = new Column<InitializerField>()
  readonly #declared: Readonly<Record<NamedList, Declared>>
  readonly #lists: readonly Declared[]
  /** Names of inputs and outputs in file order, made when they are asked for. */
  readonly #ends: Partial<Record<NamedList, Set<string>>> = {}

  constructor(graph: Graph, initializers: readonly InitializerField[]) {
    const { message } = graph
    this.edits = message.edits
    this.#message = message
    const declare = (list: NamedList): Declared =>
      new Declared(message, list, numbersOfField(this.#table, message, list, NAMED_LISTS[list]))
    this.#declared = {
      input: declare('input'),
      output: declare('output'),
      value_info: declare('value_info'),
      quantization_annotation: declare('quantization_annotation'),
    }
    this.#lists = Object.values(this.#declared)
    let isRepeated = false
    for (const each of initializers) {
      const name = this.#table.numberOfText(each.name)
      // The first of equal names wins.
      if (this.#initializers.at(name)) isRepeated = true
      else this.#initializers.set(name, each)
    }
    this.repeatsInitializers = isRepeated
    this.#addAll(graph)
  }

  /** As `add` for each node. */
  #addAll({ message, nodes }: Graph): void {
    const table = this.#table
    let at = 0
    visitNamesOfAll(
      message,
      (bytes, start, end) => addItem(this.#users, table.numberOf(bytes, start, end), nodes[at]!),
      (bytes, start, end) => addItem(this.#producers, table.numberOf(bytes, start, end), nodes[at]!),
      (hasAttributes) => {
        const node = nodes[at++]!
        if (hasAttributes && hasSubgraphs(node)) this.subgraphs.set(node, node.subgraphs)
      },
    )
  }

  get inputs(): ReadonlySet<string> {
    return this.#namesOf('input')
  }

  get outputs(): ReadonlySet<string> {
    return this.#namesOf('output')
  }

  initializer(name: string): InitializerField | undefined {
    return this.#initializers.at(this.#table.find(name))
  }

  setInitializer(name: string, initializer: InitializerField | undefined): void {
    this.#initializers.set(this.#table.numberOfText(name), initializer)
  }

  /** Messages of a list that refer to the name. */
  declarations(list: NamedList, name: string): readonly Message[] {
    return listOf(this.#declared[list].column.at(this.#table.find(name)))
  }

  /** The ValueInfoProto of a name; inputs win over outputs, outputs over `value_info`. */
  declared(name: string): Message | undefined {
    const number = this.#table.find(name)
    const { input, output, value_info } = this.#declared
    return listOf(input.column.at(number) ?? output.column.at(number) ?? value_info.column.at(number)).at(-1)
  }

  declare(list: NamedList, name: string, message: Message): void {
    addItem(this.#declared[list].column, this.#table.numberOfText(name), message)
    this.#ends[list]?.add(name)
  }

  producerOf(name: string): Node | undefined {
    const found = this.#producers.at(this.#table.find(name))
    return found instanceof Set ? found.values().next().value : found
  }

  producersOf(name: string): readonly Node[] {
    return listOf(this.#producers.at(this.#table.find(name)))
  }

  isUsed(name: string): boolean {
    return this.#users.at(this.#table.find(name)) !== undefined
  }

  isInput(name: string): boolean {
    return this.#declared.input.column.at(this.#table.find(name)) !== undefined
  }

  isOutput(name: string): boolean {
    return this.#declared.output.column.at(this.#table.find(name)) !== undefined
  }

  /** Nodes of this graph with the name among their inputs. */
  usersOf(name: string): readonly Node[] {
    return listOf(this.#users.at(this.#table.find(name)))
  }

  usesOf(name: string): readonly Use[] {
    const uses: Use[] = []
    for (const node of this.usersOf(name)) {
      let index = 0
      node.message.eachText(INPUTS, (bytes, start, end) => {
        if (isText(bytes, start, end, name)) uses.push({ node, index })
        index += 1
      })
    }
    return uses
  }

  /** True for an input, an initializer or an output of a node. */
  defines(name: string): boolean {
    const number = this.#table.find(name)
    if (number < 0) return false
    const found = this.#producers.at(number) ?? this.#declared.input.column.at(number)
    return (found ?? this.#initializers.at(number)) !== undefined
  }

  add(node: Node): void {
    const table = this.#table
    const isOuter = visitNames(
      node,
      (bytes, start, end) => addItem(this.#users, table.numberOf(bytes, start, end), node),
      (bytes, start, end) => addItem(this.#producers, table.numberOf(bytes, start, end), node),
    )
    if (isOuter) this.subgraphs.set(node, node.subgraphs)
  }

  /** Removes a node, which must be as it was when it was added. */
  delete(node: Node): void {
    const table = this.#table
    this.subgraphs.delete(node)
    visitNames(
      node,
      (bytes, start, end) => removeItem(this.#users, table.numberOf(bytes, start, end), node),
      (bytes, start, end) => removeItem(this.#producers, table.numberOf(bytes, start, end), node),
    )
  }

  /** Follows a rename to a name that the graph does not have. */
  rename(name: string, other: string): void {
    const [from, to] = [this.#table.find(name), this.#table.numberOfText(other)]
    if (from < 0) return
    const { input, output } = this.#declared
    if (input.column.at(from) ?? output.column.at(from)) this.#forgetEnds()
    this.#producers.move(from, to)
    this.#users.move(from, to)
    this.#initializers.move(from, to)
    for (const { column } of this.#lists) column.move(from, to)
  }

  /** Follows the replacement of a name among inputs of nodes and outputs of the graph. */
  replaceUses(name: string, other: string): void {
    const [from, to] = [this.#table.numberOfText(name), this.#table.numberOfText(other)]
    const output = this.#declared.output.column
    const [users, outputs] = [listOf(this.#users.at(from)), listOf(output.at(from))]
    for (const node of users) addItem(this.#users, to, node)
    for (const message of outputs) addItem(output, to, message)
    if (outputs.length > 0) this.#forgetEnds()
    if (from === to) return
    this.#users.set(from, undefined)
    output.set(from, undefined)
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

const NOTHING: readonly never[] = []

function listOf<T extends object>(some: Some<T>): readonly T[] {
  if (some === undefined) return NOTHING
  return some instanceof Set ? [...some] : [some]
}

function addItem<T extends object>(column: Column<Some<T>>, name: number, item: T): void {
  const some = column.at(name)
  if (some instanceof Set) some.add(item)
  else if (some !== item) column.set(name, some === undefined ? item : new Set([some, item]))
}

function removeItem<T extends object>(column: Column<Some<T>>, name: number, item: T): void {
  const some = column.at(name)
  if (some === item) column.set(name, undefined)
  else if (some instanceof Set && some.delete(item) && some.size === 0) column.set(name, undefined)
}

/** @returns the field of the renamed initializer */
export function renameInitializer(
  graph: Message,
  { list, field }: { readonly list: InitializerList; readonly field: MessageField },
  name: string,
): InitializerField {
  if (field.kind === 'message' && list === 'initializer') field.setText('name', name)
  else if (field.kind === 'message') field.message('values')?.setText('name', name)
  else return { list, name, field: graph.putTensor(list, field.tensor, name, field) }
  return { list, name, field }
}
