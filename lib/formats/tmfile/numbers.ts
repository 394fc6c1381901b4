/** The numbers of constants: in another float type, and as the real values that quantized ones stand for. */
import { TileworkError } from '../../errors.js'
import { cast } from '../../tensor/cast.js'
import { tensor as denseTensor } from '../../tensor/from_values.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { replaceConstant } from './edit_constants.js'
import { findTensor, refuseEdit } from './find.js'
import { isConstant, type TmfileModel, type TmfileTensor } from './model.js'
import { FORMAT_NAME } from './schema.js'
import { denseTensorOf } from './tensors.js'

/**
 * Casts every constant that is a float of the other width, as the file is written. Constants without data keep their
 * place with the size of the new type.
 *
 * @returns how many were cast
 */
export function castWeights(model: TmfileModel, dtype: 'float32' | 'float16'): number {
  if (dtype !== 'float32' && dtype !== 'float16') {
    const message = `'dtype' is ${valueText(dtype)}; weights are cast to float32 or float16.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const from = dtype === 'float16' ? 'float32' : 'float16'
  const weights = model.graph.tensors.filter((tensor) => isConstant(tensor) && tensor.dtype === from)
  for (const weight of weights) castWeight(model, weight, dtype)
  return weights.length
}

function castWeight(model: TmfileModel, weight: TmfileTensor, dtype: 'float32' | 'float16'): void {
  const { buffer, quantization } = weight
  if (buffer?.data && weight.shape) {
    const index = model.graph.tensors.indexOf(weight)
    replaceConstant(model, weight, cast(denseTensorOf(weight, index), dtype) as DenseTensor, quantization)
    return
  }
  if (!buffer) return
  const { graph } = model
  const byteLength = dtype === 'float16' ? buffer.byteLength / 2 : buffer.byteLength * 2
  const absent = { byteLength, data: null }
  // Another constant of the same buffer still needs the old size.
  const isShared = graph.tensors.some((other) => other !== weight && other.buffer === buffer)
  graph.buffers[isShared ? graph.buffers.length : graph.buffers.indexOf(buffer)] = absent
  Object.assign(weight, { dtype, buffer: absent })
}

/**
 * The real values of a quantized constant, `(stored - zero point) * scale` rounded once to float32, in memory. With a
 * scale for each channel a channel is a run of stored values, which holds also for NHWC depthwise weights, whose
 * shape says another order than their values have.
 *
 * @throws TileworkError ERR_GRAPH for a tensor that is no constant, ERR_QUANTIZATION where its parameters are absent,
 * unknown (scale 0) or do not divide it; ERR_NO_DATA
 */
export async function dequantizeConstant(
  model: TmfileModel,
  key: TmfileTensor | string,
): Promise<DenseTensor> {
  const tensor = findTensor(model, key)
  const title = JSON.stringify(tensor.name)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${title} is no constant.`)
  const dense = denseTensorOf(tensor, model.graph.tensors.indexOf(tensor))
  const { scales, zeroPoints } = tensor.quantization ?? {
    scales: new Float32Array(0),
    zeroPoints: new Int32Array(0),
  }
  const refuse = (reason: string): never => {
    throw new TileworkError('ERR_QUANTIZATION', `Tensor ${title} ${reason}.`, { format: FORMAT_NAME })
  }
  if (scales.length === 0) refuse('has no quantization parameters')
  const unusable = scales.find((scale) => !(scale > 0 && scale < Number.POSITIVE_INFINITY))
  if (unusable !== undefined) refuse(`has the scale ${unusable}, which says nothing`)
  if (dense.size % scales.length !== 0) refuse(`has ${dense.size} values and ${scales.length} scales`)
  const stored = (await dense.toTypedArray()) as Int8Array
  const run = stored.length / scales.length
  const values = Float32Array.from(stored, (value, at) => {
    const channel = Math.floor(at / run)
    return (value - zeroPoints[channel]!) * scales[channel]!
  })
  const { name, shape } = dense
  return denseTensor(values, { name, dtype: 'float32', shape }) as DenseTensor
}
