/** Batches of model inputs from raw pixels: resize, crop, border, normalisation, element type and layout in one pass over rows. */
import { MemorySource } from '../bytes/memory.js'
import { checkOneOf, checkOptions, readInput } from '../caller_input.js'
import { type CanonicalDtype, DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { parseLayout } from '../layout/parse_layout.js'
import { affine } from '../tensor/affine.js'
import { asLayout } from '../tensor/as_layout.js'
import { joined } from '../tensor/concat.js'
import { StoredTensor } from '../tensor/dense.js'
import { FusedTensor } from '../tensor/fused.js'
import { reorder } from '../tensor/reorder.js'
import { slice } from '../tensor/slice.js'
import type { DenseTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { type ColourStep, planOf } from './image_plan.js'
import { ImageSource, type PlannedImage, plannedImages } from './image_source.js'
import {
  type Geometry,
  type ImageCropOptions,
  type ImagePadOptions,
  type ImageResizeOptions,
  type LetterboxOptions,
  readGeometry,
  readSamples,
} from './options.js'
import {
  type AskedPixels,
  checkChannels,
  checkSize,
  coloursOf,
  type Image,
  PIXEL_FORMATS,
  type PixelFormat,
  type Pixels,
  type PixelsWithInfo,
  readImages,
} from './pixels.js'
import { elementsOf, type Numbers, tablesOf } from './tables.js'

export interface ImageToTensorOptions<Name extends DtypeName = DtypeName> {
  /** Pixels of a row; needed unless the pixels have `info`. */
  readonly width?: number
  /** Rows of an image; needed unless the pixels have `info`. */
  readonly height?: number
  /**
   * Channels of the pixels: 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha). Default: from `info`, or from the length
   * of the pixels of one image.
   */
  readonly channels?: number
  /** Default `interleaved`. */
  readonly pixelFormat?: PixelFormat
  /**
   * How alpha is handled. `drop` (default): removed; `keep`: the last channel of the result, by which Pillow's filters weight the
   * colours (mode RGBA); `independent`: kept, and resized as any other channel (RGBX).
   */
  readonly alpha?: 'drop' | 'keep' | 'independent'
  /** The colour that pixels with alpha are laid over: one number, or red, green and blue. Rounded as Pillow's `alpha_composite`. */
  readonly background?: number | ArrayLike<number>
  /** `grey`: RGB becomes one channel, as Pillow's mode L. `rgb`: grey becomes three equal channels. Default: as the pixels. */
  readonly colors?: 'rgb' | 'grey'
  /** Resize to the bytes of Pillow, torchvision or OpenCV. */
  readonly resize?: ImageResizeOptions
  /** After the resize: a square in the middle, or a size, or a part. */
  readonly crop?: number | ImageCropOptions
  /** After the crop: a border up to a square, up to a size, or of given widths. */
  readonly pad?: number | ImagePadOptions
  /** A resize in proportion with a border, instead of `resize`, `crop` and `pad`. */
  readonly letterbox?: number | LetterboxOptions
  /** Subtracted from the pixels, in their unit (0 to 255): one number, or one per channel of the result, in its order. Default 0. */
  readonly mean?: number | ArrayLike<number>
  /** Divides the difference: one number, or one per channel of the result, in its order. Default 1. */
  readonly std?: number | ArrayLike<number>
  /** For quantized results: the element is `round((pixel - mean) / std / scale) + zeroPoint`. Default 1. */
  readonly scale?: number
  /** Default 0. */
  readonly zeroPoint?: number
  /** Order of the axes of the result: `nchw` or `nhwc` by any of their names, in any case. Default `nchw`. */
  readonly layout?: string
  /**
   * Element type of the result; default float32. Integers are rounded to the nearest, ties to even, and saturated.
   */
  readonly dtype?: Name
  /** Order of the channels of the result; pixels are RGB, as sharp gives them. Default `rgb`. */
  readonly order?: 'rgb' | 'bgr'
}

const IMAGE_OPTIONS = [
  'width',
  'height',
  'channels',
  'pixelFormat',
  'alpha',
  'background',
  'colors',
  'resize',
  'crop',
  'pad',
  'letterbox',
  'mean',
  'std',
  'scale',
  'zeroPoint',
  'layout',
  'dtype',
  'order',
] as const

/**
 * The input of a model, `(pixel - mean) / std`, from raw pixels such as those of `sharp`. Lazy: `toTypedArray` or `materialize`
 * compute it in one pass over rows, without an image in between. The pixels are borrowed, not copied, so they must stay as they
 * are until then.
 *
 * A resize gives the bytes of the library that `resize.like` names, on pixels of 8 bits, and of Pillow's mode I;16 on one channel
 * of 16 bits. Steps: colours, resize, crop, border, normalisation, element type, layout.
 *
 * @param pixels - one image, or an array of images that have one size after all steps; some may have alpha
 * @returns shape: `[images, channels, height, width]`, with the layout `nhwc` `[images, height, width, channels]`
 * @throws TileworkError at once: ERR_ARGUMENT for pixels of another length, results of different sizes or colours, and wrong
 * options; ERR_QUANTIZATION for a mean, std, scale or zero point that is not finite, a std of 0, and another count of numbers than
 * channels; ERR_LIMIT for a result of more than 2 GiB an image; ERR_DTYPE, ERR_OVERFLOW
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
  const images = readInput('The pixels', () => readImages(pixels, asked))
  for (const image of images) checkCounts(image, asked)
  warnOfUnit(images[0]!, asked.numbers)
  if (asked.isPlain && images.every(({ sampleBytes }) => sampleBytes === 1)) {
    checkAlike(images.map((image) => ({ ...image, colours: coloursOf(image.channels) })))
    return joined(normalized(images, asked), 0)
  }
  return computed(images, asked)
}

interface Asked extends AskedPixels {
  readonly isPlanar: boolean
  readonly order: 'rgb' | 'bgr'
  readonly numbers: Numbers
  readonly geometry: Geometry
  readonly alpha: 'drop' | 'keep' | 'independent'
  readonly background: number | readonly number[] | undefined
  readonly colors: 'rgb' | 'grey' | undefined
  /** Normalisation alone, to floats: a chain of `affine` and `reorder`, whose kernels are older and faster. */
  readonly isPlain: boolean
}

function readOptions(options: ImageToTensorOptions): Asked {
  const { width, height, channels, background, colors, resize, crop, pad, letterbox } = options
  const { alpha = 'drop', pixelFormat = 'interleaved' } = options
  const size = {
    ...(width !== undefined && { width: checkSize(width, 'width') }),
    ...(height !== undefined && { height: checkSize(height, 'height') }),
    ...(channels !== undefined && { channels: checkChannels(channels) }),
    pixelFormat: checkOneOf(pixelFormat, 'pixelFormat', PIXEL_FORMATS),
  }
  const numbers = readNumbers(options)
  const changes = [background, colors, resize, crop, pad, letterbox, numbers.scale, numbers.zeroPoint]
  const isFloat = DTYPES[numbers.dtype].kind === 'float'
  return {
    ...size,
    ...readPlaces(options),
    numbers,
    geometry: readGeometry({ resize, crop, pad, letterbox }),
    alpha: checkOneOf(alpha, 'alpha', ['drop', 'keep', 'independent']),
    background: background === undefined ? undefined : readBackground(background),
    colors: colors === undefined ? undefined : checkOneOf(colors, 'colors', ['rgb', 'grey'] as const),
    isPlain:
      isFloat &&
      alpha === 'drop' &&
      pixelFormat === 'interleaved' &&
      changes.every((value) => value === undefined),
  }
}

/** One sample, or red, green and blue. Only samples of 8 bits are laid over a background. */
function readBackground(background: number | ArrayLike<number>): number | readonly number[] {
  const samples = readSamples(background, 'background')
  const list = typeof samples === 'number' ? [samples] : samples
  if ((list.length === 1 || list.length === 3) && list.every((each) => each <= 255)) return samples
  throw new TileworkError(
    'ERR_ARGUMENT',
    `background is [${list}]; it must be one number from 0 to 255, or three.`,
  )
}

/** @throws TileworkError ERR_ARGUMENT */
export function readPlaces({
  layout = 'nchw',
  order = 'rgb',
}: Pick<ImageToTensorOptions, 'layout' | 'order'>): {
  isPlanar: boolean
  order: 'rgb' | 'bgr'
} {
  return { isPlanar: isPlanarLayout(layout), order: checkOneOf(order, 'order', ['rgb', 'bgr']) }
}

function isPlanarLayout(layout: unknown): boolean {
  const names: Readonly<Record<string, boolean>> = { bfyx: true, byxf: false }
  let name: string | undefined
  try {
    name = typeof layout === 'string' ? parseLayout(layout).name : undefined
  } catch {
    // The error below names the layouts that images have.
  }
  const isPlanar = name === undefined ? undefined : names[name]
  if (isPlanar !== undefined) return isPlanar
  throw new TileworkError(
    'ERR_ARGUMENT',
    `layout is ${valueText(layout)}; it must be nchw or nhwc. reorder makes other layouts of the result.`,
  )
}

/** @throws TileworkError ERR_DTYPE, ERR_QUANTIZATION */
export function readNumbers({
  mean,
  std,
  scale,
  zeroPoint,
  dtype = 'float32',
}: ImageToTensorOptions): Numbers {
  const to = resolveDtype(dtype)
  if (DTYPES[to].kind === 'complex' || to === 'string' || to === 'bool') {
    throw new TileworkError('ERR_DTYPE', `imageToTensor makes floats and integers; dtype is ${to}.`)
  }
  return {
    mean: readFinite(mean, 'mean'),
    std: readFinite(std, 'std'),
    dtype: to,
    scale: scale === undefined ? undefined : (readFinite(scale, 'scale') as number),
    zeroPoint: zeroPoint === undefined ? undefined : (readFinite(zeroPoint, 'zeroPoint') as number),
  }
}

/** A copy, so that later changes of the caller's array change nothing. */
function readFinite(
  value: number | ArrayLike<number> | undefined,
  name: string,
): number | readonly number[] | undefined {
  if (value === undefined) return undefined
  const isList = typeof value === 'object' && value !== null && Number.isSafeInteger(value.length)
  const numbers = isList && value.length <= 4 ? Array.from(value) : [value as number]
  const bad = numbers.find((each) => !Number.isFinite(each) || (name === 'std' && each === 0))
  if (bad === undefined && numbers.length > 0) return numbers.length > 1 ? numbers : numbers[0]
  const rule = name === 'std' ? 'finite and not 0' : 'finite'
  const found = isList && value.length > 4 ? `a list of ${value.length} numbers` : valueText(bad)
  throw new TileworkError(
    'ERR_QUANTIZATION',
    `${name} is ${found}; it must be ${rule}, for at most 4 channels.`,
  )
}

let hasWarned = false

/** Numbers for pixels from 0 to 1 are the most common mistake, and give an input that models misread without an error. */
function warnOfUnit({ sampleBytes }: Image, { mean }: Numbers): void {
  const numbers = typeof mean === 'object' ? mean : [mean ?? 0]
  const found = numbers.find((number) => number > 0 && number < 1)
  if (found === undefined || hasWarned) return
  hasWarned = true
  const most = sampleBytes === 1 ? 255 : 65_535
  process.emitWarning(
    `imageToTensor: mean ${found} is below 1, but pixels are 0 to ${most}. For the numbers of torchvision multiply mean and std by ${most}.`,
    { code: 'TILEWORK_IMAGE_MEAN' },
  )
}

/** Which samples of the pixels become the channels of the result, and what changes them before. */
interface Colours {
  readonly step: ColourStep
  readonly background: readonly number[]
  readonly channels: readonly number[]
}

function coloursFor(image: Image, asked: Asked): Colours {
  const { alpha, background, colors, order, geometry } = asked
  const hasAlpha = image.channels % 2 === 0
  const isLaid = hasAlpha && background !== undefined
  const isGrey = colors === 'grey' && image.channels >= 3
  if (isGrey && isLaid) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'colors "grey" and background do not go together for pixels with alpha.',
    )
  }
  const keepsAlpha = hasAlpha && !isLaid && alpha !== 'drop'
  if (isGrey && keepsAlpha) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `colors "grey" and alpha ${JSON.stringify(alpha)} do not go together.`,
    )
  }
  const isWeighted = keepsAlpha && alpha === 'keep' && geometry.like.startsWith('pillow')
  const step = isGrey ? 'grey' : isLaid ? 'background' : isWeighted ? 'premultiply' : 'none'
  if (image.sampleBytes === 2 && step !== 'none') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${image.name} has samples of 16 bits; colours with alpha, and grey, take 8.`,
    )
  }
  const found = isGrey ? 1 : coloursOf(image.channels)
  const shown = found === 1 ? Array.from({ length: colors === 'rgb' ? 3 : 1 }, () => 0) : [0, 1, 2]
  const ordered = order === 'bgr' ? shown.toReversed() : shown
  return {
    step,
    background:
      typeof background === 'object' && background.length > 1
        ? background
        : [0, 0, 0].fill(Number(background ?? 0)),
    channels: keepsAlpha ? [...ordered, image.channels - 1] : ordered,
  }
}

/** The batch by image plans. */
function computed(images: readonly Image[], asked: Asked): DenseTensor {
  const { numbers, geometry, isPlanar, pixelFormat } = asked
  const isPacked = DTYPES[numbers.dtype].bits < 8
  const made: Numbers = isPacked
    ? { ...numbers, dtype: 'float32', scale: undefined, zeroPoint: undefined }
    : numbers
  const sizes: Sized[] = []
  const planned = images.flatMap((image): PlannedImage[] => {
    const { name, width, height, channels, sampleBytes } = image
    const colours = coloursFor(image, asked)
    checkFilter(image, geometry)
    const frame = geometry.frameOf(
      name,
      { width, height },
      Math.max(channels, colours.channels.length) * sampleBytes,
    )
    const plan = planOf({
      image: { name, width, height, channels, sampleBytes },
      pixelFormat,
      colours: colours.step,
      background: colours.background,
      like: geometry.like,
      filter: geometry.filter,
      frame,
      channels: colours.channels,
      tables: tablesOf(made, colours.channels.length, sampleBytes),
      border: borderOf(geometry.border, colours.channels.length, sampleBytes),
      isPlanar,
    })
    sizes.push({ ...plan, name, colours: plan.channels })
    return plannedImages(plan, image)
  })
  checkAlike(sizes)
  const batch = batchOf(planned, made.dtype, isPlanar)
  return isPacked ? elementsOf(batch, numbers) : batch
}

export function batchOf(planned: readonly PlannedImage[], dtype: Dtype, isPlanar: boolean): StoredTensor {
  const { width, height, channels } = planned[0]!.plan
  const count = planned.length
  const shape = isPlanar ? [count, channels, height, width] : [count, height, width, channels]
  return new StoredTensor({ source: new ImageSource(planned, 'the images'), start: 0, dtype, shape })
}

function checkFilter({ name, sampleBytes }: Image, { like }: Geometry): void {
  if (sampleBytes === 1 || like.startsWith('pillow')) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `${name} has samples of 16 bits; only like pillow resizes them, not ${like}.`,
  )
}

export function borderOf(
  value: number | readonly number[],
  channels: number,
  sampleBytes: 1 | 2,
): readonly number[] {
  const list =
    typeof value === 'object' && value.length > 1
      ? value
      : Array.from({ length: channels }, () => Number(value))
  const most = sampleBytes === 1 ? 255 : 65_535
  if (list.length === channels && list.every((each) => each <= most)) return list
  throw new TileworkError(
    'ERR_ARGUMENT',
    `the value of the border is [${list}]; it must be at most ${most}, and one number or ${channels}.`,
  )
}

interface Sized {
  readonly name: string
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly colours: number
}

/** @throws TileworkError ERR_ARGUMENT for images of different sizes or colours */
function checkAlike(images: readonly Sized[]): void {
  const first = images[0]!
  for (const { name, width, height, channels, colours } of images) {
    if (width === first.width && height === first.height && colours === first.colours) continue
    const message = `${name} is ${width} × ${height} × ${channels} and ${first.name} is ${first.width} × ${first.height} × ${first.channels}; images of one batch have one size and the same colours.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}

/** @throws TileworkError ERR_QUANTIZATION where mean or std has a number for each of another count of channels */
function checkCounts(image: Image, asked: Asked): void {
  const { name, channels } = image
  const colours = asked.isPlain ? coloursOf(channels) : coloursFor(image, asked).channels.length
  for (const what of ['mean', 'std'] as const) {
    const numbers = asked.numbers[what]
    const count = typeof numbers === 'object' ? numbers.length : 1
    if (count === 1 || count === colours) continue
    const kind = colours === 1 ? 'is grey: 1 channel' : `has ${colours} colours`
    throw new TileworkError('ERR_QUANTIZATION', `${name} ${kind}; ${what} has ${count} numbers.`)
  }
}

/** Each image as the part of the batch that it becomes. Images of the same length and channels share their plan. */
function normalized(images: readonly Image[], asked: Asked): StoredTensor[] {
  const { isPlanar, order, numbers } = asked
  const axis = isPlanar ? 1 : 3
  const { mean, std, dtype } = numbers
  const scaling = {
    ...(mean !== undefined && { mean }),
    ...(std !== undefined && { std }),
    dtype,
    ...axisOf(numbers, axis),
  }
  const plans = new Map<number, FusedTensor>()
  return images.map((image) => {
    const before = plans.get(image.channels)
    if (before?.recipe.base.source.byteLength === image.bytes.byteLength) {
      return before.onBase(onBytes(before.recipe.base, image.bytes))
    }
    const coloured = selectChannels(stored(image, isPlanar), axis, image.channels, order)
    const normal = affine(coloured, scaling)
    const part = (isPlanar ? reorder(normal, 'row_major') : normal) as StoredTensor
    if (part instanceof FusedTensor) plans.set(image.channels, part)
    return part
  })
}

/** A tensor like another one, on other bytes of the same length. */
function onBytes({ dtype, shape, storage, placement }: StoredTensor, bytes: Uint8Array): StoredTensor {
  const source = new MemorySource(bytes)
  return new StoredTensor({ source, start: 0, dtype, shape, storage, ...placement })
}

/** Planar results take pixels by the axes N, C, H, W, in the order in which they lie; others by N, H, W, C. */
function stored({ bytes, width, height, channels, count }: Image, isPlanar: boolean): StoredTensor {
  const shape = [count, height, width, channels]
  const pixels = new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype: 'uint8', shape })
  return isPlanar ? (asLayout(pixels, 'nhwc', [count, channels, height, width]) as StoredTensor) : pixels
}

/** Without alpha, and in reverse for `bgr`. */
export function selectChannels(
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
export function axisOf({ mean, std }: Pick<Numbers, 'mean' | 'std'>, axis: number): { axis?: number } {
  const isPerChannel = [mean, std].some((numbers) => typeof numbers === 'object' && numbers.length > 1)
  return isPerChannel ? { axis } : {}
}
