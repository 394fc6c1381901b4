/**
 * Rules of functions: keys are unique, and no function calls itself, directly, through others or from a subgraph. A reader
 * that inlines calls would never end otherwise.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import { checkNameLength } from './name_length.js'
import { eachField, holdRange, LENGTH, type Steps, WireCursor, walkSource } from './protobuf/wire.js'
import { fieldNumber, MAX_FUNCTIONS, type MessageName, quote } from './schema.js'
import { textOf } from './tensor/header.js'

export async function checkFunctions(source: ByteSource, budget: Budget, report: Report): Promise<void> {
  const reader = new FunctionReader(source, budget)
  try {
    await walkSource(reader.model(source.byteLength), reader.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: 'functions', offset: error.offset })
    return
  }
  const byKey = new Map<string, Body>()
  for (const body of reader.bodies) {
    if (byKey.has(body.key)) {
      const message = `${body.path} has the same domain, name and overload as another function: ${quote(body.key)}.`
      report.deviation('ERR_DUPLICATE', message, { path: body.path, offset: body.offset })
    } else byKey.set(body.key, body)
  }
  const called = firstRecursive(byKey)
  if (!called) return
  const message = `${called.path} (${quote(called.key)}) calls itself or leads to functions that call each other.`
  report.deviation('ERR_GRAPH', message, { path: called.path, offset: called.offset })
}

/** A function and the operators in its body. */
interface Body {
  readonly key: string
  readonly path: string
  readonly offset: number
  /** Keys of all operators in the body; most are not functions. */
  readonly calls: ReadonlySet<string>
}

/** Numbers of the fields that identify a function or its call. */
interface KeyFields {
  readonly domain: number
  readonly name: number
  readonly overload: number
}

const keyFields = (message: MessageName, name: string): KeyFields => ({
  domain: fieldNumber(message, 'domain'),
  name: fieldNumber(message, name),
  overload: fieldNumber(message, 'overload'),
})

const FUNCTIONS = fieldNumber('ModelProto', 'functions')
const FUNCTION_NODE = fieldNumber('FunctionProto', 'node')
const GRAPH_NODE = fieldNumber('GraphProto', 'node')
const NODE_ATTRIBUTE = fieldNumber('NodeProto', 'attribute')
const ATTRIBUTE_GRAPHS: ReadonlySet<number> = new Set([
  fieldNumber('AttributeProto', 'g'),
  fieldNumber('AttributeProto', 'graphs'),
])
const FUNCTION_KEY = keyFields('FunctionProto', 'name')
const NODE_KEY = keyFields('NodeProto', 'op_type')

type Visit = (number: number, start: number, end: number) => Steps<void> | number | undefined

class FunctionReader {
  readonly cursor: WireCursor
  readonly bodies: Body[] = []
  readonly #budget: Budget

  constructor(source: ByteSource, budget: Budget) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
  }

  *model(end: number): Steps<void> {
    yield* this.#inside(0, end, (number, start, to) =>
      number === FUNCTIONS ? this.#function(start, to) : undefined,
    )
  }

  *#function(start: number, end: number): Steps<void> {
    const calls = new Set<string>()
    const key = yield* this.#key(start, end, FUNCTION_KEY)
    if (this.bodies.length === MAX_FUNCTIONS) {
      throw new FileFault('ERR_LIMIT', `The model has more than ${MAX_FUNCTIONS} functions.`, start)
    }
    const path = `functions[${this.bodies.length}]`
    this.bodies.push({ key, path, offset: start, calls })
    yield* this.#nodes(start, end, FUNCTION_NODE, calls, 2)
  }

  *#nodes(start: number, end: number, list: number, calls: Set<string>, depth: number): Steps<void> {
    this.#budget.require('depth', depth, start)
    yield* this.#inside(start, end, (number, from, to) =>
      number === list ? this.#node(from, to, calls, depth + 1) : undefined,
    )
  }

  *#node(start: number, end: number, calls: Set<string>, depth: number): Steps<void> {
    calls.add(yield* this.#key(start, end, NODE_KEY))
    yield* this.#inside(start, end, (number, from, to) =>
      number === NODE_ATTRIBUTE ? this.#attribute(from, to, calls, depth + 1) : undefined,
    )
  }

  *#attribute(start: number, end: number, calls: Set<string>, depth: number): Steps<void> {
    yield* this.#inside(start, end, (number, from, to) =>
      ATTRIBUTE_GRAPHS.has(number)
        ? this.#nodes(from, to, GRAPH_NODE, calls, depth + 1)
        : this.cursor.endOfRun(end),
    )
  }

  *#key(start: number, end: number, { domain, name, overload }: KeyFields): Steps<string> {
    const parts = new Map<number, string>()
    const keep = function* (cursor: WireCursor, number: number, from: number, to: number): Steps<void> {
      checkNameLength(from, to)
      parts.set(number, textOf(yield* holdRange(cursor, from, to)))
    }
    yield* this.#inside(start, end, (number, from, to) =>
      number === domain || number === name || number === overload
        ? keep(this.cursor, number, from, to)
        : undefined,
    )
    return JSON.stringify([domain, name, overload].map((number) => parts.get(number) ?? ''))
  }

  *#inside(start: number, end: number, visit: Visit): Steps<void> {
    const { cursor } = this
    cursor.position = start
    yield* eachField(cursor, end, () =>
      cursor.wireType === LENGTH
        ? visit(cursor.number, cursor.valueStart, cursor.position)
        : cursor.endOfRun(end),
    )
  }
}

/**
 * A function on a cycle of calls, or leading to one (Kahn's algorithm). It does not recurse, because calls may be nested
 * as deep as there are functions.
 */
function firstRecursive(byKey: ReadonlyMap<string, Body>): Body | undefined {
  const callers = new Map<string, string[]>()
  const pending = new Map<string, number>()
  for (const [key, { calls }] of byKey) {
    const called = [...calls].filter((each) => byKey.has(each))
    pending.set(key, called.length)
    for (const each of called) {
      const known = callers.get(each)
      if (known) known.push(key)
      else callers.set(each, [key])
    }
  }
  const ready = [...pending].flatMap(([key, count]) => (count === 0 ? [key] : []))
  for (let key = ready.pop(); key !== undefined; key = ready.pop()) {
    for (const caller of callers.get(key) ?? []) {
      const left = pending.get(caller)! - 1
      pending.set(caller, left)
      if (left === 0) ready.push(caller)
    }
  }
  return [...byKey.values()].find(({ key }) => pending.get(key)! > 0)
}
