/** Casts and quantization. */
import { DTYPES } from '../../../dtype/dtypes.js'
import { roundEven } from '../../../dtype/round_even.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { countOf, type Shape } from './arrays.js'
import { ALL, type Call, INTEGERS, moved, type OperatorRow, row, unknown } from './call.js'
import { type Dim, isKnown } from './dims.js'
import {
  type BigIntArray,
  filled,
  isBig,
  isPartial,
  isValueDtype,
  type KnownElements,
  type NumberArray,
  Value,
  type ValueDtype,
} from './value.js'

function cast(call: Call): Value {
  const { dtype: from, shape, elements } = call.input(0)
  const to = call.node.opType === 'CastLike' ? call.node.dtype(1) : DTYPE_OF_CODE.get(call.node.int('to', 0))
  if (!isValueDtype(to)) return unknown()
  call.shape(shape)
  if (from === to) return moved(to, shape, elements)
  if (isPartial(elements)) return moved(to, shape, elements.map(dimCast(to)))
  return new Value(
    to,
    shape,
    isBig(from) ? fromBig(elements as BigIntArray, to) : fromNumbers(elements, from, to),
  )
}

/** Symbols are integers, and stay. */
function dimCast(to: ValueDtype): (dim: Dim) => Dim {
  if (INTEGERS.has(to)) return (dim) => (isKnown(dim) ? Math.trunc(dim) + 0 : dim)
  if (to === 'bool') return (dim) => (isKnown(dim) ? Number(dim !== 0) : null)
  return (dim) => (isKnown(dim) && to === 'float32' ? Math.fround(dim) : dim)
}

/** Integers wrap to fewer bits. */
function fromBig(values: BigIntArray, to: ValueDtype): KnownElements {
  const { length } = values
  if (isBig(to)) return filled(to, length, (at) => values[at]!)
  if (to === 'bool') return filled(to, length, (at) => Number(values[at] !== 0n))
  if (INTEGERS.has(to)) return filled(to, length, (at) => Number(BigInt.asIntN(32, values[at]!)))
  if (to === 'float64') return filled(to, length, (at) => Number(values[at]))
  return halves(to, length, (at) => doubleOf(values[at]!))
}

/** A double that is rounded to a narrower float as the integer is: bits below its last one set that. */
function doubleOf(value: bigint): number {
  const size = value < 0n ? -value : value
  if (size < 2n ** 53n) return Number(value)
  const sticky = (size & 0x7ffn) === 0n ? 0n : 1n << 11n
  const double = Number(((size >> 11n) << 11n) | sticky)
  return value < 0n ? -double : double
}

function fromNumbers(elements: KnownElements, from: ValueDtype, to: ValueDtype): KnownElements {
  const values = elements as NumberArray
  const { length } = values
  if (to === 'bool') return filled(to, length, (at) => Number(values[at] !== 0))
  if (!INTEGERS.has(to))
    return to === 'float64'
      ? filled(to, length, (at) => values[at]!)
      : halves(to, length, (at) => values[at]!)
  const isReal = !INTEGERS.has(from) && from !== 'bool'
  const truncated = isReal ? truncator(to) : (value: number): number => value
  if (isBig(to)) return filled(to, length, (at) => BigInt(truncated(values[at]!)))
  return filled(to, length, (at) => truncated(values[at]!))
}

/** Numbers outside the integers, and NaN, become what the engine chooses. */
function truncator(to: ValueDtype): (value: number) => number {
  const { min, max } = DTYPES[to].limits!
  const [least, beyond] = [Number(min), Number(max) + (isBig(to) ? 0 : 1)]
  return (value) => {
    const whole = Math.trunc(value)
    return whole >= least && whole < beyond ? whole : unknown()
  }
}

/** Engines round to 16 bits through float32, which may differ from the standard's one rounding; such values stay unknown. */
function halves(to: ValueDtype, length: number, valueAt: (at: number) => number): KnownElements {
  const once = filled(to, length, valueAt)
  if (to === 'float32') return once
  const twice = filled(to, length, (at) => Math.fround(valueAt(at)))
  return once.every((value, at) => Object.is(value, twice[at])) ? once : unknown()
}

/** Index of the scale of each element: one for all, or one for each index of an axis. */
function scaleIndex(call: Call, own: Shape, count: number): (at: number) => number {
  if (call.node.int('block_size', 0) !== 0) return unknown()
  if (count === 1) return () => 0
  const axis = call.axis(1, own.length)
  if (own[axis] !== count) return unknown()
  const inner = countOf(own.slice(axis + 1))
  return (at) => Math.floor(at / inner) % count
}

function dequantize(call: Call): Value {
  const [codes, scale] = [call.known(0), call.known(1)]
  const zero = call.has(2) ? call.known(2) : undefined
  const isRight = scale.dtype === 'float32' && call.node.int('output_dtype', 0) === 0
  if (!isRight || scale.shape.length > 1 || (zero && zero.elements.length !== scale.elements.length))
    return unknown()
  const indexOf = scaleIndex(call, codes.shape, scale.elements.length)
  const [values, scales] = [codes.elements as NumberArray, scale.elements as Float32Array]
  const zeros = zero?.elements as NumberArray | undefined
  call.shape(codes.shape)
  const real = (at: number): number =>
    Math.fround(values[at]! - (zeros?.[indexOf(at)] ?? 0)) * scales[indexOf(at)]!
  return new Value('float32', codes.shape, filled('float32', values.length, real))
}

const CODES: ReadonlySet<unknown> = new Set(['int8', 'uint8', 'int16', 'uint16'])

function quantize(call: Call): Value {
  const [data, scale] = [call.known(0), call.known(1)]
  const zero = call.has(2) ? call.known(2) : undefined
  const code = call.node.int('output_dtype', 0)
  const dtype = zero?.dtype ?? (code === 0 ? 'uint8' : DTYPE_OF_CODE.get(code))
  const isRight = CODES.has(dtype) && scale.dtype === 'float32' && scale.shape.length < 2
  if (!isRight || (zero && zero.elements.length !== scale.elements.length)) return unknown()
  const { min, max } = DTYPES[dtype as ValueDtype].limits!
  const indexOf = scaleIndex(call, data.shape, scale.elements.length)
  const [values, scales] = [data.elements as Float32Array, scale.elements as Float32Array]
  const zeros = zero?.elements as NumberArray | undefined
  call.shape(data.shape)
  const codeOf = (at: number): number => {
    const quotient = roundEven(Math.fround(values[at]! / scales[indexOf(at)]!))
    const whole = quotient + (zeros?.[indexOf(at)] ?? 0)
    return Number.isNaN(whole) ? unknown() : Math.min(Math.max(whole, Number(min)), Number(max))
  }
  return new Value(dtype!, data.shape, filled(dtype as ValueDtype, values.length, codeOf))
}

export const CONVERSIONS: readonly OperatorRow[] = [
  row('Cast', ALL, cast),
  row('CastLike', ALL, cast, { needs: 'first' }),
  row('DequantizeLinear', new Set(['int8', 'uint8', 'int16', 'uint16', 'int32']), dequantize),
  row('QuantizeLinear', new Set(['float32']), quantize),
]
