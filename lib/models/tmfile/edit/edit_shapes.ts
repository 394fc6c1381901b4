/** Changes input shapes, and every dependent shape and Reshape target in the graph. */
import { TileworkError } from '../../../errors.js'
import { isConstant, NHWC } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../../../formats/tmfile/schema.js'
import type { KnownNode, TmfileGraph, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { append } from '../../../long_lists.js'
import { tensor as denseTensor } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { findTensor, linksOf, refuseEdit } from '../document/lookup.js'
import { denseTensorOf } from '../document/tensors.js'
import { inferShapes } from '../infer/infer_shapes.js'
import { replaceConstant } from './edit_constants.js'

/** What a shape change affects beside shapes that follow. */
export interface ShapeChange {
  /** Nodes whose target shape was changed to the new batch size. */
  readonly reshaped: readonly TmfileNode[]
  /** Nodes that may not fit the new input shape: a Reshape by its target, a FullyConnected by the size of its weights. */
  readonly blocked: readonly TmfileNode[]
  /** Dependent tensors whose shapes are not known before the runtime infers them. */
  readonly unknown: readonly TmfileTensor[]
}

/**
 * Sets the shape of an input, and the shapes that follow from it by the rules of `inferShapes`; other dependent shapes become
 * unknown until the runtime infers them. Where only the batch size changes, dependent shapes and Reshape targets that contain the
 * batch size change with it.
 *
 * @throws TileworkError ERR_ARGUMENT for an invalid shape and for a different rank, because parameters refer to axes;
 * ERR_RANK above rank 8; ERR_GRAPH for a tensor that is not an input; ERR_ASYNC_ONLY where the stored target of a Reshape
 * cannot be read synchronously
 */
export function setInputShape(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  shape: readonly number[],
): ShapeChange {
  const tensor = findInput(graph, key)
  checkExtents(shape)
  const old = tensor.shape
  // Some files store an unknown shape as rank 0.
  if (old && old.length > 0 && old.length !== shape.length) {
    const message = `The new shape [${shape.join(', ')}] has rank ${shape.length}; input ${JSON.stringify(tensor.name)} has rank ${old.length}, [${old.join(', ')}].`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  tensor.shape = [...shape]
  if (old && shape.every((extent, axis) => extent === old[axis])) return NO_CHANGE
  const isBatchOnly = old && shape.slice(1).every((extent, index) => extent === old[index + 1])
  const dependent = dependentNodes(graph, tensor)
  if (isBatchOnly && old[0]! > 0 && shape[0]! > 0) {
    const change = changeBatch(graph, dependent, old[0]!, shape[0]!)
    return { ...change, unknown: inferMissing(graph, dependent).unknown }
  }
  for (const each of dependent.flatMap(({ outputs }) => outputs)) if (!isConstant(each)) each.shape = null
  const { unknown, failed } = inferMissing(graph, dependent)
  return { reshaped: [], blocked: failed.filter((node) => isFixedReshape(node) || isMisfit(node)), unknown }
}

/** Input names that an error lists. */
const MAX_LISTED = 8

function findInput(graph: TmfileGraph, key: TmfileTensor | string): TmfileTensor {
  const inputs = graph.inputs.flatMap(({ outputs }) => outputs)
  const names = inputs.slice(0, MAX_LISTED).map(({ name }) => JSON.stringify(name))
  const list = `inputs: ${names.join(', ')}${inputs.length > MAX_LISTED ? ', …' : ''}`
  const tensor = findTensor(graph, key, `; ${list}`)
  if (!inputs.includes(tensor)) {
    refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is not an input of the graph; ${list}.`)
  }
  return tensor
}

interface Inferred {
  /** Tensors without a shape. */
  readonly unknown: readonly TmfileTensor[]
  /** Nodes that have such an output. */
  readonly failed: readonly TmfileNode[]
}

/** Computes the shapes that are missing behind an input, in the order of execution. */
function inferMissing(graph: TmfileGraph, dependent: readonly TmfileNode[]): Inferred {
  const nodes = new Set(dependent)
  const unknown: TmfileTensor[] = []
  const failed: TmfileNode[] = []
  // A file whose two layouts differ does not say which order its shapes have.
  const isKnownOrder = graph.graphLayout === graph.modelLayout
  for (const node of graph.nodes) {
    if (!nodes.has(node)) continue
    const missing = node.outputs.filter((tensor) => !isConstant(tensor) && tensor.shape === null)
    if (missing.length === 0) continue
    const shapes = isKnownOrder ? inferShapes(node, graph.graphLayout === NHWC) : undefined
    if (shapes) {
      for (const tensor of missing) tensor.shape = [...shapes[node.outputs.indexOf(tensor)]!]
    } else {
      failed.push(node)
      append(unknown, missing)
    }
  }
  return { unknown, failed }
}

/**
 * Sets the first dimension of every input.
 *
 * @throws TileworkError as `setInputShape`; ERR_ARGUMENT unless `batch` is an integer from 1; ERR_GRAPH for an input
 * without a shape
 */
export function setBatch(graph: TmfileGraph, batch: number): ShapeChange {
  if (!Number.isInteger(batch) || batch < 1) {
    const message = `batch is ${valueText(batch)}; it must be an integer from 1.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const changes = graph.inputs
    .flatMap(({ outputs }) => outputs)
    .map((tensor) => {
      if (!tensor.shape || tensor.shape.length === 0) {
        return refuseEdit(
          `Input ${JSON.stringify(tensor.name)} has no shape; set all its dimensions first (setInputShape, --set-input).`,
        )
      }
      return setInputShape(graph, tensor, [batch, ...tensor.shape.slice(1)])
    })
  const all = (list: 'reshaped' | 'blocked') => [...new Set(changes.flatMap((change) => change[list]))]
  return {
    reshaped: all('reshaped'),
    blocked: all('blocked'),
    unknown: [...new Set(changes.flatMap(({ unknown }) => unknown))].filter(({ shape }) => shape === null),
  }
}

const NO_CHANGE: ShapeChange = { reshaped: [], blocked: [], unknown: [] }

function checkExtents(shape: readonly number[]): void {
  if (!Array.isArray(shape) || shape.length === 0) {
    const message = `The shape is ${Array.isArray(shape) ? 'empty' : valueText(shape)}; it must be an array of 1 to ${RUNTIME_LIMITS.dims} dimensions.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const bad = shape.find(
    (extent) => !Number.isInteger(extent) || (extent < 1 && extent !== -1) || extent >= 2 ** 31,
  )
  if (bad !== undefined) {
    const message = `The shape has the dimension ${valueText(bad)}; a dimension is an integer from 1, or -1 for one that is set later.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  if (shape.length <= RUNTIME_LIMITS.dims) return
  const message = `The shape has rank ${shape.length}; a tmfile holds at most ${RUNTIME_LIMITS.dims} dimensions.`
  throw new TileworkError('ERR_RANK', message, { format: FORMAT_NAME })
}

/** Nodes that depend on the tensor, directly or not. */
function dependentNodes(graph: TmfileGraph, tensor: TmfileTensor): TmfileNode[] {
  const links = linksOf(graph)
  const found = new Set<TmfileNode>()
  const open = [...(links.get(tensor)?.consumers ?? [])]
  for (let node = open.pop(); node; node = open.pop()) {
    if (found.has(node)) continue
    found.add(node)
    for (const output of node.outputs) {
      for (const consumer of links.get(output)?.consumers ?? []) open.push(consumer)
    }
  }
  return [...found]
}

type Reshape = KnownNode<'Reshape'>

/** Whether every dimension of the target is fixed: none is inferred (-1) or copied from the input (0). */
function isFixedReshape(node: TmfileNode): node is Reshape {
  return node.operator === 'Reshape' && (node.params.re_shape?.every((extent) => extent > 0) ?? false)
}

/**
 * Whether the elements of the input cannot fill the target of a Reshape, whatever its -1 becomes, or are not those that the
 * weights of a FullyConnected take.
 */
function isMisfit(node: TmfileNode): boolean {
  if (node.operator === 'FullyConnected') return hasOtherInputs(node)
  if (node.operator !== 'Reshape') return false
  const [shape, target] = [node.inputs[0]?.shape, node.params.re_shape]
  if (!shape?.every((extent) => extent > 0) || !target || target.includes(0)) return false
  return productOf(shape) % productOf(target.filter((extent) => extent > 0)) !== 0
}

/** As the rule of `inferShapes`, for inputs whose shape is known. */
function hasOtherInputs({ inputs: [input, weights], params }: KnownNode<'FullyConnected'>): boolean {
  const [shape, taken] = [input?.shape, weights?.shape]
  if (!taken || (shape?.length !== 2 && shape?.length !== 4) || shape.some((extent) => extent < 1))
    return false
  return productOf(taken) !== params.num_output * productOf(shape.slice(1))
}

function productOf(extents: readonly number[]): number {
  return extents.reduce((product, extent) => product * extent, 1)
}

function changeBatch(
  graph: TmfileGraph,
  nodes: readonly TmfileNode[],
  from: number,
  to: number,
): Omit<ShapeChange, 'unknown'> {
  const reshaped: TmfileNode[] = []
  const blocked: TmfileNode[] = []
  for (const node of nodes) {
    if (node.operator === 'Reshape') {
      const change = changeTarget(node, from, to)
      if (change === 'reshaped') {
        reshaped.push(node)
        changeStoredTarget(graph, node, from, to)
      }
      if (change === 'blocked') blocked.push(node)
    }
    for (const tensor of node.outputs) {
      if (!isConstant(tensor) && tensor.shape) tensor.shape = batchOf(tensor.shape, from, to)
    }
  }
  return { reshaped, blocked }
}

/** Changes a first dimension that equals the batch size; a shape with any other first dimension becomes unknown. */
function batchOf(shape: readonly number[], from: number, to: number): number[] | null {
  return shape[0] === from ? [to, ...shape.slice(1)] : null
}

function changeTarget({ params }: Reshape, from: number, to: number): 'reshaped' | 'blocked' | 'free' {
  const target = params.re_shape
  if (!target || target.length === 0) return 'free'
  const first = target[0]!
  if (first === from) {
    // A first dimension equal to the batch size is assumed to be the batch.
    params.re_shape = [to, ...target.slice(1)]
    return 'reshaped'
  }
  return target.every((extent) => extent > 0) ? 'blocked' : 'free'
}

/**
 * Models converted from ONNX store the target a second time, as an int32 constant: either the values, or the leading words
 * of the original 64-bit values. Both start with the batch size.
 */
function changeStoredTarget(graph: TmfileGraph, { inputs }: Reshape, from: number, to: number): void {
  const target = inputs[1]
  if (!target || !isConstant(target) || target.dtype !== 'int32' || !target.buffer?.data || !target.shape)
    return
  const consumers = linksOf(graph).get(target)?.consumers ?? []
  if (!consumers.every(({ operator }) => operator === 'Reshape')) return
  const old = denseTensorOf(target, graph.tensors.indexOf(target))
  const words = new Int32Array(old.size)
  old.copyToSync(new Uint8Array(words.buffer))
  if (words[0] !== from) return
  words[0] = to
  const changed = denseTensor(words, { name: old.name, dtype: 'int32', shape: target.shape })
  replaceConstant(graph, target, changed as DenseTensor, target.quantization)
}
