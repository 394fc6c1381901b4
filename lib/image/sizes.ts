/**
 * Sizes and places of images on the way to a result: the rules by which Hugging Face processors, ultralytics and torchvision
 * round, and where a crop cuts. `cut` is Python's `int`, toward zero; `roundEven` is Python's `round`, ties to even.
 */
import { roundEven } from '../dtype/round_even.js'
import { TileworkError } from '../errors.js'

/** A side that a resize may make: beyond every image that a model takes, and small enough for tables of weights. */
export const MAX_RESIZED_SIDE = 1_048_576

/** Bytes of one resized image, and of its result: more is a mistaken or hostile size, such as one edge of a 1 × 60000 image. */
export const MAX_IMAGE_BYTES = 2_147_483_648

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Box extends Size {
  readonly left: number
  readonly top: number
}

export function cut(value: number): number {
  return Math.trunc(value)
}

/** The short side becomes `edge`. */
export function shortestEdge({ width, height }: Size, edge: number): Size {
  const longer = cut((edge * Math.max(width, height)) / Math.min(width, height))
  return width <= height ? { width: edge, height: longer } : { width: longer, height: edge }
}

/** The long side becomes `edge`. */
export function longestEdge({ width, height }: Size, edge: number): Size {
  const shorter = cut((edge * Math.min(width, height)) / Math.max(width, height))
  return width >= height ? { width: edge, height: shorter } : { width: shorter, height: edge }
}

/**
 * The short side becomes `edge`, or less so that the long side is at most `limit`. The long side comes from the unrounded
 * short one.
 */
export function shortestAndLongest({ width, height }: Size, edge: number, limit: number): Size {
  const low = Math.min(width, height)
  const high = Math.max(width, height)
  const raw = (high / low) * edge > limit ? (limit * low) / high : undefined
  const short = raw === undefined ? edge : roundEven(raw)
  if (low === short) return { width, height }
  const exact = raw ?? short
  return width < height
    ? { width: short, height: cut((exact * height) / width) }
    : { width: cut((exact * width) / height), height: short }
}

/** As large as fits, also larger than the image. */
export function within({ width, height }: Size, most: Size): Size {
  const scale = Math.min(most.height / height, most.width / width)
  return { width: cut(width * scale), height: cut(height * scale) }
}

/** @throws TileworkError ERR_LIMIT for a resized image of too many bytes, ERR_ARGUMENT for a side of 0 */
export function checkResized(name: string, from: Size, to: Size, pixelBytes: number): Size {
  const text = `${name} of ${from.width} × ${from.height} pixels would be resized to ${to.width} × ${to.height}`
  if (!(to.width >= 1 && to.height >= 1)) {
    throw new TileworkError('ERR_ARGUMENT', `${text}; both sides must be at least 1.`)
  }
  if (to.width > MAX_RESIZED_SIDE || to.height > MAX_RESIZED_SIDE) {
    throw new TileworkError('ERR_LIMIT', `${text}; the limit of a side is ${MAX_RESIZED_SIDE}.`)
  }
  checkBytes(text, to, pixelBytes)
  return to
}

/** @throws TileworkError ERR_LIMIT */
export function checkBytes(text: string, { width, height }: Size, pixelBytes: number): void {
  const bytes = width * height * pixelBytes
  if (bytes <= MAX_IMAGE_BYTES) return
  throw new TileworkError('ERR_LIMIT', `${text}, ${bytes} bytes; the limit is ${MAX_IMAGE_BYTES}.`)
}

/** One axis of a result: `count` places of the resized image from `from` on stand at `at` of `size`. */
interface Axis {
  readonly from: number
  readonly count: number
  readonly at: number
  readonly size: number
}

function cutAxis({ from, count, at }: Axis, start: number, size: number): Axis {
  const first = Math.max(at, start)
  const last = Math.max(first, Math.min(at + count, start + size))
  return { from: Math.min(from + first - at, from + count), count: last - first, at: first - start, size }
}

/** What is seen of a resized image, and where it stands in the result. Each step makes a new one. */
export class Frame {
  readonly resized: Size
  /** Where the border around all that the steps until `seal` made begins. */
  readonly inner: Box | undefined
  readonly #x: Axis
  readonly #y: Axis

  private constructor(resized: Size, x: Axis, y: Axis, inner?: Box) {
    this.resized = resized
    this.#x = x
    this.#y = y
    this.inner = inner
  }

  static of(resized: Size): Frame {
    const whole = (size: number): Axis => ({ from: 0, count: size, at: 0, size })
    return new Frame(resized, whole(resized.width), whole(resized.height))
  }

  get size(): Size {
    return { width: this.#x.size, height: this.#y.size }
  }

  /** The part of the resized image that is seen; nothing where one side of it is 0. */
  get crop(): Box {
    const isEmpty = this.#x.count === 0 || this.#y.count === 0
    return {
      left: isEmpty ? 0 : this.#x.from,
      top: isEmpty ? 0 : this.#y.from,
      width: isEmpty ? 0 : this.#x.count,
      height: isEmpty ? 0 : this.#y.count,
    }
  }

  /** Where the crop is in the result. */
  get place(): { readonly left: number; readonly top: number } {
    const { width } = this.crop
    const { left, top } = this.inner ?? { left: 0, top: 0 }
    return width === 0 ? { left, top } : { left: this.#x.at, top: this.#y.at }
  }

  /** A box of the result so far, which may reach beyond it. */
  cut({ left, top, width, height }: Box): Frame {
    return new Frame(this.resized, cutAxis(this.#x, left, width), cutAxis(this.#y, top, height))
  }

  /**
   * The middle of the result so far. Along an axis on which it is larger, the border's odd pixel stands before or after.
   */
  cutCenter(size: Size, odd: 'before' | 'after'): Frame {
    const startOf = (have: number, want: number): number => {
      if (have >= want) return Math.floor((have - want) / 2)
      const before = odd === 'before' ? Math.ceil((want - have) / 2) : Math.floor((want - have) / 2)
      return -before
    }
    const { width, height } = this.size
    return this.cut({ left: startOf(width, size.width), top: startOf(height, size.height), ...size })
  }

  /** A larger result, in which the one so far begins at `left`, `top`. */
  extend({ left, top, width, height }: Box): Frame {
    const moved = (axis: Axis, before: number, size: number): Axis => ({
      ...axis,
      at: axis.at + before,
      size,
    })
    const inner = this.inner && { ...this.inner, left: this.inner.left + left, top: this.inner.top + top }
    return new Frame(this.resized, moved(this.#x, left, width), moved(this.#y, top, height), inner)
  }

  /** From here on, borders have the second kind of value. */
  seal(): Frame {
    return new Frame(this.resized, this.#x, this.#y, { left: 0, top: 0, ...this.size })
  }
}

export interface LetterboxRules extends Size {
  /** The image in the middle, or in the upper left corner. */
  readonly center: boolean
  readonly scaleUp: boolean
  /** Only as much border as makes both sides multiples of `stride`. */
  readonly auto: boolean
  readonly stride: number
}

/** Sizes by the rules of ultralytics. An odd pixel of the border is below and on the right. */
export function letterboxOf(
  from: Size,
  rules: LetterboxRules,
): { readonly resized: Size; readonly place: Box } {
  const fitting = Math.min(rules.height / from.height, rules.width / from.width)
  const ratio = rules.scaleUp ? fitting : Math.min(fitting, 1)
  const resized = {
    width: Math.max(roundEven(from.width * ratio), 1),
    height: Math.max(roundEven(from.height * ratio), 1),
  }
  const sides = (size: number, inner: number): { before: number; size: number } => {
    const all = rules.auto ? modulo(size - inner, rules.stride) : size - inner
    const half = rules.center ? all / 2 : all
    const before = rules.center ? Math.max(roundEven(half - 0.1), 0) : 0
    return { before, size: before + inner + roundEven(half + 0.1) }
  }
  const x = sides(rules.width, resized.width)
  const y = sides(rules.height, resized.height)
  return { resized, place: { left: x.before, top: y.before, width: x.size, height: y.size } }
}

/** A letterboxed image in its border. @throws TileworkError ERR_LIMIT */
export function letterboxFrame(name: string, from: Size, rules: LetterboxRules, pixelBytes: number): Frame {
  const { resized, place } = letterboxOf(from, rules)
  return Frame.of(checkResized(name, from, resized, pixelBytes)).extend(place)
}

/** As `%` of Python: never negative. */
function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}
