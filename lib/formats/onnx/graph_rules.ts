/**
 * The rules of graphs: every name is made once, every input is made by somebody before it is used, here or in an
 * enclosing graph, and nothing depends on itself. Names become numbers, so that a graph costs little more than its file.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { NumberList } from '../number_list.js'
import type { Report } from '../report.js'
import { NameTable } from './name_table.js'
import { checkTinyMessages } from './protobuf/tiny_messages.js'
import { eachField, holdRange, LENGTH, type Steps, WireCursor, walkSource } from './protobuf/wire.js'
import { fieldNumber, MAX_TEXT_BYTES, type MessageName, quote } from './schema.js'

/** Checks the main graph, its subgraphs and the bodies of functions. */
export async function checkGraphs(source: ByteSource, budget: Budget, report: Report): Promise<void> {
  const walker = new GraphWalker(source, budget, report)
  try {
    await walkSource(walker.model(source.byteLength), walker.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
  }
}

interface Visit {
  readonly number: number
  readonly start: number
  readonly end: number
}

/** A graph in an attribute of a node. */
interface Subgraph {
  readonly range: Visit
  readonly path: string
}

/** Numbers of names, node by node. */
class NamesOfNodes {
  readonly numbers = new NumberList(Uint32Array)
  readonly #ends = new NumberList(Uint32Array)

  endNode(): void {
    this.#ends.push(this.numbers.length)
  }

  start(node: number): number {
    return node === 0 ? 0 : this.#ends.at(node - 1)
  }

  end(node: number): number {
    return this.#ends.at(node)
  }
}

/** One graph or function body: its nodes as numbers of names. */
class Scope {
  readonly path: string
  /** Tells it from those around it. */
  readonly number: number
  readonly inputs = new NamesOfNodes()
  readonly outputs = new NamesOfNodes()
  /** Byte offsets of the nodes. */
  readonly offsets = new NumberList(Float64Array)
  /** Names that are made here, and the numbers of the scopes around that made them before. */
  readonly made = new NumberList(Uint32Array)
  readonly before = new NumberList(Uint32Array)

  constructor(path: string, number: number) {
    this.path = path
    this.number = number
  }

  get nodeCount(): number {
    return this.offsets.length
  }

  pathOf(node: number): string {
    return `${this.path}.node[${node}]`
  }
}

/** Who makes which name, of the scope that is being walked and of those around it. */
class Makers {
  /** By the number of a name: the number of the innermost scope that makes it; 0 for none. */
  readonly #scopes = new NumberList(Uint32Array)
  /** By the number of a name: the node that makes it in the scope whose order is checked, plus one; 0 for none. */
  readonly #nodes = new NumberList(Uint32Array)
  readonly #names: NameTable

  constructor(names: NameTable) {
    this.#names = names
  }

  /** False where the scope makes the name already. */
  make(scope: Scope, name: number): boolean {
    this.#reach()
    const before = this.#scopes.at(name)
    if (before === scope.number) return false
    scope.made.push(name)
    scope.before.push(before)
    this.#scopes.set(name, scope.number)
    return true
  }

  knows(name: number): boolean {
    this.#reach()
    return this.#scopes.at(name) !== 0
  }

  /** Forgets what a scope makes. */
  leave({ made, before }: Scope): void {
    for (let at = made.length - 1; at >= 0; at--) this.#scopes.set(made.at(at), before.at(at))
  }

  /** Runs `action` while `producerOf` tells of the nodes of a scope. */
  among(scope: Scope, action: () => void): void {
    this.#reach()
    this.#setProducers(scope, (node) => node + 1)
    action()
    this.#setProducers(scope, () => 0)
  }

  /** The node of the scope that makes a name; the last of several; -1 for none. */
  producerOf(name: number): number {
    return this.#nodes.at(name) - 1
  }

  #setProducers({ outputs, nodeCount }: Scope, markOf: (node: number) => number): void {
    for (let node = 0; node < nodeCount; node++) {
      for (let at = outputs.start(node); at < outputs.end(node); at++)
        this.#nodes.set(outputs.numbers.at(at), markOf(node))
    }
  }

  #reach(): void {
    while (this.#scopes.length < this.#names.length) {
      this.#scopes.push(0)
      this.#nodes.push(0)
    }
  }
}

const numbersOf = <Name extends string>(message: MessageName, names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, fieldNumber(message, name)])) as Record<Name, number>

const MODEL = numbersOf('ModelProto', ['graph', 'functions'])
const GRAPH = numbersOf('GraphProto', ['node', 'initializer', 'input', 'output', 'sparse_initializer'])
const NODE = numbersOf('NodeProto', ['input', 'output', 'attribute'])
const ATTRIBUTE = numbersOf('AttributeProto', ['g', 'graphs'])
const FUNCTION = numbersOf('FunctionProto', ['input', 'output', 'node'])
const TENSOR_NAME = fieldNumber('TensorProto', 'name')
const VALUE_NAME = fieldNumber('ValueInfoProto', 'name')
const SPARSE_VALUES = fieldNumber('SparseTensorProto', 'values')

class GraphWalker {
  readonly cursor: WireCursor
  readonly #names = new NameTable()
  readonly #makers = new Makers(this.#names)
  /** The name that stands for a value that is left out. */
  readonly #noName = this.#names.numberOf(new Uint8Array(0))
  readonly #budget: Budget
  readonly #report: Report
  #scopes = 0

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
  }

  *model(end: number): Steps<void> {
    let functions = 0
    yield* this.#inside(0, end, (field) => {
      if (field.number === MODEL.graph) return this.#graph(field, 'graph', 2)
      return field.number === MODEL.functions ? this.#function(field, `functions[${functions++}]`) : undefined
    })
  }

  *#graph(range: Visit, path: string, depth: number): Steps<void> {
    this.#budget.require('depth', depth, range.start)
    const scope = this.#enter(path)
    const inputs = new Set<number>()
    const outputs = new NumberList(Uint32Array)
    yield* this.#namesOf(range, [GRAPH.input], VALUE_NAME, (name, offset) => {
      this.#make(scope, name, offset, 'input')
      inputs.add(name)
    })
    // An initializer may give a default to an input of its name, and two of one name may not be.
    const initialized = new Set<number>()
    const initialize = (name: number, offset: number): void => {
      if (initialized.has(name)) this.#duplicate(scope, name, offset, 'initializer')
      else if (!inputs.has(name)) this.#make(scope, name, offset, 'initializer')
      initialized.add(name)
    }
    yield* this.#namesOf(range, [GRAPH.initializer], TENSOR_NAME, initialize)
    yield* this.#namesOf(range, [GRAPH.sparse_initializer, SPARSE_VALUES], TENSOR_NAME, initialize)
    yield* this.#namesOf(range, [GRAPH.output], VALUE_NAME, (name) => outputs.push(name))
    yield* this.#nodes(range, GRAPH.node, scope, depth)
    this.#leave(scope, outputs, range.start)
  }

  *#function(range: Visit, path: string): Steps<void> {
    const scope = this.#enter(path)
    const outputs = new NumberList(Uint32Array)
    yield* this.#texts(range, FUNCTION.input, (name, offset) => this.#make(scope, name, offset, 'input'))
    yield* this.#texts(range, FUNCTION.output, (name) => outputs.push(name))
    yield* this.#nodes(range, FUNCTION.node, scope, 2)
    this.#leave(scope, outputs, range.start)
  }

  #enter(path: string): Scope {
    this.#scopes += 1
    return new Scope(path, this.#scopes)
  }

  #leave(scope: Scope, outputs: NumberList, offset: number): void {
    this.#makers.among(scope, () => this.#checkOrder(scope))
    this.#checkOutputs(scope, outputs, offset)
    this.#makers.leave(scope)
  }

  /** Nodes first by what they make, so that what is made later can be told from what nobody makes; then subgraphs. */
  *#nodes(range: Visit, number: number, scope: Scope, depth: number): Steps<void> {
    const subgraphs: Subgraph[] = []
    yield* this.#inside(range.start, range.end, (field) =>
      field.number === number ? this.#node(field, scope, subgraphs) : undefined,
    )
    const { outputs, offsets } = scope
    for (let node = 0; node < scope.nodeCount; node++) {
      for (let at = outputs.start(node); at < outputs.end(node); at++)
        this.#make(scope, outputs.numbers.at(at), offsets.at(node), 'output of a node')
    }
    for (const { range: graph, path } of subgraphs) yield* this.#graph(graph, path, depth + 3)
  }

  *#node({ start, end }: Visit, scope: Scope, subgraphs: Subgraph[]): Steps<void> {
    const node = scope.nodeCount
    const { inputs, outputs, offsets } = scope
    offsets.push(start)
    checkTinyMessages(node, end - offsets.at(0), start)
    let attributes = 0
    yield* this.#inside(start, end, (field) => {
      if (field.number === NODE.input) return this.#text(field, (name) => this.#put(inputs, name))
      if (field.number === NODE.output) return this.#text(field, (name) => this.#put(outputs, name))
      if (field.number !== NODE.attribute) return undefined
      const path = (): string => `${scope.pathOf(node)}.attribute[${attributes - 1}]`
      attributes += 1
      return this.#subgraphs(field, path, subgraphs)
    })
    inputs.endNode()
    outputs.endNode()
  }

  #put({ numbers }: NamesOfNodes, name: number): void {
    if (name !== this.#noName) numbers.push(name)
  }

  *#subgraphs({ start, end }: Visit, path: () => string, subgraphs: Subgraph[]): Steps<void> {
    let count = 0
    const here = path()
    yield* this.#inside(start, end, (range) => {
      if (range.number === ATTRIBUTE.g) subgraphs.push({ range, path: `${here}.g` })
      if (range.number === ATTRIBUTE.graphs) subgraphs.push({ range, path: `${here}.graphs[${count++}]` })
      return undefined
    })
  }

  /** Inputs that nobody makes, that are made later, and nodes that wait for each other. */
  #checkOrder(scope: Scope): void {
    const { inputs, nodeCount } = scope
    let isSorted = true
    for (let node = 0; node < nodeCount; node++) {
      for (let at = inputs.start(node); at < inputs.end(node); at++) {
        const name = inputs.numbers.at(at)
        const producer = this.#makers.producerOf(name)
        if (producer >= 0) isSorted &&= producer < node
        else if (!this.#makers.knows(name)) this.#missing(scope, node, name)
      }
    }
    if (isSorted) return
    const waiting = firstOfCycle(scope, this.#makers)
    if (waiting === undefined) {
      const message = `The nodes of ${scope.path} are not in the order in which they use each other.`
      this.#report.deviation('ERR_GRAPH', message, { path: scope.path, offset: scope.offsets.at(0) })
      return
    }
    const path = scope.pathOf(waiting)
    const place = { path, offset: scope.offsets.at(waiting) }
    this.#report.deviation('ERR_GRAPH', `${path} depends on its own output.`, place)
  }

  #checkOutputs({ path }: Scope, outputs: NumberList, offset: number): void {
    for (let at = 0; at < outputs.length; at++) {
      if (this.#makers.knows(outputs.at(at))) continue
      const message = `The output ${this.#quoted(outputs.at(at))} of ${path} is made by nobody.`
      this.#report.deviation('ERR_GRAPH', message, { path, offset })
    }
  }

  #missing(scope: Scope, node: number, name: number): void {
    const place = { path: scope.pathOf(node), offset: scope.offsets.at(node) }
    const message = `The input ${this.#quoted(name)} of ${place.path} is made by nobody.`
    this.#report.deviation('ERR_GRAPH', message, place)
  }

  #make(scope: Scope, name: number, offset: number, what: string): void {
    if (!this.#makers.make(scope, name)) this.#duplicate(scope, name, offset, what)
  }

  #duplicate({ path }: Scope, name: number, offset: number, what: string): void {
    const message = `${this.#quoted(name)}, ${what} of ${path}, is made there twice.`
    this.#report.deviation('ERR_DUPLICATE', message, { path, offset })
  }

  #quoted(name: number): string {
    return quote(this.#names.text(name))
  }

  /** Names of the messages that are reached by the fields `way`. */
  *#namesOf(
    { start, end }: Visit,
    way: readonly number[],
    nameField: number,
    take: (name: number, offset: number) => void,
  ): Steps<void> {
    const [first, ...rest] = way
    if (first === undefined) {
      let last = this.#noName
      let at = start
      yield* this.#texts({ number: 0, start, end }, nameField, (name, offset) => {
        last = name
        at = offset
      })
      take(last, at)
      return
    }
    yield* this.#inside(start, end, (field) =>
      field.number === first ? this.#namesOf(field, rest, nameField, take) : undefined,
    )
  }

  /** Texts of a field. */
  *#texts({ start, end }: Visit, number: number, take: (name: number, offset: number) => void): Steps<void> {
    yield* this.#inside(start, end, (field) =>
      field.number === number ? this.#text(field, take) : undefined,
    )
  }

  /** A text as the number of a name; a walk only where the window does not hold it. */
  #text({ start, end }: Visit, take: (name: number, offset: number) => void): Steps<void> | undefined {
    if (end - start > MAX_TEXT_BYTES) {
      const message = `A name has ${end - start} bytes; the limit is ${MAX_TEXT_BYTES}.`
      throw new FileFault('ERR_LIMIT', message, start)
    }
    if (!this.cursor.holdsRange(start, end)) return this.#textBehind(start, end, take)
    take(this.#names.numberOf(this.cursor.held(start, end)), start)
    return undefined
  }

  *#textBehind(start: number, end: number, take: (name: number, offset: number) => void): Steps<void> {
    take(this.#names.numberOf(yield* holdRange(this.cursor, start, end)), start)
  }

  *#inside(start: number, end: number, visit: (field: Visit) => Steps<void> | undefined): Steps<void> {
    const { cursor } = this
    cursor.position = start
    yield* eachField(cursor, end, () => {
      if (cursor.wireType !== LENGTH) return undefined
      return visit({ number: cursor.number, start: cursor.valueStart, end: cursor.position })
    })
  }
}

/** A node that is in a cycle, or behind one; undefined where the nodes can be sorted. */
function firstOfCycle({ inputs, nodeCount }: Scope, makers: Makers): number | undefined {
  const waits = new Int32Array(nodeCount)
  // Users of a node stand behind each other, those of node n from starts[n] on.
  const starts = new Uint32Array(nodeCount + 1)
  eachUse((producer, user) => {
    waits[user]! += 1
    starts[producer + 1]! += 1
  })
  for (let node = 0; node < nodeCount; node++) starts[node + 1]! += starts[node]!
  const users = new Uint32Array(starts[nodeCount]!)
  const filled = starts.slice()
  eachUse((producer, user) => {
    users[filled[producer]!++] = user
  })
  const ready: number[] = []
  for (const [index, count] of waits.entries()) if (count === 0) ready.push(index)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    for (let at = starts[next]!; at < starts[next + 1]!; at++) {
      const user = users[at]!
      waits[user]! -= 1
      if (waits[user] === 0) ready.push(user)
    }
  }
  const index = waits.findIndex((count) => count > 0)
  return index < 0 ? undefined : index

  function eachUse(visit: (producer: number, user: number) => void): void {
    for (let user = 0; user < nodeCount; user++) {
      for (let at = inputs.start(user); at < inputs.end(user); at++) {
        const producer = makers.producerOf(inputs.numbers.at(at))
        if (producer >= 0) visit(producer, user)
      }
    }
  }
}
