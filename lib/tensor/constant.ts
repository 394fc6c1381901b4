/** A tensor whose elements all have one value. It holds one element, whatever its shape. */
import { checkRange } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { lastByteMask, packedByteLength, storeCode } from '../dtype/packed_codes.js'
import type { Layout } from '../layout/layout.js'
import { StoredTensor, type StoredTensorInit } from './dense.js'
import { sizeOf } from './shape.js'

export class ConstantTensor extends StoredTensor {
  /** The packed bytes of the element; a whole byte of equal elements where they are smaller. */
  readonly element: Uint8Array

  /** @param layout - stores the shape without holes, whose order is then of no account; row_major by default */
  constructor(
    element: Uint8Array,
    { dtype, shape, name, layout }: Pick<StoredTensorInit, 'dtype' | 'shape' | 'name' | 'layout'>,
  ) {
    const source = new ConstantSource(element, dtype, sizeOf(shape))
    super({ source, start: 0, dtype, shape, ...(name !== undefined && { name }), ...(layout && { layout }) })
    this.element = element
  }

  /** The same value in another row-major shape. */
  reshaped(shape: readonly number[]): ConstantTensor {
    return new ConstantTensor(this.element, { dtype: this.dtype, shape, name: this.name })
  }

  /** The same tensor in a layout; undefined where that has holes, which are zeros. */
  inLayout(layout: Layout): ConstantTensor | undefined {
    const { dtype, shape, name } = this
    const { elements } = layout.storage(shape, { dtype })
    return elements === this.size
      ? new ConstantTensor(this.element, { dtype, shape, name, layout })
      : undefined
  }
}

class ConstantSource implements ByteSource {
  /** See `fillMemory`. */
  readonly fillsOnThread = true
  readonly byteLength: number
  readonly label = 'a constant'
  readonly #element: Uint8Array
  readonly #lastByteMask: number

  constructor(element: Uint8Array, dtype: Dtype, count: number) {
    this.#element = element
    this.byteLength = packedByteLength(dtype, count)
    this.#lastByteMask = lastByteMask(dtype, count)
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.readSync(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = unfilledBytes(end - start)
    this.readIntoSync(start, bytes)
    return bytes
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    this.readIntoSync(start, target)
  }

  readIntoSync(start: number, target: Uint8Array): void {
    checkRange(start, start + target.byteLength, this.byteLength, this.label)
    this.#repeatElement(start, target)
    const isEnd = target.byteLength > 0 && start + target.byteLength === this.byteLength
    // Bits behind the last element are zero, as in all packed storage: digests and comparisons of bytes include them.
    if (isEnd) target[target.byteLength - 1]! &= this.#lastByteMask
  }

  #repeatElement(start: number, target: Uint8Array): void {
    const element = this.#element
    if (element.every((byte) => byte === element[0])) {
      target.fill(element[0]!)
      return
    }
    const { byteLength } = target
    let filled = Math.min(byteLength, element.byteLength)
    for (let i = 0; i < filled; i++) target[i] = element[(start + i) % element.byteLength]!
    // Doubles what is there; every copy starts at a multiple of the element.
    for (; filled < byteLength; filled *= 2)
      target.copyWithin(filled, 0, Math.min(filled, byteLength - filled))
  }
}

/** The bytes that a `ConstantTensor` takes. @param element - one encoded element, in the low bits of a byte if smaller */
export function elementPattern(element: Uint8Array, dtype: Dtype): Uint8Array {
  const { bits } = DTYPES[dtype]
  if (bits >= 8) return element
  const pattern = new Uint8Array(bits)
  for (let slot = 0; slot < 8; slot++) storeCode(bits, pattern, slot, element[0]! & (2 ** bits - 1))
  return pattern
}
