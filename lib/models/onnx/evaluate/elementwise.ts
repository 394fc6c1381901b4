/** Operators that compute each element alone, or from the elements of operands that are broadcast. */
import { DTYPES } from '../../../dtype/dtypes.js'
import { roundEven } from '../../../dtype/round_even.js'
import { broadcastShape, broadcastTo, countOf, sameShape } from './arrays.js'
import {
  ALL,
  BOOL,
  type Call,
  FLOATS,
  INTEGERS,
  moved,
  NONE,
  NUMBERS,
  type Operand,
  type OperatorRow,
  row,
  unknown,
} from './call.js'
import { type Dim, differenceOf, isKnown, productOf, quotientOf, sumOf } from './dims.js'
import { erf } from './erf.js'
import {
  type BigIntArray,
  dimsOf,
  type Elements,
  filled,
  hasNegativeZero,
  isBig,
  isPartial,
  type NumberArray,
  Value,
  type ValueDtype,
} from './value.js'

/** What is computed of two elements. Integers wrap, and floats are rounded, when the result is stored. */
interface Operation {
  readonly float?: (one: number, other: number) => number
  /** Of bool and integers below 64 bits. Default: `float`. */
  readonly int?: (one: number, other: number) => number
  readonly big?: (one: bigint, other: bigint) => number | bigint
  /** Of integers of which one may be symbolic or unknown. */
  readonly dims?: (one: Dim, other: Dim) => Dim
  /** Dtype of the result; default that of the operands. */
  readonly result?: ValueDtype
}

/** Two arrays of equal length. */
function combined(operation: Operation, dtype: ValueDtype, one: Elements, other: Elements): Elements {
  const { float, int = float, big, dims, result = dtype } = operation
  const isInteger = INTEGERS.has(dtype)
  if (isPartial(one) || isPartial(other)) {
    const [left, right] = [dimsOf(one), dimsOf(other)]
    const apply = isInteger ? dims : float && realDims(float, dtype)
    return apply ? left.map((dim, at) => apply(dim, right[at]!)) : unknown()
  }
  if (isBig(dtype)) {
    const [left, right] = [one as BigIntArray, other as BigIntArray]
    return big ? filled(result, left.length, (at) => big(left[at]!, right[at]!)) : unknown()
  }
  const apply = FLOATS.has(dtype) ? float : int
  const [left, right] = [one as NumberArray, other as NumberArray]
  return apply ? filled(result, left.length, (at) => apply(left[at]!, right[at]!)) : unknown()
}

/** Of floats, which came from integers and may be symbols, arithmetic follows numbers alone. */
function realDims(float: (one: number, other: number) => number, dtype: ValueDtype) {
  return (one: Dim, other: Dim): Dim => {
    if (!isKnown(one) || !isKnown(other)) return null
    const value = float(one, other)
    return dtype === 'float32' ? Math.fround(value) : value
  }
}

/** Operands in one shape. Before version 7 the second is placed from an axis on, where the node asks for it. */
function broadcast(call: Call, given: readonly Operand[]): readonly Operand[] {
  const operands = call.opset < 7 && given.length === 2 ? placed(call, given) : given
  const shape = call.shape(broadcastShape(operands.map((operand) => operand.shape)) ?? unknown())
  return operands.map(({ dtype, shape: own, elements }) => ({
    dtype,
    shape,
    elements: broadcastTo(elements, own, shape),
  }))
}

function placed({ node }: Call, operands: readonly Operand[]): readonly Operand[] {
  const [one, other] = operands as [Operand, Operand]
  if (sameShape(one.shape, other.shape)) return operands
  const after = one.shape.length - other.shape.length
  const axis = node.int('axis', after)
  if (node.int('broadcast', 0) === 0 || axis < 0 || axis > after) return unknown()
  return [one, { ...other, shape: [...other.shape, ...Array<number>(after - axis).fill(1)] }]
}

/** Any number of operands, from the first to the last. */
function variadic(operation: Operation, count?: number): OperatorRow['run'] {
  return (call) => {
    const given = call.operands
    const { dtype } = given[0]!
    if (given.length !== (count ?? given.length) || given.some((each) => each.dtype !== dtype)) unknown()
    const operands = broadcast(call, given)
    const { shape } = operands[0]!
    call.work(countOf(shape) * operands.length)
    // Sums of float16 are float32 until the last is made.
    const inner = dtype === 'float16' && operands.length > 2 ? 'float32' : dtype
    const elements = operands
      .map((operand) => operand.elements)
      .reduce((sum, each) => combined(operation, inner, sum, each))
    return moved(operation.result ?? dtype, shape, inner === dtype ? elements : rounded(dtype, elements))
  }
}

function rounded(dtype: ValueDtype, elements: Elements): Elements {
  const values = elements as NumberArray
  return filled(dtype, values.length, (at) => values[at]!)
}

const binary = (operation: Operation): OperatorRow['run'] => variadic(operation, 2)

interface Change {
  readonly float?: (value: number) => number
  /** Of bool and integers below 64 bits. Default: `float`. */
  readonly int?: (value: number) => number
  readonly big?: (value: bigint) => bigint
  readonly result?: ValueDtype
  /** True: symbols, which are integers, stay. */
  readonly keepsIntegers?: boolean
}

function unary({ float, int = float, big, result, keepsIntegers = false }: Change): OperatorRow['run'] {
  return (call) => {
    const { dtype, shape, elements } = call.input(0)
    call.shape(shape)
    const made = result ?? dtype
    const apply = FLOATS.has(dtype) ? float : int
    if (isPartial(elements)) {
      if (!keepsIntegers || !apply) return unknown()
      return moved(
        made,
        shape,
        elements.map((dim) => (isKnown(dim) ? apply(dim) : dim)),
      )
    }
    const { length } = elements
    if (isBig(dtype)) {
      const values = elements as BigIntArray
      return new Value(made, shape, big ? filled(made, length, (at) => big(values[at]!)) : unknown())
    }
    const values = elements as NumberArray
    return new Value(made, shape, apply ? filled(made, length, (at) => apply(values[at]!)) : unknown())
  }
}

const equalOnly = (one: Dim, other: Dim): Dim => (one === other ? one : null)
const isNegative = (dim: Dim): boolean => isKnown(dim) && dim < 0

/** For two numbers, else what `symbolic` says. */
const dimsBy =
  (numbers: (one: number, other: number) => Dim, symbolic: (one: Dim, other: Dim) => Dim) =>
  (one: Dim, other: Dim): Dim =>
    isKnown(one) && isKnown(other) ? numbers(one, other) : symbolic(one, other)

/** A symbol is the size of a dimension, so that a negative number is another one. */
const equalDims = dimsBy(
  (one, other) => Number(one === other),
  (one, other) => (one !== null && one === other ? 1 : isNegative(one) || isNegative(other) ? 0 : null),
)

/** Engines stop at a division by 0, and at that of the least integer by -1. */
function quotient(one: number, other: number): number {
  const isOutside = other === 0 || (other === -1 && one === -(2 ** 31))
  return isOutside ? unknown() : Math.trunc(one / other)
}

function bigQuotient(one: bigint, other: bigint): bigint {
  const isOutside = other === 0n || (other === -1n && one === -(2n ** 63n))
  return isOutside ? unknown() : one / other
}

/** Of symbols only a quotient without remainder is certain. */
const quotientDims = dimsBy((one, other) => (other === 0 ? null : Math.trunc(one / other) + 0), quotientOf)

/** With the sign of the divisor, as Python. */
const floorMod = (one: number, other: number): number => {
  const rest = one % (other || unknown())
  return rest !== 0 && rest < 0 !== other < 0 ? rest + other : rest
}
const bigFloorMod = (one: bigint, other: bigint): bigint => {
  const rest = one % (other || unknown())
  return rest !== 0n && rest < 0n !== other < 0n ? rest + other : rest
}

function mod(call: Call) {
  const isC = call.node.int('fmod', 0) !== 0
  return binary(
    isC
      ? {
          float: (one, other) => one % other,
          int: (one, other) => one % (other || unknown()),
          big: (one, other) => one % (other || unknown()),
        }
      : { int: floorMod, big: bigFloorMod },
  )(call)
}

/** A square is exact, and integers below 2^53 are; everything else is rounded by the engine's own function. */
function pow(call: Call) {
  const [base, exponent] = [call.known(0), call.known(1)]
  const [one, other] = broadcast(call, [base, exponent]) as [Operand, Operand]
  const powers = Array.from(other.elements as ArrayLike<number | bigint>, Number)
  const bases = Array.from(one.elements as ArrayLike<number | bigint>, Number)
  if (INTEGERS.has(base.dtype)) {
    const results = bases.map((value, at) => value ** powers[at]!)
    const { min, max } = DTYPES[base.dtype].limits!
    const isHeld = (value: number): boolean => Number.isSafeInteger(value) && value >= min && value <= max
    const isExact = results.every(isHeld) && bases.every(Number.isSafeInteger)
    if (!isExact || !INTEGERS.has(exponent.dtype)) return unknown()
    const isBigInt = isBig(base.dtype)
    return new Value(
      base.dtype,
      one.shape,
      filled(base.dtype, results.length, (at) => (isBigInt ? BigInt(results[at]!) : results[at]!)),
    )
  }
  const isSquare = exponent.elements.length === 1 && powers[0] === 2
  if (!isSquare && !call.rounding) return unknown()
  const valueAt = (at: number): number => (isSquare ? bases[at]! * bases[at]! : bases[at]! ** powers[at]!)
  return new Value(base.dtype, one.shape, filled(base.dtype, bases.length, valueAt))
}

function bitShift(call: Call) {
  const width = DTYPES[call.known(0).dtype].bits
  const direction = call.node.text('direction')
  if (direction !== 'LEFT' && direction !== 'RIGHT') return unknown()
  const isLeft = direction === 'LEFT'
  const checked = (count: number): number => (count < width ? count : unknown())
  return binary({
    int: (one, other) => (isLeft ? one << checked(other) : one >>> checked(other)),
    big: (one, other) => {
      const count = BigInt(checked(Number(other)))
      return isLeft ? one << count : one >> count
    },
  })(call)
}

/** Bounds that are not given are the largest finite numbers, so that infinity does not stay. */
function clip(call: Call) {
  const { dtype, elements } = call.known(0)
  const { min, max } = DTYPES[dtype].limits!
  const bound = (at: number, name: string, absent: number | bigint): number | bigint => {
    if (call.opset >= 11) return call.has(at) ? call.scalar(at) : absent
    const value = call.node.attribute(name)?.value
    return typeof value === 'number' ? value : absent
  }
  const [low, high] = [bound(1, 'min', min), bound(2, 'max', max)]
  if (Number.isNaN(low) || Number.isNaN(high)) return unknown()
  // onnxruntime keeps infinity in float16.
  if (dtype === 'float16' && (elements as NumberArray).some((value) => Math.abs(value) === Infinity))
    return unknown()
  const cut = <Kind extends number | bigint>(value: Kind): Kind => {
    const raised = value < low ? (low as Kind) : value
    return raised > high ? (high as Kind) : raised
  }
  return unary({ float: cut, big: cut })(call)
}

function isInfinite(call: Call) {
  const [up, down] = [call.node.int('detect_positive', 1), call.node.int('detect_negative', 1)]
  const float = (value: number): number =>
    Number((value === Infinity && up !== 0) || (value === -Infinity && down !== 0))
  return unary({ float, result: 'bool' })(call)
}

function where(call: Call) {
  const given = [call.input(0), call.input(1), call.input(2)]
  const { dtype } = given[1]!
  if (given[0]!.dtype !== 'bool' || given[2]!.dtype !== dtype) unknown()
  const [condition, yes, no] = broadcast(call, given) as [Operand, Operand, Operand]
  const { shape } = yes
  if (given.some(({ elements }) => isPartial(elements))) {
    const [conditions, left, right] = [condition, yes, no].map(({ elements }) => dimsOf(elements))
    const choose = (known: Dim, at: number): Dim =>
      known === null ? equalOnly(left![at]!, right![at]!) : (known === 0 ? right! : left!)[at]!
    return moved(dtype, shape, conditions!.map(choose))
  }
  const choices = condition.elements as Uint8Array
  const [left, right] = [yes.elements as NumberArray, no.elements as NumberArray]
  // onnxruntime makes a chosen -0 to 0.
  if (!call.rounding && (hasNegativeZero(left) || hasNegativeZero(right))) return unknown()
  return new Value(
    dtype,
    shape,
    filled(dtype, left.length, (at) => (choices[at] ? left[at]! : right[at]!)),
  )
}

/** Of two zeros with different signs engines take either. */
const extreme =
  (pick: (one: number, other: number) => number) =>
  (one: number, other: number): number =>
    one === 0 && other === 0 && !Object.is(one, other) ? unknown() : pick(one, other)

/** Engines give 0 for -0, and differ for NaN. */
function signOf(value: number): number {
  if (Number.isNaN(value)) return unknown()
  return value > 0 ? 1 : value < 0 ? -1 : 0
}

function mean(call: Call): Value {
  const { dtype, shape, elements } = variadic({ float: (one, other) => one + other })(call) as Value
  const count = call.node.inputs.length
  const sums = elements as NumberArray
  return new Value(
    dtype,
    shape,
    filled(dtype as ValueDtype, sums.length, (at) => sums[at]! / count),
  )
}

const compared = (holds: (one: number | bigint, other: number | bigint) => boolean): Operation => {
  const apply = (one: number | bigint, other: number | bigint): number => Number(holds(one, other))
  return { float: apply, big: apply, result: 'bool' }
}

/** Rows of operators whose results differ in the last bits from engine to engine. */
const real = (operator: string, float: (value: number) => number): OperatorRow =>
  row(operator, NONE, unary({ float }), { rounded: FLOATS })

const largest = (one: bigint, other: bigint): bigint => (one > other ? one : other)
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other)

const exact = (operator: string, dtypes: ReadonlySet<ValueDtype>, change: Change): OperatorRow =>
  row(operator, dtypes, unary(change))
const pairs = (operator: string, dtypes: ReadonlySet<ValueDtype>, operation: Operation): OperatorRow =>
  row(operator, dtypes, binary(operation))

export const ELEMENTWISE: readonly OperatorRow[] = [
  pairs('Add', NUMBERS, { float: (a, b) => a + b, big: (a, b) => a + b, dims: sumOf }),
  pairs('Sub', NUMBERS, { float: (a, b) => a - b, big: (a, b) => a - b, dims: differenceOf }),
  pairs('Mul', NUMBERS, { float: (a, b) => a * b, int: Math.imul, big: (a, b) => a * b, dims: productOf }),
  pairs('Div', NUMBERS, { float: (a, b) => a / b, int: quotient, big: bigQuotient, dims: quotientDims }),
  row('Mod', NUMBERS, mod),
  row('Pow', NUMBERS, pow),
  row('BitShift', new Set(['uint8', 'uint16', 'uint32', 'uint64']), bitShift),
  pairs('BitwiseAnd', INTEGERS, { int: (a, b) => a & b, big: (a, b) => a & b }),
  pairs('BitwiseOr', INTEGERS, { int: (a, b) => a | b, big: (a, b) => a | b }),
  pairs('BitwiseXor', INTEGERS, { int: (a, b) => a ^ b, big: (a, b) => a ^ b }),
  exact('BitwiseNot', INTEGERS, { int: (value) => ~value, big: (value) => ~value }),
  pairs('And', BOOL, { int: (a, b) => a & b }),
  pairs('Or', BOOL, { int: (a, b) => a | b }),
  pairs('Xor', BOOL, { int: (a, b) => a ^ b }),
  exact('Not', BOOL, { int: (value) => 1 - value }),
  pairs('Equal', ALL, { ...compared((a, b) => a === b), dims: equalDims }),
  pairs(
    'Greater',
    NUMBERS,
    compared((a, b) => a > b),
  ),
  pairs(
    'GreaterOrEqual',
    NUMBERS,
    compared((a, b) => a >= b),
  ),
  pairs(
    'Less',
    NUMBERS,
    compared((a, b) => a < b),
  ),
  pairs(
    'LessOrEqual',
    NUMBERS,
    compared((a, b) => a <= b),
  ),
  row(
    'Min',
    NUMBERS,
    variadic({ float: extreme(Math.min), int: Math.min, big: least, dims: dimsBy(Math.min, equalOnly) }),
  ),
  row(
    'Max',
    NUMBERS,
    variadic({ float: extreme(Math.max), int: Math.max, big: largest, dims: dimsBy(Math.max, equalOnly) }),
  ),
  row('Sum', FLOATS, variadic({ float: (a, b) => a + b })),
  row('Mean', NONE, mean, { rounded: FLOATS }),
  row('Where', ALL, where),
  row('Clip', NUMBERS, clip),
  row('IsInf', FLOATS, isInfinite),
  exact('IsNaN', FLOATS, { float: (value) => Number(Number.isNaN(value)), result: 'bool' }),
  exact('Neg', NUMBERS, { float: (value) => -value, big: (value) => -value }),
  exact('Abs', NUMBERS, { float: Math.abs, big: (value) => (value < 0n ? -value : value) }),
  exact('Sign', NUMBERS, {
    float: signOf,
    int: Math.sign,
    big: (value) => (value > 0n ? 1n : value < 0n ? -1n : 0n),
  }),
  exact('Relu', NUMBERS, { float: (value) => (value < 0 ? 0 : value), big: (value) => largest(value, 0n) }),
  exact('Floor', FLOATS, { float: Math.floor, keepsIntegers: true }),
  exact('Ceil', FLOATS, { float: Math.ceil, keepsIntegers: true }),
  exact('Round', FLOATS, { float: roundEven, keepsIntegers: true }),
  exact('Sqrt', FLOATS, { float: Math.sqrt }),
  exact('Reciprocal', FLOATS, { float: (value) => 1 / value }),
  real('Exp', Math.exp),
  real('Log', Math.log),
  real('Sin', Math.sin),
  real('Cos', Math.cos),
  real('Tan', Math.tan),
  real('Asin', Math.asin),
  real('Acos', Math.acos),
  real('Atan', Math.atan),
  real('Sinh', Math.sinh),
  real('Cosh', Math.cosh),
  real('Tanh', Math.tanh),
  real('Erf', erf),
  real('Sigmoid', (value) => 1 / (1 + Math.exp(-value))),
]
