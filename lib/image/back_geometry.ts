/** From the output of a model to an image: the part that is kept, and its size after a resize. */
import { TileworkError } from '../errors.js'
import { shownPart } from './model_space.js'
import {
  type ImageCropOptions,
  type ImageReference,
  type ImageResizeOptions,
  type LetterboxOptions,
  type ResizeFilter,
  readCrop,
  readLetterbox,
  readResize,
} from './options.js'
import { checkSize } from './pixels.js'
import { type Box, checkResized, Frame, letterboxOf, type Size } from './sizes.js'

export interface BackGeometry {
  readonly like: ImageReference
  readonly filter: ResizeFilter
  /** The part of an output that is kept. @throws TileworkError ERR_ARGUMENT where it leaves the output */
  readonly cropOf: (from: Size) => Box
  /** The size of that part after the resize. @throws TileworkError ERR_ARGUMENT, ERR_LIMIT */
  readonly sizeOf: (name: string, from: Size, pixelBytes: number) => Size
}

export interface BackOptions {
  readonly crop?: number | ImageCropOptions | undefined
  readonly resize?: ImageResizeOptions | undefined
  readonly letterbox?: number | LetterboxOptions | undefined
  readonly width?: number | undefined
  readonly height?: number | undefined
}

/** @throws TileworkError ERR_ARGUMENT for options that are wrong or do not go together */
export function readBack({ crop, resize, letterbox, width, height }: BackOptions): BackGeometry {
  if (letterbox !== undefined) {
    if (crop !== undefined || resize !== undefined) {
      const message = 'letterbox is a crop and a resize; it takes no crop or resize beside it.'
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    return letterboxBack(letterbox, {
      width: checkSize(width, 'width'),
      height: checkSize(height, 'height'),
    })
  }
  if (width !== undefined || height !== undefined) {
    const message =
      'width and height belong to letterbox; resize: { width, height } is the size of the pixels.'
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const { like, filter, sizeOf } = readResize(resize)
  const step = crop === undefined ? undefined : readCrop(crop, like)
  return {
    like,
    filter,
    cropOf: (from) => (step ? checkInside(step(Frame.of(from), 'the output'), from) : wholeOf(from)),
    sizeOf: (name, from, pixelBytes) => checkResized(name, from, sizeOf(from), pixelBytes),
  }
}

function wholeOf(size: Size): Box {
  return { left: 0, top: 0, ...size }
}

/** @throws TileworkError ERR_ARGUMENT for a crop that would need a border */
function checkInside({ crop, size }: Frame, from: Size): Box {
  if (crop.width === size.width && crop.height === size.height) return crop
  const message = `crop is ${size.width} × ${size.height} and leaves the image, which is ${from.width} × ${from.height}; it must lie within.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/** @param image - the size before the letterbox */
function letterboxBack(letterbox: number | LetterboxOptions, image: Size): BackGeometry {
  const rules = readLetterbox(letterbox)
  const way = { image, rules, ...letterboxOf(image, rules) }
  return {
    like: rules.like,
    filter: rules.filter,
    cropOf: (from) => {
      const { width, height } = way.place
      return width === from.width && height === from.height
        ? { ...way.resized, left: way.place.left, top: way.place.top }
        : shownPart(from, way)
    },
    sizeOf: (name, from, pixelBytes) => checkResized(name, from, image, pixelBytes),
  }
}
