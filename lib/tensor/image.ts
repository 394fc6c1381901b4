/** Images as tensors: normalised batches from raw pixels, and pixels from outputs. */
import { MemorySource } from '../bytes/memory.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { checkOptions, readInput } from '../caller_input.js'
import type { CanonicalDtype, DtypeName } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { type AffineOptions, affine } from './affine.js'
import { asLayout } from './as_layout.js'
import { checkOnlyDense } from './check_tensor.js'
import { joined } from './concat.js'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { quantize } from './quantize.js'
import { reorder } from './reorder.js'
import { slice } from './slice.js'
import type { AnyTensor, DenseTensor } from './tensor.js'
import { dtypeOfTypedArray } from './typed_array_dtype.js'

/** Raw pixels: `await sharp(path).raw().toBuffer()`. One image, or several of one size one after the other. */
export type Pixels = Uint8Array | Uint8ClampedArray

/** What `sharp(path).raw().toBuffer({ resolveWithObject: true })` gives. */
export interface PixelsWithInfo {
  readonly data: Pixels
  readonly info: {
    readonly width: number
    readonly height: number
    readonly channels: number
    /** `uchar`; samples of another type are refused. */
    readonly depth?: string
  }
}

export interface ImageToTensorOptions<Name extends DtypeName = DtypeName> {
  /** Pixels of a row; needed unless the pixels have `info`. */
  readonly width?: number
  /** Rows of an image; needed unless the pixels have `info`. */
  readonly height?: number
  /**
   * Channels of the pixels: 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha). Alpha is dropped. Default: from `info`, or
   * from the length of the pixels of one image.
   */
  readonly channels?: number
  /** Subtracted from the pixels, in their unit (0 to 255): one number, or one per channel of the result, in its order. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Divides the difference: one number, or one per channel of the result, in its order. Default 1. */
  readonly std?: number | ArrayLike<number>
  /** Order of the axes of the result. Default `nchw`. */
  readonly layout?: 'nchw' | 'nhwc'
  /** Element type of the result: any float. Default float32. */
  readonly dtype?: Name
  /** Order of the channels of the result; pixels are RGB, as sharp gives them. Default `rgb`. */
  readonly order?: 'rgb' | 'bgr'
}

const IMAGE_OPTIONS = ['width', 'height', 'channels', 'mean', 'std', 'layout', 'dtype', 'order'] as const

/**
 * A batch of normalised images, `(pixel - mean) / std`, from raw pixels of `sharp`: uint8 in height × width × channels order.
 * Lazy: `toTypedArray` or `materialize` compute it in one pass. The pixels are borrowed, not copied, so they must stay as they
 * are until then.
 *
 * @param pixels - one image, or an array of images of one size; some may have alpha
 * @returns shape: `[images, channels, height, width]`, with the layout `nhwc` `[images, height, width, channels]`; without alpha
 * @throws TileworkError at once: ERR_ARGUMENT for pixels of another length, images of different sizes or colours, and wrong options;
 * ERR_QUANTIZATION for a mean or std as in `affine`; ERR_DTYPE, ERR_OVERFLOW
 */
export function imageToTensor<Name extends DtypeName = 'float32'>(
  pixels: Pixels | PixelsWithInfo | readonly (Pixels | PixelsWithInfo)[],
  options?: ImageToTensorOptions<Name>,
): DenseTensor<CanonicalDtype<Name>>
export function imageToTensor(
  pixels: Pixels | PixelsWithInfo | readonly (Pixels | PixelsWithInfo)[],
  options: ImageToTensorOptions = {},
): DenseTensor {
  checkOptions(options, 'imageToTensor', IMAGE_OPTIONS)
  const asked = readInput('The options of imageToTensor', () => readOptions(options))
  const images = readInput('The pixels', () => {
    const list = Array.isArray(pixels) ? pixels : [pixels]
    if (list.length === 0) throw new TileworkError('ERR_ARGUMENT', 'pixels is an empty list of images.')
    return Array.from(list, (image, at) =>
      readImage(image, asked, Array.isArray(pixels) ? `pixels[${at}]` : 'pixels'),
    )
  })
  const first = images[0]!
  for (const { name, width, height, channels } of images) {
    const isLike = width === first.width && height === first.height
    if (isLike && coloursOf(channels) === coloursOf(first.channels)) continue
    const message = `${name} is ${width} × ${height} × ${channels} and ${first.name} is ${first.width} × ${first.height} × ${first.channels}; images of one batch have one size and the same colours.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return joined(normalized(images, asked), 0)
}

export interface TensorToImageOptions {
  /** As for `imageToTensor`: one number, or one per channel of the tensor, in its order. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Default 1. */
  readonly std?: number | ArrayLike<number>
  /** Order of the axes of the tensor. Default `nchw`. */
  readonly layout?: 'nchw' | 'nhwc'
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
  const asked = readInput('The options of tensorToImage', () => readOptions(options))
  const { shape } = dense
  const rank = shape.length
  if (rank !== 3 && rank !== 4) {
    const message = `tensor "${dense.name}" has the shape [${shape}]; an image has 3 axes, and a batch 4.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const axis = asked.layout === 'nchw' ? rank - 3 : rank - 1
  const { mean, std } = asked.numbers
  const scaling = { ...(std !== undefined && { scale: std }), ...(mean !== undefined && { bias: mean }) }
  const values = affine(dense, { ...scaling, ...axisOf(asked.numbers, axis) })
  const channels = shape[axis]!
  if (channels < 1 || channels > 4 || (asked.order === 'bgr' && channels % 2 === 0)) {
    const allowed = asked.order === 'bgr' ? '1 or 3' : '1 to 4'
    const message = `tensor "${dense.name}" has ${channels} channels along axis ${axis}; ${asked.order} images have ${allowed}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const coloured = asked.order === 'bgr' ? selectChannels(values, axis, channels, 'bgr') : values
  const codes = quantize(coloured, 'uint8', { scale: 1 })
  if (axis === rank - 1) return reorder(codes, 'row_major')
  const pixels = reorder(codes, rank === 3 ? 'hwc' : 'nhwc') as StoredTensor
  const { source, start, dtype, name } = pixels
  const last = [...shape.slice(0, axis), shape[axis + 1]!, shape[axis + 2]!, shape[axis]!]
  return new StoredTensor({ source, start, dtype, name, shape: last }) as StoredTensor & DenseTensor<'uint8'>
}

type Numbers = Pick<AffineOptions, 'mean' | 'std' | 'dtype'>

interface AskedOptions extends Pick<ImageToTensorOptions, 'width' | 'height' | 'channels'> {
  readonly layout: 'nchw' | 'nhwc'
  readonly order: 'rgb' | 'bgr'
  readonly numbers: Numbers
}

function readOptions(options: ImageToTensorOptions): AskedOptions {
  const { width, height, channels, mean, std, dtype, layout = 'nchw', order = 'rgb' } = options
  if (layout !== 'nchw' && layout !== 'nhwc') {
    throw new TileworkError('ERR_ARGUMENT', `layout is ${valueText(layout)}; it must be nchw or nhwc.`)
  }
  if (order !== 'rgb' && order !== 'bgr') {
    throw new TileworkError('ERR_ARGUMENT', `order is ${valueText(order)}; it must be rgb or bgr.`)
  }
  const size = {
    ...(width !== undefined && { width: checkSize(width, 'width') }),
    ...(height !== undefined && { height: checkSize(height, 'height') }),
    ...(channels !== undefined && { channels: checkChannels(channels) }),
  }
  const numbers = {
    ...(mean !== undefined && { mean }),
    ...(std !== undefined && { std }),
    ...(dtype !== undefined && { dtype }),
  }
  return { ...size, layout, order, numbers }
}

function checkSize(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number from 1.`)
}

function checkChannels(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= 4) return value as number
  throw new TileworkError('ERR_ARGUMENT', `channels is ${valueText(value)}; it must be 1, 2, 3 or 4.`)
}

interface Image {
  readonly name: string
  readonly bytes: Uint8Array
  readonly width: number
  readonly height: number
  readonly channels: number
}

function readImage(image: Pixels | PixelsWithInfo, asked: AskedOptions, name: string): Image {
  const hasInfo = !ArrayBuffer.isView(image) && typeof image === 'object' && image !== null
  const data: unknown = hasInfo ? (image.data ?? image) : image
  if (dtypeOfTypedArray(data) !== 'uint8') {
    const isPromise = hasInfo && 'then' in image
    const what = isPromise ? 'a promise (await it first)' : valueText(data)
    const message = `${name} is ${what}; it must be a Uint8Array of raw pixels, or { data, info } of sharp.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const info: Partial<PixelsWithInfo['info']> = hasInfo ? (image.info ?? {}) : {}
  if (info.depth !== undefined && info.depth !== 'uchar') {
    const message = `${name} has samples of type ${valueText(info.depth)}; sharp's raw() without depth gives "uchar".`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const bytes = bytesOfView(data as Uint8Array, name)
  const width = asked.width ?? checkSize(info.width, 'width')
  const height = asked.height ?? checkSize(info.height, 'height')
  const given = asked.channels ?? info.channels
  const channels = given === undefined ? bytes.byteLength / (width * height) : checkChannels(given)
  const needed = width * height * channels
  const isWhole = Number.isInteger(channels) && channels >= 1 && channels <= 4
  if (isWhole && bytes.byteLength > 0 && bytes.byteLength % needed === 0) {
    return { name, bytes, width, height, channels }
  }
  const size = `${width} × ${height} pixels`
  const expected =
    given === undefined
      ? `${size} have ${width * height * 3} bytes in RGB and ${width * height * 4} with alpha (several images in one buffer need the option channels)`
      : `${size} of ${channels} channels are a multiple of ${needed} bytes`
  // An image file is mostly smaller than its pixels.
  const isFile = bytes.byteLength < width * height
  const advice = isFile ? ' Decode image files first: sharp(…).raw().toBuffer().' : ''
  throw new TileworkError('ERR_ARGUMENT', `${name} has ${bytes.byteLength} bytes; ${expected}.${advice}`)
}

/** Each image as the part of the batch that it becomes. Images of the same length and channels share their plan. */
function normalized(images: readonly Image[], asked: AskedOptions): StoredTensor[] {
  const isPlanar = asked.layout === 'nchw'
  const axis = isPlanar ? 1 : 3
  const scaling = { ...asked.numbers, ...axisOf(asked.numbers, axis) }
  const plans = new Map<number, FusedTensor>()
  return images.map((image) => {
    checkCounts(image, asked.numbers)
    const before = plans.get(image.channels)
    if (before?.recipe.base.source.byteLength === image.bytes.byteLength) {
      return before.onBase(onBytes(before.recipe.base, image.bytes))
    }
    const coloured = selectChannels(stored(image, isPlanar), axis, image.channels, asked.order)
    const normal = affine(coloured, scaling)
    const part = (isPlanar ? reorder(normal, 'row_major') : normal) as StoredTensor
    if (part instanceof FusedTensor) plans.set(image.channels, part)
    return part
  })
}

/** @throws TileworkError ERR_QUANTIZATION where mean or std has a number for each of another count of colours */
function checkCounts({ name, channels }: Image, { mean, std }: Numbers): void {
  const colours = coloursOf(channels)
  for (const [what, numbers] of Object.entries({ mean, std })) {
    const count = typeof numbers === 'object' ? (numbers?.length ?? 1) : 1
    if (count === 1 || count === colours) continue
    const kind = colours === 1 ? 'is grey: 1 channel' : `has ${colours} colours`
    throw new TileworkError('ERR_QUANTIZATION', `${name} ${kind}; ${what} has ${count} numbers.`)
  }
}

/** A tensor like another one, on other bytes of the same length. */
function onBytes({ dtype, shape, storage, placement }: StoredTensor, bytes: Uint8Array): StoredTensor {
  const source = new MemorySource(bytes)
  return new StoredTensor({ source, start: 0, dtype, shape, storage, ...placement })
}

/** Planar results take pixels by the axes N, C, H, W, in the order in which they lie; others by N, H, W, C. */
function stored({ bytes, width, height, channels }: Image, isPlanar: boolean): StoredTensor {
  const count = bytes.byteLength / (width * height * channels)
  const shape = [count, height, width, channels]
  const pixels = new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype: 'uint8', shape })
  return isPlanar ? (asLayout(pixels, 'nhwc', [count, channels, height, width]) as StoredTensor) : pixels
}

/** Channels without alpha. */
function coloursOf(channels: number): number {
  return channels - ((channels + 1) % 2)
}

/** Without alpha, and in reverse for `bgr`. */
function selectChannels(
  tensor: DenseTensor,
  axis: number,
  channels: number,
  order: 'rgb' | 'bgr',
): DenseTensor {
  const kept = coloursOf(channels)
  if (kept === channels && (order === 'rgb' || kept === 1)) return tensor
  const range = order === 'rgb' ? ([0, kept] as const) : ([kept - 1, null, -1] as const)
  return slice(
    tensor,
    tensor.shape.map((_, at) => (at === axis ? range : null)),
  )
}

/** Numbers per channel need their axis; single numbers apply to all. */
function axisOf({ mean, std }: Numbers, axis: number): { axis?: number } {
  const isPerChannel = [mean, std].some(
    (numbers) => typeof numbers === 'object' && (numbers?.length ?? 0) > 1,
  )
  return isPerChannel ? { axis } : {}
}
