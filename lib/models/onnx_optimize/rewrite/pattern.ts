/**
 * Patterns of nodes, as data: `node('Neg', [node('Neg', [any('x')])])`. Their types carry the names, so that a rule gets what it
 * named with its type.
 */
import { checkFlag, checkOptions, readInput } from '../../../caller_input.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { isAll } from './elements.js'
import type { RewriteNode, RewriteValue } from './rewrite_graph.js'

/** What a rule knows of a value before it looks at it. */
export interface ValuePatternOptions {
  /** Only values of this element type. */
  readonly dtype?: Dtype
  /** Only values of this rank. */
  readonly rank?: number
  /** Only values of at most this rank. */
  readonly maxRank?: number
  /** Only values with these extents; null matches any. */
  readonly shape?: readonly (number | null)[]
}

/** Options of `constant`. */
export interface ConstantPatternOptions<As extends string = string> extends ValuePatternOptions {
  /** The name under which a rule gets the value. */
  readonly as?: As
}

/** Options of `node`. */
export interface NodePatternOptions<As extends string = string, Outputs extends string = string> {
  /** The name under which a rule gets the node. */
  readonly as?: As
  /** Domain of the operator; default: that of ONNX itself. */
  readonly domain?: string
  /**
   * Integers, numbers, texts or lists of integers that attributes have. One that the node lacks has its default; null: it has
   * neither.
   */
  readonly attributes?: Readonly<Record<string, number | string | readonly number[] | null>>
  /** Whether the two inputs may be in either order. */
  readonly commutative?: boolean
  /** `'keep'`: others may use the outputs of the node as well, which stays then. Default: such a node does not match. */
  readonly shared?: 'keep'
  /** Which of its outputs the node around it uses; default 0. */
  readonly output?: number
  /** Names under which a rule gets its outputs, in order. */
  readonly outputs?: readonly Outputs[]
}

declare const NAMED: unique symbol

/** A part of a pattern, with the names that it gives. */
export interface Pattern<out Named = unknown> {
  readonly [NAMED]?: Named
}

type NamesOf<P> = P extends Pattern<infer Named> ? Named : unknown
type NamesOfAll<Inputs extends readonly unknown[]> = Inputs extends readonly [infer First, ...infer Others]
  ? NamesOf<First> & NamesOfAll<Others>
  : unknown
type Named<Name extends string, What> = string extends Name ? unknown : { readonly [Key in Name]: What }

export class AnyPattern {
  constructor(
    readonly name: string | undefined,
    readonly options: ValuePatternOptions,
  ) {}
}

export class ConstantPattern {
  constructor(
    readonly value: number | bigint | boolean | undefined,
    readonly name: string | undefined,
    readonly options: ValuePatternOptions,
  ) {}
}

export class NodePattern {
  constructor(
    readonly opTypes: readonly string[],
    /** Undefined for any inputs; null for an omitted one. */
    readonly inputs: readonly (ValuePattern | null)[] | undefined,
    readonly options: NodePatternOptions,
  ) {}

  get domain(): string {
    const { domain = '' } = this.options
    return domain === 'ai.onnx' ? '' : domain
  }
}

export type ValuePattern = AnyPattern | ConstantPattern | NodePattern

const VALUE_OPTIONS = ['dtype', 'rank', 'maxRank', 'shape'] as const

/**
 * Any value. A name that a pattern has twice stands for the same value in both places.
 *
 * @param name - the name under which a rule gets the value
 * @throws TileworkError ERR_ARGUMENT
 */
export function any<const Name extends string = string>(
  name?: Name,
  options: ValuePatternOptions = {},
): Pattern<Named<Name, RewriteValue>> {
  const checked = checkValueOptions('any', options, VALUE_OPTIONS)
  return new AnyPattern(checkName('any', name), checked) as Pattern<Named<Name, RewriteValue>>
}

/**
 * A constant: an initializer that is no input, or the output of a Constant node.
 *
 * @param value - a number that all its elements are, rounded as its element type rounds it, and of its sign; a text is the name of
 * any constant
 * @throws TileworkError ERR_ARGUMENT
 */
export function constant<const Name extends string>(
  value: Name,
  options?: ValuePatternOptions,
): Pattern<Named<Name, RewriteValue>>
export function constant<const As extends string = string>(
  value: number | bigint | boolean,
  options?: ConstantPatternOptions<As>,
): Pattern<Named<As, RewriteValue>>
export function constant(
  value: string | number | bigint | boolean,
  options: ConstantPatternOptions = {},
): Pattern {
  const { as, ...others } = checkValueOptions('constant', options, [...VALUE_OPTIONS, 'as'])
  if (typeof value === 'string')
    return new ConstantPattern(undefined, checkName('constant', value), others) as Pattern
  if (!['number', 'bigint', 'boolean'].includes(typeof value)) {
    const message = `constant got ${valueText(value)}; it takes a number, a truth, or the name of any constant.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return new ConstantPattern(value, checkName('constant', as), others) as Pattern
}

/**
 * A node of an operator.
 *
 * @param opType - an operator, or several
 * @param inputs - a pattern for each input; null for one that is omitted. Default: any inputs
 * @throws TileworkError ERR_ARGUMENT
 */
export function node<
  const Inputs extends readonly (Pattern | null)[] = readonly [],
  const As extends string = string,
  const Outputs extends string = string,
>(
  opType: string | readonly string[],
  inputs?: Inputs,
  options: NodePatternOptions<As, Outputs> = {},
): Pattern<NamesOfAll<Inputs> & Named<As, RewriteNode> & Named<Outputs, RewriteValue>> {
  const checked = checkNodeOptions(options)
  const opTypes = readInput('The operators of node', () =>
    typeof opType === 'string' ? [opType] : [...opType],
  )
  if (opTypes.length === 0 || opTypes.some((each) => typeof each !== 'string' || each === ''))
    throw refused('node', 'the operator', opType, 'a name, or a list of names')
  const list = readInput('The inputs of node', () => (inputs === undefined ? undefined : [...inputs])) as
    | (ValuePattern | null)[]
    | undefined
  const wrong = list?.find((each) => each !== null && !isPattern(each))
  if (wrong !== undefined) throw refused('node', 'an input', wrong, 'any(), constant(), node() or null')
  if (checked.commutative && list?.length !== 2)
    throw new TileworkError('ERR_ARGUMENT', 'node is commutative and has not two inputs.')
  return new NodePattern(opTypes, list, checked) as Pattern as never
}

function checkValueOptions<Options extends ValuePatternOptions>(
  where: string,
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  checkOptions(options, where, names)
  return readInput(`The options of ${where}`, () => {
    const { dtype, rank, maxRank, shape, ...others } = options
    if (dtype !== undefined && typeof dtype !== 'string') throw refused(where, 'dtype', dtype, 'a name')
    for (const [name, value] of Object.entries({ rank, maxRank }))
      if (value !== undefined && !isCount(value)) throw refused(where, name, value, 'a whole number')
    const extents = shape && [...shape]
    if (extents?.some((extent) => extent !== null && !isCount(extent)))
      throw refused(where, 'shape', shape, 'a list of extents and nulls')
    return { dtype, rank, maxRank, shape: extents, ...others } as unknown as Options
  })
}

function checkNodeOptions(options: NodePatternOptions): NodePatternOptions {
  checkOptions(options, 'node', ['as', 'domain', 'attributes', 'commutative', 'shared', 'output', 'outputs'])
  return readInput('The options of node', () => {
    const { as, domain, attributes, commutative = false, shared, output, outputs } = options
    checkName('node', as)
    if (domain !== undefined && typeof domain !== 'string') throw refused('node', 'domain', domain, 'a text')
    if (output !== undefined && !isCount(output)) throw refused('node', 'output', output, 'a whole number')
    if (shared !== undefined && shared !== 'keep') throw refused('node', 'shared', shared, '"keep"')
    const names = outputs && [...outputs].map((name) => checkName('node', name)!)
    const wanted = attributes && { ...attributes }
    const wrong = Object.entries(wanted ?? {}).find(([, value]) => !isAttribute(value))
    if (wrong)
      throw refused('node', `the attribute ${wrong[0]}`, wrong[1], 'a number, a text, integers or null')
    const given = { as, domain, attributes: wanted, shared, output, outputs: names }
    const known = Object.entries(given).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(known), commutative: checkFlag(commutative, 'commutative') }
  })
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isAttribute(value: unknown): boolean {
  if (value === null || typeof value === 'number' || typeof value === 'string') return true
  return Array.isArray(value) && value.every(Number.isSafeInteger)
}

function refused(where: string, what: string, value: unknown, expected: string): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `${where} got ${valueText(value)} as ${what}; it takes ${expected}.`,
  )
}

export function isPattern(value: unknown): value is ValuePattern {
  return value instanceof AnyPattern || value instanceof ConstantPattern || value instanceof NodePattern
}

/** Names that a rule gets anyway. */
const RESERVED: ReadonlySet<string> = new Set(['root', 'output', 'make', 'makeConstant', 'same'])

function checkName(where: string, name: unknown): string | undefined {
  if (name === undefined) return undefined
  if (typeof name !== 'string' || name === '' || RESERVED.has(name)) {
    const message = `${where} got the name ${valueText(name)}; it must be a text, and none of ${[...RESERVED].join(', ')}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return name
}

/** What the names of a pattern stand for in one place of a graph. */
export type Bound = Readonly<Record<string, RewriteValue | RewriteNode>>

/** A place in which a pattern matched. */
export interface Match {
  readonly bound: Bound
  /** The nodes of the pattern, the root first. */
  readonly nodes: readonly RewriteNode[]
}

interface Task {
  readonly pattern: ValuePattern | null
  readonly value: RewriteValue | undefined
}

interface State {
  readonly tasks: readonly Task[]
  readonly bound: Bound
  readonly nodes: readonly RewriteNode[]
}

/** Matches a pattern with a node and what is before it. Of the orders of a commutative node the first that fits counts. */
export function match(pattern: NodePattern, root: RewriteNode): Match | undefined {
  const first = enter(pattern, root, { tasks: [], bound: {}, nodes: [] })
  const waiting = [...first].reverse()
  for (let state = waiting.pop(); state; state = waiting.pop()) {
    const [task, ...tasks] = state.tasks
    if (!task) {
      if (isUsedInside(pattern, state)) return state
      continue
    }
    const next = step(task, { ...state, tasks }, root)
    for (const each of [...next].reverse()) waiting.push(each)
  }
  return undefined
}

/** The states that follow when one value is compared with its pattern: none, one, or one for each order. */
function step({ pattern, value }: Task, state: State, root: RewriteNode): readonly State[] {
  if (pattern === null) return value === undefined ? [state] : []
  if (!value) return []
  if (pattern instanceof NodePattern) {
    const { producer } = value
    const at = pattern.options.output ?? 0
    if (!producer || producer.graph !== root.graph || producer.outputs[at] !== value) return []
    return enter(pattern, producer, state)
  }
  if (!fits(value, pattern.options)) return []
  if (pattern instanceof ConstantPattern && !isConstant(value, pattern.value)) return []
  const bound = bind(state.bound, pattern.name, value)
  return bound ? [{ ...state, bound }] : []
}

function enter(pattern: NodePattern, node: RewriteNode, state: State): readonly State[] {
  const { as, attributes = {}, outputs = [], commutative = false } = pattern.options
  if (!pattern.opTypes.includes(node.opType) || pattern.domain !== node.domain) return []
  if (!Object.entries(attributes).every(([name, value]) => hasAttribute(node, name, value))) return []
  let bound = bind(state.bound, as, node)
  for (const [at, name] of outputs.entries()) {
    const value = node.outputs[at]
    bound = bound && value && bind(bound, name, value)
  }
  if (!bound) return []
  const nodes = [...state.nodes, node]
  const { inputs } = pattern
  if (!inputs) return [{ tasks: state.tasks, bound, nodes }]
  const count = node.inputs.findLastIndex((value) => value !== undefined) + 1
  if (count > inputs.length) return []
  const orders = commutative ? [node.inputs, [...node.inputs].reverse()] : [node.inputs]
  return orders.map((values) => ({
    tasks: [...inputs.map((each, at) => ({ pattern: each, value: values[at] })), ...state.tasks],
    bound: bound!,
    nodes,
  }))
}

function bind(bound: Bound, name: string | undefined, what: RewriteValue | RewriteNode): Bound | undefined {
  if (name === undefined) return bound
  if (Object.hasOwn(bound, name)) return bound[name] === what ? bound : undefined
  return { ...bound, [name]: what }
}

function fits({ dtype, shape }: RewriteValue, options: ValuePatternOptions): boolean {
  const { dtype: wanted, rank, maxRank, shape: extents } = options
  if (wanted !== undefined && dtype !== wanted) return false
  if (rank !== undefined && shape?.length !== rank) return false
  if (maxRank !== undefined && (!shape || shape.length > maxRank)) return false
  if (!extents) return true
  return (
    shape?.length === extents.length &&
    extents.every((extent, axis) => extent === null || extent === shape[axis])
  )
}

/** A constant of which all elements are a number, or any constant. */
function isConstant(value: RewriteValue, number: number | bigint | boolean | undefined): boolean {
  return value.constant !== undefined && (number === undefined || isAll(value, number))
}

function hasAttribute(
  node: RewriteNode,
  name: string,
  wanted: number | string | readonly number[] | null,
): boolean {
  if (wanted === null) return node.attribute(name) === undefined
  if (typeof wanted === 'string') return node.text(name) === wanted
  if (typeof wanted === 'number') {
    const found = node.int(name) ?? node.float(name)
    return found !== undefined && (Object.is(found, wanted) || Object.is(found, Math.fround(wanted)))
  }
  const list = node.ints(name)
  return list?.length === wanted.length && list.every((value, at) => value === wanted[at])
}

/** Whether nothing outside of the pattern uses the outputs of nodes below its root, unless it says that they may stay. */
function isUsedInside(pattern: NodePattern, { nodes }: State): boolean {
  const inside = new Set(nodes)
  const kept = keptOps(pattern)
  return nodes.slice(1).every((node, at) => {
    if (kept[at]) return true
    return node.outputs.every(
      (value) =>
        !value || (!value.isOutput && !value.isPinned && [...value.users].every((user) => inside.has(user))),
    )
  })
}

/** Whether each node below the root may be shared, in the order in which they are matched. */
function keptOps(pattern: NodePattern): readonly boolean[] {
  const found: boolean[] = []
  const waiting = [...(pattern.inputs ?? [])].reverse()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (!(next instanceof NodePattern)) continue
    found.push(next.options.shared === 'keep')
    for (const inner of [...(next.inputs ?? [])].reverse()) waiting.push(inner)
  }
  return found
}
