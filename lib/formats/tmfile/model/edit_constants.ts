/** Changes of constants: other numbers, none, shared ones. */

import { readInto } from '../../../bytes/read_into.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { checkDense } from '../../../tensor/check_tensor.js'
import { asStored } from '../../../tensor/dense.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { NHWC } from '../enums.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../schema.js'
import { checkQuantization } from './caller_model.js'
import { findTensor, refuseEdit } from './find.js'
import {
  isConstant,
  type TmfileBuffer,
  type TmfileDtype,
  type TmfileModel,
  type TmfileQuantization,
  type TmfileTensor,
} from './model.js'
import { quantizationOf } from './tensors.js'

/**
 * Gives a constant other numbers, and their type and shape. Its quantization parameters are those given, by default those
 * that the numbers bring, else none: old ones would mean nothing for new numbers.
 *
 * @throws TileworkError ERR_ARGUMENT for numbers that are no dense tensor and for parameters without one of their lists;
 * ERR_GRAPH for a tensor that is no constant; ERR_UNSUPPORTED for an element type that a tmfile
 * does not have, ERR_RANK above 8 axes, ERR_NO_DATA
 */
export function replaceConstant(
  model: TmfileModel,
  key: TmfileTensor | string,
  numbers: DenseTensor,
  given?: TmfileQuantization | null,
): void {
  const tensor = findTensor(model, key)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is no constant.`)
  const { graph } = model
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
export function stripWeights({ graph }: TmfileModel): void {
  for (const buffer of graph.buffers) buffer.data = null
}

/**
 * Gives numbers to constants that have none: a tensor of the constant's type and shape for each, or null to leave it as it
 * is.
 *
 * @throws TileworkError ERR_ARGUMENT for one of another type or shape and for what is no dense tensor
 */
export function fillWeights(
  model: TmfileModel,
  numbersFor: (tensor: TmfileTensor) => DenseTensor | null,
): void {
  if (typeof numbersFor !== 'function') {
    const message = `numbersFor must be a function that gives a tensor for a constant; it is ${valueText(numbersFor)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  for (const tensor of model.graph.tensors) {
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

/** Bytes of two buffers that are compared at a time. */
const COMPARED_BYTES = 1024 * 1024

/**
 * Lets constants with the same bytes share one buffer.
 *
 * @returns bytes that the file is shorter by
 * @throws TileworkError ERR_GRAPH for an NHWC model, whose shared buffers the runtime turns once for each user
 */
export async function mergeConstants({ graph }: TmfileModel): Promise<number> {
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
  const [left, right] = [placeOf(one), placeOf(other)]
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

function placeOf({ data }: TmfileBuffer) {
  return 'tensor' in data! ? asStored(data.tensor) : data!
}
