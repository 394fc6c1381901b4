/** The options of a resize, a crop, a border and a letterbox: their types, checks, and the sizes that they mean. */
import { checkFlag, checkOneOf, checkOptions } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { checkSize } from './pixels.js'
import {
  checkResized,
  Frame,
  type LetterboxRules,
  letterboxFrame,
  longestEdge,
  type Size,
  shortestAndLongest,
  shortestEdge,
  within,
} from './sizes.js'

/**
 * Whose bytes a resize repeats. `pillow`: Pillow 13; `pillow12`: Pillow 12, which filters rows and columns in another order for
 * some sizes; `torchvision`: `resize` of uint8 tensors with antialias; `opencv`: `cv2.resize`, without antialias.
 */
export type ImageReference = 'pillow' | 'pillow12' | 'torchvision' | 'opencv'

/** `linear` and `area` are OpenCV's, all others but `nearest` Pillow's; torchvision has bilinear, bicubic, lanczos and nearest. */
export type ResizeFilter =
  | 'nearest'
  | 'box'
  | 'bilinear'
  | 'hamming'
  | 'bicubic'
  | 'lanczos'
  | 'mks2013'
  | 'mks2021'
  | 'linear'
  | 'area'

/** The filters of each reference; the first is its default. */
const FILTERS: Readonly<Record<ImageReference, readonly ResizeFilter[]>> = {
  pillow: ['bilinear', 'nearest', 'box', 'hamming', 'bicubic', 'lanczos', 'mks2013', 'mks2021'],
  pillow12: ['bilinear', 'nearest', 'box', 'hamming', 'bicubic', 'lanczos'],
  torchvision: ['bilinear', 'nearest', 'bicubic', 'lanczos'],
  opencv: ['linear', 'nearest', 'area'],
}

/**
 * The size after the resize, in one of these forms: `width` and `height`; `shortestEdge`, the other side in proportion, with
 * `longestEdge` as its limit; `longestEdge` alone; `maxWidth` and `maxHeight`, as large as fits in proportion. Proportions are
 * rounded as Hugging Face processors round them.
 */
export interface ImageResizeOptions {
  readonly width?: number
  readonly height?: number
  readonly shortestEdge?: number
  readonly longestEdge?: number
  readonly maxWidth?: number
  readonly maxHeight?: number
  /** Default `bilinear`, for OpenCV `linear`. `area` of OpenCV does not enlarge. */
  readonly filter?: ResizeFilter
  /** Default `pillow`. */
  readonly like?: ImageReference
}

/** The middle of the image, or the part that begins at `left`, `top`. A part that is larger gets a border of zeros. */
export interface ImageCropOptions {
  readonly width: number
  readonly height: number
  readonly left?: number
  readonly top?: number
}

/** A border around the image, up to a size or of given widths. */
export interface ImagePadOptions {
  /** Size with the border; not less than the image. */
  readonly width?: number
  readonly height?: number
  /** Where the image stands in a given size: `start` puts the border right and below. Default `center`. */
  readonly position?: 'center' | 'start'
  readonly left?: number
  readonly top?: number
  readonly right?: number
  readonly bottom?: number
  /** A sample, in the unit of the pixels, or one per channel of the result. Default 0. */
  readonly value?: number | ArrayLike<number>
}

/** A resize in proportion and a border around it, as ultralytics prepares images for YOLO. */
export interface LetterboxOptions {
  readonly width: number
  readonly height: number
  /** The image in the middle, else in the upper left corner. Default true. */
  readonly center?: boolean
  /** Whether small images are enlarged. Default true. */
  readonly scaleUp?: boolean
  /** Only as much border as makes both sides multiples of `stride`. Default false. */
  readonly auto?: boolean
  /** Default 32. */
  readonly stride?: number
  /** A sample, or one per channel of the result. Default 114. */
  readonly value?: number | ArrayLike<number>
  /** Default `linear`. */
  readonly filter?: ResizeFilter
  /** Default `opencv`. */
  readonly like?: ImageReference
}

/** Checked options: which resize, and the size of its result. */
export interface Geometry {
  readonly like: ImageReference
  readonly filter: ResizeFilter
  /** One sample for all channels, or one per channel. */
  readonly border: number | readonly number[]
  /** @throws TileworkError ERR_ARGUMENT, ERR_LIMIT */
  frameOf(name: string, from: Size, pixelBytes: number): Frame
}

export type Step = (frame: Frame, name: string) => Frame

export interface GeometryOptions {
  readonly resize?: ImageResizeOptions | undefined
  readonly crop?: number | ImageCropOptions | undefined
  readonly pad?: number | ImagePadOptions | undefined
  readonly letterbox?: number | LetterboxOptions | undefined
}

/** @throws TileworkError ERR_ARGUMENT for options that are wrong or do not go together */
export function readGeometry({ resize, crop, pad, letterbox }: GeometryOptions): Geometry {
  if (letterbox !== undefined) {
    if (resize !== undefined || crop !== undefined || pad !== undefined) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        'letterbox is a resize with a border; it takes no resize, crop or pad beside it.',
      )
    }
    return letterboxGeometry(readLetterbox(letterbox))
  }
  const { like, filter, sizeOf } = readResize(resize)
  const steps: Step[] = []
  if (crop !== undefined) steps.push(readCrop(crop, like))
  const padding = pad === undefined ? undefined : readPad(pad)
  if (padding) steps.push(padding.step)
  return {
    like,
    filter,
    border: padding?.value ?? 0,
    frameOf: (name, from, pixelBytes) => {
      const resized = checkResized(name, from, sizeOf(from), pixelBytes)
      return steps.reduce((frame, step) => step(frame, name), Frame.of(resized))
    },
  }
}

interface AskedLetterbox extends LetterboxRules {
  readonly like: ImageReference
  readonly filter: ResizeFilter
  readonly value: number | readonly number[]
}

const LETTERBOX_OPTIONS = [
  'width',
  'height',
  'center',
  'scaleUp',
  'auto',
  'stride',
  'value',
  'filter',
  'like',
] as const

export function readLetterbox(letterbox: number | LetterboxOptions): AskedLetterbox {
  const asked = typeof letterbox === 'number' ? { width: letterbox, height: letterbox } : letterbox
  checkOptions(asked, 'letterbox', LETTERBOX_OPTIONS)
  const {
    width,
    height,
    center,
    scaleUp,
    auto,
    stride = 32,
    value = 114,
    filter,
    like,
  } = asked as LetterboxOptions
  return {
    width: checkSize(width, 'letterbox.width'),
    height: checkSize(height, 'letterbox.height'),
    center: flag(center, 'letterbox.center', true),
    scaleUp: flag(scaleUp, 'letterbox.scaleUp', true),
    auto: flag(auto, 'letterbox.auto', false),
    stride: checkSize(stride, 'letterbox.stride'),
    value: readSamples(value, 'letterbox.value'),
    ...readReference(like ?? 'opencv', filter),
  }
}

function letterboxGeometry(asked: AskedLetterbox): Geometry {
  return {
    like: asked.like,
    filter: asked.filter,
    border: asked.value,
    frameOf: (name, from, pixelBytes) => letterboxFrame(name, from, asked, pixelBytes),
  }
}

function flag(value: unknown, name: string, byDefault: boolean): boolean {
  return value === undefined ? byDefault : checkFlag(value, name)
}

/** @throws TileworkError ERR_ARGUMENT for a name that is unknown, and a filter that the reference lacks */
function readReference(like: unknown, filter: unknown): { like: ImageReference; filter: ResizeFilter } {
  const reference = checkOneOf(like, 'like', Object.keys(FILTERS) as ImageReference[])
  const filters = FILTERS[reference]
  if (filter === undefined) return { like: reference, filter: filters[0]! }
  return { like: reference, filter: checkOneOf(filter, `filter like ${reference}`, filters) }
}

const SIZE_OPTIONS = ['width', 'height', 'shortestEdge', 'longestEdge', 'maxWidth', 'maxHeight'] as const

export interface Resize {
  readonly like: ImageReference
  readonly filter: ResizeFilter
  readonly sizeOf: (from: Size) => Size
}

export function readResize(resize: ImageResizeOptions | undefined): Resize {
  if (resize === undefined) return { ...readReference('pillow', undefined), sizeOf: (from) => from }
  checkOptions(resize, 'resize', [...SIZE_OPTIONS, 'filter', 'like'])
  const { filter, like = 'pillow' } = resize
  const sizes = Object.fromEntries(
    SIZE_OPTIONS.flatMap((name) => {
      const value = resize[name]
      return value === undefined ? [] : [[name, checkSize(value, `resize.${name}`)]]
    }),
  ) as Partial<Record<(typeof SIZE_OPTIONS)[number], number>>
  return { ...readReference(like, filter), sizeOf: sizeRule(sizes) }
}

function sizeRule(sizes: Partial<Record<(typeof SIZE_OPTIONS)[number], number>>): (from: Size) => Size {
  const { width, height, shortestEdge: edge, longestEdge: limit, maxWidth, maxHeight } = sizes
  const count = Object.keys(sizes).length
  if (count === 2 && width !== undefined && height !== undefined) return () => ({ width, height })
  if (count === 1 && edge !== undefined) return (from) => shortestEdge(from, edge)
  if (count === 1 && limit !== undefined) return (from) => longestEdge(from, limit)
  if (count === 2 && edge !== undefined && limit !== undefined) {
    return (from) => shortestAndLongest(from, edge, limit)
  }
  if (count === 2 && maxWidth !== undefined && maxHeight !== undefined) {
    return (from) => within(from, { width: maxWidth, height: maxHeight })
  }
  const found = count === 0 ? 'no size' : Object.keys(sizes).join(' and ')
  const message = `resize has ${found}; it takes width and height, shortestEdge, longestEdge or both, or maxWidth and maxHeight.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

export function readCrop(crop: number | ImageCropOptions, like: ImageReference): Step {
  const asked: ImageCropOptions = typeof crop === 'number' ? { width: crop, height: crop } : crop
  checkOptions(asked, 'crop', ['width', 'height', 'left', 'top'])
  const size = { width: checkSize(asked.width, 'crop.width'), height: checkSize(asked.height, 'crop.height') }
  const { left, top } = asked
  // Pillow's processors and torchvision differ in where an odd pixel of the border stands.
  if (left === undefined && top === undefined) {
    return (frame) => frame.cutCenter(size, like === 'torchvision' ? 'after' : 'before')
  }
  return (frame) => frame.cut({ left: offset(left, 'crop.left'), top: offset(top, 'crop.top'), ...size })
}

function offset(value: unknown, name: string): number {
  if (value === undefined) return 0
  if (Number.isSafeInteger(value) && Math.abs(value as number) < 2 ** 31) return value as number
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number.`)
}

function readPad(pad: number | ImagePadOptions): { step: Step; value: number | readonly number[] } {
  const asked: ImagePadOptions = typeof pad === 'number' ? { width: pad, height: pad } : pad
  checkOptions(asked, 'pad', ['width', 'height', 'position', 'left', 'top', 'right', 'bottom', 'value'])
  const value = readSamples(asked.value ?? 0, 'pad.value')
  const { width, height, left, top, right, bottom } = asked
  const hasSize = width !== undefined || height !== undefined
  if (!hasSize) {
    const [before, above, after, below] = [left, top, right, bottom].map((count, at) =>
      border(count, `pad.${['left', 'top', 'right', 'bottom'][at]}`),
    ) as [number, number, number, number]
    const step: Step = (frame) =>
      frame.extend({
        left: before,
        top: above,
        width: frame.size.width + before + after,
        height: frame.size.height + above + below,
      })
    return { step, value }
  }
  if ([left, top, right, bottom].some((count) => count !== undefined)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'pad takes width and height, or left, top, right and bottom, not both.',
    )
  }
  const size = { width: checkSize(width, 'pad.width'), height: checkSize(height, 'pad.height') }
  const isCentered = checkOneOf(asked.position ?? 'center', 'pad.position', ['center', 'start']) === 'center'
  return { step: (frame, name) => padTo(frame, name, size, isCentered), value }
}

/** @throws TileworkError ERR_ARGUMENT where the image is larger */
export function padTo(frame: Frame, name: string, size: Size, isCentered: boolean): Frame {
  const { width, height } = frame.size
  if (width > size.width || height > size.height) {
    const message = `${name} is ${width} × ${height} before the border; pad is ${size.width} × ${size.height}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const left = isCentered ? Math.floor((size.width - width) / 2) : 0
  const top = isCentered ? Math.floor((size.height - height) / 2) : 0
  return frame.extend({ left, top, ...size })
}

function border(value: unknown, name: string): number {
  const count = offset(value, name)
  if (count >= 0) return count
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${count}; it must be 0 or more.`)
}

/** Whole numbers that a sample can have. */
export function readSamples(value: number | ArrayLike<number>, name: string): number | readonly number[] {
  const list = typeof value === 'number' ? [value] : value
  const isList =
    typeof list === 'object' && list !== null && Number.isSafeInteger(list.length) && list.length <= 4
  const numbers = isList ? Array.from(list) : []
  const isSample = (each: unknown): boolean =>
    Number.isInteger(each) && (each as number) >= 0 && (each as number) <= 65_535
  if (numbers.length > 0 && numbers.every(isSample)) return typeof value === 'number' ? value : numbers
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${name} is ${valueText(value)}; it must be a whole number that a sample can have, or one per channel.`,
  )
}
