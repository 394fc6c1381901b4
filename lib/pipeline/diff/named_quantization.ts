/**
 * Scales and zero points that are tensors of their own, by the names that quantizing tools give them: the codes of `w` are `w` or
 * `w_quantized`, beside `w_scale` and `w_zero_point`. `convert` and `compress` write these names, as onnxruntime's tools do.
 */
import { isCodeType, type QuantizationParameters } from '../../tensor/quantization.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'

/** Finds a tensor of one file. */
export type TensorByName = (name: string) => Tensor | undefined

const CODES_END = '_quantized'

/** The name of the codes of a tensor. */
export function codesName(name: string): string {
  return name + CODES_END
}

/**
 * What the file declares of the codes of a tensor, by the tensor itself or by tensors beside it.
 *
 * @returns undefined where there is nothing, and where the scales fit several axes
 * @throws what reading the scales throws
 */
export async function quantizationOf(
  tensor: DenseTensor,
  find: TensorByName,
): Promise<QuantizationParameters | undefined> {
  if (tensor.quantization) return tensor.quantization
  if (!isCodeType(tensor.dtype)) return undefined
  const scales = besideOf(tensor.name, 'scale', find)
  if (!scales) return undefined
  const place = placeOf(tensor.shape, scales.shape)
  if (!place) return undefined
  const zeroPoints = besideOf(tensor.name, 'zero_point', find)
  return {
    scale: await numbersOf(scales),
    ...(zeroPoints && { zeroPoint: await numbersOf(zeroPoints) }),
    ...place,
  }
}

function besideOf(name: string, what: 'scale' | 'zero_point', find: TensorByName): DenseTensor | undefined {
  const own = name.endsWith(CODES_END) ? name.slice(0, -CODES_END.length) : name
  for (const base of [name, own]) {
    const found = find(`${base}_${what}`)
    if (found?.kind === 'dense' && found.hasData) return found
  }
  return undefined
}

async function numbersOf(tensor: DenseTensor): Promise<number[]> {
  return Array.from((await tensor.toTypedArray()) as ArrayLike<number | bigint>, Number)
}

/** The axis and the blocks that scales of a shape belong to. */
function placeOf(
  shape: readonly number[],
  scales: readonly number[],
): Pick<QuantizationParameters, 'axis' | 'blockSize'> | undefined {
  const count = scales.reduce((product, extent) => product * extent, 1)
  if (count === 1) return {}
  const axes = [...shape.keys()]
  if (scales.length === 1) {
    const fitting = axes.filter((axis) => shape[axis] === count)
    return fitting.length === 1 ? { axis: fitting[0]! } : undefined
  }
  if (scales.length !== shape.length) return undefined
  const divided = axes.filter((axis) => shape[axis] !== scales[axis])
  const [axis] = divided
  if (axis === undefined || divided.length > 1) return undefined
  return { axis, blockSize: Math.ceil(shape[axis]! / scales[axis]!) }
}
