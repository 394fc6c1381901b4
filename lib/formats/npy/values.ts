/** Looks at every item for a value that its type does not have: costly, so only a check does it. */
import type { ArraySpan } from './array_span.js'
import { firstBadText } from './fixed_strings.js'
import type { NpyHeader } from './header.js'

/** Sees the bytes of an array's data window by window, in order. Reports the first bad item only. */
export class ValueCheck {
  readonly #header: NpyHeader
  readonly #span: ArraySpan
  /** Bytes of data seen. */
  #position = 0
  /** Bytes of an item that the window before ended in. */
  #rest: Uint8Array = new Uint8Array(0)
  #isDone: boolean

  constructor(header: NpyHeader, span: ArraySpan) {
    this.#header = header
    this.#span = span
    const { kind, dtype } = header.type
    this.#isDone = kind !== 'text' && dtype !== 'bool'
  }

  /** True where every item of the type is a value, or a bad one was reported. */
  get isDone(): boolean {
    return this.#isDone
  }

  see(window: Uint8Array): void {
    if (this.#isDone) return
    const { type } = this.#header
    const unit = type.kind === 'text' ? 4 : 1
    const bytes = this.#rest.byteLength === 0 ? window : new Uint8Array(Buffer.concat([this.#rest, window]))
    const start = this.#position - this.#rest.byteLength
    const whole = bytes.byteLength - (bytes.byteLength % unit)
    this.#rest = bytes.slice(whole)
    this.#position += window.byteLength
    const at =
      type.kind === 'text'
        ? firstBadText(bytes.subarray(0, whole), type.swapBytes !== 4)
        : bytes.findIndex((byte) => byte > 1)
    if (at >= 0) this.#tell(start + at, bytes[at]!)
  }

  #tell(at: number, byte: number): void {
    this.#isDone = true
    const { type, headerBytes } = this.#header
    const item = Math.floor(at / type.itemBytes)
    const what =
      type.kind === 'text' ? 'has a code that is no code point of Unicode' : `is ${byte}; a bool is 0 or 1`
    this.#span.deviation('ERR_DTYPE', `Item ${item} of the data ${what}.`, 'data', headerBytes + at)
  }
}
