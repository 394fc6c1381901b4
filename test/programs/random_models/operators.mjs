/** What test/programs/onnx_random.mjs draws: functions that add one node, or a few that belong together, to a graph. */
import { codeOf, DTYPES, float, int, ints, isFloat, isNumber, sizeOf } from './graph.mjs'

const UNARY = [
  'Relu',
  'Neg',
  'Abs',
  'Sigmoid',
  'Floor',
  'Ceil',
  'Round',
  'Sign',
  'Identity',
  'Tanh',
  'Sqrt',
  'Reciprocal',
  'Dropout',
  'Elu',
]
const BINARY = ['Add', 'Sub', 'Mul', 'Div', 'Add', 'Mul', 'Min', 'Max', 'Sum', 'Pow']
const REDUCE = ['ReduceMax', 'ReduceMin', 'ReduceSum', 'ReduceMean', 'ReduceProd']

function unary(draw) {
  const x = draw.value(isFloat)
  return x && draw.node(draw.pick(UNARY), [x], x)
}

function negation(draw) {
  const x = draw.value(isNumber)
  return x && draw.node('Neg', [draw.node('Neg', [x], x)], x)
}

function not(draw) {
  const x = draw.value(({ dtype }) => dtype === 'bool')
  return x && draw.node('Not', [x], x)
}

function broadcast(one, other) {
  const rank = Math.max(one.length, other.length)
  const at = (shape, axis) => shape[axis - rank + shape.length] ?? 1
  const shape = []
  for (let axis = 0; axis < rank; axis++) {
    const [left, right] = [at(one, axis), at(other, axis)]
    if (left !== right && left !== 1 && right !== 1) return undefined
    shape.push(left === 1 ? right : left)
  }
  return shape
}

/** Two values, or one and a constant, in either order. */
function operands(draw, x) {
  const other = draw.chance(0.6)
    ? draw.operand(x.dtype, x.shape)
    : draw.value((each) => each.dtype === x.dtype && broadcast(each.shape, x.shape) !== undefined)
  if (!other) return undefined
  const shape = broadcast(x.shape, other.shape)
  return { inputs: draw.chance(0.5) ? [x, other] : [other, x], shape }
}

function binary(draw) {
  const x = draw.value(isNumber)
  const found = x && operands(draw, x)
  if (!found) return undefined
  const opType = draw.pick(BINARY)
  const isOdd = !isFloat(x) && ['Sum', 'Pow', 'Div'].includes(opType)
  return draw.node(isOdd ? 'Add' : opType, found.inputs, { dtype: x.dtype, shape: found.shape })
}

function logic(draw) {
  const x = draw.value(({ dtype }) => dtype === 'bool')
  const found = x && operands(draw, x)
  return (
    found && draw.node(draw.pick(['And', 'Or', 'Xor']), found.inputs, { dtype: 'bool', shape: found.shape })
  )
}

function comparison(draw) {
  const x = draw.value(isNumber)
  const found = x && operands(draw, x)
  return (
    found &&
    draw.node(draw.pick(['Less', 'Greater', 'Equal']), found.inputs, { dtype: 'bool', shape: found.shape })
  )
}

function where(draw) {
  // onnxruntime loses the sign of -0 in Where, in some forms of it.
  const x = draw.value(({ dtype }) => !dtype.startsWith('float'))
  if (!x) return undefined
  const condition = draw.chance(0.5)
    ? draw.operand('bool', x.shape)
    : draw.value((each) => each.dtype === 'bool' && broadcast(each.shape, x.shape) !== undefined)
  if (!condition) return undefined
  const other = draw.chance(0.4) ? x : draw.operand(x.dtype, x.shape)
  const shape = broadcast(broadcast(condition.shape, x.shape), other.shape)
  return draw.node('Where', draw.chance(0.5) ? [condition, x, other] : [condition, other, x], {
    dtype: x.dtype,
    shape,
  })
}

function cast(draw) {
  // A cast to an integer of what is not finite is the engine's choice.
  const x = draw.value()
  const targets = DTYPES.filter((dtype) => !/float/.test(x.dtype) || /float|bool/.test(dtype))
  const dtype = draw.pick(targets)
  const first = draw.node('Cast', [x], { dtype, shape: x.shape }, { to: int(codeOf(dtype)) })
  const back = targets.includes(x.dtype) && draw.chance(0.4)
  return back ? draw.node('Cast', [first], x, { to: int(codeOf(x.dtype)) }) : first
}

function transpose(draw) {
  const x = draw.value(({ shape }) => shape.length > 1)
  if (!x) return undefined
  const perm = shuffled(draw, x.shape.length)
  return draw.node(
    'Transpose',
    [x],
    { dtype: x.dtype, shape: perm.map((axis) => x.shape[axis]) },
    { perm: ints(perm) },
  )
}

/** A chain between two transposes, of which the second is often the inverse one. */
function transposes(draw) {
  let x = transpose(draw)
  if (!x) return undefined
  const perm = draw.model.graph.nodes.at(-1).attribute('perm').value.map(Number)
  for (let count = draw.below(3); count > 0; count--) {
    const found = draw.chance(0.5) && isNumber(x) ? operands(draw, x) : undefined
    x = found
      ? draw.node('Mul', found.inputs, { dtype: x.dtype, shape: found.shape })
      : draw.node('Identity', [x], x)
  }
  const inverse = perm.map((_, axis) => perm.indexOf(axis))
  const back = draw.chance(0.8) ? inverse : shuffled(draw, perm.length)
  if (x.shape.length !== back.length) return x
  return draw.node(
    'Transpose',
    [x],
    { dtype: x.dtype, shape: back.map((axis) => x.shape[axis]) },
    { perm: ints(back) },
  )
}

/** What an operator makes of one value. */
function applied(draw, operator, x) {
  const all = draw.values
  draw.values = [x]
  const result = operator(draw)
  draw.values = [...all, ...draw.values.slice(1)]
  return result ?? x
}

function transposedBy(draw, x, perm) {
  const shape = perm.map((axis) => x.shape[axis])
  return draw.node('Transpose', [x], { dtype: x.dtype, shape }, { perm: ints(perm) })
}

/** A transpose, operators behind which it can be moved, and often another transpose. */
function movedTransposes(draw) {
  const first = draw.value(({ shape }) => shape.length > 1)
  if (!first) return undefined
  let x = transposedBy(draw, first, shuffled(draw, first.shape.length))
  for (let count = 1 + draw.below(3); count > 0; count--)
    x = applied(draw, draw.pick([unary, binary, slice, unsqueeze, squeeze, reduce, cast]), x)
  const perm = shuffled(draw, x.shape.length)
  return draw.chance(0.7) && perm.length > 1 ? transposedBy(draw, x, perm) : x
}

/** Values that are transposed alike and joined, with a new axis now and then. */
function transposedParts(draw) {
  const x = draw.value((each) => isNumber(each) && each.shape.length > 1)
  if (!x) return undefined
  const perm = shuffled(draw, x.shape.length)
  const axis = draw.below(perm.length)
  const isWider = draw.chance(0.5)
  const parts = [x, draw.node('Neg', [x], x)].map((each) => {
    const part = transposedBy(draw, each, perm)
    if (!isWider) return part
    return changeAxes(
      draw,
      'Unsqueeze',
      part,
      [axis],
      [...part.shape.slice(0, axis), 1, ...part.shape.slice(axis)],
    )
  })
  const shape = parts[0].shape.map((extent, at) => (at === axis ? 2 * extent : extent))
  return draw.node('Concat', parts, { dtype: x.dtype, shape }, { axis: int(axis) })
}

/** A transpose, and a Reshape that moves its axes of one element. */
function movedOnes(draw) {
  const x = draw.value(({ shape }) => shape.includes(1) && shape.length > 2 && !shape.includes(0))
  if (!x) return undefined
  const turned = transposedBy(draw, x, shuffled(draw, x.shape.length))
  const shape = turned.shape.filter((extent) => extent !== 1)
  while (shape.length < turned.shape.length) shape.splice(draw.below(shape.length + 1), 0, 1)
  const target = [...shape]
  if (draw.chance(0.5)) target[draw.below(target.length)] = -1
  return draw.node('Reshape', [turned, draw.longs(target)], { dtype: x.dtype, shape })
}

function shuffled(draw, count) {
  const left = Array.from({ length: count }, (_, axis) => axis)
  return Array.from({ length: count }, () => left.splice(draw.below(left.length), 1)[0])
}

/** Extents with the same product. */
function regrouped(draw, shape) {
  const factors = shape.flatMap((extent) => (extent === 6 ? [2, 3] : extent === 4 ? [2, 2] : [extent]))
  const result = []
  for (const factor of factors) {
    if (result.length > 0 && draw.chance(0.4)) result[result.length - 1] *= factor
    else result.push(factor)
  }
  if (draw.chance(0.3)) result.splice(draw.below(result.length + 1), 0, 1)
  return result.slice(0, 5).length === result.length ? result : [...shape]
}

function reshape(draw) {
  const x = draw.value(({ shape }) => !shape.includes(0))
  if (!x) return undefined
  const shape = regrouped(draw, x.shape)
  const target = shape.map((extent, axis) => (extent === x.shape[axis] && draw.chance(0.4) ? 0 : extent))
  if (draw.chance(0.4) && target.length > 0) target[draw.below(target.length)] = -1
  return draw.node('Reshape', [x, draw.longs(target)], { dtype: x.dtype, shape })
}

/** A target that is computed from the shape of the value, or of another one. */
function viewLike(draw) {
  const x = draw.value(({ shape }) => shape.length > 0 && !shape.includes(0))
  if (!x) return undefined
  const shape = regrouped(draw, x.shape)
  const from = draw.chance(0.7) ? x : draw.value(({ shape: other }) => other.length > 0)
  const whole = draw.node('Shape', [from], { dtype: 'int64', shape: [from.shape.length] })
  const parts = shape.map((extent, axis) => extentPart(draw, { extent, axis, from, whole }))
  const target = draw.node('Concat', parts, { dtype: 'int64', shape: [shape.length] }, { axis: int(0) })
  const allowzero = draw.opset >= 14 && draw.chance(0.3) ? { allowzero: int(1) } : {}
  return draw.node('Reshape', [x, target], { dtype: x.dtype, shape }, allowzero)
}

function extentPart(draw, { extent, axis, from, whole }) {
  const places = from.shape.flatMap((each, at) => (each === extent ? [at] : []))
  if (places.length === 0 || draw.chance(0.3)) return draw.longs([extent])
  const place = places.includes(axis) ? axis : draw.pick(places)
  if (draw.chance(0.5)) {
    const scalar = draw.node(
      'Gather',
      [whole, draw.longs([place], [])],
      { dtype: 'int64', shape: [] },
      { axis: int(0) },
    )
    return changeAxes(draw, 'Unsqueeze', scalar, [0], [1])
  }
  const inputs = [whole, draw.longs([place]), draw.longs([place + 1]), draw.longs([0])]
  return draw.node('Slice', inputs, { dtype: 'int64', shape: [1] })
}

function changeAxes(draw, opType, x, axes, shape) {
  const result = { dtype: x.dtype, shape }
  return draw.opset >= 13
    ? draw.node(opType, [x, draw.longs(axes)], result)
    : draw.node(opType, [x], result, { axes: ints(axes) })
}

function unsqueeze(draw) {
  const x = draw.value(({ shape }) => shape.length < 4)
  if (!x) return undefined
  const axis = draw.below(x.shape.length + 1)
  const shape = [...x.shape.slice(0, axis), 1, ...x.shape.slice(axis)]
  return changeAxes(draw, 'Unsqueeze', x, [draw.chance(0.3) ? axis - shape.length : axis], shape)
}

function squeeze(draw) {
  const x = draw.value(({ shape }) => shape.includes(1))
  if (!x) return undefined
  const ones = x.shape.flatMap((extent, axis) => (extent === 1 ? [axis] : []))
  if (draw.chance(0.1)) {
    const shape = x.shape.filter((extent) => extent !== 1)
    return draw.node('Squeeze', [x], { dtype: x.dtype, shape })
  }
  const axis = draw.pick(ones)
  return changeAxes(
    draw,
    'Squeeze',
    x,
    [axis],
    x.shape.filter((_, at) => at !== axis),
  )
}

function flatten(draw) {
  const x = draw.value()
  const axis = draw.below(x.shape.length + 1)
  const shape = [sizeOf(x.shape.slice(0, axis)), sizeOf(x.shape.slice(axis))]
  return draw.node('Flatten', [x], { dtype: x.dtype, shape }, { axis: int(axis) })
}

const LAST = 2n ** 63n - 1n

function slice(draw) {
  const x = draw.value(({ shape }) => shape.length > 0)
  if (!x) return undefined
  const axis = draw.below(x.shape.length)
  const extent = x.shape[axis]
  const isWhole = draw.chance(0.3)
  const start = isWhole ? 0 : draw.below(extent + 1)
  const end = isWhole || draw.chance(0.3) ? LAST : start + draw.below(extent - start + 1)
  const step = draw.chance(0.8) ? 1 : 2
  const length = Math.max(0, Math.ceil((Math.min(Number(end), extent) - start) / step))
  const shape = x.shape.map((each, at) => (at === axis ? length : each))
  const negative = draw.chance(0.2) && start < extent && start > 0 ? start - extent : start
  const inputs = [
    x,
    draw.longs([negative]),
    draw.longs([end]),
    draw.longs([axis]),
    ...(step === 1 ? [] : [draw.longs([step])]),
  ]
  return draw.node('Slice', inputs, { dtype: x.dtype, shape })
}

function concat(draw) {
  const x = draw.value(({ shape }) => shape.length > 0)
  if (!x) return undefined
  const axis = draw.below(x.shape.length)
  const isBeside = ({ dtype, shape }) =>
    dtype === x.dtype &&
    shape.length === x.shape.length &&
    shape.every((each, at) => at === axis || each === x.shape[at])
  const parts = [x]
  for (let count = draw.below(3); count > 0; count--) parts.push(draw.value(isBeside))
  const total = parts.reduce((sum, { shape }) => sum + shape[axis], 0)
  const shape = x.shape.map((each, at) => (at === axis ? total : each))
  return draw.node('Concat', parts, { dtype: x.dtype, shape }, { axis: int(axis) })
}

function split(draw) {
  const x = draw.value(({ shape }) => shape.some((extent) => extent > 1))
  if (!x) return undefined
  const axis = x.shape.findIndex((extent) => extent > 1)
  const first = 1 + draw.below(x.shape[axis] - 1)
  const lengths = [first, x.shape[axis] - first]
  const results = lengths.map((length) => ({
    dtype: x.dtype,
    shape: x.shape.map((each, at) => (at === axis ? length : each)),
  }))
  const attributes = { axis: int(axis), ...(draw.opset < 13 && { split: ints(lengths) }) }
  draw.node('Split', draw.opset < 13 ? [x] : [x, draw.longs(lengths)], results, attributes)
  const parts = draw.values.slice(-2)
  if (parts.length < 2 || parts.some(({ shape }) => shape.length !== x.shape.length) || draw.chance(0.4))
    return parts[0]
  return draw.node('Concat', parts, x, { axis: int(axis) })
}

function gather(draw) {
  const x = draw.value(({ shape }) => shape.length > 0 && !shape.includes(0))
  if (!x) return undefined
  const axis = draw.below(x.shape.length)
  const extent = x.shape[axis]
  const indices = draw.chance(0.4)
    ? Array.from({ length: extent }, (_, at) => (draw.chance(0.2) ? at - extent : at))
    : [draw.below(extent) - (draw.chance(0.3) ? extent : 0)]
  const isScalar = indices.length === 1 && draw.chance(0.5)
  const shape = [...x.shape.slice(0, axis), ...(isScalar ? [] : [indices.length]), ...x.shape.slice(axis + 1)]
  const list = draw.longs(indices, isScalar ? [] : [indices.length])
  return draw.node('Gather', [x, list], { dtype: x.dtype, shape }, { axis: int(axis) })
}

function expand(draw) {
  const x = draw.value()
  const shape = x.shape.map((extent) => (extent === 1 && draw.chance(0.5) ? 3 : extent))
  const target = shape.map((extent) => (draw.chance(0.3) ? 1 : extent))
  const wide = broadcast(x.shape, target)
  return draw.node('Expand', [x, draw.longs(target)], { dtype: x.dtype, shape: wide })
}

function tile(draw) {
  const x = draw.value(({ shape }) => shape.length > 0)
  if (!x) return undefined
  const repeats = x.shape.map(() => (draw.chance(0.8) ? 1 : 2))
  return draw.node('Tile', [x, draw.longs(repeats)], {
    dtype: x.dtype,
    shape: x.shape.map((each, at) => each * repeats[at]),
  })
}

function pad(draw) {
  const x = draw.value(
    (each) => ['float32', 'float64', 'int64', 'int32'].includes(each.dtype) && each.shape.length > 0,
  )
  if (!x) return undefined
  const rank = x.shape.length
  const pads = Array.from({ length: 2 * rank }, () => (draw.chance(0.7) ? 0 : draw.below(2)))
  const shape = x.shape.map((each, at) => each + pads[at] + pads[at + rank])
  return draw.node('Pad', [x, draw.longs(pads)], { dtype: x.dtype, shape })
}

function reduce(draw) {
  const x = draw.value(
    (each) =>
      ['float32', 'int32', 'int64'].includes(each.dtype) && each.shape.length > 0 && !each.shape.includes(0),
  )
  if (!x) return undefined
  const opType = draw.pick(REDUCE)
  const axis = draw.below(x.shape.length)
  const keeps = draw.chance(0.5)
  const shape = keeps
    ? x.shape.map((each, at) => (at === axis ? 1 : each))
    : x.shape.filter((_, at) => at !== axis)
  const isInput = draw.opset >= (opType === 'ReduceSum' ? 13 : 18)
  const attributes = { keepdims: int(keeps ? 1 : 0), ...(!isInput && { axes: ints([axis]) }) }
  const result = draw.node(
    opType,
    isInput ? [x, draw.longs([axis])] : [x],
    { dtype: x.dtype, shape },
    attributes,
  )
  return keeps && draw.chance(0.4)
    ? changeAxes(
        draw,
        'Squeeze',
        result,
        [axis],
        x.shape.filter((_, at) => at !== axis),
      )
    : result
}

function shapeOf(draw) {
  const x = draw.value()
  const whole = { dtype: 'int64', shape: [x.shape.length] }
  if (draw.chance(0.3)) return draw.node('Size', [x], { dtype: 'int64', shape: [] })
  if (draw.opset < 15 || draw.chance(0.5)) return draw.node('Shape', [x], whole)
  const start = draw.below(x.shape.length + 1)
  return draw.node('Shape', [x], { dtype: 'int64', shape: [x.shape.length - start] }, { start: int(start) })
}

function clip(draw) {
  const x = draw.value(({ dtype }) => dtype === 'float32')
  if (!x) return undefined
  const bounds = () => [
    draw.constant('float32', [], () => draw.pick([-1, 0, 0.5])),
    draw.constant('float32', [], () => draw.pick([1, 2, 6])),
  ]
  const first = draw.node('Clip', [x, ...bounds()], x)
  return draw.chance(0.5) ? draw.node('Clip', [first, ...bounds()], x) : first
}

function product(draw) {
  const x = draw.value(({ dtype, shape }) => dtype === 'float32' && shape.length === 2 && !shape.includes(0))
  if (!x) return undefined
  const columns = 1 + draw.below(3)
  const w = draw.constant('float32', [x.shape[1], columns], () => draw.numberOf('float32'))
  return draw.node('MatMul', [x, w], { dtype: 'float32', shape: [x.shape[0], columns] })
}

function softmax(draw) {
  const x = draw.value(({ dtype, shape }) => dtype === 'float32' && shape.length > 0 && !shape.includes(0))
  return x && draw.node('Softmax', [x], x, { axis: int(draw.below(x.shape.length)) })
}

/** The same node twice, with operands swapped where that is the same. */
function twice(draw) {
  const x = draw.value(({ dtype }) => dtype === 'float32')
  const found = x && operands(draw, x)
  if (!found) return undefined
  const result = { dtype: 'float32', shape: found.shape }
  const opType = draw.pick(['Add', 'Mul', 'Sub'])
  const first = draw.node(opType, found.inputs, result)
  const second = draw.node(opType, draw.chance(0.5) ? [...found.inputs].reverse() : found.inputs, result)
  return draw.node('Sub', [first, second], result)
}

function quantized(draw) {
  const x = draw.value(({ dtype }) => dtype === 'float32')
  if (!x) return undefined
  const scale = draw.constant('float32', [], () => draw.pick([0.5, 0.1]))
  const zero = draw.constant('int64', [], () => 0)
  const eight = draw.node('Cast', [zero], { dtype: 'int8', shape: [] }, { to: int(3) })
  draw.values.splice(
    draw.values.findIndex(({ name }) => name === eight.name),
    1,
  )
  const codes = () => {
    const code = draw.node('QuantizeLinear', [x, scale, eight], { dtype: 'int8', shape: x.shape })
    draw.values.splice(
      draw.values.findIndex(({ name }) => name === code.name),
      1,
    )
    return code
  }
  const back = draw.node('DequantizeLinear', [codes(), scale, eight], x)
  return draw.chance(0.5) ? draw.node('LeakyRelu', [back], x, { alpha: float(draw.pick([1, 0.1])) }) : back
}

export const OPERATORS = [
  unary,
  unary,
  negation,
  not,
  binary,
  binary,
  binary,
  logic,
  comparison,
  where,
  cast,
  cast,
  transpose,
  transposes,
  movedTransposes,
  transposedParts,
  movedOnes,
  reshape,
  reshape,
  viewLike,
  unsqueeze,
  squeeze,
  flatten,
  slice,
  slice,
  concat,
  split,
  gather,
  expand,
  tile,
  pad,
  reduce,
  shapeOf,
  clip,
  product,
  softmax,
  twice,
  quantized,
]
