/**
 * Computes shapes of outputs from the shapes of inputs, by the rules of the reference's `infer_shape` functions: it infers
 * every shape anew when it prepares a graph, and does not trust stored ones. The rules were compared with the shapes that
 * real files store, and with the runtime itself.
 */
import { isConstant } from '../../../formats/tmfile/enums.js'
import type { TmfileNode } from '../../../formats/tmfile/types.js'
import * as movement from './movement.js'
import { nchwParams, toNchw, toNhwc } from './nchw.js'
import { countOf, one, type RuleCase, type RuleOf, type Shape, type ShapeRule } from './shape_rule.js'
import * as windows from './windows.js'

/**
 * The shapes of the outputs of a node; undefined where the rule is not known or does not hold for its inputs.
 *
 * @param isNhwc - shapes and parameters are those of a model in NHWC, which the runtime converts when it loads it
 */
export function inferShapes(node: TmfileNode, isNhwc: boolean): readonly Shape[] | undefined {
  const rule = (RULES as Partial<Record<string, ShapeRule>>)[node.operator]
  if (!rule || node.opaqueParams !== null || node.inputs.length === 0) return undefined
  if (node.inputs.some((tensor) => !isConstant(tensor) && !isKnown(tensor.shape))) return undefined
  // A constant may have no elements, and some files have such an input that nothing reads.
  const stored = node.inputs.map(({ shape }) => shape ?? [])
  const inputs = isNhwc ? stored.map(toNchw) : stored
  const params = isNhwc ? nchwParams(node, inputs[0]!.length) : node.params
  if (!params) return undefined
  const shapes = rule({ inputs, params: params as never, outputs: node.outputs.length })
  if (shapes?.length !== node.outputs.length || !shapes.every(isWhole)) return undefined
  return isNhwc ? shapes.map(toNhwc) : shapes
}

function isKnown(shape: Shape | null): shape is Shape {
  return shape !== null && shape.length > 0 && shape.every((extent) => extent >= 1)
}

function isWhole(shape: Shape): boolean {
  return shape.every((extent) => Number.isInteger(extent) && extent >= 1 && extent < 2 ** 31)
}

const same: ShapeRule = ({ inputs }) => one(inputs[0])

/** Operators whose output has the shape of the first input. */
const SAME_SHAPE = [
  ...['Absval', 'Addn', 'BatchNormalization', 'Bias', 'BroadMul', 'Cast', 'Ceil', 'Clip', 'Dropout', 'Elu'],
  ...['Fused.BNScaleReLu', 'Gelu', 'HardSwish', 'Hardsigmoid', 'InstanceNorm', 'L2Normalization', 'LRN'],
  ...[
    'LayerNorm',
    'LogSoftmax',
    'Logistic',
    'MVN',
    'Maximum',
    'Mean',
    'Minimum',
    'Mish',
    'Noop',
    'Normalize',
  ],
  ...[
    'PReLU',
    'ReLU1',
    'ReLu',
    'ReLu6',
    'Reciprocal',
    'Region',
    'Reverse',
    'Round',
    'Scale',
    'Scatter',
    'Selu',
  ],
  ...['ShuffleChannel', 'Sigmoid', 'Softmax', 'Softplus', 'Tanh', 'Threshold', 'Unary', 'ZerosLike'],
]

/** The shape of the input with more elements; of the first if they are equal. */
const larger: ShapeRule = ({ inputs }) => {
  if (inputs.length > 2) return undefined
  const [first, second = first] = inputs
  return one(countOf(first!) >= countOf(second!) ? first : second)
}

const comparison: ShapeRule = ({ inputs: [first, second = first] }) =>
  one(first!.length >= second!.length ? first : second)

const logical: ShapeRule = ({ inputs: [first, second = first] }) =>
  one(countOf(first!) > countOf(second!) ? first : second)

const squaredDifference: ShapeRule = ({ inputs: [first, second] }) =>
  String(first) === String(second) ? one(first) : undefined

/** The output has the rank of the input, with extents of 1 behind the second. */
const fullyConnected: RuleOf<'FullyConnected'> = ({ inputs: [input, weights] }) => {
  const [outputs, taken] = weights ?? []
  if (input!.length < 2 || input!.length > 4 || outputs === undefined) return undefined
  if (taken !== countOf(input!.slice(1))) return undefined
  return one([input![0]!, outputs, ...input!.slice(2).map(() => 1)])
}

const matMul: ShapeRule = ({ inputs: [first, second] }) => {
  if (!second || first!.length < 2 || first!.length > 4) return undefined
  return one([...first!.slice(0, -1), second.at(-1)!])
}

/** Rows of the output are steps, directions, batch and hidden units, as in ONNX. */
function recurrent({ inputs: [input], params }: RuleCase<{ hidden_size: number; mxnet_flag: number }>) {
  if (input!.length !== 3 || params.mxnet_flag !== 0) return undefined
  return one([input![0]!, 1, input![1]!, params.hidden_size])
}

const detectionOutput: RuleOf<'DetectionOutput'> = ({ inputs: [input], params }) =>
  one([input![0]!, params.keep_top_k, 6, 1])

const RULES = {
  ...Object.fromEntries(SAME_SHAPE.map((name): [string, ShapeRule] => [name, same])),
  Comparison: comparison,
  Concat: movement.concat,
  Convolution: windows.convolution,
  Crop: windows.crop,
  Deconvolution: windows.deconvolution,
  DepthToSpace: windows.depthToSpace,
  DetectionOutput: detectionOutput,
  Eltwise: larger,
  Embedding: movement.embedding,
  Expanddims: movement.expandDims,
  Flatten: movement.flatten,
  FullyConnected: fullyConnected,
  GRU: recurrent,
  Gather: movement.gather,
  Interp: windows.interp,
  LSTM: recurrent,
  Logical: logical,
  MatMul: matMul,
  Pad: windows.pad,
  Permute: movement.permute,
  Pooling: windows.pooling,
  PriorBox: windows.priorBox,
  ReduceL2: movement.reduceL2,
  Reduction: movement.reduction,
  Reshape: movement.reshape,
  Resize: windows.resize,
  Slice: movement.slice,
  SpaceToDepth: windows.spaceToDepth,
  Split: movement.split,
  SquaredDifference: squaredDifference,
  Squeeze: movement.squeeze,
  StridedSlice: movement.stridedSlice,
  SwapAxis: movement.swapAxis,
  TopKV2: movement.topK,
  Transpose: movement.transpose,
  Unsqueeze: movement.unsqueeze,
  Upsample: windows.upsample,
}
