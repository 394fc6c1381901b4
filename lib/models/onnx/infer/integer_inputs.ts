/**
 * What the integers of a model's inputs mean, found by following each input through the nodes that only move numbers: indices stay
 * below the dimension that they index, and flags, such as attention masks, are 0 or 1. Serves generated inputs of test runs.
 */
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { least } from '../../../long_lists.js'
import { ownEntry } from '../../../own_entry.js'
import type { OnnxModel } from '../document/model.js'
import { axisOf, type Dim, isKnown } from '../evaluate/dims.js'
import { MOVERS } from '../schemas/movers.js'
import { parameterAt, schemaAt } from '../schemas/schemas.js'
import { inferModel } from './infer.js'
import type { Known, NodeView } from './node_view.js'

/** The numbers that an input may have. */
export interface IntegerInput {
  /** Indices are below; the least of all its uses. Absent where it indexes nothing of known size. */
  readonly below?: number
  /** True where the model tests for 0. */
  readonly isFlag: boolean
}

/** A value that consists of numbers of an input, each with the same number added. */
interface Moved {
  readonly input: string
  readonly added: number
}

/** Most inputs that one value may come from: a chain of Concat of all inputs costs no more than its nodes. */
const MAX_ORIGINS = 16

/**
 * What the integers of the inputs mean, by name. The dimensions of inputs should be numbers: sizes that do not follow are not
 * found.
 */
export function integerInputs(model: OnnxModel): ReadonlyMap<string, IntegerInput> {
  const found = new Map<string, { below?: number; isFlag: boolean }>()
  const noteOf = (input: string): { below?: number; isFlag: boolean } => {
    const own = found.get(input) ?? { isFlag: false }
    found.set(input, own)
    return own
  }
  const { graph } = model
  const inputs = graph.inputs.map(({ name, type }): Known | undefined =>
    graph.hasInitializer(name) || type.kind !== 'tensor'
      ? undefined
      : { type, note: [{ input: name, added: 0 }] satisfies Moved[] },
  )
  const visit = (node: NodeView, outputs: readonly (Known | undefined)[]): readonly (Known | undefined)[] => {
    for (const at of node.inputs.keys()) {
      const moved = movedAt(node, at)
      if (moved.length === 0) continue
      const size = indexedSize(node, at)
      for (const { input, added } of moved) {
        const own = noteOf(input)
        if (size !== undefined) own.below = Math.min(own.below ?? size - added, size - added)
        if (isTestedForZero(node, at)) own.isFlag = true
      }
    }
    const moved = movedBy(node)
    return moved.length === 0 ? outputs : outputs.map((known) => known && { ...known, note: moved })
  }
  inferModel(model, { inputs, visit })
  return found
}

function movedAt(node: NodeView, at: number): readonly Moved[] {
  return (node.known(at)?.note as readonly Moved[] | undefined) ?? []
}

/** What the outputs of a node consist of. */
function movedBy(node: NodeView): readonly Moved[] {
  const { opType, domain, opset, inputs } = node
  if (domain !== '') return []
  if (opType === 'Cast') return movedAt(node, 0)
  if (opType === 'Add' || opType === 'Sub') return shifted(node)
  const schema = MOVERS.has(opType) ? schemaAt('', opType, opset) : undefined
  if (!schema) return []
  const variable = schema.outputs[0]?.variable
  const moved = [...inputs.keys()].flatMap((at) =>
    parameterAt(schema.inputs, at)?.variable === variable ? movedAt(node, at) : [],
  )
  return moved.slice(0, MAX_ORIGINS)
}

/** The numbers of an input plus or minus a constant, as positions that start at 2. */
function shifted(node: NodeView): readonly Moved[] {
  const [left, right] = [scalarAt(node, 0), scalarAt(node, 1)]
  const sign = node.opType === 'Sub' ? -1 : 1
  const [side, constant] = right === undefined ? [1, left] : [0, sign * right]
  if (constant === undefined || (side === 1 && sign === -1)) return []
  return movedAt(node, side).map(({ input, added }) => ({ input, added: added + constant }))
}

function scalarAt(node: NodeView, at: number): number | undefined {
  const numbers = node.integers(at)
  return numbers?.length === 1 ? numbers[0] : undefined
}

/** Input by input: where a node takes indices, the size of the dimension that they index. */
type IndexedSizes = Readonly<Record<number, (node: NodeView) => Dim | undefined>>

const dimOf =
  (input: number, axis: number) =>
  (node: NodeView): Dim | undefined =>
    node.dims(input)?.at(axis)

/** The dimension of the axis that an attribute names. */
const axisDim =
  (attribute: string) =>
  (node: NodeView): Dim | undefined => {
    const dims = node.dims(0)
    const axis = dims && axisOf(node.int(attribute, 0), dims.length)
    return axis === undefined ? undefined : dims![axis]
  }

/** The least of the dimensions that tuples of indices index. */
const tupleDim =
  (hasBatch: boolean) =>
  (node: NodeView): Dim | undefined => {
    const [dims, length] = [node.dims(0), node.dims(1)?.at(-1)]
    if (!dims || !isKnown(length)) return undefined
    const first = hasBatch ? node.int('batch_dims', 0) : 0
    const indexed = dims.slice(first, first + length)
    return indexed.length > 0 && indexed.every(isKnown) ? least(indexed as number[]) : undefined
  }

const INDEXED: Readonly<Record<string, IndexedSizes>> = {
  ':Gather': { 1: axisDim('axis') },
  ':GatherElements': { 1: axisDim('axis') },
  ':GatherND': { 1: tupleDim(true) },
  ':NegativeLogLikelihoodLoss': { 1: dimOf(0, 1) },
  ':OneHot': { 0: (node) => scalarAt(node, 1) },
  ':RotaryEmbedding': { 3: dimOf(1, 0) },
  ':Scatter': { 1: axisDim('axis') },
  ':ScatterElements': { 1: axisDim('axis') },
  ':ScatterND': { 1: tupleDim(false) },
  ':SoftmaxCrossEntropyLoss': { 1: dimOf(0, 1) },
  'ai.onnx.ml:ArrayFeatureExtractor': { 1: dimOf(0, -1) },
  'com.microsoft:EmbedLayerNormalization': { 0: dimOf(2, 0), 1: dimOf(4, 0), 8: dimOf(3, 0) },
  'com.microsoft:GatherBlockQuantized': { 1: axisDim('gather_axis') },
  'com.microsoft:GatherND': { 1: tupleDim(true) },
  'com.microsoft:RotaryEmbedding': { 1: dimOf(2, 0) },
}

function indexedSize(node: NodeView, at: number): number | undefined {
  const size = ownEntry(INDEXED, `${node.domain}:${node.opType}`)?.[at]?.(node)
  return isKnown(size) ? size : undefined
}

/** `Cast` to bool; `1 - x`, as masks of scores begin; masks of fused attention. */
function isTestedForZero(node: NodeView, at: number): boolean {
  const { domain, opType } = node
  if (domain === 'com.microsoft') return ownEntry(FUSED_MASKS, opType) === at
  if (domain !== '') return false
  if (opType === 'Cast') return DTYPE_OF_CODE.get(node.int('to', 0)) === 'bool'
  if (opType === 'Sub') return at === 1 && node.numbers(0)?.join() === '1'
  return false
}

/** Inputs of operators of onnxruntime that are masks of 0 and 1. */
const FUSED_MASKS: Readonly<Record<string, number>> = {
  Attention: 3,
  EmbedLayerNormalization: 7,
  MultiHeadAttention: 4,
  QAttention: 5,
}
