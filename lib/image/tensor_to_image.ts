/** Pixels from the output of a model: the inverse of `imageToTensor`. */
import { checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { affine } from '../tensor/affine.js'
import { checkOnlyDense } from '../tensor/check_tensor.js'
import { StoredTensor } from '../tensor/dense.js'
import { quantize } from '../tensor/quantize.js'
import { reorder } from '../tensor/reorder.js'
import type { AnyTensor, DenseTensor } from '../tensor/tensor.js'
import { axisOf, readNumbers, readPlaces, selectChannels } from './image_to_tensor.js'

export interface TensorToImageOptions {
  /** As for `imageToTensor`: one number, or one per channel of the tensor, in its order. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Default 1. */
  readonly std?: number | ArrayLike<number>
  /** Order of the axes of the tensor, as for `imageToTensor`. Default `nchw`. */
  readonly layout?: string
  /** Order of the channels of the tensor; the pixels are RGB. Default `rgb`. */
  readonly order?: 'rgb' | 'bgr'
}

/**
 * The pixels of images that a model made: the inverse of `imageToTensor`. `value * std + mean` is rounded to the nearest whole
 * number, ties to even, and clamped to 0 to 255; NaN gives 0. Lazy; `await result.bytes()` are the pixels for
 * `sharp(pixels, { raw: { width, height, channels } })`, all images of a batch one after the other.
 *
 * @param tensor - a dense tensor of real numbers with 3 axes, or 4 for a batch
 * @returns shape: `[height, width, channels]`, or `[images, height, width, channels]`; uint8
 * @throws TileworkError at once: ERR_ARGUMENT for another number of axes, for channels other than 1 to 4 (1 or 3 for `bgr`) and
 * for wrong options; as `affine`
 */
export function tensorToImage(tensor: AnyTensor, options: TensorToImageOptions = {}): DenseTensor<'uint8'> {
  const dense = checkOnlyDense(tensor, 'tensorToImage', 'hold images')
  checkOptions(options, 'tensorToImage', ['mean', 'std', 'layout', 'order'])
  const { mean, std, isPlanar, order } = readInput('The options of tensorToImage', () => {
    const { mean, std, layout, order } = options
    const numbers = readNumbers({ ...(mean !== undefined && { mean }), ...(std !== undefined && { std }) })
    const places = { ...(layout !== undefined && { layout }), ...(order !== undefined && { order }) }
    return { ...numbers, ...readPlaces(places) }
  })
  const { shape } = dense
  const rank = shape.length
  if (rank !== 3 && rank !== 4) {
    const message = `tensor "${dense.name}" has the shape [${shape}]; an image has 3 axes, and a batch 4.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const axis = isPlanar ? rank - 3 : rank - 1
  const scaling = { ...(std !== undefined && { scale: std }), ...(mean !== undefined && { bias: mean }) }
  const values = affine(dense, { ...scaling, ...axisOf({ mean, std }, axis) })
  const channels = shape[axis]!
  if (channels < 1 || channels > 4 || (order === 'bgr' && channels % 2 === 0)) {
    const allowed = order === 'bgr' ? '1 or 3' : '1 to 4'
    const message = `tensor "${dense.name}" has ${channels} channels along axis ${axis}; ${order} images have ${allowed}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const coloured = order === 'bgr' ? selectChannels(values, axis, channels, 'bgr') : values
  const codes = quantize(coloured, 'uint8', { scale: 1 })
  if (!isPlanar) return reorder(codes, 'row_major')
  const pixels = reorder(codes, rank === 3 ? 'hwc' : 'nhwc') as StoredTensor
  const { source, start, dtype, name } = pixels
  const last = [...shape.slice(0, axis), shape[axis + 1]!, shape[axis + 2]!, shape[axis]!]
  return new StoredTensor({ source, start, dtype, name, shape: last }) as StoredTensor & DenseTensor<'uint8'>
}
