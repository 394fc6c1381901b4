/** Operators that move elements, or take some of them. */
import {
  axisOf,
  type OperatorName,
  permuteOrder,
  type SlicedRange,
  slicedRanges,
  splitSizes,
} from '../../../../models/tmfile/index.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { CAST_TO, int, ints, text } from '../onnx_writer.js'

/** An operator that gives its elements another shape. */
const reshaping = (operator: OperatorName): OperatorRow =>
  row(operator, 'Reshape', (s) => s.finishReshape(s.input(0), s.shape(0), s.outputShapes[0]!))

/**
 * In an NHWC model the kernel reads images as n, h, w, c and writes shapes of three and four axes back with channels second. Codes that
 * become two axes are only copied.
 */
function reshape(s: NodeScope<'Reshape'>) {
  const [from, to] = [s.shape(0), s.outputShapes[0]!]
  const isTurned = s.isNhwc && from.length === 4 && to.length >= 2 && to.length <= 4
  const isCopied = to.length === 2 ? s.hasCodes : to[1] === from[1]
  if (!isTurned || isCopied || from[2]! * from[3]! === 1) return s.finishReshape(s.input(0), from, to)
  const image = s.add('Transpose', [s.input(0)], { perm: ints([0, 2, 3, 1]) })
  const [batch, channels, ...plane] = to as readonly [number, number, ...number[]]
  if (to.length === 2) return s.finishReshape(image, from, to)
  const shaped = s.reshape(image, from, [batch, ...plane, channels])
  s.finish('Transpose', [shaped], { perm: ints(to.length === 4 ? [0, 3, 1, 2] : [0, 2, 1]) })
}

function sliceInputs<Name extends OperatorName>(
  s: NodeScope<Name>,
  ranges: readonly SlicedRange[],
): readonly string[] {
  const list = (field: keyof SlicedRange) =>
    s.numbers(
      ranges.map((range) => range[field]),
      'int64',
    )
  return [s.input(0), list('begin'), list('end'), list('axis'), list('step')]
}

function finishSlice<Name extends OperatorName>(s: NodeScope<Name>, ranges: readonly SlicedRange[], at = 0) {
  s.finish('Slice', sliceInputs(s, ranges), {}, { at, suffix: at === 0 ? '' : `__${at}` })
}

const given = <Name extends 'Slice' | 'Split'>(s: NodeScope<Name>) => ({
  inputs: s.inputShapes,
  params: s.params,
  outputs: s.outputShapes.length,
})

function slice(s: NodeScope<'Slice'>) {
  for (const [at, ranges] of slicedRanges(given(s))!.entries()) finishSlice(s, ranges, at)
}

function split(s: NodeScope<'Split'>) {
  if (s.params.is_caffe !== 0) {
    for (const at of s.outputShapes.keys())
      s.finish('Identity', [s.input(0)], {}, { at, suffix: at === 0 ? '' : `__${at}` })
    return
  }
  const { axis, sizes } = splitSizes(given(s))!
  s.finish('Split', [s.input(0), s.numbers(sizes, 'int64')], { axis: int(axis) })
}

/** The runtime takes begin and step of each axis; how many elements follows from its own rule for shapes. */
function stridedSlice(s: NodeScope<'StridedSlice'>) {
  const { begin_n, stride_n, begin_c, stride_c, begin_h, stride_h, begin_w, stride_w } = s.params
  const starts = [
    [begin_n, stride_n],
    [begin_c, stride_c],
    [begin_h, stride_h],
    [begin_w, stride_w],
  ] as const
  const ranges = s.outputShapes[0]!.map((extent, axis) => {
    const [begin, step] = starts[axis]!
    const end = begin + (extent - 1) * step + 1
    if (begin < 0 || end > s.shape(0)[axis]!) refuse(`it takes elements outside axis ${axis}`)
    return { axis, begin, end, step }
  })
  finishSlice(s, ranges)
}

/** With one argument the middle of the image; else from the given offsets to the size of the second input. */
function crop(s: NodeScope<'Crop'>) {
  const { flag, num_args, offset_c, offset_h, offset_w, crop_h, crop_w, axis } = s.params
  const [input, output] = [s.shape(0), s.outputShapes[0]!]
  const isCentred = flag === 1 && num_args === 1
  if (flag === 0 && axis !== 1 && axis !== 2) refuse(`axis ${axis} has no kernel in the engine`)
  const begins = isCentred
    ? [0, 0, Math.trunc((input[2]! - crop_h) / 2), Math.trunc((input[3]! - crop_w) / 2)]
    : [0, flag === 0 && axis === 1 ? offset_c : 0, offset_h, offset_w]
  const ranges = begins.map((begin, at) => ({ axis: at, begin, end: begin + output[at]!, step: 1 })).slice(1)
  const outside = ranges.find((range) => range.end > input[range.axis]!)
  if (outside) refuse(`it takes elements outside axis ${outside.axis}`)
  finishSlice(s, ranges)
}

function transpose<Name extends OperatorName>(s: NodeScope<Name>, order: readonly number[]) {
  s.finish('Transpose', [s.input(0)], { perm: ints(order) })
}

function swapAxis(s: NodeScope<'SwapAxis'>) {
  const order = s.shape(0).map((_, axis) => axis)
  order[s.params.dim_0] = s.params.dim_1
  order[s.params.dim_1] = s.params.dim_0
  transpose(s, order)
}

function shuffleChannel(s: NodeScope<'ShuffleChannel'>) {
  const { group } = s.params
  const [batch, channels, height, width] = s.shape(0) as readonly [number, number, number, number]
  if (s.shape(0).length !== 4 || group < 1 || channels % group !== 0)
    refuse(`group ${group} does not divide its channels`)
  const groups = [batch, group, channels / group, height, width]
  const grouped = s.reshape(s.input(0), s.shape(0), groups)
  const turned = s.add('Transpose', [grouped], { perm: ints([0, 2, 1, 3, 4]) })
  s.finishReshape(turned, [batch], s.shape(0))
}

function concat(s: NodeScope<'Concat'>) {
  const axis = axisOf(s.params.axis, s.shape(0))!
  s.finish(
    'Concat',
    s.tensors.map((_, index) => s.input(index)),
    { axis: int(axis) },
  )
}

/** Names of ONNX by mode of the kernel, which differ from the names of the file format by one. */
const PAD_MODES = ['constant', 'edge', 'reflect']

function pad(s: NodeScope<'Pad'>) {
  const { pad_n_0, pad_n_1, pad_c_0, pad_c_1, pad_h_0, pad_h_1, pad_w_0, pad_w_1, mode, value } = s.params
  const rank = s.shape(0).length
  const before = [pad_n_0, pad_c_0, pad_h_0, pad_w_0].slice(0, rank)
  const after = [pad_n_1, pad_c_1, pad_h_1, pad_w_1].slice(0, rank)
  const pads = s.numbers([...before, ...after], 'int64')
  const name = PAD_MODES[mode] ?? refuse(`mode ${mode} is unknown`)
  s.finish('Pad', [s.input(0), pads, ...(name === 'constant' ? [s.scalar(value)] : [])], { mode: text(name) })
}

/** Sizes are given in full, because the engine rounds products in float32; an open batch needs factors. */
function resize<Name extends OperatorName>(s: NodeScope<Name>, mode: string, transformation: string) {
  const [input, output] = [s.shape(0), s.outputShapes[0]!]
  const factors = output.map((extent, axis) => Math.fround(extent / input[axis]!))
  const areExact = output.every(
    (extent, axis) => Math.floor(Math.fround(factors[axis]! * input[axis]!)) === extent,
  )
  const size = s.hasOpenBatch && areExact ? [s.numbers(factors, 'float32')] : ['', s.numbers(output, 'int64')]
  s.finish('Resize', [s.input(0), '', ...size], {
    mode: text(mode),
    coordinate_transformation_mode: text(transformation),
    ...(mode === 'nearest' && { nearest_mode: text('floor') }),
  })
}

const nearest = <Name extends OperatorName>(s: NodeScope<Name>) => resize(s, 'nearest', 'asymmetric')

function interp(s: NodeScope<'Interp'>) {
  const { resize_type } = s.params
  if (resize_type === 1) return nearest(s)
  if (resize_type === 2) return resize(s, 'linear', 'half_pixel')
  if (resize_type === 4) return resize(s, 'linear', 'align_corners')
  refuse(`resize_type ${resize_type} is not exactly a mode of Resize`)
}

function gather(s: NodeScope<'Gather'>) {
  const { axis, indices_num, is_onnx } = s.params
  // A scalar index, as models of ONNX have it on the first axis.
  const shape = is_onnx === 0 ? [indices_num] : axis === 0 ? [] : s.shape(1)
  if (is_onnx !== 0 && axis !== 0) s.note('the kernel of the engine is right only for one index on axis 0')
  s.finish('Gather', [s.input(0), s.integers(1, shape)], { axis: int(axis) })
}

function embedding(s: NodeScope<'Embedding'>) {
  const indices = s.add('Cast', [s.reshape(s.input(0), [], [-1])], { to: int(CAST_TO.int64) })
  const { input_dim, num_output } = s.params
  s.finish('Gather', [s.inputAs(1, [input_dim, num_output]), indices], { axis: int(0) })
}

function topK(s: NodeScope<'TopKV2'>) {
  if (s.outputShapes.length !== 2) refuse(`it has ${s.outputShapes.length} outputs; it must have 2`)
  const indices = s.addTopK(s.params.k)
  s.finish('Cast', [indices], { to: int(CAST_TO.int32) }, { at: 1, suffix: '__indices' })
}

export const MOVEMENT_ROWS: readonly OperatorRow[] = [
  row('Reshape', 'Reshape', reshape, 'with Transpose around it in NHWC models'),
  ...(['Flatten', 'Squeeze', 'Unsqueeze', 'Expanddims'] as const).map(reshaping),
  row('Transpose', 'Transpose', (s) => transpose(s, s.params.tr_shape!)),
  row('Permute', 'Transpose', (s) => transpose(s, permuteOrder(s.params, s.shape(0).length)!)),
  row('SwapAxis', 'Transpose', swapAxis),
  row('ShuffleChannel', 'Reshape, Transpose, Reshape', shuffleChannel),
  row('Concat', 'Concat', concat),
  row('Slice', 'Slice', slice),
  row('Split', 'Split, Identity', split, 'Identity for each output in models of Caffe, where it copies'),
  row('StridedSlice', 'Slice', stridedSlice),
  row('Crop', 'Slice', crop),
  row('Pad', 'Pad', pad, 'modes 1 and 2 are edge and reflect'),
  row('Upsample', 'Resize', nearest),
  row('Resize', 'Resize', nearest, 'the engine takes `scale_x` for the height'),
  row('Interp', 'Resize', interp, '`resize_type` 3 is refused'),
  row('DepthToSpace', 'DepthToSpace', (s) =>
    s.finish('DepthToSpace', [s.input(0)], { blocksize: int(s.params.block_size), mode: text('CRD') }),
  ),
  row(
    'SpaceToDepth',
    'Identity',
    (s) => {
      s.note('the engine does not load the block size, and copies')
      s.finish('Identity', [s.input(0)])
    },
    'the engine does not load the block size, and copies',
  ),
  row('Gather', 'Gather', gather),
  row('Embedding', 'Reshape, Cast, Gather', embedding),
  row('TopKV2', 'TopK, Cast', topK),
]
