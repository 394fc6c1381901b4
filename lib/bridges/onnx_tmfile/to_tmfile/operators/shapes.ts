/** Operators that move, repeat or choose elements. */

import { countOf, sliceRange, withRank } from '../../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { refuse } from '../refusal.js'
import {
  broadcastTensor,
  concat,
  gather,
  repeat,
  reshape,
  slice,
  transpose,
  withRecordOf,
} from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

const reshaping = (operator: string, note?: string): OperatorRow => ({
  operator,
  target: 'Reshape',
  ...(note !== undefined && { note }),
  convert: (step) => reshape(step.b, step.tensor(0), step.output()),
})

function transposeRow(step: Step): TmfileTensor {
  const rank = step.shape(0).length
  const perm = step.numbers('perm') ?? Array.from({ length: rank }, (_, axis) => rank - 1 - axis)
  return transpose(step.b, step.tensor(0), perm)
}

function concatRow(step: Step): TmfileTensor {
  return concat(step.b, step.operands, step.axis('axis', 1, step.shape(0).length))
}

function sliceRow(step: Step): TmfileTensor {
  const shape = step.shape(0)
  const isOld = step.opset < 10
  const starts = isOld ? step.numbers('starts') : step.values(1, 'the list of starts')
  const ends = isOld ? step.numbers('ends') : step.values(2, 'the list of ends')
  if (!starts || !ends) refuse('starts or ends are missing')
  const axes = isOld ? step.numbers('axes') : step.values(3, 'the list of axes')
  const steps = isOld ? undefined : step.values(4, 'the list of steps')
  let made = step.tensor(0)
  for (const [at, start] of starts.entries()) {
    const axis = step.axisOf(axes?.[at] ?? at, shape.length)
    made = slice(step.b, made, axis, sliceRange(shape[axis]!, start, ends[at]!, steps?.[at] ?? 1))
  }
  return made
}

function split(step: Step): readonly (TmfileTensor | undefined)[] {
  const x = step.tensor(0)
  const shape = x.shape!
  const axis = step.axis('axis', 0, shape.length)
  const sizes = step.shapes.map((each) => each[axis]!)
  const count = sizes.length
  if (count === 1) return [x]
  if (shape.length <= 4 && sizes.every((size) => size > 0)) {
    const params = { axis, split_dim: count, is_caffe: 0, is_onnx: 1, split_sizes: sizes }
    return step.b.emitMany('Split', [x], params, step.shapes).map((part) => withRecordOf(part, x))
  }
  let start = 0
  return sizes.map((size, output) => {
    const range = { start, count: size, step: 1 }
    start += size
    return step.isUsed(output) ? slice(step.b, x, axis, range) : undefined
  })
}

function gatherRow(step: Step): TmfileTensor {
  const shape = step.shape(0)
  const axis = step.axis('axis', 0, shape.length)
  const indices = step.required(1, 'the list of indices')
  const extent = shape[axis]!
  const positions = Array.from(indices.numbers, (index) => (index < 0 ? index + extent : index))
  const outside = positions.find((index) => index < 0 || index >= extent)
  if (outside !== undefined) refuse(`index ${outside} is outside the extent ${extent}`)
  return reshape(step.b, gather(step.b, step.tensor(0), axis, positions), step.output())
}

function tile(step: Step): TmfileTensor {
  if (step.opset < 6) refuse('Tile of operator set 1')
  const repeats = step.values(1, 'the list of repeats') ?? refuse('repeats are missing')
  let made = step.tensor(0)
  const rank = made.shape!.length
  if (repeats.length !== rank) refuse(`${repeats.length} repeats for rank ${rank}`)
  for (const [axis, count] of [...repeats.entries()].reverse()) {
    if (count < 1) refuse('the result is empty')
    made = repeat(step.b, made, axis, count)
  }
  return made
}

function depthToSpace(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const [n, c, h, w] = x.shape as [number, number, number, number]
  const block = step.number('blocksize', 0)
  if (step.text('mode', 'DCR') === 'CRD')
    return b.emit('DepthToSpace', [x], { block_size: block }, step.output())
  const six = reshape(b, x, [n, block, block, c / block ** 2, h, w])
  return reshape(b, transpose(b, six, [0, 3, 4, 1, 5, 2]), step.output())
}

function spaceToDepth(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const [n, c, h, w] = x.shape as [number, number, number, number]
  const block = step.number('blocksize', 0)
  const mode = step.text('mode', 'DCR')
  if (mode !== 'DCR' && mode !== 'CRD') refuse(`mode ${mode}`)
  const six = reshape(b, x, [n, c, h / block, block, w / block, block])
  return reshape(
    b,
    transpose(b, six, mode === 'DCR' ? [0, 3, 5, 1, 2, 4] : [0, 1, 3, 5, 2, 4]),
    step.output(),
  )
}

function topK(step: Step): readonly (TmfileTensor | undefined)[] {
  const shape = step.shape(0)
  const axis = step.axis('axis', -1, shape.length)
  const k = step.opset < 10 ? step.number('k', 0) : step.required(1, 'k').numbers[0]!
  if (step.number('largest', 1) === 0) refuse('the smallest elements; the engine sorts the largest')
  if (axis !== shape.length - 1) refuse('an axis that is not the last')
  const rows = countOf(shape.slice(0, -1))
  if (rows !== 1) refuse(`${rows} rows; the kernel frees memory twice for more than one`)
  if (!step.isOnlyReader(0)) refuse('other nodes read the input, which the kernel sorts in place')
  const shapes = [step.output(), step.output()]
  const [values, indices] = step.b.emitMany('TopKV2', [step.tensor(0)], { k, sorted: 1 }, shapes)
  indices!.dtype = 'int32'
  return [values, indices]
}

export const SHAPE_ROWS: readonly OperatorRow[] = [
  reshaping('Reshape', 'to the inferred shape'),
  reshaping('Flatten'),
  reshaping('Squeeze'),
  reshaping('Unsqueeze'),
  {
    operator: 'Transpose',
    target: 'Transpose',
    note: 'up to six axes, after neighbours are joined',
    convert: transposeRow,
  },
  { operator: 'Concat', target: 'Concat', note: 'Reshape around more than four axes', convert: concatRow },
  {
    operator: 'Slice',
    target: 'Slice',
    note: 'one for each axis, on four axes; Gather for negative steps',
    convert: sliceRow,
  },
  { operator: 'Split', target: 'Split', note: 'up to four axes, else Slice', convert: split },
  {
    operator: 'Gather',
    target: 'Gather',
    note: 'constant indices; Slice where they are regular',
    convert: gatherRow,
  },
  {
    operator: 'Expand',
    target: 'Concat',
    note: 'of copies of the tensor',
    convert: (step) => broadcastTensor(step.b, step.tensor(0), withRank(step.output(), step.output().length)),
  },
  { operator: 'Tile', target: 'Concat', note: 'of copies of the tensor', convert: tile },
  {
    operator: 'DepthToSpace',
    target: 'DepthToSpace',
    note: 'mode CRD; DCR by Reshape, Transpose, Reshape',
    convert: depthToSpace,
  },
  { operator: 'SpaceToDepth', target: 'Reshape, Transpose, Reshape', convert: spaceToDepth },
  {
    operator: 'TopK',
    target: 'TopKV2',
    note: 'the largest of one row, which no other node reads; indices are int32',
    convert: topK,
  },
]
