/** Edits of constants: replace, add, strip, fill, cast and merge their data. */

import { readInto } from '../../../bytes/fill_memory.js'
import { checkOneOf } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { isConstant, NHWC, TMFILE_DTYPES } from '../../../formats/tmfile/enums.js'
import { mixedConstants } from '../../../formats/tmfile/mixed_types.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../../../formats/tmfile/schema.js'
import type {
  TmfileBuffer,
  TmfileDtype,
  TmfileGraph,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import { cast } from '../../../tensor/cast.js'
import { checkDense } from '../../../tensor/check_tensor.js'
import { asStored } from '../../../tensor/dense.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { checkQuantization } from '../document/check_arguments.js'
import { findConstant, refuseEdit } from '../document/lookup.js'
import { producerNode } from '../document/operator_node.js'
import { denseTensorOf, quantizationOf } from '../document/tensors.js'
import { insertNode } from './edit_graph.js'
import { checkNewName, refuseTakenName } from './edit_names.js'

/**
 * Replaces the data of a constant, and its dtype and shape. The quantization parameters default to the parameters of the
 * new data, or to none; the old parameters never apply to new data.
 *
 * @throws TileworkError ERR_ARGUMENT for data that is not a dense tensor and for incomplete quantization parameters;
 * ERR_GRAPH for a tensor that is not a constant; ERR_UNSUPPORTED for a dtype that a tmfile cannot hold; ERR_RANK above
 * rank 8; ERR_NO_DATA
 */
export function replaceConstant(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  numbers: DenseTensor,
  given?: TmfileQuantization | null,
): void {
  const tensor = findConstant(graph, key)
  checkDense(numbers, 'replaceConstant')
  const quantization = given === undefined ? quantizationOf(numbers) : given
  checkQuantization(quantization, 'quantization')
  const shape = storedShape(numbers)
  checkData(numbers, shape)
  const buffer: TmfileBuffer = { byteLength: numbers.storage.byteLength, data: { tensor: numbers } }
  const isShared = graph.tensors.some((other) => other !== tensor && other.buffer === tensor.buffer)
  const index = isShared || !tensor.buffer ? graph.buffers.length : graph.buffers.indexOf(tensor.buffer)
  graph.buffers[index] = buffer
  Object.assign(tensor, { dtype: numbers.dtype as TmfileDtype, shape: [...shape], buffer, quantization })
}

function checkData(numbers: DenseTensor, shape: readonly number[]): void {
  const refuse = (code: 'ERR_UNSUPPORTED' | 'ERR_RANK' | 'ERR_NO_DATA', reason: string): never => {
    throw new TileworkError(code, `Tensor "${numbers.name}" ${reason}.`, { format: FORMAT_NAME })
  }
  if (!TMFILE_DTYPES.includes(numbers.dtype)) {
    refuse('ERR_UNSUPPORTED', `is ${numbers.dtype}; a tmfile holds ${TMFILE_DTYPES.join(', ')}`)
  }
  if (shape.length > RUNTIME_LIMITS.dims) {
    refuse('ERR_RANK', `has rank ${shape.length}; a tmfile holds at most ${RUNTIME_LIMITS.dims} dimensions`)
  }
  if (!numbers.hasData) refuse('ERR_NO_DATA', 'has no data in its file')
}

/** Removes the data of all constants and keeps their sizes, as in model files for benchmarks. */
export function stripWeights(graph: TmfileGraph): void {
  for (const buffer of graph.buffers) buffer.data = null
}

/**
 * Gives data to constants without any: a dense tensor of the constant's dtype and shape, or null to leave it as it is.
 *
 * @throws TileworkError ERR_ARGUMENT for another dtype or shape, and for anything except a dense tensor
 */
export function fillWeights(graph: TmfileGraph, dataFor: (tensor: TmfileTensor) => DenseTensor | null): void {
  if (typeof dataFor !== 'function') {
    const message = `dataFor is ${valueText(dataFor)}; it must be a function that returns a tensor for a constant.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  for (const tensor of graph.tensors) {
    const { buffer, dtype, shape } = tensor
    // The first of several constants that share a buffer fills it.
    if (!buffer || !shape || buffer.data) continue
    const given = dataFor(tensor)
    if (given === null) continue
    const numbers = checkDense(given, 'fillWeights')
    const isSame = numbers.dtype === dtype && String(storedShape(numbers)) === String(shape)
    if (!isSame) {
      const [wanted, found] = [
        `${dtype} [${shape.join(', ')}]`,
        `${numbers.dtype} [${numbers.shape.join(', ')}]`,
      ]
      const message = `The data for constant ${JSON.stringify(tensor.name)} is ${found}; it must be ${wanted}.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    Object.assign(buffer, { byteLength: numbers.storage.byteLength, data: { tensor: numbers } })
  }
}

/**
 * Adds a constant, and its Const node before all other nodes.
 *
 * @throws TileworkError ERR_ARGUMENT for an invalid name, ERR_GRAPH for a name that is taken; otherwise as
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
  // Checked before anything is added: the Const node has the same name.
  refuseTakenName('node', named, graph.nodes)
  const constant: TmfileTensor = {
    ...{ name, dtype: 'float32', shape: null, role: 'constant', layout: graph.graphLayout },
    ...{ quantization: null, buffer: null },
  }
  // replaceConstant requires a tensor of the graph; an error removes it again.
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
 * Casts every constant of the other float type, when the file is written, and gives activations that type. A constant without data
 * keeps none, with the size of the new type. Constants of nodes with integer data stay: they are halves in quantized models.
 *
 * @returns the number of constants
 */
export function castWeights(graph: TmfileGraph, dtype: 'float32' | 'float16'): number {
  checkOneOf(dtype, 'dtype', ['float32', 'float16'])
  const from = dtype === 'float16' ? 'float32' : 'float16'
  const kept = new Set(graph.nodes.filter(hasIntegerData).flatMap(({ inputs }) => inputs))
  const isCast = (tensor: TmfileTensor) => tensor.dtype === from && !(isConstant(tensor) && kept.has(tensor))
  const weights = graph.tensors.filter((tensor) => isConstant(tensor) && isCast(tensor))
  for (const tensor of graph.tensors) if (!isConstant(tensor) && isCast(tensor)) tensor.dtype = dtype
  for (const weight of weights) castWeight(graph, weight, dtype)
  return weights.length
}

function hasIntegerData({ inputs: [data] }: TmfileNode): boolean {
  return data !== undefined && !isConstant(data) && (data.dtype === 'int8' || data.dtype === 'uint8')
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
  // Another constant that shares the buffer still has the old size.
  const isShared = graph.tensors.some((other) => other !== weight && other.buffer === buffer)
  graph.buffers[isShared ? graph.buffers.length : graph.buffers.indexOf(buffer)] = absent
  Object.assign(weight, { dtype, buffer: absent })
}

/** Nodes with a constant of another type than the runtime takes with their data. */
export function nodesOfMixedTypes({ nodes }: TmfileGraph): TmfileNode[] {
  return nodes.filter(({ operator, inputs }) => {
    const typed = inputs.map((tensor) => ({ dtype: tensor.dtype, isConstant: isConstant(tensor) }))
    return !mixedConstants(operator, typed).next().done
  })
}

/** Buffers are compared in windows of this size, so that two large ones are never in memory. */
const COMPARED_WINDOW_BYTES = 1024 * 1024

/**
 * Makes constants with equal bytes share one buffer.
 *
 * @returns the number of bytes that the file becomes shorter
 * @throws TileworkError ERR_GRAPH for an NHWC model, because the runtime transposes a shared buffer once per constant
 */
export async function mergeConstants(graph: TmfileGraph): Promise<number> {
  if (graph.modelLayout === NHWC)
    refuseEdit('The model is NHWC; only constants of NCHW models can share buffers.')
  const merged = new Map<TmfileBuffer, TmfileBuffer>()
  const byLength = groupByLength(graph.buffers)
  for (const buffers of byLength.values()) {
    const distinct: TmfileBuffer[] = []
    for (const buffer of buffers) {
      const equal = await findEqual(buffer, distinct)
      if (equal) merged.set(buffer, equal)
      else distinct.push(buffer)
    }
  }
  for (const tensor of graph.tensors) {
    const equal = tensor.buffer && merged.get(tensor.buffer)
    if (equal) tensor.buffer = equal
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

async function findEqual(
  buffer: TmfileBuffer,
  others: readonly TmfileBuffer[],
): Promise<TmfileBuffer | undefined> {
  if (!buffer.data) return undefined
  for (const other of others) {
    if (other.data && (await haveEqualBytes(buffer, other))) return other
  }
  return undefined
}

async function haveEqualBytes(one: TmfileBuffer, other: TmfileBuffer): Promise<boolean> {
  const [left, right] = [rangeOf(one), rangeOf(other)]
  const window = Math.min(COMPARED_WINDOW_BYTES, one.byteLength)
  for (let start = 0; start < one.byteLength; start += window) {
    const length = Math.min(window, one.byteLength - start)
    const [leftBytes, rightBytes] = [new Uint8Array(length), new Uint8Array(length)]
    await readInto(left.source, left.start + start, leftBytes)
    await readInto(right.source, right.start + start, rightBytes)
    if (Buffer.compare(leftBytes, rightBytes) !== 0) return false
  }
  return true
}

function rangeOf({ data }: TmfileBuffer) {
  return 'tensor' in data! ? asStored(data.tensor) : data!
}
