/**
 * Finds scales and zero points that are separate tensors, by the naming conventions of quantization tools. The quantized values
 * of `w` are named `w` or `w_quantized` (with `w_scale` and `w_zero_point`), `w_Q4` (with `w_scales` and `w_zero_points`), or
 * `w_DQ_Q4` (with `w_DQ_scales` and `w_DQ_zero_points`). `convert` and `compress` write these names, as onnxruntime's tools do.
 */
import { isCodeType, type QuantizationParameters } from '../../tensor/quantization.js'
import type { AnyTensor, DenseTensor } from '../../tensor/tensor.js'

/** Finds a tensor of one file. */
export type TensorByName = (name: string) => AnyTensor | undefined

/** Bits of block-quantized values, which are part of their names. */
export const BLOCK_BITS = [2, 4, 8] as const

/** Suffixes of the names of quantized tensors, each with the suffix of the base name of its scales and zero points. */
const CODES_ENDS: readonly (readonly [end: string, base: string])[] = [
  ['_quantized', ''],
  ...BLOCK_BITS.flatMap((bits): [string, string][] => [
    [`_DQ_Q${bits}`, '_DQ'],
    [`_Q${bits}`, ''],
  ]),
]

/** The names that the quantized form of a tensor may have. */
export function codesNames(name: string): string[] {
  return CODES_ENDS.map(([end]) => name + end)
}

/**
 * The quantization parameters of a tensor, from the tensor itself or from separate tensors.
 *
 * @returns undefined where there are none, and where the scales fit several axes
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

/** The scales or zero points of the quantized tensor `name`. */
export function besideOf(
  name: string,
  what: 'scale' | 'zero_point',
  find: TensorByName,
): DenseTensor | undefined {
  const [end, base] = CODES_ENDS.find(([each]) => name.endsWith(each)) ?? ['', '']
  for (const start of [name, name.slice(0, name.length - end.length) + base]) {
    for (const number of ['', 's']) {
      const found = find(`${start}_${what}${number}`)
      if (found?.kind === 'dense' && found.hasData) return found
    }
  }
  return undefined
}

export async function numbersOf(tensor: DenseTensor): Promise<number[]> {
  return Array.from((await tensor.toTypedArray()) as ArrayLike<number | bigint>, Number)
}

/** The axis and the block size to which the shape of the scales corresponds. */
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
  return { axis, blockSize: blockSizeOf(shape[axis]!, scales[axis]!) }
}

/** The block size; tools use powers of two, and the last block may be incomplete. */
function blockSizeOf(extent: number, blocks: number): number {
  const least = Math.ceil(extent / blocks)
  const power = 2 ** Math.ceil(Math.log2(least))
  return Math.ceil(extent / power) === blocks ? power : least
}
