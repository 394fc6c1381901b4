/**
 * The storage of a batch of images, computed from their pixels when bytes are asked for: a whole image straight into the
 * target, a part of one row by row. Pixels in memory belong to the caller, so the calling thread reads them, with the addon's
 * threads as helpers during a call; pixels that are computed are kept for the rows of one image.
 */
import { asyncOnlyError, checkRange } from '../bytes/check_range.js'
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { yieldToEventLoop } from '../event_loop.js'
import type { ImagePlan } from './image_plan.js'
import type { Image } from './pixels.js'

/** Bytes of a result that are computed before the event loop runs again. */
const SLICE_BYTES = 4 * 1024 * 1024

export interface PlannedImage {
  readonly plan: ImagePlan
  /** Where its pixels are: bytes `[start, end)` of a source. */
  readonly source: ByteSource
  readonly start: number
  readonly end: number
}

/** Each image of a buffer that has `count` of them, one after the other. */
export function plannedImages(
  plan: ImagePlan,
  { bytes, count }: Pick<Image, 'bytes' | 'count'>,
): PlannedImage[] {
  return plannedRanges(plan, new MemorySource(bytes, 'the images'), 0, bytes.byteLength / count, count)
}

/** Each of `count` images of `imageBytes`, which are one after the other from offset `start` on. */
export function plannedRanges(
  plan: ImagePlan,
  source: ByteSource,
  start: number,
  imageBytes: number,
  count: number,
): PlannedImage[] {
  return Array.from({ length: count }, (_, at) => ({
    plan,
    source,
    start: start + at * imageBytes,
    end: start + (at + 1) * imageBytes,
  }))
}

/** Rows of one image that a range of the storage needs. */
interface Work {
  readonly image: number
  readonly first: number
  readonly end: number
}

export class ImageSource implements ByteSource {
  /** See `fillMemory`. */
  readonly fillsOnThread = true
  readonly byteLength: number
  readonly label: string
  readonly #images: readonly PlannedImage[]
  readonly #imageBytes: number
  /** Bytes of a row in one channel, or in all where they are interleaved. */
  readonly #rowBytes: number
  readonly #planes: number
  readonly #height: number

  /** @param images - at least one; all results have one size */
  constructor(images: readonly PlannedImage[], label: string) {
    const { width, height, channels, elementBytes, isPlanar } = images[0]!.plan
    this.#images = images
    this.#planes = isPlanar ? channels : 1
    this.#rowBytes = width * elementBytes * (isPlanar ? 1 : channels)
    this.#height = height
    this.#imageBytes = this.#planes * this.#rowBytes * height
    this.byteLength = this.#imageBytes * images.length
    this.label = label
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = unfilledBytes(end - start)
    await this.readInto(start, bytes)
    return bytes
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = unfilledBytes(end - start)
    this.readIntoSync(start, bytes)
    return bytes
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    checkRange(start, start + target.byteLength, this.byteLength, this.label)
    let computed: { readonly image: number; readonly pixels: Uint8Array } | undefined
    for (const work of this.#works(start, start + target.byteLength)) {
      await yieldToEventLoop()
      const { source, start: from, end } = this.#images[work.image]!
      if (source instanceof MemorySource) {
        // The owner may transfer the memory while others have the event loop, so each slice asks for it again.
        this.#run(work, source.readSync(from, end), start, target)
        continue
      }
      if (computed?.image !== work.image) {
        computed = { image: work.image, pixels: await source.read(from, end) }
      }
      this.#run(work, computed.pixels, start, target)
    }
  }

  readIntoSync(start: number, target: Uint8Array): void {
    checkRange(start, start + target.byteLength, this.byteLength, this.label)
    let computed: { readonly image: number; readonly pixels: Uint8Array } | undefined
    for (const work of this.#works(start, start + target.byteLength)) {
      if (computed?.image !== work.image) computed = { image: work.image, pixels: this.#pixels(work.image) }
      this.#run(work, computed.pixels, start, target)
    }
  }

  #pixels(image: number): Uint8Array {
    const { source, start, end } = this.#images[image]!
    if (!source.readSync) throw asyncOnlyError(source.label)
    return source.readSync(start, end)
  }

  /** The rows that the range needs, in slices. */
  *#works(start: number, end: number): Generator<Work> {
    const rows = Math.max(1, Math.floor(SLICE_BYTES / (this.#rowBytes * this.#planes)))
    for (let at = start; at < end; ) {
      const image = Math.floor(at / this.#imageBytes)
      const from = image * this.#imageBytes
      const last = Math.min(end, from + this.#imageBytes)
      const { first, end: rowEnd } = this.#rowsOf(at - from, last - from)
      for (let row = first; row < rowEnd; row += rows)
        yield { image, first: row, end: Math.min(rowEnd, row + rows) }
      at = last
    }
  }

  /** The rows that bytes `[start, end)` of an image belong to; all where they belong to several planes. */
  #rowsOf(start: number, end: number): { first: number; end: number } {
    const planeBytes = this.#rowBytes * this.#height
    const plane = Math.floor(start / planeBytes) * planeBytes
    if (end > plane + planeBytes) return { first: 0, end: this.#height }
    return {
      first: Math.floor((start - plane) / this.#rowBytes),
      end: Math.ceil((end - plane) / this.#rowBytes),
    }
  }

  #run({ image, first, end }: Work, pixels: Uint8Array, start: number, target: Uint8Array): void {
    const { plan } = this.#images[image]!
    const from = image * this.#imageBytes - start
    const isWhole = from >= 0 && from + this.#imageBytes <= target.byteLength
    const run = (to: Uint8Array, targetStart: number, targetEnd: number): void =>
      systemError.wrap(this.label, () => plan.native.runSync(pixels, to, targetStart, targetEnd, first, end))
    if (isWhole && (target.byteOffset + from) % plan.elementBytes === 0) {
      run(target.subarray(from, from + this.#imageBytes), 0, this.#height)
      return
    }
    const rows = unfilledBytes((end - first) * this.#rowBytes * this.#planes)
    run(rows, first, end)
    this.#copyRows(rows, { image, first, end }, from, target)
  }

  /** What of the rows of each plane the target has. @param from - where the image begins in the target; may be below 0 */
  #copyRows(rows: Uint8Array, { first, end }: Work, from: number, target: Uint8Array): void {
    const bytes = (end - first) * this.#rowBytes
    for (let plane = 0; plane < this.#planes; plane++) {
      const at = from + (plane * this.#height + first) * this.#rowBytes
      const low = Math.max(at, 0)
      const high = Math.min(at + bytes, target.byteLength)
      if (low < high) target.set(rows.subarray(plane * bytes + low - at, plane * bytes + high - at), low)
    }
  }
}
