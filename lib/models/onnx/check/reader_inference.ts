/**
 * What readers infer less than tilework. They cannot refuse what they do not know, so that a model that only our inference
 * contradicts loads everywhere; its findings are warnings.
 *
 * Source: the inference functions in `onnx/defs` of the repository onnx/onnx.
 */
import { ownEntry } from '../../../own_entry.js'
import { type Dims, dimsOf, isKnown } from '../evaluate/dims.js'
import type { Known, NodeView } from '../infer/node_view.js'
import type { Schema } from '../schemas/schemas.js'

/** An output of a node. */
interface Output {
  readonly at: number
  /** Version that defined the operator. */
  readonly since: number
  /** The shape that follows from the node. */
  readonly dims: Dims
  readonly node: NodeView
}

/** Readers infer no rank where the dimensions depend on data. */
const dependsOnData = ({ dims }: Output): boolean => !dims.every(isKnown)
const isScalarOrList = ({ dims }: Output): boolean => dims.length < 2
const isOpenRecurrent = ({ since, node }: Output): boolean =>
  since < 7 ||
  node.int('hidden_size', 1) <= 0 ||
  !/^(forward|reverse|bidirectional)$/.test(node.text('direction') ?? 'forward')

/** Operators of `ai.onnx.ml` of which readers infer types alone. */
const TYPED_ALONE = [
  'CastMap',
  'DictVectorizer',
  'FeatureVectorizer',
  'LinearRegressor',
  'SVMClassifier',
  'SVMRegressor',
]

/** Outputs whose shapes readers do not infer, by operator. */
const NOT_INFERRED: Readonly<Record<string, (output: Output) => boolean>> = {
  ArrayFeatureExtractor: () => true,
  Attention: ({ node }) => node.dims(0)?.length === 4 && node.attribute('q_num_heads') !== undefined,
  BatchNormalization: ({ at, since }) => at > 0 && since < 14,
  BlackmanWindow: dependsOnData,
  CenterCropPad: dependsOnData,
  DFT: dependsOnData,
  Dropout: ({ at, since }) => at > 0 && since < 10,
  GRU: isOpenRecurrent,
  GlobalAveragePool: isScalarOrList,
  GlobalLpPool: isScalarOrList,
  GlobalMaxPool: isScalarOrList,
  HammingWindow: dependsOnData,
  HannWindow: dependsOnData,
  LSTM: isOpenRecurrent,
  MaxUnpool: ({ node }) => node.has(2),
  NegativeLogLikelihoodLoss: ({ node }) => !node.dims(0) || !node.dims(1),
  NonMaxSuppression: ({ since }) => since < 11,
  // Before version 18, and without a list of axes, the rank is that of the data.
  Pad: (output) => output.node.inputs.length > 3 && dependsOnData(output),
  RNN: isOpenRecurrent,
  Reshape: (output) => output.since < 14 && dependsOnData(output),
  Resize: dependsOnData,
  Split: dependsOnData,
  TopK: dependsOnData,
  TreeEnsembleClassifier: ({ since }) => since !== 3,
  TreeEnsembleRegressor: ({ since }) => since !== 3,
  ...Object.fromEntries(TYPED_ALONE.map((name) => [name, () => true])),
  ...Object.fromEntries(
    'L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare'
      .split(' ')
      .map((name) => [`Reduce${name}`, dependsOnData]),
  ),
}

/**
 * What readers know of the outputs of a node, of what tilework knows.
 *
 * @param schema - of the node; undefined for an operator that only runtimes know, whose types they infer
 */
export function asReadersInfer(node: NodeView, schema: Schema | undefined, outputs: Outputs): Outputs {
  if (schema && !hasTypes(node, schema)) return []
  const isOpen = hasOpenReference(node)
  const notInferred = ownEntry(NOT_INFERRED, node.opType)
  return outputs.map((known, at) => {
    if (known?.type.kind !== 'tensor') return known
    const { dtype, shape } = known.type
    const dims = dimsOf(shape)
    const isKept =
      !isOpen && schema?.isInferred && !(dims && notInferred?.({ at, since: schema.since, dims, node }))
    return isKept ? known : { ...known, type: { kind: 'tensor', dtype } }
  })
}

/** Whether an attribute is that of a function, in no function: readers take another value for it. */
export function hasOpenReference(node: NodeView): boolean {
  return node.node.attributesOnce().some(({ name, refName }) => refName !== '' && !node.attribute(name))
}

type Outputs = readonly (Known | undefined)[]

function hasTypes({ opType, inputs }: NodeView, schema: Schema): boolean {
  // Readers infer outputs of whole groups of inputs: a tensor, its gradient and its state.
  if (opType === 'Adagrad') return (inputs.length - 2) % 3 === 0
  return schema.isInferred || schema.outputs.every(({ isHomogeneous }) => isHomogeneous)
}
