/**
 * Rules of graphs (SSA form): each name is defined once, each input is defined before its use, here or in an enclosing
 * graph, and no node depends on itself.
 *
 * Names become numbers, so checking a graph needs little more memory than the file has bytes. Source: "Names Within a
 * Graph" in the IR specification of ONNX.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { NumberList, OffsetList } from '../number_list.js'
import { NumberLists } from '../number_lists.js'
import type { Report } from '../report.js'
import { checkNameLength } from './name_length.js'
import { NameTable } from './name_table.js'
import { checkTinyMessages } from './protobuf/tiny_messages.js'
import {
  afterSteps,
  eachField,
  holdRange,
  LENGTH,
  type Steps,
  visitFields,
  WireCursor,
  walkSource,
} from './protobuf/wire.js'
import { fieldNumber, type MessageName, quote } from './schema.js'

/**
 * Checks the main graph, its subgraphs and the bodies of functions.
 *
 * @returns the number of their nodes
 */
export async function checkGraphs(source: ByteSource, budget: Budget, report: Report): Promise<number> {
  const walker = new GraphWalker(source, budget, report)
  try {
    await walkSource(walker.model(source.byteLength), walker.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
  }
  return walker.nodeCount
}

/** The bytes of a message. */
interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Visits a length-delimited field; returns a walk where the window does not hold all that it reads, or the byte offset of a later
 * field to continue at.
 */
type Visit = (number: number, start: number, end: number) => Steps<void> | number | undefined

/** A graph in an attribute of a node. */
interface Subgraph {
  readonly range: Range
  readonly path: string
  /** Index of the node in its graph. */
  readonly node: number
}

/** The fields of a message that have one of some numbers. Adjacent fields of a number are one range: most are. */
class FieldRanges {
  readonly #ranges: ReadonlyMap<number, { readonly starts: OffsetList; readonly ends: OffsetList }>

  constructor(numbers: readonly number[]) {
    this.#ranges = new Map(
      numbers.map((number) => [number, { starts: new OffsetList(), ends: new OffsetList() }]),
    )
  }

  /** Adds a field, which follows all others. */
  add(number: number, start: number, end: number): void {
    const ranges = this.#ranges.get(number)
    if (!ranges) return
    const { starts, ends } = ranges
    const last = ends.length - 1
    if (last >= 0 && ends.at(last) === start) ends.set(last, end)
    else {
      starts.push(start)
      ends.push(end)
    }
  }

  /** Ranges of whole fields. */
  *of(number: number): Generator<Range> {
    const { starts, ends } = this.#ranges.get(number)!
    for (let at = 0; at < starts.length; at++) yield { start: starts.at(at), end: ends.at(at) }
  }
}

/** A graph or function body, with nodes as lists of name numbers. */
class Scope {
  readonly path: string
  /** Unique number, from 1. */
  readonly number: number
  readonly inputs = new NumberLists()
  readonly outputs = new NumberLists()
  /** Byte offsets of the nodes. */
  readonly offsets = new NumberList(Float64Array)
  /** Names defined here, and for each the number of the enclosing scope that defines it too, or 0. */
  readonly defined = new NumberList(Uint32Array)
  readonly hidden = new NumberList(Uint32Array)
  readonly hiddenMakers = new NumberList(Uint32Array)

  constructor(path: string, number: number) {
    this.path = path
    this.number = number
  }

  get nodeCount(): number {
    return this.offsets.length
  }

  endNode(): void {
    this.inputs.endList()
    this.outputs.endList()
  }

  pathOf(node: number): string {
    return `${this.path}.node[${node}]`
  }
}

/** The attribute that is read, and where its graphs go. */
interface AttributePlace {
  readonly scope: Scope
  readonly attribute: number
  readonly subgraphs: Subgraph[]
}

/** Definitions of names in the current scope and its enclosing scopes. */
class Definitions {
  /** By name number: the innermost scope that defines the name; 0 for none. */
  readonly #scopes = new NumberList(Uint32Array)
  /** By name number: in that scope the node that makes the value, plus one; 0 for inputs and initializers. */
  readonly #makers = new NumberList(Uint32Array)
  /** By name number: the producing node in the scope whose order is being checked, plus one; 0 for none. */
  readonly #nodes = new NumberList(Uint32Array)
  readonly #names: NameTable

  constructor(names: NameTable) {
    this.#names = names
  }

  /** Defines a name. @param maker - the node that makes the value, plus one. @returns false where the scope has defined it before */
  define(scope: Scope, name: number, maker = 0): boolean {
    this.#grow()
    const hidden = this.#scopes.at(name)
    if (hidden === scope.number) return false
    scope.defined.push(name)
    scope.hidden.push(hidden)
    scope.hiddenMakers.push(this.#makers.at(name))
    this.#scopes.set(name, scope.number)
    this.#makers.set(name, maker)
    return true
  }

  /** The innermost scope that defines a name, and its maker there; scope 0 for none. */
  definitionOf(name: number): { readonly scope: number; readonly maker: number } {
    this.#grow()
    return { scope: this.#scopes.at(name), maker: this.#makers.at(name) }
  }

  has(name: number): boolean {
    this.#grow()
    return this.#scopes.at(name) !== 0
  }

  /** Whether the scope itself defines a name. */
  isOf(scope: Scope, name: number): boolean {
    this.#grow()
    return this.#scopes.at(name) === scope.number
  }

  /** Removes the definitions of a scope and restores the hidden ones. */
  leave({ defined, hidden, hiddenMakers }: Scope): void {
    for (let at = defined.length - 1; at >= 0; at--) {
      this.#scopes.set(defined.at(at), hidden.at(at))
      this.#makers.set(defined.at(at), hiddenMakers.at(at))
    }
  }

  /** Runs `action` while `producerOf` refers to the nodes of a scope. */
  withProducers(scope: Scope, action: () => void): void {
    this.#grow()
    this.#setProducers(scope, (node) => node + 1)
    action()
    this.#setProducers(scope, () => 0)
  }

  /** The node that produces a name, the last of several; -1 for none. */
  producerOf(name: number): number {
    return this.#nodes.at(name) - 1
  }

  #setProducers({ outputs, nodeCount }: Scope, markOf: (node: number) => number): void {
    for (let node = 0; node < nodeCount; node++) {
      for (let at = outputs.start(node); at < outputs.end(node); at++)
        this.#nodes.set(outputs.at(at), markOf(node))
    }
  }

  #grow(): void {
    while (this.#scopes.length < this.#names.length) {
      this.#scopes.push(0)
      this.#makers.push(0)
      this.#nodes.push(0)
    }
  }
}

const numbersOf = <Name extends string>(message: MessageName, names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, fieldNumber(message, name)])) as Record<Name, number>

const MODEL = numbersOf('ModelProto', ['graph', 'functions'])
const GRAPH = numbersOf('GraphProto', ['node', 'initializer', 'input', 'output', 'sparse_initializer'])
/** Lists of a graph with names, which are read in another order than they are in the file. */
const NAMED_BY_GRAPH = [GRAPH.input, GRAPH.initializer, GRAPH.sparse_initializer, GRAPH.output]
const NODE = numbersOf('NodeProto', ['input', 'output', 'attribute'])
const ATTRIBUTE = numbersOf('AttributeProto', ['g', 'graphs'])
const FUNCTION = numbersOf('FunctionProto', ['input', 'output', 'node'])
const TENSOR_NAME = fieldNumber('TensorProto', 'name')
const VALUE_NAME = fieldNumber('ValueInfoProto', 'name')
const VALUE_TYPE = fieldNumber('ValueInfoProto', 'type')
/** Fields that the type of an input or output of a model must have, by the member of TypeProto. */
const REQUIRED_OF_TYPE: ReadonlyMap<number, ReadonlyMap<number, string>> = new Map(
  (
    [
      ['tensor_type', 'TypeProtoTensor', ['elem_type', 'shape']],
      ['sparse_tensor_type', 'TypeProtoTensor', ['elem_type', 'shape']],
      ['sequence_type', 'TypeProtoSequence', ['elem_type']],
      ['optional_type', 'TypeProtoSequence', ['elem_type']],
      ['map_type', 'TypeProtoMap', ['key_type', 'value_type']],
      ['opaque_type', 'TypeProtoOpaque', ['name']],
    ] as const
  ).map(([member, message, fields]) => [
    fieldNumber('TypeProto', member),
    new Map(fields.map((field) => [fieldNumber(message, field), `${member}.${field}`])),
  ]),
)
const SPARSE_VALUES = fieldNumber('SparseTensorProto', 'values')

const MAIN_GRAPH = 'graph'

class GraphWalker {
  readonly cursor: WireCursor
  nodeCount = 0
  readonly #names = new NameTable()
  readonly #definitions = new Definitions(this.#names)
  /** Number of the empty name, which stands for an omitted value. */
  readonly #noName = this.#names.numberOf(new Uint8Array(0))
  readonly #budget: Budget
  readonly #report: Report
  /** By scopes whose subgraphs are being visited: the index of the node that has the subgraph. */
  readonly #visited = new Map<number, number>()
  #scopes = 0

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
  }

  *model(end: number): Steps<void> {
    let functions = 0
    yield* this.#fields({ start: 0, end }, (number, range) => {
      if (number === MODEL.graph) return this.#graph(range, MAIN_GRAPH, 2)
      return number === MODEL.functions ? this.#function(range, `functions[${functions++}]`) : undefined
    })
  }

  *#graph(range: Range, path: string, depth: number): Steps<void> {
    this.#budget.require('depth', depth, range.start)
    const scope = this.#enter(path)
    const inputs = new Set<number>()
    const outputs = new NumberList(Uint32Array)
    const fields = yield* this.#rangesOf(range, NAMED_BY_GRAPH)
    // Subgraphs may leave out types of inputs and outputs.
    if (path === MAIN_GRAPH) yield* this.#types(fields)
    yield* this.#namesOf(fields, [GRAPH.input], VALUE_NAME, (name, offset) => {
      this.#requireName(scope, name, offset, 'An input')
      this.#define(scope, name, offset, 'input')
      inputs.add(name)
    })
    // An initializer may be the default of an input of the same name, but two initializers must differ.
    const initialized = new Set<number>()
    const initialize = (name: number, offset: number): void => {
      this.#requireName(scope, name, offset, 'An initializer')
      if (initialized.has(name)) this.#duplicate(scope, name, offset, 'initializer')
      else if (!inputs.has(name)) this.#define(scope, name, offset, 'initializer')
      initialized.add(name)
    }
    yield* this.#namesOf(fields, [GRAPH.initializer], TENSOR_NAME, initialize)
    yield* this.#namesOf(fields, [GRAPH.sparse_initializer, SPARSE_VALUES], TENSOR_NAME, initialize)
    yield* this.#namesOf(fields, [GRAPH.output], VALUE_NAME, (name, offset) => {
      this.#requireName(scope, name, offset, 'An output')
      outputs.push(name)
    })
    yield* this.#nodes(range, GRAPH.node, scope, depth)
    this.#leave(scope, outputs, range.start)
  }

  *#function(range: Range, path: string): Steps<void> {
    const scope = this.#enter(path)
    const outputs = new NumberList(Uint32Array)
    const fields = yield* this.#rangesOf(range, [FUNCTION.input, FUNCTION.output])
    const define = (name: number, offset: number): void => this.#define(scope, name, offset, 'input')
    yield* this.#textsOf(fields, FUNCTION.input, define)
    yield* this.#textsOf(fields, FUNCTION.output, (name) => outputs.push(name))
    yield* this.#nodes(range, FUNCTION.node, scope, 2)
    this.#leave(scope, outputs, range.start)
  }

  #enter(path: string): Scope {
    this.#scopes += 1
    return new Scope(path, this.#scopes)
  }

  #leave(scope: Scope, outputs: NumberList, offset: number): void {
    this.nodeCount += scope.nodeCount
    this.#definitions.withProducers(scope, () => this.#checkOrder(scope))
    this.#checkOutputs(scope, outputs, offset)
    this.#definitions.leave(scope)
  }

  /** Defines all outputs before checking inputs, so that a late definition differs from a missing one; then subgraphs. */
  *#nodes(range: Range, number: number, scope: Scope, depth: number): Steps<void> {
    const subgraphs: Subgraph[] = []
    const readNode = this.#nodeReader(scope, subgraphs)
    yield* this.#walk(range.start, range.end, (field, start, end) =>
      field === number ? readNode(start, end) : undefined,
    )
    const { outputs, offsets } = scope
    for (let node = 0; node < scope.nodeCount; node++) {
      for (let at = outputs.start(node); at < outputs.end(node); at++)
        this.#defineOutput(scope, outputs.at(at), offsets.at(node), node)
    }
    for (const { range: graph, path, node } of subgraphs) {
      this.#visited.set(scope.number, node)
      yield* this.#graph(graph, path, depth + 3)
    }
    this.#visited.delete(scope.number)
  }

  /** Inputs and initializers of a subgraph may hide values of enclosing graphs; outputs of its nodes only those that nodes make later. */
  #defineOutput(scope: Scope, name: number, offset: number, node: number): void {
    const outer = this.#visited.size > 0 ? this.#definitions.definitionOf(name) : undefined
    const enclosing = outer && this.#visited.get(outer.scope)
    if (enclosing !== undefined && outer!.maker <= enclosing) {
      const path = scope.pathOf(node)
      const message = `${this.#quoted(name)}, output of ${path}, is a value of an enclosing graph already.`
      this.#report.deviation('ERR_DUPLICATE', message, { path, offset })
    }
    this.#define(scope, name, offset, 'output of a node', node + 1)
  }

  /** Adds nodes to the scope and their subgraphs to the list. The functions inside serve all nodes, of which there are many. */
  #nodeReader(scope: Scope, subgraphs: Subgraph[]): (start: number, end: number) => Steps<void> | undefined {
    const { cursor } = this
    const { inputs, outputs, offsets } = scope
    const addInput = (name: number): void => this.#put(inputs, name)
    const addOutput = (name: number): void => this.#put(outputs, name)
    const endNode = (): void => scope.endNode()
    let attributes = 0
    const visit = (): Steps<void> | undefined => {
      const { number, wireType, valueStart, position } = cursor
      if (wireType !== LENGTH) return undefined
      if (number === NODE.input) return this.#text(valueStart, position, addInput)
      if (number === NODE.output) return this.#text(valueStart, position, addOutput)
      if (number !== NODE.attribute) return undefined
      return this.#subgraphs(valueStart, position, { scope, attribute: attributes++, subgraphs })
    }
    return (start, end) => {
      offsets.push(start)
      checkTinyMessages(scope.nodeCount - 1, end - offsets.at(0), start)
      attributes = 0
      cursor.position = start
      const steps = visitFields(cursor, end, visit)
      if (steps) return afterSteps(steps, endNode)
      endNode()
      return undefined
    }
  }

  #put(names: NumberLists, name: number): void {
    if (name !== this.#noName) names.push(name)
  }

  /** Adds the graphs of an attribute of the last node of the scope. */
  #subgraphs(
    start: number,
    end: number,
    { scope, attribute, subgraphs }: AttributePlace,
  ): Steps<void> | undefined {
    let count = 0
    return this.#inside(start, end, (number, from, to) => {
      if (number !== ATTRIBUTE.g && number !== ATTRIBUTE.graphs) return this.cursor.endOfRun(end)
      const path = `${scope.pathOf(scope.nodeCount - 1)}.attribute[${attribute}]`
      const field = number === ATTRIBUTE.g ? 'g' : `graphs[${count++}]`
      const node = scope.nodeCount - 1
      subgraphs.push({ range: { start: from, end: to }, path: `${path}.${field}`, node })
      return undefined
    })
  }

  /** Reports undefined inputs, nodes out of order, and cycles. */
  #checkOrder(scope: Scope): void {
    const { inputs, nodeCount } = scope
    let isSorted = true
    for (let node = 0; node < nodeCount; node++) {
      for (let at = inputs.start(node); at < inputs.end(node); at++) {
        const name = inputs.at(at)
        const producer = this.#definitions.producerOf(name)
        if (producer >= 0) isSorted &&= producer < node
        else if (!this.#definitions.has(name)) this.#missing(scope, node, name)
      }
    }
    if (isSorted) return
    const cyclic = firstOfCycle(scope, this.#definitions)
    if (cyclic === undefined) {
      const message = `The nodes of ${scope.path} are not in topological order.`
      this.#report.deviation('ERR_GRAPH', message, { path: scope.path, offset: scope.offsets.at(0) })
      return
    }
    const path = scope.pathOf(cyclic)
    const place = { path, offset: scope.offsets.at(cyclic) }
    this.#report.deviation('ERR_GRAPH', `${path} depends on its own output.`, place)
  }

  #checkOutputs(scope: Scope, outputs: NumberList, offset: number): void {
    const { path } = scope
    for (let at = 0; at < outputs.length; at++) {
      const name = outputs.at(at)
      if (name === this.#noName || this.#definitions.isOf(scope, name)) continue
      const reason = this.#definitions.has(name)
        ? 'a value of an outer graph; an Identity node makes one of this graph'
        : 'not defined'
      const message = `The output ${this.#quoted(name)} of ${path} is ${reason}.`
      this.#report.deviation('ERR_GRAPH', message, { path, offset })
    }
  }

  /** Reports an input, output or initializer with an empty name, or without one. */
  #requireName({ path }: Scope, name: number, offset: number, what: string): void {
    if (name !== this.#noName) return
    this.#report.deviation('ERR_GRAPH', `${what} of ${path} has no name.`, { path, offset })
  }

  /** Reports inputs and outputs of the main graph that have no whole type. */
  *#types(fields: FieldRanges): Steps<void> {
    for (const list of ['input', 'output'] as const) {
      let count = 0
      for (const range of fields.of(GRAPH[list]))
        yield* this.#fields(range, (_, value) => this.#type(value, `${MAIN_GRAPH}.${list}[${count++}]`))
    }
  }

  /** The last type counts, and in it the last member: readers merge what is written twice. */
  *#type({ start, end }: Range, path: string): Steps<void> {
    const types: Range[] = []
    const members: (Range & { readonly number: number })[] = []
    yield* this.#fields({ start, end }, (number, range) => void (number === VALUE_TYPE && types.push(range)))
    for (const type of types) {
      yield* this.#fields(type, (number, range) => {
        if (REQUIRED_OF_TYPE.has(number)) members.push({ number, ...range })
        return undefined
      })
    }
    const last = members.at(-1)?.number ?? 0
    const missing = new Map(REQUIRED_OF_TYPE.get(last))
    for (const member of members.filter(({ number }) => number === last)) {
      this.cursor.position = member.start
      yield* eachField(this.cursor, member.end, () => void missing.delete(this.cursor.number))
    }
    const what = types.length === 0 ? 'type' : members.length === 0 ? 'member of its type' : undefined
    for (const name of what ? [what] : missing.values()) {
      const place = { path, offset: types.at(-1)?.start ?? start }
      this.#report.deviation(
        'ERR_GRAPH',
        `${path} has no ${name}, which inputs and outputs of a model need.`,
        place,
      )
    }
  }

  #missing(scope: Scope, node: number, name: number): void {
    const place = { path: scope.pathOf(node), offset: scope.offsets.at(node) }
    const message = `The input ${this.#quoted(name)} of ${place.path} is not defined.`
    this.#report.deviation('ERR_GRAPH', message, place)
  }

  #define(scope: Scope, name: number, offset: number, what: string, maker = 0): void {
    if (!this.#definitions.define(scope, name, maker)) this.#duplicate(scope, name, offset, what)
  }

  #duplicate({ path }: Scope, name: number, offset: number, what: string): void {
    const message = `${this.#quoted(name)}, ${what} of ${path}, is defined there twice.`
    this.#report.deviation('ERR_DUPLICATE', message, { path, offset })
  }

  #quoted(name: number): string {
    return quote(this.#names.text(name))
  }

  /** Visits the names of the messages at a path of field numbers. */
  *#namesOf(
    fields: FieldRanges,
    path: readonly [number, ...number[]],
    nameField: number,
    take: (name: number, offset: number) => void,
  ): Steps<void> {
    const visit = this.#nameVisitor(path, nameField, take)
    for (const { start, end } of fields.of(path[0])) yield* this.#walk(start, end, visit)
  }

  #nameVisitor(
    [first, ...inner]: readonly number[],
    nameField: number,
    take: (name: number, offset: number) => void,
  ): Visit {
    if (inner.length > 0) {
      const visit = this.#nameVisitor(inner, nameField, take)
      return (number, start, end) => (number === first ? this.#inside(start, end, visit) : undefined)
    }
    return (number, start, end) =>
      number === first ? this.#lastName(start, end, nameField, take) : undefined
  }

  /** Visits the name of a message: of several the last, of none the empty one. */
  #lastName(
    start: number,
    end: number,
    nameField: number,
    take: (name: number, offset: number) => void,
  ): Steps<void> | undefined {
    let last = this.#noName
    let at = start
    const keep = (name: number, offset: number): void => {
      last = name
      at = offset
    }
    const steps = this.#inside(start, end, (number, from, to) =>
      number === nameField ? this.#text(from, to, keep) : undefined,
    )
    return afterSteps(steps, () => take(last, at))
  }

  /** Visits the texts of a field. */
  *#textsOf(fields: FieldRanges, field: number, take: (name: number, offset: number) => void): Steps<void> {
    for (const { start, end } of fields.of(field))
      yield* this.#walk(start, end, (_, from, to) => this.#text(from, to, take))
  }

  /** Finds the fields with one of the numbers, which are length-delimited, in one walk. */
  *#rangesOf({ start, end }: Range, numbers: readonly number[]): Steps<FieldRanges> {
    const fields = new FieldRanges(numbers)
    const { cursor } = this
    yield* this.#walk(start, end, (number) => {
      fields.add(number, cursor.start, cursor.position)
      return undefined
    })
    return fields
  }

  /** Visits a text as a name number; returns a walk where the window does not hold it. */
  #text(start: number, end: number, take: (name: number, offset: number) => void): Steps<void> | undefined {
    checkNameLength(start, end)
    if (!this.cursor.holdsRange(start, end)) return this.#loadText(start, end, take)
    const { window, windowStart } = this.cursor
    take(this.#names.numberOf(window, start - windowStart, end - windowStart), start)
    return undefined
  }

  *#loadText(start: number, end: number, take: (name: number, offset: number) => void): Steps<void> {
    take(this.#names.numberOf(yield* holdRange(this.cursor, start, end)), start)
  }

  /** As `#walk`, with a range as an object, for what is rare. */
  *#fields(
    { start, end }: Range,
    visit: (number: number, range: Range) => Steps<void> | number | undefined,
  ): Steps<void> {
    yield* this.#walk(start, end, (number, from, to) => visit(number, { start: from, end: to }))
  }

  /** Visits the length-delimited fields of a message. */
  *#walk(start: number, end: number, visit: Visit): Steps<void> {
    const steps = this.#inside(start, end, visit)
    if (steps) yield* steps
  }

  /** As `#walk`; returns a walk over what the window does not hold. */
  #inside(start: number, end: number, visit: Visit): Steps<void> | undefined {
    const { cursor } = this
    cursor.position = start
    return visitFields(cursor, end, () =>
      cursor.wireType === LENGTH
        ? visit(cursor.number, cursor.valueStart, cursor.position)
        : cursor.endOfRun(end),
    )
  }
}

/** A node in a cycle or depending on one (Kahn's algorithm); undefined where the nodes can be sorted. */
function firstOfCycle({ inputs, nodeCount }: Scope, definitions: Definitions): number | undefined {
  const missing = new Int32Array(nodeCount)
  // Users of all nodes in one array (CSR); the users of node n start at starts[n].
  const starts = new Uint32Array(nodeCount + 1)
  eachUse((producer, user) => {
    missing[user]! += 1
    starts[producer + 1]! += 1
  })
  for (let node = 0; node < nodeCount; node++) starts[node + 1]! += starts[node]!
  const users = new Uint32Array(starts[nodeCount]!)
  const filled = starts.slice()
  eachUse((producer, user) => {
    users[filled[producer]!++] = user
  })
  const ready: number[] = []
  for (const [index, count] of missing.entries()) if (count === 0) ready.push(index)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    for (let at = starts[next]!; at < starts[next + 1]!; at++) {
      const user = users[at]!
      missing[user]! -= 1
      if (missing[user] === 0) ready.push(user)
    }
  }
  const index = missing.findIndex((count) => count > 0)
  return index < 0 ? undefined : index

  function eachUse(visit: (producer: number, user: number) => void): void {
    for (let user = 0; user < nodeCount; user++) {
      for (let at = inputs.start(user); at < inputs.end(user); at++) {
        const producer = definitions.producerOf(inputs.at(at))
        if (producer >= 0) visit(producer, user)
      }
    }
  }
}
