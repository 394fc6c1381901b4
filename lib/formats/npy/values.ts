/** Checks every item for bit patterns that are invalid for its type. Only a check does so, because it reads all data. */
import type { ArraySpan } from './array_span.js'
import { firstBadText } from './fixed_strings.js'
import type { NpyHeader } from './header.js'

/** Takes an array's data window by window, in order, and reports the first invalid item. */
export class ValueCheck {
  readonly #header: NpyHeader
  readonly #span: ArraySpan
  /** Bytes of data taken so far. */
  #position = 0
  /** The incomplete item at the end of the last window. */
  #tail: Uint8Array = new Uint8Array(0)
  #isDone: boolean

  constructor(header: NpyHeader, span: ArraySpan) {
    this.#header = header
    this.#span = span
    const { kind, dtype } = header.type
    this.#isDone = kind !== 'text' && dtype !== 'bool'
  }

  /** True where every bit pattern is valid for the type, or an invalid item was reported. */
  get isDone(): boolean {
    return this.#isDone
  }

  take(window: Uint8Array): void {
    if (this.#isDone) return
    const { type } = this.#header
    const unit = type.kind === 'text' ? 4 : 1
    const bytes = this.#tail.byteLength === 0 ? window : new Uint8Array(Buffer.concat([this.#tail, window]))
    const start = this.#position - this.#tail.byteLength
    const whole = bytes.byteLength - (bytes.byteLength % unit)
    this.#tail = bytes.slice(whole)
    this.#position += window.byteLength
    const at =
      type.kind === 'text'
        ? firstBadText(bytes.subarray(0, whole), type.swapBytes !== 4)
        : bytes.findIndex((byte) => byte > 1)
    if (at >= 0) this.#reportItem(start + at, bytes[at]!)
  }

  #reportItem(at: number, byte: number): void {
    this.#isDone = true
    const { type, headerBytes } = this.#header
    const item = Math.floor(at / type.itemBytes)
    const what = type.kind === 'text' ? 'has a code point outside Unicode' : `is ${byte}; a bool is 0 or 1`
    this.#span.deviation('ERR_DTYPE', `Item ${item} of the data ${what}.`, 'data', headerBytes + at)
  }
}
