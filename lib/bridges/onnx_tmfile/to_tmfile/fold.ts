/** Values of nodes whose inputs are constant: arithmetic of shapes, and what exporters do to weights. */
import type { NodeView } from '../../../models/onnx/infer/node_view.js'
import {
  broadcastTo,
  joined,
  type Numbers,
  positiveAxis,
  type Shape,
  sizeOf,
  sliceRange,
  strided,
  stridesOf,
  taken,
  transposed,
  withRank,
} from './arrays.js'
import { Constant } from './constant.js'
import { refuse } from './refusal.js'

/** A node with constant inputs. */
export interface FoldedNode {
  readonly view: NodeView
  readonly inputs: readonly (Constant | undefined)[]
  /** Inferred shapes of the outputs. */
  readonly shapes: readonly Shape[]
}

/** The elements of each output, in the inferred shapes. */
type Rule = (node: FoldedNode) => readonly Numbers[]

/** Undefined for an operator that is not folded. */
export function fold(node: FoldedNode): readonly Numbers[] | undefined {
  const rule = node.view.domain === '' ? RULES.get(node.view.opType) : undefined
  if (!rule) return undefined
  const made = rule(node)
  const isWhole = made.every(({ length }, at) => length === sizeOf(node.shapes[at]!))
  return isWhole ? made : refuse('operands whose shapes do not belong together')
}

/** An operand that the operator needs. */
export function inputAt(inputs: FoldedNode['inputs'], at: number): Constant {
  return inputs[at] ?? refuse(`input ${at} is missing`)
}

const numbersAt = ({ inputs }: FoldedNode, at: number): Numbers => inputAt(inputs, at).numbers
const shapeAt = ({ inputs }: FoldedNode, at: number): Shape => inputAt(inputs, at).shape
const isInteger = ({ view }: FoldedNode): boolean => /^u?int|bool/.test(String(view.dtype(0)))
const axisAttribute = ({ view }: FoldedNode, absent: number, rank: number): number =>
  positiveAxis(view.int('axis', absent), rank) ?? refuse('axis is outside the rank')

/** Float32 where the first input has it, so that results are rounded alike. */
function result(node: FoldedNode, count: number): Numbers {
  const first = node.inputs.find((input) => input !== undefined)
  return first?.numbers instanceof Float32Array ? new Float32Array(count) : new Float64Array(count)
}

const one =
  (rule: (node: FoldedNode) => Numbers): Rule =>
  (node) => [rule(node)]

const map = (change: (value: number) => number): Rule => one((node) => numbersAt(node, 0).map(change))

/** Elements of the first `count` operands, broadcast to the shape of the result. */
function broadcastInputs(node: FoldedNode, count: number): Numbers[] {
  const shape = node.shapes[0]!
  return Array.from({ length: count }, (_, at) => {
    const own = withRank(shapeAt(node, at), shape.length)
    const isBroadcast =
      own.length === shape.length && own.every((extent, axis) => extent === 1 || extent === shape[axis])
    if (!isBroadcast) refuse(`input ${at} of shape [${shapeAt(node, at)}] does not broadcast to [${shape}]`)
    return broadcastTo(numbersAt(node, at), shapeAt(node, at), shape)
  })
}

type Operate = (one: number, other: number, isInteger: boolean) => number

/** An operator of any number of operands. */
const joint = (operate: Operate, count?: number): Rule =>
  one((node) => {
    const whole = isInteger(node)
    const [first, ...others] = broadcastInputs(node, count ?? node.inputs.length)
    const sum = result(node, sizeOf(node.shapes[0]!))
    sum.set(first!)
    for (const other of others)
      for (let at = 0; at < sum.length; at++) sum[at] = operate(sum[at]!, other[at]!, whole)
    return sum
  })

const combine = (operate: Operate): Rule => joint(operate, 2)

const same: Rule = one((node) => numbersAt(node, 0))

/** Half to even, as ONNX rounds. */
function roundEven(value: number): number {
  const floor = Math.floor(value)
  const rest = value - floor
  if (rest !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}

function erf(value: number): number {
  // Series near zero, continued fraction beyond: exact to about 1e-15.
  const x = Math.abs(value)
  if (x > 6) return Math.sign(value)
  if (x < 3) {
    let [term, sum] = [x, x]
    for (let n = 1; Math.abs(term) > 1e-17 * sum && n < 200; n++) {
      term *= -(x * x) / n
      sum += term / (2 * n + 1)
    }
    return (Math.sign(value) * 2 * sum) / Math.sqrt(Math.PI)
  }
  let fraction = 0
  for (let n = 60; n > 0; n--) fraction = n / 2 / (x + fraction)
  return Math.sign(value) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + fraction)))
}

function cast(node: FoldedNode): Numbers {
  const to = node.view.opType === 'CastLike' ? node.view.dtype(1) : CODE_NAMES.get(node.view.int('to', 0))
  const values = numbersAt(node, 0)
  if (to === undefined || to === 'float64') return Float64Array.from(values)
  if (to === 'float32' || to === 'float16' || to === 'bfloat16') return Float32Array.from(values)
  if (to === 'bool') return Float64Array.from(values, (value) => Number(value !== 0))
  return Float64Array.from(values, Math.trunc)
}

/** Codes of `Cast.to` that change elements. */
const CODE_NAMES: ReadonlyMap<number, string> = new Map([
  ...([1, 10, 16].map((code) => [code, 'float32']) as [number, string][]),
  ...([2, 3, 4, 5, 6, 7, 12, 13].map((code) => [code, 'integer']) as [number, string][]),
  [9, 'bool'],
  [11, 'float64'],
])

function slice(node: FoldedNode): Numbers {
  const { view, inputs } = node
  const shape = shapeAt(node, 0)
  const list = (name: string, input: number): readonly number[] | undefined =>
    view.opset < 10 ? view.ints(name) : inputs[input] && Array.from(inputs[input].numbers)
  const [starts, ends, axes] = [list('starts', 1), list('ends', 2), list('axes', 3)]
  const steps = view.opset < 10 ? undefined : list('steps', 4)
  const strides = stridesOf(shape)
  const distances = [...strides]
  let offset = 0
  for (const [at, start] of (starts ?? []).entries()) {
    const axis = positiveAxis(axes?.[at] ?? at, shape.length) ?? refuse('axis is outside the rank')
    const end = ends?.[at] ?? refuse('ends are missing')
    const range = sliceRange(shape[axis]!, start, end, steps?.[at] ?? 1)
    offset += range.start * strides[axis]!
    distances[axis] = strides[axis]! * range.step
  }
  return strided(numbersAt(node, 0), node.shapes[0]!, distances, offset)
}

function gather(node: FoldedNode): Numbers {
  const shape = shapeAt(node, 0)
  const axis = axisAttribute(node, 0, shape.length)
  const indices = numbersAt(node, 1).map((index) => (index < 0 ? index + shape[axis]! : index))
  if (indices.some((index) => index < 0 || index >= shape[axis]!)) refuse('an index is outside its axis')
  return taken(numbersAt(node, 0), shape, axis, indices)
}

function split(node: FoldedNode): readonly Numbers[] {
  const shape = shapeAt(node, 0)
  const axis = axisAttribute(node, 0, shape.length)
  let start = 0
  return node.shapes.map((part) => {
    const indices = Array.from({ length: part[axis]! }, (_, at) => start + at)
    start += part[axis]!
    return taken(numbersAt(node, 0), shape, axis, indices)
  })
}

function tile(node: FoldedNode): Numbers {
  let [numbers, shape] = [numbersAt(node, 0), [...shapeAt(node, 0)]]
  const repeats = numbersAt(node, 1)
  if (repeats.length !== shape.length) refuse(`${repeats.length} repeats for rank ${shape.length}`)
  for (const [axis, count] of repeats.entries()) {
    const extent = shape[axis]!
    const indices = Array.from({ length: extent * count }, (_, at) => at % extent)
    numbers = taken(numbers, shape, axis, indices)
    shape = shape.with(axis, extent * count)
  }
  return numbers
}

function where(node: FoldedNode): Numbers {
  const [condition, yes, no] = broadcastInputs(node, 3)
  return yes!.map((value, at) => (condition![at] ? value : no![at]!))
}

function range(node: FoldedNode): Numbers {
  const [start, step] = [numbersAt(node, 0)[0]!, numbersAt(node, 2)[0]!]
  return result(node, sizeOf(node.shapes[0]!)).map((_, at) => start + at * step)
}

/** How the elements of the reduced axes become one number. */
interface Reduction {
  readonly start: number
  readonly add: (sum: number, value: number) => number
  readonly finish?: (sum: number, count: number) => number
}

const reduction = ({ start, add, finish = (sum) => sum }: Reduction): Rule =>
  one((node) => {
    const { view, inputs } = node
    const shape = shapeAt(node, 0)
    const since = view.opType === 'ReduceSum' ? 13 : 18
    const given = view.opset < since ? view.ints('axes') : inputs[1] && Array.from(inputs[1].numbers)
    const all = shape.map((_, axis) => axis)
    if (!given?.length && view.int('noop_with_empty_axes', 0) !== 0) return numbersAt(node, 0)
    const axes = given?.length ? given.map((axis) => positiveAxis(axis, shape.length)!) : all
    const perm = [...all.filter((axis) => !axes.includes(axis)), ...[...axes].sort((a, b) => a - b)]
    const moved = transposed(numbersAt(node, 0), shape, perm)
    const count = sizeOf(axes.map((axis) => shape[axis]!))
    return result(node, sizeOf(node.shapes[0]!)).map((_, row) => {
      let sum = start
      for (let at = row * count; at < (row + 1) * count; at++) sum = add(sum, moved[at]!)
      return finish(sum, count)
    })
  })

function constantOfShape(node: FoldedNode): Numbers {
  const tensor = node.view.attribute('value')?.tensors[0]
  const value = tensor?.kind === 'dense' ? Constant.ofTensor('', tensor).numbers[0]! : 0
  const count = sizeOf(node.shapes[0]!)
  return (
    tensor === undefined || tensor.dtype === 'float32' ? new Float32Array(count) : new Float64Array(count)
  ).fill(value)
}

function clip(node: FoldedNode): Numbers {
  const isOld = node.view.opset < 11
  const bound = (at: number, name: string, absent: number): number =>
    isOld ? Number(node.view.attribute(name)?.value ?? absent) : (node.inputs[at]?.numbers[0] ?? absent)
  const [min, max] = [bound(1, 'min', -Infinity), bound(2, 'max', Infinity)]
  return numbersAt(node, 0).map((value) => Math.min(Math.max(value, min), max))
}

function quantize(node: FoldedNode): Numbers {
  const [scale, zero] = [numbersAt(node, 1), node.inputs[2]]
  const shape = shapeAt(node, 0)
  const axis = positiveAxis(node.view.int('axis', 1), shape.length) ?? 0
  const inner = scale.length > 1 ? sizeOf(shape.slice(axis + 1)) : 1
  if (zero && zero.dtype !== 'int8' && zero.dtype !== 'uint8') refuse(`codes of type ${zero.dtype}`)
  const isSigned = zero?.dtype === 'int8'
  const [low, high] = isSigned ? [-128, 127] : [0, 255]
  return Float64Array.from(numbersAt(node, 0), (value, at) => {
    const index = scale.length > 1 ? Math.floor(at / inner) % scale.length : 0
    const code = roundEven(value / scale[index]!) + (zero?.numbers[index] ?? zero?.numbers[0] ?? 0)
    return Math.min(Math.max(code, low), high)
  })
}

function oneHot(node: FoldedNode): Numbers {
  const shape = node.shapes[0]!
  const axis = axisAttribute(node, -1, shape.length)
  const depth = shape[axis]!
  const [indices, values] = [numbersAt(node, 0), numbersAt(node, 2)]
  if (values.length !== 2) refuse(`${values.length} values; OneHot has two`)
  const inner = sizeOf(shape.slice(axis + 1))
  const made = new Float64Array(sizeOf(shape)).fill(values[0]!)
  for (const [at, index] of indices.entries()) {
    const place = index < 0 ? index + depth : index
    if (place < 0 || place >= depth) continue
    made[(Math.floor(at / inner) * depth + place) * inner + (at % inner)] = values[1]!
  }
  return made
}

function matMul(node: FoldedNode): Numbers {
  const [left, right] = [shapeAt(node, 0), shapeAt(node, 1)]
  if (left.length < 2 || right.length !== 2) refuse('a constant product that is not folded')
  const [rows, depth, columns] = [sizeOf(left.slice(0, -1)), left.at(-1)!, right[1]!]
  const [one, other] = [numbersAt(node, 0), numbersAt(node, 1)]
  return result(node, rows * columns).map((_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns]
    let sum = 0
    for (let k = 0; k < depth; k++) sum += one[row * depth + k]! * other[k * columns + column]!
    return sum
  })
}

function pad(node: FoldedNode): Numbers {
  const { view, inputs } = node
  const shape = shapeAt(node, 0)
  const mode = view.text('mode') ?? 'constant'
  if (mode !== 'constant' || inputs[3]) refuse('a constant Pad that is not folded')
  const pads = view.opset < 11 ? view.ints('pads')! : Array.from(numbersAt(node, 1))
  const value = view.opset < 11 ? Number(view.attribute('value')?.value ?? 0) : (inputs[2]?.numbers[0] ?? 0)
  const [output, strides] = [node.shapes[0]!, stridesOf(node.shapes[0]!)]
  const made = result(node, sizeOf(output)).fill(value)
  const own = stridesOf(shape)
  for (const [at, element] of numbersAt(node, 0).entries()) {
    const index = own.map((stride, axis) => (Math.floor(at / stride) % shape[axis]!) + pads[axis]!)
    if (index.every((place, axis) => place >= 0 && place < output[axis]!))
      made[index.reduce((sum, place, axis) => sum + place * strides[axis]!, 0)] = element
  }
  return made
}

const truth = (holds: (one: number, other: number) => boolean): Rule =>
  one((node) => {
    const [left, right] = broadcastInputs(node, 2)
    return Float64Array.from(left!, (value, at) => Number(holds(value, right![at]!)))
  })

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...['Identity', 'Reshape', 'Flatten', 'Squeeze', 'Unsqueeze', 'Dropout'].map((name): [string, Rule] => [
    name,
    same,
  ]),
  ['Cast', one(cast)],
  ['CastLike', one(cast)],
  ['ConstantOfShape', one(constantOfShape)],
  ['Slice', one(slice)],
  ['Gather', one(gather)],
  ['Split', split],
  ['Tile', one(tile)],
  ['Expand', one((node) => broadcastTo(numbersAt(node, 0), shapeAt(node, 0), node.shapes[0]!))],
  [
    'Concat',
    one((node) => {
      const axis = axisAttribute(node, 1, shapeAt(node, 0).length)
      const parts = node.inputs.map((_, at) => [numbersAt(node, at), shapeAt(node, at)] as const)
      return joined(parts, axis)
    }),
  ],
  [
    'Transpose',
    one((node) => {
      const rank = shapeAt(node, 0).length
      const perm = node.view.ints('perm') ?? Array.from({ length: rank }, (_, axis) => rank - 1 - axis)
      return transposed(numbersAt(node, 0), shapeAt(node, 0), perm)
    }),
  ],
  ['Where', one(where)],
  ['Range', one(range)],
  ['Pad', one(pad)],
  ['OneHot', one(oneHot)],
  ['MatMul', one(matMul)],
  ['Clip', one(clip)],
  ['QuantizeLinear', one(quantize)],
  ['Add', combine((one, other) => one + other)],
  ['Sum', joint((one, other) => one + other)],
  ['Sub', combine((one, other) => one - other)],
  ['Mul', combine((one, other) => one * other)],
  ['Div', combine((one, other, whole) => (whole ? Math.trunc(one / other) : one / other))],
  ['Mod', combine((one, other) => one - Math.floor(one / other) * other)],
  ['Pow', combine((one, other) => one ** other)],
  ['Min', joint((one, other) => Math.min(one, other))],
  ['Max', joint((one, other) => Math.max(one, other))],
  ['And', truth((one, other) => one !== 0 && other !== 0)],
  ['Or', truth((one, other) => one !== 0 || other !== 0)],
  ['Xor', truth((one, other) => (one !== 0) !== (other !== 0))],
  ['Equal', truth((one, other) => one === other)],
  ['Greater', truth((one, other) => one > other)],
  ['GreaterOrEqual', truth((one, other) => one >= other)],
  ['Less', truth((one, other) => one < other)],
  ['LessOrEqual', truth((one, other) => one <= other)],
  ['Not', map((value) => Number(value === 0))],
  ['Neg', map((value) => -value)],
  ['Abs', map(Math.abs)],
  ['Sign', map(Math.sign)],
  ['Floor', map(Math.floor)],
  ['Ceil', map(Math.ceil)],
  ['Round', map(roundEven)],
  ['Sqrt', map(Math.sqrt)],
  ['Exp', map(Math.exp)],
  ['Log', map(Math.log)],
  ['Sin', map(Math.sin)],
  ['Cos', map(Math.cos)],
  ['Tan', map(Math.tan)],
  ['Tanh', map(Math.tanh)],
  ['Erf', map(erf)],
  ['Reciprocal', map((value) => 1 / value)],
  ['Relu', map((value) => Math.max(value, 0))],
  ['Sigmoid', map((value) => 1 / (1 + Math.exp(-value)))],
  ['ReduceSum', reduction({ start: 0, add: (sum, value) => sum + value })],
  [
    'ReduceMean',
    reduction({ start: 0, add: (sum, value) => sum + value, finish: (sum, count) => sum / count }),
  ],
  ['ReduceProd', reduction({ start: 1, add: (product, value) => product * value })],
  ['ReduceMax', reduction({ start: -Infinity, add: (most, value) => Math.max(most, value) })],
  ['ReduceMin', reduction({ start: Infinity, add: (least, value) => Math.min(least, value) })],
  ['ReduceL1', reduction({ start: 0, add: (sum, value) => sum + Math.abs(value) })],
  ['ReduceL2', reduction({ start: 0, add: (sum, value) => sum + value * value, finish: Math.sqrt })],
  ['ReduceSumSquare', reduction({ start: 0, add: (sum, value) => sum + value * value })],
])
