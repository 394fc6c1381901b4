/**
 * Which shapes readers infer from a node and compare with the declared ones. A declared shape that only our inference
 * contradicts loads everywhere, so that it is no error.
 *
 * Source: the inference functions in `onnx/defs` of the repository onnx/onnx.
 */
import { ownEntry } from '../../../own_entry.js'
import type { Node } from '../document/types.js'
import { type Dims, isKnown } from '../infer/dims.js'
import type { Schema } from '../schemas/schemas.js'

/** An output of a node. */
interface Output {
  readonly at: number
  /** Version that defined the operator. */
  readonly since: number
  /** The shape that follows from the node. */
  readonly dims: Dims
  /** Number of inputs of the node. */
  readonly inputs: number
}

/** Readers infer no rank where the dimensions depend on data. */
const dependsOnData = ({ dims }: Output): boolean => !dims.every(isKnown)
const isScalarOrList = ({ dims }: Output): boolean => dims.length < 2
const isEarlyRecurrent = ({ since }: Output): boolean => since < 7

/** Outputs whose shapes readers do not infer, by operator. */
const NOT_INFERRED: Readonly<Record<string, (output: Output) => boolean>> = {
  ArrayFeatureExtractor: () => true,
  BatchNormalization: ({ at, since }) => at > 0 && since < 14,
  BlackmanWindow: dependsOnData,
  CenterCropPad: dependsOnData,
  DFT: dependsOnData,
  Dropout: ({ at, since }) => at > 0 && since < 10,
  GRU: isEarlyRecurrent,
  GlobalAveragePool: isScalarOrList,
  GlobalLpPool: isScalarOrList,
  GlobalMaxPool: isScalarOrList,
  HammingWindow: dependsOnData,
  HannWindow: dependsOnData,
  LSTM: isEarlyRecurrent,
  NonMaxSuppression: ({ since }) => since < 11,
  // Before version 18, and without a list of axes, the rank is that of the data.
  Pad: (output) => output.inputs > 3 && dependsOnData(output),
  RNN: isEarlyRecurrent,
  Reshape: (output) => output.since < 14 && dependsOnData(output),
  Split: dependsOnData,
  ...Object.fromEntries(
    'L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare'
      .split(' ')
      .map((name) => [`Reduce${name}`, dependsOnData]),
  ),
}

/** The node that gives an output, and its schema; undefined for an operator that only runtimes know. */
export interface Producer {
  readonly node: Node
  readonly schema: Schema | undefined
}

export function isShapeCompared(producer: Producer, at: number, dims: Dims): boolean {
  const { schema, node } = producer
  if (!schema?.isInferred || !isTypeCompared(producer)) return false
  const { opType, inputs } = node
  return !ownEntry(NOT_INFERRED, opType)?.({ at, since: schema.since, dims, inputs: inputs.length })
}

/** As `isShapeCompared`, for the types without shapes. Runtimes infer those of the operators that they know. */
export function isTypeCompared({ node: { opType, inputs }, schema }: Producer): boolean {
  // Readers infer outputs of whole groups of inputs: a tensor, its gradient and its state.
  if (opType === 'Adagrad' && schema) return (inputs.length - 2) % 3 === 0
  return !schema || schema.isInferred || schema.outputs.every(({ isHomogeneous }) => isHomogeneous)
}
