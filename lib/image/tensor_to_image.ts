/** Pixels from the output of a model: the inverse of `imageToTensor`. */
import { checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { affine } from '../tensor/affine.js'
import { checkOnlyDense } from '../tensor/check_tensor.js'
import { StoredTensor } from '../tensor/dense.js'
import { quantize } from '../tensor/quantize.js'
import { reorder } from '../tensor/reorder.js'
import { slice } from '../tensor/slice.js'
import type { AnyTensor, DenseTensor } from '../tensor/tensor.js'
import { type BackGeometry, readBack } from './back_geometry.js'
import { planOf } from './image_plan.js'
import { ImageSource, plannedRanges } from './image_source.js'
import { axisOf, readNumbers, readPlaces, selectChannels } from './image_to_tensor.js'
import type { ImageCropOptions, ImageResizeOptions, LetterboxOptions } from './options.js'
import { type Box, Frame, type Size } from './sizes.js'
import { tablesOf } from './tables.js'

export interface TensorToImageOptions {
  /** As for `imageToTensor`: one number, or one per channel of the tensor, in its order. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Default 1. */
  readonly std?: number | ArrayLike<number>
  /** Order of the axes of the tensor, as for `imageToTensor`. Default `nchw`. */
  readonly layout?: string
  /** Order of the channels of the tensor; the pixels are RGB. Default `rgb`. */
  readonly order?: 'rgb' | 'bgr'
  /** The part that is kept, before a resize: a square in the middle, or a size there, or a part. It lies within the image. */
  readonly crop?: number | ImageCropOptions
  /** To another size, with the bytes of Pillow, torchvision or OpenCV. Colours are weighted by alpha as with `alpha: 'keep'`. */
  readonly resize?: ImageResizeOptions
  /**
   * Instead of `crop` and `resize`: the letterbox that `imageToTensor` got, whose border is cut off, also in an output of another
   * resolution. The rest is resized to `width` × `height`.
   */
  readonly letterbox?: number | LetterboxOptions
  /** With `letterbox`: width of the image before it. */
  readonly width?: number
  readonly height?: number
}

const OPTIONS = ['mean', 'std', 'layout', 'order', 'crop', 'resize', 'letterbox', 'width', 'height'] as const

/**
 * The pixels of images that a model made: the inverse of `imageToTensor`. `value * std + mean` is rounded to the nearest whole
 * number, ties to even, and clamped to 0 to 255; NaN gives 0. Then come crop and resize. Lazy; `await result.bytes()` are the
 * pixels for `sharp(pixels, { raw: { width, height, channels } })`, all images of a batch one after the other.
 *
 * @param tensor - a dense tensor of real numbers with 3 axes, or 4 for a batch
 * @returns shape: `[height, width, channels]`, or `[images, height, width, channels]`; uint8
 * @throws TileworkError at once: ERR_ARGUMENT for another number of axes, for channels other than 1 to 4 (1 or 3 for `bgr`), for
 * a crop that leaves the image and for wrong options; ERR_QUANTIZATION for mean and std that are not finite, a std of 0, and
 * another count of numbers than channels; ERR_DTYPE; ERR_LIMIT for a resized image of more than 2 GiB
 */
export function tensorToImage(tensor: AnyTensor, options: TensorToImageOptions = {}): DenseTensor<'uint8'> {
  const dense = checkOnlyDense(tensor, 'tensorToImage', 'hold images')
  checkOptions(options, 'tensorToImage', OPTIONS)
  const asked = readInput('The options of tensorToImage', () => readOptions(options))
  const { isPlanar, back } = asked
  const { rank, channels } = checkImage(dense, asked)
  const rows = isPlanar ? rank - 2 : rank - 3
  const size = { width: dense.shape[rows + 1]!, height: dense.shape[rows]! }
  const crop = back.cropOf(size)
  const pixels = pixelsOf(cropped(dense, rows, size, crop), channels, asked)
  return resized(pixels, back)
}

interface Asked extends ReturnType<typeof readPlaces> {
  readonly mean: number | readonly number[] | undefined
  readonly std: number | readonly number[] | undefined
  readonly back: BackGeometry
}

function readOptions({ mean, std, layout, order, ...geometry }: TensorToImageOptions): Asked {
  const numbers = readNumbers({ ...(mean !== undefined && { mean }), ...(std !== undefined && { std }) })
  const places = { ...(layout !== undefined && { layout }), ...(order !== undefined && { order }) }
  return { mean: numbers.mean, std: numbers.std, ...readPlaces(places), back: readBack(geometry) }
}

/** @throws TileworkError ERR_ARGUMENT for a shape that is not that of images, ERR_QUANTIZATION */
function checkImage(
  { name, shape }: DenseTensor,
  { mean, std, isPlanar, order }: Asked,
): { rank: number; channels: number } {
  const rank = shape.length
  if (rank !== 3 && rank !== 4) {
    const message = `tensor "${name}" has the shape [${shape}]; an image has 3 axes, and a batch 4.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const axis = isPlanar ? rank - 3 : rank - 1
  const channels = shape[axis]!
  if (channels < 1 || channels > 4 || (order === 'bgr' && channels % 2 === 0)) {
    const allowed = order === 'bgr' ? '1 or 3' : '1 to 4'
    const message = `tensor "${name}" has ${channels} channels along axis ${axis}; ${order} images have ${allowed}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  for (const [what, numbers] of Object.entries({ mean, std })) {
    const count = typeof numbers === 'object' ? numbers.length : 1
    if (count === 1 || count === channels) continue
    const message = `tensor "${name}" has ${channels} channels along axis ${axis}; ${what} has ${count} numbers.`
    throw new TileworkError('ERR_QUANTIZATION', message)
  }
  return { rank, channels }
}

function cropped(tensor: DenseTensor, rows: number, { width, height }: Size, crop: Box): DenseTensor {
  if (crop.width === width && crop.height === height) return tensor
  const before = tensor.shape.slice(0, rows).map(() => null)
  const down = [crop.top, crop.top + crop.height] as const
  const along = [crop.left, crop.left + crop.width] as const
  return slice(tensor, [...before, down, along])
}

/** uint8 [images, height, width, channels], or without the first. */
function pixelsOf(
  tensor: DenseTensor,
  channels: number,
  { mean, std, isPlanar, order }: Asked,
): StoredTensor & DenseTensor<'uint8'> {
  const { shape } = tensor
  const rank = shape.length
  const axis = isPlanar ? rank - 3 : rank - 1
  const scaling = { ...(std !== undefined && { scale: std }), ...(mean !== undefined && { bias: mean }) }
  const values = affine(tensor, { ...scaling, ...axisOf({ mean, std }, axis) })
  const coloured = order === 'bgr' ? selectChannels(values, axis, channels, 'bgr') : values
  const codes = quantize(coloured, 'uint8', { scale: 1 })
  if (!isPlanar) return reorder(codes, 'row_major') as StoredTensor & DenseTensor<'uint8'>
  const { source, start, dtype, name } = reorder(codes, rank === 3 ? 'hwc' : 'nhwc') as StoredTensor
  const last = [...shape.slice(0, axis), shape[axis + 1]!, shape[axis + 2]!, shape[axis]!]
  return new StoredTensor({ source, start, dtype, name, shape: last }) as StoredTensor & DenseTensor<'uint8'>
}

function resized(
  pixels: StoredTensor & DenseTensor<'uint8'>,
  { like, filter, sizeOf }: BackGeometry,
): DenseTensor<'uint8'> {
  const { name, shape, source, start } = pixels
  const [height, width, channels] = shape.slice(-3) as [number, number, number]
  const label = `tensor "${name}"`
  const to = sizeOf(label, { width, height }, channels)
  if (to.width === width && to.height === height) return pixels
  const samples = Array.from({ length: channels }, (_, at) => at)
  const plan = planOf({
    image: { name: label, width, height, channels, sampleBytes: 1 },
    pixelFormat: 'interleaved',
    colours: channels % 2 === 0 && like.startsWith('pillow') ? 'premultiply' : 'none',
    background: [0, 0, 0],
    like,
    filter,
    frame: Frame.of(to),
    channels: samples,
    tables: tablesOf({ dtype: 'uint8' }, channels, 1),
    border: samples.map(() => 0),
    isPlanar: false,
  })
  const count = shape.length === 4 ? shape[0]! : 1
  const images = plannedRanges(plan, source, start, height * width * channels, count)
  return new StoredTensor({
    source: new ImageSource(images, label),
    start: 0,
    dtype: 'uint8',
    name,
    shape: [...shape.slice(0, -3), to.height, to.width, channels],
  }) as StoredTensor & DenseTensor<'uint8'>
}
