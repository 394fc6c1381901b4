/** The storage bytes of a tensor of another kind (lazy, adapted, a user's own) as a source. */
import { checkRange } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import type { DenseTensor } from './tensor.js'

export class TensorSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #tensor: DenseTensor

  constructor(tensor: DenseTensor) {
    this.#tensor = tensor
    this.byteLength = tensor.storage.byteLength
    this.label = `tensor "${tensor.name}"`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    return this.#checked(await this.#tensor.bytes({ start, end }), end - start)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    return this.#checked(this.#tensor.bytesSync({ start, end }), end - start)
  }

  /** The tensor may be anybody's; a wrong length would become a corrupt file. */
  #checked(bytes: unknown, byteLength: number): Uint8Array {
    if (bytes instanceof Uint8Array && bytes.byteLength === byteLength) return bytes
    const found = bytes instanceof Uint8Array ? `${bytes.byteLength} bytes` : typeof bytes
    throw new TileworkError('ERR_IO', `${this.label} gave ${found} where ${byteLength} bytes were asked for.`)
  }
}
