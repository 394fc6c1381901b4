/** What the row of an operator works with: one node, the values of its inputs, and the work that is left. */
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import type { Attribute } from '../document/types.js'
import { countOf, type Shape } from './arrays.js'
import { axisOf, type Dims, MAX_INFERRED_RANK } from './dims.js'
import {
  dimsOf,
  type Elements,
  isPartial,
  isValueDtype,
  type KnownElements,
  Value,
  type ValueDtype,
} from './value.js'

/** A node of the standard domain, as inference reads it. */
export interface EvaluatedNode {
  readonly domain: string
  readonly opType: string
  /** Version of the operator set; 0 where the model does not import it. */
  readonly opset: number
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  has(input: number): boolean
  /** What is known of the elements of an input. */
  value(input: number): Value | undefined
  dtype(input: number): Dtype | number | undefined
  /** Undefined for an unknown rank. */
  dims(input: number): Dims | undefined
  attribute(name: string): Attribute | undefined
  int(name: string, absent: number): number
  int(name: string): number | undefined
  ints(name: string): readonly number[] | undefined
  text(name: string): string | undefined
}

/** Elements that are read and made before nothing more is computed, so that a small file cannot ask for hours (CWE-400). */
export class WorkBudget {
  #left: number
  /** Whether something was not computed because it is too large, or too much with what was computed before. */
  isExceeded = false

  constructor(elements: number) {
    this.#left = elements
  }

  /** Throws UNKNOWN for more elements than are left, or than `limit`. */
  take(elements: number, limit = this.#left): void {
    if (elements <= limit && elements <= this.#left) {
      this.#left -= elements
      return
    }
    this.isExceeded = true
    unknown()
  }
}

/** Thrown where a value does not follow, and caught by `evaluate`. One object: a stack for each would cost more than the work. */
export const UNKNOWN = new Error('the value does not follow')

export function unknown(): never {
  throw UNKNOWN
}

/** Largest magnitude of a bound: a double holds it exactly. */
const FAR = Number.MAX_SAFE_INTEGER

export class Call {
  readonly node: EvaluatedNode
  readonly rounding: boolean
  readonly #budget: WorkBudget
  readonly #maxElements: number

  constructor(node: EvaluatedNode, budget: WorkBudget, options: { maxElements: number; rounding?: boolean }) {
    this.node = node
    this.rounding = options.rounding === true
    this.#budget = budget
    this.#maxElements = options.maxElements
  }

  get opset(): number {
    return this.node.opset
  }

  has(input: number): boolean {
    return this.node.has(input)
  }

  /** An input with its elements; some may be symbolic. */
  input(at: number): Operand {
    const value = this.node.value(at)
    if (!value) return unknown()
    const { dtype, shape, size } = value
    if (!isValueDtype(dtype) || shape.length > MAX_INFERRED_RANK) return unknown()
    this.#budget.take(size, this.#maxElements)
    const { elements } = value
    if (elements?.length !== size) return unknown()
    return { dtype, shape, elements }
  }

  get operands(): Operand[] {
    return this.node.inputs.map((_, at) => this.input(at))
  }

  /** An input of which all elements are known. */
  known(at: number): KnownOperand {
    const operand = this.input(at)
    return isPartial(operand.elements) ? unknown() : (operand as KnownOperand)
  }

  /** Elements of a list of axes, sizes or indices. */
  integers(at: number): readonly number[] {
    const numbers = this.#numbers(at)
    return numbers.every(Number.isSafeInteger) ? numbers : unknown()
  }

  /** As `integers`, with numbers beyond 2^53 - 1, which mean the end of an axis, cut to that. */
  bounds(at: number): readonly number[] {
    return this.#numbers(at).map((bound) => Math.min(Math.max(bound, -FAR), FAR))
  }

  #numbers(at: number): number[] {
    const { dtype, elements } = this.known(at)
    return DTYPES[dtype].kind === 'float'
      ? unknown()
      : Array.from(elements as ArrayLike<number | bigint>, Number)
  }

  /** By an attribute, or by an input since a version; undefined where the node has neither. */
  list(attribute: string, since: number, input: number, isBound = false): readonly number[] | undefined {
    if (this.opset >= since && !this.has(input)) return undefined
    if (this.opset >= since) return isBound ? this.bounds(input) : this.integers(input)
    // An input of a later version is an error that implementations take differently.
    if (this.has(input)) return unknown()
    if (!this.node.attribute(attribute)) return undefined
    return this.node.ints(attribute) ?? unknown()
  }

  /** A scalar, or the one element of a list. */
  scalar(at: number): number | bigint {
    const { elements } = this.known(at)
    return elements.length === 1 ? elements[0]! : unknown()
  }

  axisOf(axis: number, rank: number): number {
    return axisOf(axis, rank) ?? unknown()
  }

  /** An axis by attribute, counted from the front. */
  axis(absent: number | undefined, rank: number): number {
    return this.axisOf(this.node.int('axis') ?? absent ?? unknown(), rank)
  }

  /** Different axes, counted from the front. */
  axes(given: readonly number[], rank: number): readonly number[] {
    const axes = given.map((axis) => this.axisOf(axis, rank))
    return new Set(axes).size === axes.length ? axes : unknown()
  }

  /** The shape of a result, once it is known to be within the limits. */
  shape(shape: Shape): Shape {
    const isShape = shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)
    if (!isShape || shape.length > MAX_INFERRED_RANK) return unknown()
    // Extents beside a 0 would overflow strides.
    for (const extent of shape) if (extent > this.#maxElements) this.#budget.take(extent, this.#maxElements)
    this.#budget.take(countOf(shape), this.#maxElements)
    return shape
  }

  /** Counts work beyond that of one step per element. */
  work(elements: number): void {
    this.#budget.take(elements)
  }

  /** The shape of an input of which no element has to be known. */
  dims(input: number): Dims {
    return this.node.dims(input) ?? unknown()
  }
}

/** The elements of an input. */
export interface Operand {
  readonly dtype: ValueDtype
  readonly shape: Shape
  readonly elements: Elements
}

export interface KnownOperand extends Operand {
  readonly elements: KnownElements
}

/** What a row gives: the values of the outputs. */
export type Made = Value | readonly (Value | undefined)[]

/** Which inputs have to be known: all, the first, none since their shapes say enough, or any one. */
export type Needs = 'all' | 'first' | 'shapes' | 'some'

/** An operator in the table. */
export interface OperatorRow {
  readonly operator: string
  /** First version of the operator set that the row is right for. */
  readonly since: number
  /** Dtypes of the first input for which the result is that of every engine, bit for bit. */
  readonly exact: ReadonlySet<ValueDtype>
  /** Further dtypes, of which results depend on the engine. */
  readonly rounded: ReadonlySet<ValueDtype>
  readonly needs: Needs
  readonly run: (call: Call) => Made
}

const setOf = (names: string): ReadonlySet<ValueDtype> => new Set(names.split(' ') as ValueDtype[])

export const FLOATS = setOf('float16 float32 float64')
export const INTEGERS = setOf('int8 int16 int32 int64 uint8 uint16 uint32 uint64')
export const NUMBERS: ReadonlySet<ValueDtype> = new Set([...FLOATS, ...INTEGERS])
/** Elements of these are moved and compared; arithmetic of bfloat16 differs between engines. */
export const ALL: ReadonlySet<ValueDtype> = new Set([...NUMBERS, 'bool', 'bfloat16'])
export const BOOL: ReadonlySet<ValueDtype> = new Set(['bool'])
export const NONE: ReadonlySet<ValueDtype> = new Set()

interface RowOptions {
  readonly since?: number
  readonly rounded?: ReadonlySet<ValueDtype>
  readonly needs?: Needs
}

export function row(
  operator: string,
  exact: ReadonlySet<ValueDtype>,
  run: OperatorRow['run'],
  { since = 1, rounded = NONE, needs = 'all' }: RowOptions = {},
): OperatorRow {
  return { operator, since, exact, rounded, needs, run }
}

/** A result whose elements are moved ones: of those that were symbolic some may be numbers. */
export function moved(dtype: Dtype, shape: Shape, elements: Elements): Value {
  if (!isPartial(elements)) return new Value(dtype, shape, elements)
  return Value.ofDims(dtype, shape, elements) ?? unknown()
}

/** Elements of all operands as arrays of one kind, so that one result can hold them. */
export function alignedElements(operands: readonly Operand[]): readonly Elements[] {
  const hasSymbols = operands.some(({ elements }) => isPartial(elements))
  return operands.map(({ elements }) => (hasSymbols ? dimsOf(elements) : elements))
}
