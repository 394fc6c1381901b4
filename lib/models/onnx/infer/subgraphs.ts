/** What is known of the outputs of nodes that run subgraphs: `If`, `Loop`, `Scan` and `SequenceMap`. */
import { ownEntry } from '../../../own_entry.js'
import type { Graph, ValueType } from '../document/types.js'
import { axisOf, type Dim, type Dims, dimsOf, merged } from '../evaluate/dims.js'
import { commonType } from './containers.js'
import type { Known, NodeView } from './node_view.js'

type Outputs = readonly (Known | undefined)[]

/** Undefined for other nodes. */
export function subgraphOutputs(node: NodeView): Outputs | undefined {
  return node.domain === '' ? ownEntry(RULES, node.opType)?.(node) : undefined
}

const RULES: Readonly<Record<string, (node: NodeView) => Outputs | undefined>> = {
  If: branches,
  Loop: loop,
  Scan: scan,
  SequenceMap: sequenceMap,
}

const knownOf = (type: ValueType | undefined): Known | undefined => type && { type }

function branches(node: NodeView): Outputs {
  const [left, right] = ['then_branch', 'else_branch'].map((name) => {
    const graph = node.graph(name)
    return graph && node.inferGraph(graph, [])
  })
  return node.outputs.map((_, at) => knownOf(commonType(left?.[at]?.type, right?.[at]?.type)))
}

/** Rounds after which the shape of a value that changes from iteration to iteration is unknown. */
const MAX_LOOP_ROUNDS = 4

function loop(node: NodeView): Outputs {
  const body = node.graph('body')
  if (!body) return []
  const count = Math.max(0, node.inputs.length - 2)
  const fixed = [knownTensor('int64', []), knownTensor('bool', [])].map(({ type }, at) =>
    knownOf(open(type, body.inputs[at]?.type)),
  )
  const given = Array.from({ length: count }, (_, at) => node.type(at + 2))
  const declared = body.inputs.slice(2).map(({ type }) => (node.keepsStates ? undefined : type))
  const { states, outputs } = stableStates(
    node,
    given,
    (types) =>
      node.inferGraph(body, [...fixed, ...types.map((type, at) => knownOf(open(type, declared[at])))]),
    1,
  )
  const trips = node.integers(0)
  // The condition may end the loop earlier.
  const iterations = trips && !node.has(1) && isAlwaysTrue(body) ? (trips[0] ?? null) : null
  return node.outputs.map((_, at) =>
    at < count ? knownOf(states[at]) : knownOf(stacked(outputs?.[at + 1]?.type, iterations)),
  )
}

/** Without a shape where the body declares one, which holds for all iterations. */
function open(type: ValueType | undefined, declared: ValueType | undefined): ValueType | undefined {
  return declared?.kind === 'tensor' && declared.shape ? withoutShape(type) : type
}

/** Whether the body does not change the condition: without a first condition it is true. */
function isAlwaysTrue(body: Graph): boolean {
  const name = body.outputs[0]?.name ?? ''
  const producer = body.producerOf(name)
  const [, condition] = body.inputs
  return condition?.name === (producer?.opType === 'Identity' ? producer.inputs[0] : name)
}

/**
 * Types of values that an iteration passes to the next one. They start as those of the first iteration; dimensions that an
 * iteration changes become unknown, until nothing changes.
 *
 * @param first - number of outputs before the states
 */
function stableStates(
  node: NodeView,
  given: readonly (ValueType | undefined)[],
  infer: (types: readonly (ValueType | undefined)[]) => Outputs | undefined,
  first: number,
): { readonly states: readonly (ValueType | undefined)[]; readonly outputs: Outputs | undefined } {
  let states = given
  let outputs = infer(states)
  if (node.keepsStates) return { states, outputs }
  for (let round = 0; round < MAX_LOOP_ROUNDS; round++) {
    const next = states.map((type, at) => commonType(type, outputs?.[first + at]?.type))
    if (next.every((type, at) => isSame(type, states[at]))) return { states, outputs }
    states = next
    outputs = infer(states)
  }
  states = states.map(withoutShape)
  return { states, outputs: infer(states) }
}

function isSame(one: ValueType | undefined, other: ValueType | undefined): boolean {
  return JSON.stringify(one, bigintText) === JSON.stringify(other, bigintText)
}

const bigintText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value)

function withoutShape(type: ValueType | undefined): ValueType | undefined {
  return type?.kind === 'tensor' ? { kind: 'tensor', dtype: type.dtype } : undefined
}

function knownTensor(dtype: 'int64' | 'bool', shape: Dims): Known {
  return { type: { kind: 'tensor', dtype, shape } }
}

/** Results of all iterations, along a new axis. */
function stacked(type: ValueType | undefined, count: Dim, at = 0): ValueType | undefined {
  if (type?.kind !== 'tensor') return undefined
  const dims = dimsOf(type.shape)
  const axis = dims && axisOf(at, dims.length + 1)
  const shape = axis === undefined ? undefined : dims!.toSpliced(axis, 0, count)
  return { kind: 'tensor', dtype: type.dtype, ...(shape && { shape }) }
}

/** Version 8: all values have a batch axis first, sequences run along the second, and the first input has their lengths. */
function batchedScan(node: NodeView, body: Graph, scanned: number): Outputs {
  const count = node.inputs.length - 1 - scanned
  if (count < 0) return []
  const [batch = null] = dimsOf(tensorShape(node.type(1))) ?? []
  const length = dimsOf(tensorShape(node.type(1 + count)))?.[1] ?? null
  const element = (at: number, axes: number): ValueType | undefined => {
    const type = node.type(1 + at)
    if (type?.kind !== 'tensor') return undefined
    const dims = dimsOf(type.shape)
    return { kind: 'tensor', dtype: type.dtype, ...(dims && { shape: dims.slice(axes) }) }
  }
  const slices = Array.from({ length: scanned }, (_, at) => element(count + at, 2))
  const given = Array.from({ length: count }, (_, at) => element(at, 1))
  const { states, outputs } = stableStates(
    node,
    given,
    (types) => node.inferGraph(body, [...types, ...slices].map(knownOf)),
    0,
  )
  return node.outputs.map((_, at) => {
    const type = at < count ? states[at] : stacked(outputs?.[at]?.type, length)
    return knownOf(stacked(type, batch))
  })
}

function tensorShape(type: ValueType | undefined): Parameters<typeof dimsOf>[0] {
  return type?.kind === 'tensor' ? type.shape : undefined
}

function scan(node: NodeView): Outputs {
  const [body, scanned] = [node.graph('body'), node.int('num_scan_inputs')]
  if (!body || scanned === undefined) return []
  if (node.opset < 9) return batchedScan(node, body, scanned)
  const count = node.inputs.length - scanned
  if (count < 0) return []
  const axes = node.ints('scan_input_axes')
  let length: Dim = null
  const slices = Array.from({ length: scanned }, (_, at): ValueType | undefined => {
    const type = node.type(count + at)
    if (type?.kind !== 'tensor') return undefined
    const dims = dimsOf(type.shape)
    const axis = dims && axisOf(axes?.[at] ?? 0, dims.length)
    if (axis === undefined) return withoutShape(type)
    length = merged(length, dims![axis]!) ?? null
    return { kind: 'tensor', dtype: type.dtype, shape: dims!.toSpliced(axis, 1) }
  })
  const given = Array.from({ length: count }, (_, at) => node.type(at))
  const inferred = stableStates(
    node,
    given,
    (types) => node.inferGraph(body, [...types, ...slices].map(knownOf)),
    0,
  )
  const outputAxes = node.ints('scan_output_axes')
  return node.outputs.map((_, at) => {
    if (at < count) return knownOf(inferred.states[at])
    return knownOf(stacked(inferred.outputs?.[at]?.type, length, outputAxes?.[at - count] ?? 0))
  })
}

function sequenceMap(node: NodeView): Outputs {
  const body = node.graph('body')
  if (!body) return []
  const elements = node.inputs.map((_, input) => {
    const type = node.type(input)
    return input === 0 || type?.kind === 'sequence'
      ? knownOf(type?.kind === 'sequence' ? type.of : undefined)
      : knownOf(type)
  })
  const outputs = node.inferGraph(body, elements)
  return node.outputs.map((_, at) => {
    const of = outputs?.[at]?.type
    return of && knownOf({ kind: 'sequence', of })
  })
}
