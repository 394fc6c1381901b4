/** The storage bytes of a tensor of another class, for example the caller's own, as a source. */
import { checkRange, checkReturned } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'
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
    return checkReturned(await this.#tensor.bytes({ start, end }), start, end, this.label)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    return checkReturned(this.#tensor.bytesSync({ start, end }), start, end, this.label)
  }
}
