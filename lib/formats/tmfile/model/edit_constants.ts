/** Changes of constants: other numbers, none, shared ones. */

import { readInto } from '../../../bytes/fill_memory.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { cast } from '../../../tensor/cast.js'
import { checkDense } from '../../../tensor/check_tensor.js'
import { asStored } from '../../../tensor/dense.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { isConstant, NHWC } from '../enums.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../schema.js'
import { checkQuantization } from './check_arguments.js'
import { producerNode } from './create_node.js'
import { insertNode } from './edit_graph.js'
import { checkNewName, refuseTakenName } from './edit_names.js'
import { findTensor, refuseEdit } from './lookup.js'
import { denseTensorOf, quantizationOf } from './tensors.js'
import type { TmfileBuffer, TmfileDtype, TmfileGraph, TmfileQuantization, TmfileTensor } from './types.js'

/**
 * Gives a constant other numbers, and their type and shape. Its quantization parameters are those given, by default those
 * that the numbers bring, else none: old ones would mean nothing for new numbers.
 *
 * @throws TileworkError ERR_ARGUMENT for numbers that are no dense tensor and for parameters without one of their lists;
 * ERR_GRAPH for a tensor that is no constant; ERR_UNSUPPORTED for an element type that a tmfile
 * does not have, ERR_RANK above 8 axes, ERR_NO_DATA
 */
export function replaceConstant(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  numbers: DenseTensor,
  given?: TmfileQuantization | null,
): void {
  const tensor = findTensor(graph, key)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is no constant.`)
  checkDense(numbers, 'replaceConstant')
  const quantization = given === undefined ? quantizationOf(numbers) : given
  checkQuantization(quantization, 'quantization')
  const shape = storedShape(numbers)
  checkNumbers(numbers, shape)
  const buffer: TmfileBuffer = { byteLength: numbers.storage.byteLength, data: { tensor: numbers } }
  const isShared = graph.tensors.some((other) => other !== tensor && other.buffer === tensor.buffer)
  const at = isShared || !tensor.buffer ? graph.buffers.length : graph.buffers.indexOf(tensor.buffer)
  graph.buffers[at] = buffer
  Object.assign(tensor, { dtype: numbers.dtype as TmfileDtype, shape: [...shape], buffer, quantization })
}

function checkNumbers(numbers: DenseTensor, shape: readonly number[]): void {
  const refuse = (code: 'ERR_UNSUPPORTED' | 'ERR_RANK' | 'ERR_NO_DATA', reason: string): never => {
    throw new TileworkError(code, `Tensor "${numbers.name}" ${reason}.`, { format: FORMAT_NAME })
  }
  if (DTYPES[numbers.dtype].tmfile === undefined) {
    refuse('ERR_UNSUPPORTED', `is ${numbers.dtype}, which a tmfile has no number for`)
  }
  if (shape.length > RUNTIME_LIMITS.dims)
    refuse('ERR_RANK', `has ${shape.length} axes; a tmfile has at most 8`)
  if (!numbers.hasData) refuse('ERR_NO_DATA', 'has no data in its file')
}

/** Leaves the numbers of all constants away and keeps their sizes, as files for benchmarks do. */
export function stripWeights(graph: TmfileGraph): void {
  for (const buffer of graph.buffers) buffer.data = null
}

/**
 * Gives numbers to constants that have none: a tensor of the constant's type and shape for each, or null to leave it as it
 * is.
 *
 * @throws TileworkError ERR_ARGUMENT for one of another type or shape and for what is no dense tensor
 */
export function fillWeights(
  graph: TmfileGraph,
  numbersFor: (tensor: TmfileTensor) => DenseTensor | null,
): void {
  if (typeof numbersFor !== 'function') {
    const message = `numbersFor must be a function that gives a tensor for a constant; it is ${valueText(numbersFor)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  for (const tensor of graph.tensors) {
    const { buffer, dtype, shape } = tensor
    // Of constants that share a buffer the first fills it.
    if (!buffer || !shape || buffer.data) continue
    const given = numbersFor(tensor)
    if (given === null) continue
    const numbers = checkDense(given, 'fillWeights')
    const isSame = numbers.dtype === dtype && String(storedShape(numbers)) === String(shape)
    if (!isSame) {
      const [wanted, found] = [
        `${dtype} [${shape.join(', ')}]`,
        `${numbers.dtype} [${numbers.shape.join(', ')}]`,
      ]
      const message = `Constant ${JSON.stringify(tensor.name)} is ${wanted}; ${found} was given.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    Object.assign(buffer, { byteLength: numbers.storage.byteLength, data: { tensor: numbers } })
  }
}

/**
 * Adds a constant with these numbers, and the node that gives it to others, in front of all nodes.
 *
 * @throws TileworkError ERR_ARGUMENT for what is no name, ERR_GRAPH for one that a tensor or a node has already; and as
 * `replaceConstant`
 */
export function addConstant(
  graph: TmfileGraph,
  name: string,
  numbers: DenseTensor,
  quantization?: TmfileQuantization | null,
): TmfileTensor {
  const named = { name: checkNewName(name, 'The name of a constant') }
  refuseTakenName('tensor', named, graph.tensors)
  // Before anything is added: the node that gives the constant has its name.
  refuseTakenName('node', named, graph.nodes)
  const constant: TmfileTensor = {
    ...{ name, dtype: 'float32', shape: null, role: 'constant', layout: graph.graphLayout },
    ...{ quantization: null, buffer: null },
  }
  // Only what a graph has can be replaced; a refusal takes it out again.
  graph.tensors.push(constant)
  try {
    replaceConstant(graph, constant, numbers, quantization)
  } catch (error) {
    graph.tensors.pop()
    throw error
  }
  insertNode(graph, producerNode('Const', constant), 0)
  return constant
}

/**
 * Casts every constant that is a float of the other width, as the file is written. Constants without data keep their
 * place with the size of the new type.
 *
 * @returns how many were cast
 */
export function castWeights(graph: TmfileGraph, dtype: 'float32' | 'float16'): number {
  if (dtype !== 'float32' && dtype !== 'float16') {
    const message = `'dtype' is ${valueText(dtype)}; weights are cast to float32 or float16.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const from = dtype === 'float16' ? 'float32' : 'float16'
  const weights = graph.tensors.filter((tensor) => isConstant(tensor) && tensor.dtype === from)
  for (const weight of weights) castWeight(graph, weight, dtype)
  return weights.length
}

function castWeight(graph: TmfileGraph, weight: TmfileTensor, dtype: 'float32' | 'float16'): void {
  const { buffer, quantization } = weight
  if (buffer?.data && weight.shape) {
    const index = graph.tensors.indexOf(weight)
    replaceConstant(graph, weight, cast(denseTensorOf(weight, index), dtype) as DenseTensor, quantization)
    return
  }
  if (!buffer) return
  const byteLength = dtype === 'float16' ? buffer.byteLength / 2 : buffer.byteLength * 2
  const absent = { byteLength, data: null }
  // Another constant of the same buffer still needs the old size.
  const isShared = graph.tensors.some((other) => other !== weight && other.buffer === buffer)
  graph.buffers[isShared ? graph.buffers.length : graph.buffers.indexOf(buffer)] = absent
  Object.assign(weight, { dtype, buffer: absent })
}

/** Bytes of two buffers that are compared at a time. */
const COMPARED_BYTES = 1024 * 1024

/**
 * Lets constants with the same bytes share one buffer.
 *
 * @returns bytes that the file is shorter by
 * @throws TileworkError ERR_GRAPH for an NHWC model, whose shared buffers the runtime turns once for each user
 */
export async function mergeConstants(graph: TmfileGraph): Promise<number> {
  if (graph.modelLayout === NHWC) refuseEdit('Constants of an NHWC model cannot share buffers.')
  const merged = new Map<TmfileBuffer, TmfileBuffer>()
  const byLength = groupByLength(graph.buffers)
  for (const buffers of byLength.values()) {
    const distinct: TmfileBuffer[] = []
    for (const buffer of buffers) {
      const twin = await findTwin(buffer, distinct)
      if (twin) merged.set(buffer, twin)
      else distinct.push(buffer)
    }
  }
  for (const tensor of graph.tensors) {
    const twin = tensor.buffer && merged.get(tensor.buffer)
    if (twin) tensor.buffer = twin
  }
  graph.buffers = graph.buffers.filter((buffer) => !merged.has(buffer))
  return [...merged.keys()].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

function groupByLength(buffers: readonly TmfileBuffer[]): Map<number, TmfileBuffer[]> {
  const groups = new Map<number, TmfileBuffer[]>()
  for (const buffer of buffers) {
    groups.set(buffer.byteLength, [...(groups.get(buffer.byteLength) ?? []), buffer])
  }
  return groups
}

async function findTwin(
  buffer: TmfileBuffer,
  others: readonly TmfileBuffer[],
): Promise<TmfileBuffer | undefined> {
  if (!buffer.data) return undefined
  for (const other of others) {
    if (other.data && (await haveSameBytes(buffer, other))) return other
  }
  return undefined
}

async function haveSameBytes(one: TmfileBuffer, other: TmfileBuffer): Promise<boolean> {
  const [left, right] = [rangeOf(one), rangeOf(other)]
  const window = Math.min(COMPARED_BYTES, one.byteLength)
  for (let at = 0; at < one.byteLength; at += window) {
    const length = Math.min(window, one.byteLength - at)
    const [leftBytes, rightBytes] = [new Uint8Array(length), new Uint8Array(length)]
    await readInto(left.source, left.start + at, leftBytes)
    await readInto(right.source, right.start + at, rightBytes)
    if (Buffer.compare(leftBytes, rightBytes) !== 0) return false
  }
  return true
}

function rangeOf({ data }: TmfileBuffer) {
  return 'tensor' in data! ? asStored(data.tensor) : data!
}
