/** Records of quantization as QuantizeLinear and DequantizeLinear. */
import type { TmfileQuantization, TmfileTensor } from '../../../models/tmfile/index.js'
import { refuse } from '../to_tmfile/refusal.js'
import type { OnnxWriter } from './onnx_writer.js'

const INTEGERS: ReadonlySet<string> = new Set(['int8', 'uint8', 'int16', 'int32'])

/** True where the stored integers mean real values. A scale of 0 means unknown. */
export function hasRecord({ dtype, quantization }: TmfileTensor): boolean {
  const scales = quantization?.scales
  return (
    INTEGERS.has(dtype) && scales !== undefined && scales.length > 0 && scales.every((scale) => scale > 0)
  )
}

export function recordOf(tensor: TmfileTensor): TmfileQuantization {
  return hasRecord(tensor) ? tensor.quantization! : refuse(`"${tensor.name}" has no scales`)
}

/** True for an activation whose codes ONNX can hold. */
export function isQuantized(tensor: TmfileTensor): boolean {
  return (tensor.dtype === 'int8' || tensor.dtype === 'uint8') && hasRecord(tensor)
}

/** Scale and zero point of an activation as initializers. @throws Refusal for a zero point that its type cannot hold */
function parameters(writer: OnnxWriter, tensor: TmfileTensor, base: string): readonly [string, string] {
  const { scales, zeroPoints } = recordOf(tensor)
  const dtype = tensor.dtype === 'uint8' ? 'uint8' : 'int8'
  const [min, max] = dtype === 'uint8' ? [0, 255] : [-128, 127]
  const [scale, zeroPoint] = [scales[0]!, zeroPoints[0]!]
  if (scales.length > 1) refuse(`its tensor "${tensor.name}" is no constant and has ${scales.length} scales`)
  if (zeroPoint < min || zeroPoint > max) {
    refuse(
      `its tensor "${tensor.name}" has the zero point ${zeroPoint}; ${dtype} ranges from ${min} to ${max}`,
    )
  }
  return [
    writer.addNumbers(`${base}__scale`, [scale], 'float32', []),
    writer.addNumbers(`${base}__zero_point`, [zeroPoint], dtype, []),
  ]
}

/** Adds the node that quantizes real values to the codes of a tensor. @returns their name */
export function quantize(writer: OnnxWriter, tensor: TmfileTensor, real: string, codes: string): string {
  writer.add('QuantizeLinear', codes, [real, ...parameters(writer, tensor, codes)], [codes])
  return codes
}

/** Adds the node that makes real values of the codes of a tensor. @returns their name */
export function dequantize(writer: OnnxWriter, tensor: TmfileTensor, codes: string, real: string): string {
  writer.add('DequantizeLinear', real, [codes, ...parameters(writer, tensor, codes)], [real])
  return real
}
