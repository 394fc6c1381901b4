/** Changes of input shapes, and of what in the graph has the old ones written down. */
import { TileworkError } from '../../../errors.js'
import { tensor as denseTensor } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { isConstant } from '../enums.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../schema.js'
import { replaceConstant } from './edit_constants.js'
import { findTensor, linksOf, refuseEdit } from './lookup.js'
import { denseTensorOf } from './tensors.js'
import type { KnownNode, TmfileGraph, TmfileNode, TmfileTensor } from './types.js'

/** What a change of shapes met. */
export interface ShapeChange {
  /** Reshape nodes whose target was changed with the batch. */
  readonly reshaped: readonly TmfileNode[]
  /** Reshape nodes with a fixed number of elements, which may not fit the new shape any more. */
  readonly blocked: readonly TmfileNode[]
}

/**
 * Sets the shape of an input. Shapes that depend on it become unknown until the runtime infers them; where only the
 * batch is another, they follow it, and so do Reshape nodes that have it written down.
 *
 * @throws TileworkError ERR_ARGUMENT for no shape of positive extents and for one of another rank than before, since
 * parameters count axes; ERR_RANK above 8, ERR_GRAPH for a tensor that is
 * no input, ERR_ASYNC_ONLY where the stored target of a Reshape cannot be read at once
 */
export function setInputShape(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  shape: readonly number[],
): ShapeChange {
  const tensor = findTensor(graph, key)
  const isInput = graph.inputs.some(({ outputs }) => outputs.includes(tensor))
  if (!isInput) refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is no input of the graph.`)
  checkExtents(shape)
  const old = tensor.shape
  // A file may have a shape of no axes for one that is not known.
  if (old && old.length > 0 && old.length !== shape.length) {
    const message = `Input ${JSON.stringify(tensor.name)} has ${old.length} axes, [${old.join(', ')}]; [${shape.join(', ')}] has ${shape.length}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  tensor.shape = [...shape]
  if (old && shape.every((extent, axis) => extent === old[axis])) return NO_CHANGE
  const isBatchOnly = old && shape.slice(1).every((extent, at) => extent === old[at + 1])
  const dependent = dependentNodes(graph, tensor)
  if (isBatchOnly && old[0]! > 0 && shape[0]! > 0) return changeBatch(graph, dependent, old[0]!, shape[0]!)
  for (const each of dependent.flatMap(({ outputs }) => outputs)) if (!isConstant(each)) each.shape = null
  return { reshaped: [], blocked: dependent.filter(isFixedReshape) }
}

/**
 * Sets the first extent of every input. Errors: as `setInputShape`; ERR_ARGUMENT for what is no whole number from 1,
 * ERR_GRAPH for an input without a shape.
 */
export function setBatch(graph: TmfileGraph, batch: number): ShapeChange {
  if (!Number.isInteger(batch) || batch < 1) {
    const message = `A batch is a whole number from 1; ${valueText(batch)} was given.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const changes = graph.inputs
    .flatMap(({ outputs }) => outputs)
    .map((tensor) => {
      if (!tensor.shape || tensor.shape.length === 0) {
        return refuseEdit(`Input ${JSON.stringify(tensor.name)} has no shape; set it as a whole.`)
      }
      return setInputShape(graph, tensor, [batch, ...tensor.shape.slice(1)])
    })
  const all = (list: keyof ShapeChange) => [...new Set(changes.flatMap((change) => change[list]))]
  return { reshaped: all('reshaped'), blocked: all('blocked') }
}

const NO_CHANGE: ShapeChange = { reshaped: [], blocked: [] }

function checkExtents(shape: readonly number[]): void {
  if (!Array.isArray(shape) || shape.length === 0) {
    const message = `The shape of an input is an array of 1 to ${RUNTIME_LIMITS.dims} extents; ${Array.isArray(shape) ? 'an empty one' : valueText(shape)} was given.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const bad = shape.find(
    (extent) => !Number.isInteger(extent) || (extent < 1 && extent !== -1) || extent >= 2 ** 31,
  )
  if (bad !== undefined) {
    const message = `An extent is a whole number from 1, or -1 for one that is set later; ${valueText(bad)} was given.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  if (shape.length <= RUNTIME_LIMITS.dims) return
  const message = `A tmfile has at most ${RUNTIME_LIMITS.dims} axes; ${shape.length} were given.`
  throw new TileworkError('ERR_RANK', message, { format: FORMAT_NAME })
}

/** Nodes that a change of the tensor reaches. */
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

/** A target of known extents alone: neither "what is left" (-1) nor "as before" (0). */
function isFixedReshape(node: TmfileNode): node is Reshape {
  return node.operator === 'Reshape' && (node.params.re_shape?.every((extent) => extent > 0) ?? false)
}

function changeBatch(
  graph: TmfileGraph,
  nodes: readonly TmfileNode[],
  from: number,
  to: number,
): ShapeChange {
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

/** A first extent that is the batch follows it; of another nobody knows what it was made of. */
function batchOf(shape: readonly number[], from: number, to: number): number[] | null {
  return shape[0] === from ? [to, ...shape.slice(1)] : null
}

function changeTarget({ params }: Reshape, from: number, to: number): 'reshaped' | 'blocked' | 'free' {
  const target = params.re_shape
  if (!target || target.length === 0) return 'free'
  const first = target[0]!
  if (first === from) {
    // The batch, as long as the rest of the shape has no other place for it.
    params.re_shape = [to, ...target.slice(1)]
    return 'reshaped'
  }
  return target.every((extent) => extent > 0) ? 'blocked' : 'free'
}

/**
 * Models made from ONNX hold the target a second time, as an int32 constant: the first words of what were 64-bit numbers,
 * or the numbers. The batch is the first word either way.
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
