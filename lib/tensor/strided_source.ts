/**
 * Gathers the elements of a view with any strides, in row-major order. A range is read as spans of the array that are not much
 * larger than it, so that memory stays bounded.
 */
import { asyncOnlyError, checkRange } from '../bytes/check_range.js'
import type { ByteRange, ByteSource } from '../bytes/source.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import type { QuantizationParameters } from './quantization.js'

export interface StridedInit {
  readonly source: ByteSource
  /** Byte offset of the array in `source`. */
  readonly start: number
  /** Elements of the array. The view lies in it. */
  readonly elements: number
  /** A type of whole bytes. */
  readonly dtype: Dtype
  readonly shape: readonly number[]
  /** Distance of neighbours along each axis, in elements, from 0. */
  readonly strides: readonly number[]
  /** Index of the first element in the array. */
  readonly offset: number
  readonly name: string
  readonly metadata: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters | undefined
}

/** Bytes of the array that are read for any number of elements. */
const MAX_SPAN_BYTES = 1024 * 1024
/** A span may have this many times the bytes of its elements. */
const MAX_SPAN_RATIO = 4

/** Elements `from` to `to` of the view, and the elements of the array among which they are. */
interface Part {
  readonly from: number
  readonly to: number
  /** In elements of the array. */
  readonly span: ByteRange
}

export class StridedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #view: StridedInit
  /** Bytes of an element. */
  readonly #size: number

  constructor(view: StridedInit) {
    this.#view = view
    this.#size = DTYPES[view.dtype].bits / 8
    this.byteLength = view.shape.reduce((product, extent) => product * extent, this.#size)
    this.label = `tensor "${view.name}"`
    const { readSync } = view.source
    if (readSync) this.readSync = (start, end) => this.#readSync(start, end)
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { first, elements } = this.#allocate(start, end)
    for (const part of this.#parts(first, first + elements.byteLength / this.#size)) {
      const { start: from, end: to } = this.#bytesOf(part.span)
      this.#gather(part, await this.#view.source.read(from, to), elements, first)
    }
    return this.#cut(elements, first, start, end)
  }

  #readSync(start: number, end: number): Uint8Array {
    const { source } = this.#view
    if (!source.readSync) throw asyncOnlyError(source.label)
    const { first, elements } = this.#allocate(start, end)
    for (const part of this.#parts(first, first + elements.byteLength / this.#size)) {
      const { start: from, end: to } = this.#bytesOf(part.span)
      this.#gather(part, source.readSync(from, to), elements, first)
    }
    return this.#cut(elements, first, start, end)
  }

  /** Memory for the whole elements of a range. */
  #allocate(start: number, end: number): { first: number; elements: Uint8Array } {
    checkRange(start, end, this.byteLength, this.label)
    const first = Math.floor(start / this.#size)
    return { first, elements: unfilledBytes((Math.ceil(end / this.#size) - first) * this.#size) }
  }

  #cut(elements: Uint8Array, first: number, start: number, end: number): Uint8Array {
    const skipped = first * this.#size
    return elements.subarray(start - skipped, end - skipped)
  }

  #bytesOf({ start, end }: ByteRange): ByteRange {
    const base = this.#view.start
    return { start: base + start * this.#size, end: base + end * this.#size }
  }

  /** Divides a range of elements until each part has a span that is small, or not much larger than the part. */
  *#parts(first: number, end: number): Generator<Part> {
    const pending: [from: number, to: number][] = first < end ? [[first, end]] : []
    for (let next = pending.pop(); next; next = pending.pop()) {
      const [from, to] = next
      const span = this.#spanOf(from, to)
      const bytes = (span.end - span.start) * this.#size
      if (bytes <= Math.max(MAX_SPAN_BYTES, MAX_SPAN_RATIO * (to - from) * this.#size) || to - from === 1) {
        yield { from, to, span }
        continue
      }
      const middle = from + Math.ceil((to - from) / 2)
      pending.push([middle, to], [from, middle])
    }
  }

  /** The elements of the array from the first to the last that elements `from` to `to` of the view may be. */
  #spanOf(from: number, to: number): ByteRange {
    const { shape, strides, offset } = this.#view
    const [low, high] = [this.#indexOf(from), this.#indexOf(to - 1)]
    let [start, last] = [offset, offset]
    let isSame = true
    for (let axis = 0; axis < shape.length; axis++) {
      // Behind the first axis where they differ, an index takes every value.
      start += (isSame ? low[axis]! : 0) * strides[axis]!
      last += (isSame ? high[axis]! : shape[axis]! - 1) * strides[axis]!
      isSame &&= low[axis] === high[axis]
    }
    return { start, end: last + 1 }
  }

  #indexOf(element: number): number[] {
    const { shape } = this.#view
    const index = shape.map(() => 0)
    let left = element
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = left % shape[axis]!
      left = Math.floor(left / shape[axis]!)
    }
    return index
  }

  #gather({ from, to, span }: Part, bytes: Uint8Array, target: Uint8Array, first: number): void {
    const { shape, strides, offset } = this.#view
    const words = wordsOf(bytes, this.#size)
    const out = wordsOf(target, this.#size)
    const perElement = words.length / (span.end - span.start)
    const index = this.#indexOf(from)
    let at = index.reduce((sum, position, axis) => sum + position * strides[axis]!, offset - span.start)
    const inner = shape.length - 1
    for (let element = from; element < to; element++) {
      for (let word = 0; word < perElement; word++) {
        out[(element - first) * perElement + word] = words[at * perElement + word]!
      }
      let axis = inner
      for (; axis >= 0; axis--) {
        at += strides[axis]!
        if (++index[axis]! < shape[axis]!) break
        at -= shape[axis]! * strides[axis]!
        index[axis] = 0
      }
    }
  }
}

/** The bytes as the largest words that divide an element; a copy where they are not aligned. */
function wordsOf(bytes: Uint8Array, size: number): Uint8Array | Uint16Array | Uint32Array {
  if (size === 1) return bytes
  const width = size === 2 ? 2 : 4
  const aligned = bytes.byteOffset % width === 0 ? bytes : new Uint8Array(bytes)
  const count = aligned.byteLength / width
  if (width === 2) return new Uint16Array(aligned.buffer, aligned.byteOffset, count)
  return new Uint32Array(aligned.buffer, aligned.byteOffset, count)
}
