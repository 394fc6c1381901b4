/**
 * The rules of graphs: every name is made once, every input is made by somebody before it is used, here or in an
 * enclosing graph, and nothing depends on itself. Names become numbers, so that a graph costs little more than its file.
 */
import type { ByteSource } from '../../bytes/source.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import type { Budget } from './budget.js'
import { fieldNumber, MAX_TEXT_BYTES, type MessageName, quote } from './schema.js'
import { textOf } from './tensor_header.js'
import { eachField, holdRange, LENGTH, type Steps, WireCursor, walkSource } from './wire.js'

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

/** A node as the rules see it. */
interface NodeNames {
  readonly inputs: string[]
  readonly outputs: string[]
  readonly offset: number
  readonly path: string
}

/** One graph or function body. */
class Scope {
  readonly outer: Scope | undefined
  /** Names that are made here. */
  readonly made = new Set<string>()
  readonly nodes: NodeNames[] = []
  readonly path: string

  constructor(path: string, outer: Scope | undefined) {
    this.path = path
    this.outer = outer
  }

  knows(name: string): boolean {
    return this.made.has(name) || (this.outer?.knows(name) ?? false)
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
  readonly #budget: Budget
  readonly #report: Report

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
  }

  *model(end: number): Steps<void> {
    let functions = 0
    yield* this.#inside(0, end, (field) => {
      if (field.number === MODEL.graph) return this.#graph(field, 'graph', undefined, 2)
      return field.number === MODEL.functions ? this.#function(field, `functions[${functions++}]`) : undefined
    })
  }

  *#graph(range: Visit, path: string, outer: Scope | undefined, depth: number): Steps<void> {
    this.#budget.checkDepth(depth, range.start)
    const scope = new Scope(path, outer)
    const inputs = new Set<string>()
    const outputs: string[] = []
    yield* this.#names(range, [GRAPH.input], VALUE_NAME, (name, offset) => {
      this.#make(scope, name, offset, 'input')
      inputs.add(name)
    })
    // An initializer may give a default to an input of its name, and two of one name may not be.
    const initialized = new Set<string>()
    const initialize = (name: string, offset: number): void => {
      if (initialized.has(name)) this.#duplicate(scope, name, offset, 'initializer')
      else if (!inputs.has(name)) this.#make(scope, name, offset, 'initializer')
      initialized.add(name)
    }
    yield* this.#names(range, [GRAPH.initializer], TENSOR_NAME, initialize)
    yield* this.#names(range, [GRAPH.sparse_initializer, SPARSE_VALUES], TENSOR_NAME, initialize)
    yield* this.#names(range, [GRAPH.output], VALUE_NAME, (name) => outputs.push(name))
    yield* this.#nodes(range, GRAPH.node, scope, depth)
    this.#checkOrder(scope)
    this.#checkOutputs(scope, outputs, range.start)
  }

  *#function(range: Visit, path: string): Steps<void> {
    const scope = new Scope(path, undefined)
    const outputs: string[] = []
    yield* this.#texts(range, FUNCTION.input, (name, offset) => this.#make(scope, name, offset, 'input'))
    yield* this.#texts(range, FUNCTION.output, (name) => outputs.push(name))
    yield* this.#nodes(range, FUNCTION.node, scope, 2)
    this.#checkOrder(scope)
    this.#checkOutputs(scope, outputs, range.start)
  }

  /** Nodes first by what they make, so that what is made later can be told from what nobody makes; then subgraphs. */
  *#nodes(range: Visit, number: number, scope: Scope, depth: number): Steps<void> {
    const subgraphs: Subgraph[] = []
    yield* this.#inside(range.start, range.end, (field) =>
      field.number === number ? this.#node(field, scope, subgraphs) : undefined,
    )
    for (const { outputs, offset } of scope.nodes) {
      for (const name of outputs) if (name !== '') this.#make(scope, name, offset, 'output of a node')
    }
    for (const { range: graph, path } of subgraphs) yield* this.#graph(graph, path, scope, depth + 3)
  }

  *#node({ start, end }: Visit, scope: Scope, subgraphs: Subgraph[]): Steps<void> {
    const path = `${scope.path}.node[${scope.nodes.length}]`
    const names: NodeNames = { inputs: [], outputs: [], offset: start, path }
    scope.nodes.push(names)
    let attributes = 0
    yield* this.#inside(start, end, (field) => {
      if (field.number === NODE.input) return this.#text(field, (name) => names.inputs.push(name))
      if (field.number === NODE.output) return this.#text(field, (name) => names.outputs.push(name))
      if (field.number !== NODE.attribute) return undefined
      return this.#subgraphs(field, `${path}.attribute[${attributes++}]`, subgraphs)
    })
  }

  *#subgraphs({ start, end }: Visit, path: string, subgraphs: Subgraph[]): Steps<void> {
    let count = 0
    yield* this.#inside(start, end, (range) => {
      if (range.number === ATTRIBUTE.g) subgraphs.push({ range, path: `${path}.g` })
      if (range.number === ATTRIBUTE.graphs) subgraphs.push({ range, path: `${path}.graphs[${count++}]` })
      return undefined
    })
  }

  /** Inputs that nobody makes, that are made later, and nodes that wait for each other. */
  #checkOrder(scope: Scope): void {
    const producers = new Map<string, number>()
    for (const [index, { outputs }] of scope.nodes.entries())
      for (const name of outputs) producers.set(name, index)
    let isSorted = true
    for (const [index, node] of scope.nodes.entries()) {
      for (const name of node.inputs) {
        if (name === '') continue
        const producer = producers.get(name)
        if (producer !== undefined) isSorted &&= producer < index
        else if (!scope.knows(name)) this.#missing(node, name)
      }
    }
    if (isSorted) return
    const waiting = firstOfCycle(scope.nodes, producers)
    const place = { path: scope.path, offset: scope.nodes[0]!.offset }
    if (waiting === undefined) {
      const message = `The nodes of ${scope.path} are not in the order in which they use each other.`
      this.#report.deviation('ERR_GRAPH', message, place)
      return
    }
    const node = scope.nodes[waiting]!
    const message = `${node.path} depends on its own output.`
    this.#report.deviation('ERR_GRAPH', message, { path: node.path, offset: node.offset })
  }

  #checkOutputs(scope: Scope, outputs: readonly string[], offset: number): void {
    for (const name of outputs) {
      if (scope.knows(name)) continue
      const message = `The output ${quote(name)} of ${scope.path} is made by nobody.`
      this.#report.deviation('ERR_GRAPH', message, { path: scope.path, offset })
    }
  }

  #missing({ path, offset }: NodeNames, name: string): void {
    this.#report.deviation('ERR_GRAPH', `The input ${quote(name)} of ${path} is made by nobody.`, {
      path,
      offset,
    })
  }

  #make(scope: Scope, name: string, offset: number, what: string): void {
    if (!scope.made.has(name)) scope.made.add(name)
    else this.#duplicate(scope, name, offset, what)
  }

  #duplicate({ path }: Scope, name: string, offset: number, what: string): void {
    const message = `${quote(name)}, ${what} of ${path}, is made there twice.`
    this.#report.deviation('ERR_DUPLICATE', message, { path, offset })
  }

  /** Names of the messages that are reached by the fields `way`. */
  *#names(
    { start, end }: Visit,
    way: readonly number[],
    nameField: number,
    take: (name: string, offset: number) => void,
  ): Steps<void> {
    const [first, ...rest] = way
    if (first === undefined) {
      let last: { name: string; offset: number } | undefined
      yield* this.#texts({ number: 0, start, end }, nameField, (name, offset) => {
        last = { name, offset }
      })
      take(last?.name ?? '', last?.offset ?? start)
      return
    }
    yield* this.#inside(start, end, (field) =>
      field.number === first ? this.#names(field, rest, nameField, take) : undefined,
    )
  }

  /** Texts of a field. */
  *#texts({ start, end }: Visit, number: number, take: (text: string, offset: number) => void): Steps<void> {
    yield* this.#inside(start, end, (field) =>
      field.number === number ? this.#text(field, take) : undefined,
    )
  }

  *#text({ start, end }: Visit, take: (text: string, offset: number) => void): Steps<void> {
    if (end - start > MAX_TEXT_BYTES) {
      throw new FileFault(
        'ERR_LIMIT',
        `A name has ${end - start} bytes; the limit is ${MAX_TEXT_BYTES}.`,
        start,
      )
    }
    take(textOf(yield* holdRange(this.cursor, start, end)), start)
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
function firstOfCycle(
  nodes: readonly NodeNames[],
  producers: ReadonlyMap<string, number>,
): number | undefined {
  const waits = new Int32Array(nodes.length)
  const users = new Map<number, number[]>()
  for (const [index, { inputs }] of nodes.entries()) {
    for (const name of inputs) {
      const producer = producers.get(name)
      if (producer === undefined) continue
      waits[index]! += 1
      const list = users.get(producer)
      if (list) list.push(index)
      else users.set(producer, [index])
    }
  }
  const ready: number[] = []
  for (const [index, count] of waits.entries()) if (count === 0) ready.push(index)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    for (const user of users.get(next) ?? []) {
      waits[user]! -= 1
      if (waits[user] === 0) ready.push(user)
    }
  }
  const index = waits.findIndex((count) => count > 0)
  return index < 0 ? undefined : index
}
