/** A source whose bytes another library delivers as a whole on first use, for example from the memory of a device. */
import { TileworkError } from '../errors.js'
import { checkRange } from './check_range.js'
import type { ByteSource } from './source.js'

export interface Deferred {
  readonly byteLength: number
  readonly label: string
  /** Returns all bytes. At least one of `load` and `loadSync` is present. */
  readonly load?: () => Promise<Uint8Array> | Uint8Array
  readonly loadSync?: () => Uint8Array
}

export class DeferredSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #deferred: Deferred
  /** Kept after the first load: writers read window by window, and each load may copy from a device. */
  #bytes: Promise<Uint8Array> | undefined

  constructor(deferred: Deferred) {
    this.#deferred = deferred
    this.byteLength = deferred.byteLength
    this.label = deferred.label
    const { loadSync } = deferred
    if (!loadSync) return
    let loaded: Uint8Array | undefined
    this.readSync = (start, end) => {
      checkRange(start, end, this.byteLength, this.label)
      loaded ??= this.#checkLength(loadSync())
      return loaded.subarray(start, end)
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    if (this.readSync) return this.readSync(start, end)
    this.#bytes ??= this.#loadAll()
    return (await this.#bytes).subarray(start, end)
  }

  async #loadAll(): Promise<Uint8Array> {
    return this.#checkLength(await this.#deferred.load?.())
  }

  #checkLength(bytes: unknown): Uint8Array {
    if (bytes instanceof Uint8Array && bytes.byteLength === this.byteLength) return bytes
    const found = bytes instanceof Uint8Array ? `${bytes.byteLength} bytes` : typeof bytes
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${this.label} returned ${found}; its type and shape need ${this.byteLength} bytes.`,
    )
  }
}
