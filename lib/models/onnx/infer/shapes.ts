/**
 * Shapes of the outputs of operators, by operator name. A rule returns a shape per output, undefined for an unknown rank;
 * null dimensions are unknown. Where the inputs contradict the operator nothing is known.
 *
 * Source: the operator specifications of ONNX; agreement with onnx.shape_inference is tested on models of all of them.
 */
import { ownEntry } from '../../../own_entry.js'
import { asExtent, broadcast, commonDims, type Dims, merged } from '../evaluate/dims.js'
import { CONTRIB_DOMAIN, contribShapesOf } from './contrib.js'
import { attention, einsum, gemm, matmul, recurrent } from './linear.js'
import {
  blocks,
  centerCropPad,
  compress,
  concat,
  expand,
  flatten,
  fromValues,
  gather,
  gatherND,
  oneHot,
  pad,
  range,
  reshape,
  resize,
  shapeRange,
  slice,
  split,
  tile,
  transpose,
  unknownOf,
} from './movement.js'
import type { NodeView } from './node_view.js'
import { RARER_SHAPES } from './rarer_shapes.js'
import { argReduce, layerStatistics, reduce, squeeze, topK, unique, unsqueeze } from './reductions.js'
import { convolution, gridSample, pooling, regions, transposedConvolution, unpooling } from './windows.js'

type ShapeRule = (node: NodeView) => readonly (Dims | undefined)[]
/** The shape of output 0. */
type FirstRule = (node: NodeView) => Dims | undefined

/** Shapes of the outputs; none for operators that are not known. */
export function shapesOf(node: NodeView): readonly (Dims | undefined)[] {
  if (node.domain === CONTRIB_DOMAIN) return contribShapesOf(node)
  if (!/^$|^ai[.]onnx[.]/.test(node.domain)) return []
  const first = FIRST.get(node.opType)
  if (first) return [first(node)]
  return (ALL.get(node.opType) ?? ownEntry(RARER_SHAPES, node.opType))?.(node) ?? []
}

/** Output 0 has the shape of input 0. */
const SAME = `Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot BitCast Cast CastLike Ceil Celu Clip Cos Cosh CumProd CumSum Elu
  Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Log LogSoftmax LRN LpNormalization
  MeanVarianceNormalization Mish Neg Not QuantizeLinear DequantizeLinear Reciprocal Relu Round Selu Shrink Sigmoid Sign
  Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu InstanceNormalization GroupNormalization
  RMSNormalization Bernoulli RandomNormalLike RandomUniformLike EyeLike ScatterElements ScatterND Scatter ReverseSequence
  RotaryEmbedding RegexFullMatch TensorScatter Binarizer Imputer Scaler Normalizer LabelEncoder CategoryMapper`
const BROADCAST = `Add Sub Mul Div Pow Mod And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitShift BitwiseAnd
  BitwiseOr BitwiseXor Max Min Mean Sum Where StringConcat`
const REDUCE = `ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
  ReduceSumSquare`
const GLOBAL_POOL = 'GlobalAveragePool GlobalMaxPool GlobalLpPool'

const named = <Rule>(names: string, rule: Rule): [string, Rule][] =>
  names.split(/\s+/).map((name) => [name, rule])

const FIRST: ReadonlyMap<string, FirstRule> = new Map<string, FirstRule>([
  ...named(SAME, (node: NodeView) => node.dims(0)),
  ...named(BROADCAST, broadcastInputs),
  ...named(REDUCE, reduce),
  ...named(GLOBAL_POOL, (node: NodeView) => node.dims(0)?.map((dim, axis) => (axis < 2 ? dim : 1))),
  ...named('ArgMax ArgMin', argReduce),
  ...named('Conv ConvInteger', (node: NodeView) => convolution(node)),
  ...named('AveragePool LpPool', pooling),
  ...named('MatMul MatMulInteger', (node: NodeView) => matmul(node.dims(0), node.dims(1))),
  ...named('Resize Upsample', resize),
  ...named('DepthToSpace SpaceToDepth', blocks),
  ...named('RoiAlign MaxRoiPool', regions),
  ...named('RandomNormal RandomUniform', (node: NodeView) => fromValues(node.ints('shape'))),
  ...named('HannWindow HammingWindow BlackmanWindow', (node: NodeView) => [
    asExtent(node.values(0)?.[0] ?? null),
  ]),
  ...named('NegativeLogLikelihoodLoss', (node: NodeView) => loss(node)),
  ['PRelu', (node) => node.dims(0)],
  ['QLinearConv', (node) => convolution(node, 3)],
  ['QLinearMatMul', (node) => matmul(node.dims(0), node.dims(3))],
  ['ConvTranspose', transposedConvolution],
  ['MaxUnpool', unpooling],
  ['GridSample', gridSample],
  ['DeformConv', (node) => convolution(node)],
  ['Gemm', gemm],
  ['Einsum', einsum],
  ['Transpose', transpose],
  ['Reshape', reshape],
  ['Flatten', flatten],
  ['Squeeze', squeeze],
  ['Unsqueeze', unsqueeze],
  ['Concat', concat],
  ['Slice', slice],
  ['Gather', gather],
  ['GatherElements', (node) => node.dims(1)],
  ['GatherND', gatherND],
  ['Compress', compress],
  ['Shape', (node) => node.dims(0) && [shapeRange(node).length]],
  ['Size', () => []],
  ['ConstantOfShape', constantOfShape],
  ['Expand', expand],
  ['Tile', tile],
  ['Pad', pad],
  ['CenterCropPad', centerCropPad],
  ['OneHot', oneHot],
  ['NonZero', (node) => [node.dims(0)?.length ?? null, null]],
  ['NonMaxSuppression', () => [null, 3]],
  ['Range', range],
  [
    'Multinomial',
    (node) => (node.dims(0)?.length === 2 ? [node.dims(0)![0]!, node.int('sample_size', 1)] : undefined),
  ],
  ['Det', (node) => ((node.dims(0)?.length ?? 0) < 2 ? undefined : node.dims(0)!.slice(0, -2))],
  ['SequenceLength', () => []],
  ['OptionalHasElement', () => []],
])

const ALL: ReadonlyMap<string, ShapeRule> = new Map<string, ShapeRule>([
  ['Dropout', (node) => [node.dims(0), node.dims(0)]],
  ['MaxPool', (node) => [pooling(node), pooling(node)]],
  ['Split', split],
  ['TopK', topK],
  ['Unique', unique],
  ['LayerNormalization', layerStatistics],
  ['BatchNormalization', batchNormalization],
  ['DynamicQuantizeLinear', (node) => [node.dims(0), [], []]],
  ...named('LSTM GRU RNN', recurrent),
  ['Attention', attention],
  [
    'SoftmaxCrossEntropyLoss',
    (node) => [(node.text('reduction') ?? 'mean') === 'none' ? node.dims(1) : [], node.dims(0)],
  ],
])

function broadcastInputs(node: NodeView): Dims | undefined {
  // Older versions broadcast on request, from an axis; sums of several inputs needed equal shapes before version 8.
  if (node.opset < 7 || (node.opset < 8 && /^(Max|Min|Mean|Sum)$/.test(node.opType))) return node.dims(0)
  const shapes = node.inputs.map((_, input) => node.dims(input))
  return shapes.every((shape) => shape !== undefined) ? broadcast(shapes as Dims[]) : undefined
}

function constantOfShape(node: NodeView): Dims | undefined {
  return fromValues(node.values(0)) ?? unknownOf(node.dims(0))
}

/** In training the statistics of each channel are outputs too. */
function batchNormalization(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  // All parameters have as many elements: where one says a number, that wins over names.
  const parameters = [1, 2, 3, 4].map((input) => node.dims(input)?.[0] ?? null)
  const channels = parameters.reduce((one, other) => merged(one, other) ?? null, dims?.[1] ?? null)
  const statistics = dims && [dims.length > 1 ? channels : 1]
  return [dims, ...node.outputs.slice(1).map(() => statistics)]
}

/** A number, or the shape of the labels. */
function loss(node: NodeView): Dims | undefined {
  if ((node.text('reduction') ?? 'mean') !== 'none') return []
  const [scores, labels] = [node.dims(0), node.dims(1)]
  if (!scores || labels?.length !== scores.length - 1) return undefined
  // Only what both say: implementations differ in which of them they take.
  return commonDims(labels, [scores[0]!, ...scores.slice(2)])
}
