/** The numbers of constants: in another float type, and as the real values that quantized ones stand for. */
import { TileworkError } from '../../../errors.js'
import { cast } from '../../../tensor/cast.js'
import { dequantize } from '../../../tensor/quantize.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { replaceConstant } from '../model/edit_constants.js'
import { findTensor, refuseEdit } from '../model/find.js'
import { isConstant, type TmfileModel, type TmfileTensor } from '../model/model.js'
import { denseTensorOf } from '../model/tensors.js'
import { FORMAT_NAME } from '../schema.js'

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
 * The real values of a quantized constant, `(stored - zero point) * scale` rounded once to float32, computed when they are
 * read. With a scale for each channel a channel is a run of stored values, which holds also for NHWC depthwise weights,
 * whose shape says another order than their values have.
 *
 * @throws TileworkError ERR_GRAPH for a tensor that is no constant, ERR_QUANTIZATION where its parameters are absent,
 * unknown (scale 0) or not one and not one for each entry of its first axis; ERR_NO_DATA
 */
export function dequantizeConstant(model: TmfileModel, key: TmfileTensor | string): DenseTensor {
  const tensor = findTensor(model, key)
  const title = JSON.stringify(tensor.name)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${title} is no constant.`)
  const dense = denseTensorOf(tensor, model.graph.tensors.indexOf(tensor))
  const { quantization } = dense
  if (!quantization) {
    const message = `Tensor ${title} has no quantization parameters.`
    throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
  }
  return dequantize(dense, quantization)
}
