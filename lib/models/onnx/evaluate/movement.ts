/** Operators that move, repeat or choose elements, and those that give shapes. */
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import {
  alike,
  broadcastShape,
  broadcastTo,
  countOf,
  FAR_END,
  joined,
  type Shape,
  sliceRange,
  strided,
  stridesOf,
  taken,
  transposed,
} from './arrays.js'
import {
  ALL,
  alignedElements,
  type Call,
  type Made,
  moved,
  NUMBERS,
  type Operand,
  type OperatorRow,
  row,
  unknown,
} from './call.js'
import { productOfAll } from './dims.js'
import {
  ARRAYS,
  dimsOf,
  type Elements,
  elementsOf,
  filled,
  isBig,
  isPartial,
  isValueDtype,
  Value,
} from './value.js'

/** Elements of arrays of one kind, of which the compiler does not know which. */
type Slots = { [at: number]: unknown }

/** The extents of an input, from a first to a last axis. */
function shape(call: Call): Value {
  const dims = call.dims(0)
  const list = call.opset < 15 ? dims : dims.slice(call.node.int('start', 0), call.node.int('end'))
  return moved('int64', [list.length], list)
}

function size(call: Call): Value {
  return moved('int64', [], [productOfAll(call.dims(0))])
}

/** The elements in another shape. */
const still = (shapeOf: (call: Call, operand: Operand) => Shape): OperatorRow['run'] => {
  return (call) => {
    const operand = call.input(0)
    const shape = call.shape(shapeOf(call, operand))
    if (countOf(shape) !== operand.elements.length) return unknown()
    return new Value(operand.dtype, shape, operand.elements)
  }
}

/** In training it drops elements, and with a second output in use it gives the mask. */
function dropout(call: Call, { shape: own }: Operand): Shape {
  const isTraining =
    call.opset < 7
      ? call.node.int('is_test', 0) === 0
      : call.opset >= 12 && call.has(2) && Boolean(call.scalar(2))
  return isTraining || (call.node.outputs[1] ?? '') !== '' ? unknown() : own
}

/** One extent may be left open, by -1 or by a symbol: the others say what it is. */
function reshape(call: Call, { shape: own, elements }: Operand): Shape {
  const target = call.opset < 5 ? (call.node.ints('shape') ?? unknown()) : dimsOf(call.input(1).elements)
  const allowsZero = call.node.int('allowzero', 0) !== 0
  const dims = target.map((dim, axis) => (dim === 0 && !allowsZero ? (own[axis] ?? unknown()) : dim))
  const isOpen = dims.map((dim) => typeof dim !== 'number' || dim === -1)
  const at = isOpen.indexOf(true)
  if (at < 0) return dims as Shape
  const others = countOf((dims as Shape).filter((_, axis) => !isOpen[axis]))
  const count = elements.length / others
  return isOpen.lastIndexOf(true) === at && Number.isInteger(count)
    ? (dims as Shape).with(at, count)
    : unknown()
}

function flatten(call: Call, { shape: own }: Operand): Shape {
  const given = call.node.int('axis', 1)
  const at = given < 0 ? given + own.length : given
  if (at < 0 || at > own.length) return unknown()
  return [countOf(own.slice(0, at)), countOf(own.slice(at))]
}

function squeeze(call: Call, { shape: own }: Operand): Shape {
  const given = call.list('axes', 13, 1)
  const axes = given && call.axes(given, own.length)
  if (axes?.some((axis) => own[axis] !== 1)) return unknown()
  return own.filter((extent, axis) => (axes ? !axes.includes(axis) : extent !== 1))
}

function unsqueeze(call: Call, { shape: own }: Operand): Shape {
  const given = call.list('axes', 13, 1) ?? unknown()
  const rank = own.length + given.length
  const axes = new Set(call.axes(given, rank))
  let from = 0
  return Array.from({ length: rank }, (_, axis) => (axes.has(axis) ? 1 : own[from++]!))
}

function transpose(call: Call): Value {
  const { dtype, shape: own, elements } = call.input(0)
  const perm = call.node.attribute('perm')
    ? (call.node.ints('perm') ?? unknown())
    : own.map((_, axis) => own.length - 1 - axis)
  const isOrder =
    perm.length === own.length && call.axes(perm, own.length).every((axis, at) => axis === perm[at])
  if (!isOrder) return unknown()
  const result = call.shape(perm.map((axis) => own[axis]!))
  return moved(dtype, result, transposed(elements, own, perm))
}

/** An input of which nothing is known still has its place. */
function concat(call: Call): Value {
  const { node } = call
  const operands = node.inputs.map((_, at): Operand => {
    if (node.value(at)) return call.input(at)
    const dtype = node.dtype(at)
    const dims = call.shape(call.dims(at).map((dim) => (typeof dim === 'number' ? dim : unknown())))
    return isValueDtype(dtype) ? { dtype, shape: dims, elements: Array(countOf(dims)).fill(null) } : unknown()
  })
  const [first] = operands as [Operand, ...Operand[]]
  const axis = call.axis(call.opset < 4 ? 1 : undefined, first.shape.length)
  const isJoinable = ({ dtype, shape: own }: Operand): boolean =>
    dtype === first.dtype &&
    own.length === first.shape.length &&
    own.every((extent, at) => at === axis || extent === first.shape[at])
  if (!operands.every(isJoinable)) return unknown()
  const extent = operands.reduce((sum, operand) => sum + operand.shape[axis]!, 0)
  const result = call.shape(first.shape.with(axis, extent))
  const aligned = alignedElements(operands)
  const parts = operands.map((operand, at) => [aligned[at]!, operand.shape] as const)
  return moved(first.dtype, result, joined(parts, axis))
}

function slice(call: Call): Value {
  const { dtype, shape: own, elements } = call.input(0)
  const starts = call.list('starts', 10, 1, true) ?? unknown()
  const ends = call.list('ends', 10, 2, true) ?? unknown()
  const steps = call.opset < 10 || !call.has(4) ? starts.map(() => 1) : call.integers(4)
  const axes = call.axes(call.list('axes', 10, 3) ?? [...starts.keys()], own.length)
  if (ends.length !== starts.length || steps.length !== starts.length || axes.length !== starts.length)
    return unknown()
  const [strides, result] = [stridesOf(own), [...own]]
  const distances = [...strides]
  let offset = 0
  for (const [at, axis] of axes.entries()) {
    // The largest integers mean the end of the axis, for which engines differ in the other direction.
    if (steps[at] === 0 || (steps[at]! < 0 && ends[at]! >= FAR_END)) return unknown()
    const range = sliceRange(own[axis]!, starts[at]!, ends[at]!, steps[at]!)
    offset += range.start * strides[axis]!
    distances[axis] = strides[axis]! * range.step
    result[axis] = range.count
  }
  return moved(dtype, call.shape(result), strided(elements, result, distances, offset))
}

/** Indices that may count from the end. */
function positionsOf(call: Call, input: number, extent: number): readonly number[] {
  return call.integers(input).map((index) => call.axisOf(index, extent))
}

function gather(call: Call): Value {
  const [{ dtype, shape: own, elements }, indices] = [call.input(0), call.known(1)]
  const axis = call.axis(0, own.length)
  const result = call.shape([...own.slice(0, axis), ...indices.shape, ...own.slice(axis + 1)])
  return moved(dtype, result, taken(elements, own, axis, positionsOf(call, 1, own[axis]!)))
}

/** Offsets in a tensor, by a function of the index along one axis, of all elements of a shape with the same axes. */
function offsetsAlong(
  own: Shape,
  indexed: Shape,
  axis: number,
  positions: readonly number[],
): readonly number[] {
  const [strides, source] = [stridesOf(indexed), stridesOf(own)]
  const isInside =
    indexed.length === own.length && indexed.every((extent, at) => at === axis || extent <= own[at]!)
  if (!isInside) return unknown()
  return positions.map((position, at) =>
    indexed.reduce(
      (offset, extent, each) =>
        offset + (each === axis ? position : Math.floor(at / strides[each]!) % extent) * source[each]!,
      0,
    ),
  )
}

function gatherElements(call: Call): Value {
  const [{ dtype, shape: own, elements }, indices] = [call.input(0), call.known(1)]
  const axis = call.axis(0, own.length)
  const result = call.shape(indices.shape)
  const offsets = offsetsAlong(own, result, axis, positionsOf(call, 1, own[axis]!))
  return moved(dtype, result, taken(elements, [elements.length], 0, offsets))
}

/** Offsets of the slices that rows of indices choose. @param batch - leading axes that both tensors share */
function rowOffsets(call: Call, own: Shape, indexed: Shape, batch: number): readonly number[] {
  const depth = indexed.at(-1)!
  const strides = stridesOf(own)
  const indices = call.integers(1)
  const rows = countOf(indexed.slice(0, -1))
  const perBatch = rows / countOf(indexed.slice(0, batch))
  const size = countOf(own.slice(batch))
  return Array.from({ length: rows }, (_, row) => {
    let offset = Math.floor(row / perBatch) * size
    for (let k = 0; k < depth; k++)
      offset += call.axisOf(indices[row * depth + k]!, own[batch + k]!) * strides[batch + k]!
    return offset
  })
}

/** Positions of all elements of slices that begin at offsets. */
function spreadOffsets(offsets: readonly number[], length: number): readonly number[] {
  return Array.from(
    { length: offsets.length * length },
    (_, at) => offsets[Math.floor(at / length)]! + (at % length),
  )
}

function gatherND(call: Call): Value {
  const [{ dtype, shape: own, elements }, { shape: indexed }] = [call.input(0), call.known(1)]
  const batch = call.node.int('batch_dims', 0)
  const depth = indexed.at(-1) ?? unknown()
  const isRight =
    batch >= 0 &&
    batch < indexed.length &&
    batch + depth <= own.length &&
    own.slice(0, batch).every((extent, axis) => extent === indexed[axis])
  if (!isRight) return unknown()
  const inner = own.slice(batch + depth)
  const result = call.shape([...indexed.slice(0, -1), ...inner])
  const offsets = rowOffsets(call, own, indexed, batch)
  return moved(dtype, result, taken(elements, [elements.length], 0, spreadOffsets(offsets, countOf(inner))))
}

/** Updates in place of elements at some positions. */
function scattered(call: Call, data: Operand, updates: Operand, positions: readonly number[]): Value {
  const [from, values] = alignedElements([data, updates]) as [Elements, Elements]
  const isNone = (call.node.text('reduction') ?? 'none') === 'none'
  if (!isNone || data.dtype !== updates.dtype || values.length !== positions.length) return unknown()
  const result = call.shape(data.shape)
  const made = from.slice() as Elements
  for (const [at, position] of positions.entries()) (made as Slots)[position] = values[at]
  return moved(data.dtype, result, made)
}

function scatterND(call: Call): Value {
  const [data, { shape: indexed }, updates] = [call.input(0), call.known(1), call.input(2)]
  const depth = indexed.at(-1) ?? unknown()
  if (depth > data.shape.length) return unknown()
  const offsets = rowOffsets(call, data.shape, indexed, 0)
  return scattered(call, data, updates, spreadOffsets(offsets, countOf(data.shape.slice(depth))))
}

function scatterElements(call: Call): Value {
  const [data, indices, updates] = [call.input(0), call.known(1), call.input(2)]
  const axis = call.axis(0, data.shape.length)
  const positions = positionsOf(call, 1, data.shape[axis]!)
  return scattered(call, data, updates, offsetsAlong(data.shape, indices.shape, axis, positions))
}

/** A last part that is smaller came with version 18. */
function equalParts(call: Call, extent: number): readonly number[] {
  const { outputs } = call.node
  const count = call.node.int('num_outputs', outputs.length)
  if (count !== outputs.length || (call.opset < 18 && extent % count !== 0)) return unknown()
  const size = Math.ceil(extent / count)
  return outputs.map((_, at) => Math.min(size, extent - at * size))
}

function split(call: Call): Made {
  const { dtype, shape: own, elements } = call.input(0)
  const { outputs } = call.node
  const axis = call.axis(0, own.length)
  const extent = own[axis]!
  const sizes = call.list('split', 13, 1) ?? equalParts(call, extent)
  if (sizes.length !== outputs.length || sizes.some((size) => size < 0)) return unknown()
  if (sizes.reduce((sum, size) => sum + size, 0) !== extent) return unknown()
  let start = 0
  return sizes.map((count) => {
    const positions = Array.from({ length: count }, (_, at) => start + at)
    start += count
    return moved(dtype, call.shape(own.with(axis, count)), taken(elements, own, axis, positions))
  })
}

function tile(call: Call): Value {
  const { dtype, shape: own, elements } = call.input(0)
  const repeats = call.integers(1)
  if (repeats.length !== own.length || repeats.some((count) => count < 0)) return unknown()
  const result = call.shape(own.map((extent, axis) => extent * repeats[axis]!))
  let [made, shape] = [elements, own]
  for (const [axis, extent] of own.entries()) {
    const positions = Array.from({ length: result[axis]! }, (_, at) => at % extent)
    made = taken(made, shape, axis, positions)
    shape = shape.with(axis, result[axis]!)
  }
  return moved(dtype, result, made)
}

function expand(call: Call): Value {
  const { dtype, shape: own, elements } = call.input(0)
  const result = call.shape(broadcastShape([own, call.integers(1)]) ?? unknown())
  return moved(dtype, result, broadcastTo(elements, own, result))
}

function constantOfShape(call: Call): Value {
  const result = call.shape(call.integers(0))
  const attribute = call.node.attribute('value')
  const tensor = attribute?.tensors[0]
  if (!attribute) return new Value('float32', result, new Float32Array(countOf(result)))
  if (tensor?.kind !== 'dense' || tensor.size !== 1 || !isValueDtype(tensor.dtype)) return unknown()
  const [value] = elementsOf(tensor) ?? unknown()
  return new Value(
    tensor.dtype,
    result,
    filled(tensor.dtype, countOf(result), () => value!),
  )
}

/** Positions along an axis, with -1 for those that a constant fills. */
function paddedPositions(mode: string, extent: number, before: number, after: number): readonly number[] {
  const length = extent + before + after
  if (length < 0) return unknown()
  // Implementations differ for a pad that is longer than what it repeats, and for one that crops.
  const isLong = before < 0 || after < 0 || extent === 0 || Math.max(before, after) >= extent
  if (mode !== 'constant' && (before !== 0 || after !== 0) && isLong && mode !== 'edge') return unknown()
  return Array.from({ length }, (_, at) => {
    const from = at - before
    if (from >= 0 && from < extent) return from
    if (mode === 'constant') return -1
    if (mode === 'edge') return extent === 0 ? unknown() : from < 0 ? 0 : extent - 1
    if (mode === 'wrap') return from < 0 ? from + extent : from - extent
    return from < 0 ? -from : 2 * (extent - 1) - from
  })
}

function pad(call: Call): Value {
  const { dtype, shape: own, elements } = call.input(0)
  const mode = call.node.text('mode') ?? 'constant'
  if (!/^(constant|edge|reflect|wrap)$/.test(mode)) return unknown()
  const pads = call.list(call.opset < 2 ? 'paddings' : 'pads', 11, 1) ?? unknown()
  const axes = call.opset >= 18 && call.has(3) ? call.axes(call.integers(3), own.length) : [...own.keys()]
  if (pads.length !== 2 * axes.length) return unknown()
  const positions = axes.map((axis, at) => {
    const [before, after] = [pads[at]!, pads[at + axes.length]!]
    call.shape([Math.max(0, own[axis]! + before + after)])
    return paddedPositions(mode, own[axis]!, before, after)
  })
  const result = call.shape(own.map((extent, axis) => positions[axes.indexOf(axis)]?.length ?? extent))
  const given =
    call.opset < 11 ? call.node.attribute('value')?.value : call.has(2) ? call.scalar(2) : undefined
  const zero = isPartial(elements) ? 0 : new ARRAYS[dtype](1)[0]!
  const fill = given === undefined ? zero : isPartial(elements) ? Number(given) : (given as number | bigint)
  let [made, shape] = [elements, own]
  for (const [at, axis] of axes.entries()) {
    made = taken(made, shape, axis, positions[at]!, fill as number)
    shape = shape.with(axis, positions[at]!.length)
  }
  return moved(dtype, result, made)
}

function eyeLike(call: Call): Value {
  const dims = call.dims(0)
  const code = call.node.int('dtype')
  const dtype = code === undefined ? call.node.dtype(0) : DTYPE_OF_CODE.get(code)
  if (dims.length !== 2 || !dims.every((dim) => typeof dim === 'number') || !isValueDtype(dtype))
    return unknown()
  const [rows, columns] = call.shape(dims as Shape) as [number, number]
  const offset = call.node.int('k', 0)
  const digits = isBig(dtype) ? [0n, 1n] : [0, 1]
  const isOne = (at: number): boolean => (at % columns) - Math.floor(at / columns) === offset
  return new Value(
    dtype,
    [rows, columns],
    filled(dtype, rows * columns, (at) => digits[isOne(at) ? 1 : 0]!),
  )
}

function trilu(call: Call): Value {
  const { dtype, shape: own, elements } = call.known(0)
  const [rows, columns] = own.slice(-2)
  if (columns === undefined) return unknown()
  const k = call.has(1) ? Number(call.scalar(1)) : 0
  const isUpper = call.node.int('upper', 1) !== 0
  call.shape(own)
  const made = alike(elements, elements.length) as Slots
  for (let at = 0; at < elements.length; at++) {
    const distance = (at % columns) - (Math.floor(at / columns) % rows!) - k
    if (isUpper ? distance >= 0 : distance <= 0) made[at] = elements[at]
  }
  return new Value(dtype, own, made as typeof elements)
}

/** Elements of `on` where an index says, of `off` elsewhere; indices outside the depth choose none. */
function oneHot(call: Call): Value {
  const [indices, depths, values] = [call.known(0), call.known(1), call.known(2)]
  const depth = Number(depths.elements.length === 1 ? depths.elements[0] : unknown())
  if (!Number.isInteger(depth) || depth < 1 || values.elements.length !== 2) return unknown()
  const axis = call.axis(-1, indices.shape.length + 1)
  const result = call.shape(indices.shape.toSpliced(axis, 0, depth))
  const inner = countOf(indices.shape.slice(axis))
  const [off, on] = values.elements as ArrayLike<number | bigint> as [number | bigint, number | bigint]
  const chosen = Array.from(indices.elements as ArrayLike<number | bigint>, Number)
  return new Value(
    values.dtype,
    result,
    filled(values.dtype, countOf(result), (at) => {
      const index = chosen[Math.floor(at / (inner * depth)) * inner + (at % inner)]!
      return (index < 0 ? index + depth : index) === Math.floor(at / inner) % depth ? on : off
    }),
  )
}

/** Positions of the elements that are not 0, an axis after the other. */
function nonZero(call: Call): Value {
  const { shape: own, elements } = call.known(0)
  if (own.length === 0) return unknown()
  const found = Array.from(elements as ArrayLike<number | bigint>).flatMap((element, at) =>
    // biome-ignore lint/suspicious/noDoubleEquals: the elements are numbers or bigints
    element == 0 ? [] : [at],
  )
  const strides = stridesOf(own)
  const result = call.shape([own.length, found.length])
  const made = own.flatMap((extent, axis) =>
    found.map((at) => BigInt(Math.floor(at / strides[axis]!) % extent)),
  )
  return new Value('int64', result, BigInt64Array.from(made))
}

/** Slices along an axis, or elements, for which a condition holds. */
function compress(call: Call): Value {
  const [{ dtype, shape: own, elements }, conditions] = [call.input(0), call.known(1).elements]
  const axis = call.node.attribute('axis') ? call.axis(undefined, own.length) : undefined
  const source = axis === undefined ? [elements.length] : own
  const positions = [...conditions.keys()].filter((at) => conditions[at])
  if (conditions.length > source[axis ?? 0]!) return unknown()
  const result = call.shape(source.with(axis ?? 0, positions.length))
  return moved(dtype, result, taken(elements, source, axis ?? 0, positions))
}

/** Start, start + step and so on, each from the one before: floats are rounded each time, as engines do. */
function range(call: Call): Value {
  const { dtype } = call.known(0)
  const [start, limit, step] = [0, 1, 2].map((at) => call.scalar(at)) as [number, number, number]
  if ([1, 2].some((at) => call.known(at).dtype !== dtype)) return unknown()
  const count = Math.ceil((Number(limit) - Number(start)) / Number(step))
  // Engines subtract in the dtype, and then divide as doubles.
  const difference = filled(dtype, 1, () => limit - start)[0]!
  if (!Number.isFinite(count) || Math.ceil(Number(difference) / Number(step)) !== count) return unknown()
  const result = call.shape([Math.max(0, count)])
  const made = filled(dtype, result[0]!, () => start) as { [at: number]: number }
  for (let at = 1; at < result[0]!; at++) made[at] = made[at - 1]! + step
  return new Value(dtype, result, made as unknown as Elements)
}

export const MOVEMENT: readonly OperatorRow[] = [
  row('Shape', ALL, shape, { needs: 'shapes' }),
  row('Size', ALL, size, { needs: 'shapes' }),
  row(
    'Identity',
    ALL,
    still((_, operand) => operand.shape),
  ),
  row('Dropout', ALL, still(dropout)),
  row('Reshape', ALL, still(reshape)),
  row('Flatten', ALL, still(flatten)),
  row('Squeeze', ALL, still(squeeze)),
  row('Unsqueeze', ALL, still(unsqueeze)),
  row('Transpose', ALL, transpose),
  row('Concat', ALL, concat, { needs: 'some' }),
  row('Slice', ALL, slice),
  row('Gather', ALL, gather),
  row('GatherElements', ALL, gatherElements),
  row('GatherND', ALL, gatherND),
  row('ScatterND', ALL, scatterND),
  row('Scatter', ALL, scatterElements),
  row('ScatterElements', ALL, scatterElements),
  row('Split', ALL, split, { since: 2 }),
  row('Tile', ALL, tile, { since: 6 }),
  row('Expand', ALL, expand),
  row('ConstantOfShape', ALL, constantOfShape),
  row('Pad', ALL, pad),
  row('EyeLike', ALL, eyeLike, { needs: 'shapes' }),
  row('Trilu', ALL, trilu),
  row('OneHot', NUMBERS, oneHot),
  row('NonZero', ALL, nonZero),
  row('Compress', ALL, compress),
  row('Range', new Set(['float32', 'float64', 'int16', 'int32', 'int64']), range),
]
