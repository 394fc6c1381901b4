/** Results of a model in the pixels of the image that a letterbox prepared for it. */

import { checkOneOf, checkOptions, isList, readInput } from '../caller_input.js'
import { roundEven } from '../dtype/round_even.js'
import { TileworkError } from '../errors.js'
import { cast } from '../tensor/cast.js'
import { checkOnlyDense } from '../tensor/check_tensor.js'
import { tensor } from '../tensor/from_values.js'
import { reorder } from '../tensor/reorder.js'
import type { AnyTensor, DenseTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { type LetterboxOptions, readLetterbox } from './options.js'
import { checkSize } from './pixels.js'
import { type Box, checkResized, type LetterboxRules, letterboxOf, type Size } from './sizes.js'

/** Results in the pixels of the model's input. */
export interface ModelSpace {
  /** Four numbers each, in the form that `boxFormat` names. */
  readonly boxes?: ArrayLike<number>
  /** Two numbers each: x, y. */
  readonly points?: ArrayLike<number>
  /** Shape `[height, width]`, at the resolution of the input or another. */
  readonly mask?: AnyTensor
}

export interface ModelSpaceOptions {
  /** Width of the image before the letterbox. */
  readonly width: number
  readonly height: number
  /** The letterbox that `imageToTensor` got. */
  readonly letterbox: number | LetterboxOptions
  /** `corners` (default): x1, y1, x2, y2; `center`: the middle, width and height, which become corners. */
  readonly boxFormat?: 'corners' | 'center'
  /** `linear` (default) interpolates numbers; `nearest` is for masks of class numbers. */
  readonly maskFilter?: 'linear' | 'nearest'
}

export interface ImageSpace {
  /** Corners x1, y1, x2, y2, clipped to the image. */
  readonly boxes: Float64Array
  /** Clipped to the image. */
  readonly points: Float64Array
  /** float32, shape `[height, width]` of the image; undefined without a mask. */
  readonly mask?: DenseTensor<'float32'>
}

/**
 * Boxes, points and a mask of a letterboxed input in pixels of the image, by the rules of ultralytics: the gain of each axis is
 * that of the rounded size.
 *
 * @returns boxes and points are empty where none were given
 * @throws TileworkError ERR_ARGUMENT for numbers that are not whole boxes or points, a mask of another rank than 2, and wrong
 * options; ERR_LIMIT for a mask of more than 2 GiB; ERR_ASYNC_ONLY for a mask that has no bytes in memory
 */
export function fromModelSpace(given: ModelSpace, options: ModelSpaceOptions): ImageSpace {
  checkOptions(given, 'fromModelSpace', ['boxes', 'points', 'mask'])
  checkOptions(options, 'fromModelSpace', ['width', 'height', 'letterbox', 'boxFormat', 'maskFilter'])
  return readInput('The arguments of fromModelSpace', () => {
    const image = {
      width: checkSize(options.width, 'width'),
      height: checkSize(options.height, 'height'),
    }
    const rules = readLetterbox(options.letterbox)
    const way: Way = { image, rules, ...letterboxOf(image, rules) }
    const boxFormat = checkOneOf(options.boxFormat ?? 'corners', 'boxFormat', ['corners', 'center'])
    const maskFilter = checkOneOf(options.maskFilter ?? 'linear', 'maskFilter', ['linear', 'nearest'])
    const boxes = numbersOf(given.boxes, 4, 'boxes')
    return {
      boxes: pointsBack(boxFormat === 'center' ? cornersOf(boxes) : boxes, way),
      points: pointsBack(numbersOf(given.points, 2, 'points'), way),
      ...(given.mask !== undefined && { mask: maskBack(given.mask, way, maskFilter === 'linear') }),
    }
  })
}

/** From an image to the input: what it was resized to, and where that stands. */
export interface Way {
  readonly image: Size
  readonly rules: LetterboxRules
  readonly resized: Size
  readonly place: Box
}

function numbersOf(values: ArrayLike<number> | undefined, each: number, name: string): Float64Array {
  if (values === undefined) return new Float64Array(0)
  const isNumbers = isList(values) || (ArrayBuffer.isView(values) && !(values instanceof DataView))
  const isNested = isNumbers && typeof values[0] === 'object'
  const numbers = isNumbers && !isNested ? Float64Array.from(values) : new Float64Array(1)
  if (isNumbers && !isNested && numbers.length % each === 0) return numbers
  const found = isNested ? 'a list of lists' : isNumbers ? `${numbers.length} numbers` : valueText(values)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${name} is ${found}; it must be one flat array with ${each} numbers for each.`,
  )
}

function cornersOf(boxes: Float64Array): Float64Array {
  const corners = new Float64Array(boxes.length)
  for (let at = 0; at < boxes.length; at += 4) {
    for (const axis of [0, 1]) {
      const half = boxes[at + 2 + axis]! / 2
      corners[at + axis] = boxes[at + axis]! - half
      corners[at + 2 + axis] = boxes[at + axis]! + half
    }
  }
  return corners
}

function pointsBack(points: Float64Array, { image, resized, place }: Way): Float64Array {
  const gains = [resized.width / image.width, resized.height / image.height]
  const starts = [place.left, place.top]
  const most = [image.width, image.height]
  return points.map((value, at) => {
    const axis = at % 2
    return Math.min(Math.max((value - starts[axis]!) / gains[axis]!, 0), most[axis]!)
  })
}

/** The part of a mask that shows the image, at the resolution of the image. */
function maskBack(mask: AnyTensor, way: Way, isLinear: boolean): DenseTensor<'float32'> {
  const dense = checkOnlyDense(mask, 'fromModelSpace', 'are masks')
  const [height, width] = dense.shape
  if (dense.shape.length !== 2 || !height || !width) {
    const message = `the mask has the shape [${dense.shape}]; it must be [height, width] with sides from 1.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  checkResized('the mask', { width, height }, way.image, Float32Array.BYTES_PER_ELEMENT)
  const bytes = reorder(cast(dense, 'float32'), 'row_major').bytesSync()
  const values = new Float32Array(bytes.slice().buffer)
  const shown = shownPart({ width, height }, way)
  const x = placesOf(shown.left, shown.width, way.image.width, isLinear)
  const y = placesOf(shown.top, shown.height, way.image.height, isLinear)
  const result = new Float32Array(way.image.width * way.image.height)
  for (const [row, { low, high, rest }] of y.entries()) {
    for (const [column, at] of x.entries()) {
      const above = mix(values[low * width + at.low]!, values[low * width + at.high]!, at.rest)
      const below = mix(values[high * width + at.low]!, values[high * width + at.high]!, at.rest)
      result[row * way.image.width + column] = mix(above, below, rest)
    }
  }
  return tensor(result, { shape: [way.image.height, way.image.width] })
}

/** Where the image is in a mask: the letterbox of the mask's own size, as ultralytics cuts masks. */
export function shownPart(mask: Size, { image, rules, place }: Way): Box {
  const fitting = Math.min(mask.height / image.height, mask.width / image.width)
  const gain = rules.scaleUp ? fitting : Math.min(fitting, mask.width / place.width)
  const sideOf = (size: number, have: number): { start: number; count: number } => {
    const all = size - roundEven(have * gain)
    const spare = rules.center ? all / 2 : all
    const start = rules.center ? Math.max(roundEven(spare - 0.1), 0) : 0
    return { start, count: Math.max(size - roundEven(spare + 0.1) - start, 1) }
  }
  const x = sideOf(mask.width, image.width)
  const y = sideOf(mask.height, image.height)
  return { left: x.start, top: y.start, width: x.count, height: y.count }
}

interface Place {
  readonly low: number
  readonly high: number
  /** Weight of `high`. */
  readonly rest: number
}

/** Half-pixel centres, without antialias, in float32 as torch. */
function placesOf(first: number, have: number, wanted: number, isLinear: boolean): Place[] {
  const scale = have / wanted
  return Array.from({ length: wanted }, (_, at) => {
    if (!isLinear) {
      const nearest = first + Math.min(Math.floor(at * scale), have - 1)
      return { low: nearest, high: nearest, rest: 0 }
    }
    const center = Math.max(Math.fround(scale * (at + 0.5) - 0.5), 0)
    const low = Math.min(Math.floor(center), have - 1)
    return { low: first + low, high: first + Math.min(low + 1, have - 1), rest: Math.fround(center - low) }
  })
}

function mix(a: number, b: number, rest: number): number {
  return rest === 0 ? a : Math.fround(a * (1 - rest) + b * rest)
}
