/**
 * Weights whose quantized values are packed into bytes, by the naming and shapes of onnxruntime's tools. The quantized form of
 * `w` is the uint8 tensor `w_Q4`, of shape `[N, blocks, bytes of a block]` for MatMulNBits and `[rows, bytes of a row]` for
 * GatherBlockQuantized, with `w_scales` `[N, blocks]` and `w_zero_points`. `w` itself is `[K, N]`, or `[N, K]` where the model
 * transposes it.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { asStored, StoredTensor } from '../../tensor/dense.js'
import { dequantizeSigned } from '../../tensor/quantize.js'
import { slice } from '../../tensor/slice.js'
import type { AnyTensor, DenseTensor } from '../../tensor/tensor.js'
import { BLOCK_BITS, besideOf, numbersOf, type TensorByName } from './named_quantization.js'

/** How packed values correspond to a weight. */
interface PackedForm {
  readonly codes: DenseTensor
  readonly bits: (typeof BLOCK_BITS)[number]
  /** Rows of the packed values, and values per row that belong to the weight; the rest is padding. */
  readonly rows: number
  readonly k: number
  /** True where the rows of the packed values are the columns of the weight. */
  readonly isTransposed: boolean
}

/** @returns undefined where `codes` is not the packed form of `weight`, by name, dtype or shape */
export function packedForm(codes: AnyTensor, weight: AnyTensor): PackedForm | undefined {
  const bits = BLOCK_BITS.find((each) => codes.name === `${weight.name}_Q${each}`)
  if (bits === undefined) return undefined
  if (codes.kind !== 'dense' || codes.dtype !== 'uint8' || weight.kind !== 'dense') return undefined
  const { shape } = weight
  const isMatrix = shape.length >= 2 && shape.slice(0, -2).every((extent) => extent === 1)
  if (!isMatrix || codes.shape.length < 2 || codes.shape.length > 3) return undefined
  const [first, last] = shape.slice(-2) as [number, number]
  const [rows = 0, ...rest] = codes.shape
  const held = rest.reduce((product, extent) => product * extent, 8 / bits)
  // Embedding tables (Gather) have two axes and are never transposed; for a square matrix only the rank shows the direction.
  const isTransposed = codes.shape.length === 3 && last === rows && first <= held
  const k = isTransposed ? first : last
  if ((isTransposed ? last : first) !== rows || k > held) return undefined
  return { codes, bits, rows, k, isTransposed }
}

/**
 * The dequantized weight, lazily.
 *
 * @returns undefined where the file has no scales that fit
 * @throws what reading the scales throws; ERR_QUANTIZATION for scales that are 0 or not finite
 */
export async function packedWeight(form: PackedForm, find: TensorByName): Promise<DenseTensor | undefined> {
  const { codes, bits, rows, k, isTransposed } = form
  const scales = besideOf(codes.name, 'scale', find)
  if (!scales || scales.size === 0 || scales.size % rows !== 0) return undefined
  const held = (codes.size / rows) * (8 / bits)
  const blocks = scales.size / rows
  if (held % blocks !== 0) return undefined
  const zeros = await zeroPointsOf(form, blocks, find)
  const place = (numbers: readonly number[]): readonly number[] =>
    isTransposed ? columnsOf(numbers, rows, blocks) : numbers
  const real = dequantizeSigned(unpacked(codes, form, held), {
    scale: place(await numbersOf(scales)),
    zeroPoint: zeros ? place(zeros) : 2 ** (bits - 1),
    ...{ axis: isTransposed ? 0 : 1, blockSize: held / blocks },
  })
  if (k === held) return real
  return slice(real, isTransposed ? [[0, k]] : [null, [0, k]])
}

/** Unpacks rows of `held` values to a matrix, in column-major layout where the weight is transposed. */
function unpacked(tensor: DenseTensor, { bits, rows, isTransposed }: PackedForm, held: number): DenseTensor {
  const { source, start, name } = asStored(tensor)
  const dtype: Dtype = `uint${bits}`
  return isTransposed
    ? new StoredTensor({ source, start, name, dtype, shape: [held, rows], layout: 'fb' })
    : new StoredTensor({ source, start, name, dtype, shape: [rows, held] })
}

/** The numbers of a row-major matrix in column-major order. */
function columnsOf(numbers: readonly number[], rows: number, columns: number): number[] {
  return numbers.map((_, at) => numbers[(at % rows) * columns + Math.floor(at / rows)]!)
}

/** Zero points of each row and block; undefined where the file has none that fit. */
async function zeroPointsOf(
  form: PackedForm,
  blocks: number,
  find: TensorByName,
): Promise<readonly number[] | undefined> {
  const { bits, rows } = form
  const found = besideOf(form.codes.name, 'zero_point', find)
  if (!found) return undefined
  if (found.dtype !== 'uint8') return found.size === rows * blocks ? numbersOf(found) : undefined
  // Each row of zero points starts at a byte boundary.
  const held = (found.size / rows) * (8 / bits)
  if (!Number.isInteger(held) || held < blocks) return undefined
  const numbers = await numbersOf(unpacked(found, { ...form, isTransposed: false }, held))
  return numbers.filter((_, at) => at % held < blocks)
}
