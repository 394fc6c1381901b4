/** A tensor of strings that a program made. */
import { sizeExactOf, sizeOf } from './shape.js'
import type { StringTensor } from './tensor.js'

export class MemoryStringTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly hasData = true
  readonly metadata: ReadonlyMap<string, string> = new Map()
  readonly #strings: readonly string[]

  /** @param strings - as many as the shape has elements, in row-major order */
  constructor(
    readonly name: string,
    readonly shape: readonly number[],
    strings: readonly string[],
  ) {
    this.#strings = strings
  }

  get size(): number {
    return sizeOf(this.shape)
  }

  get sizeExact(): bigint {
    return sizeExactOf(this.shape)
  }

  async strings(): Promise<readonly string[]> {
    return [...this.#strings]
  }

  async rawStrings(): Promise<readonly Uint8Array[]> {
    const encoder = new TextEncoder()
    return this.#strings.map((text) => encoder.encode(text))
  }
}
