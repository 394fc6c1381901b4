/** Dense tensors that a file names without holding their data: all is known of them but the elements. */
import type { ByteSource } from '../bytes/source.js'
import { packedByteLength } from '../dtype/decode.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { StoredTensor } from './dense.js'
import { sizeOf } from './shape.js'

export interface AbsentTensorInit {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly name: string
  /** Why there are no data: the end of a sentence that begins with the tensor. */
  readonly reason: string
  readonly doc?: string
  readonly metadata?: ReadonlyMap<string, string>
}

/** Whatever reads its elements throws ERR_NO_DATA. */
export class AbsentTensor extends StoredTensor {
  override readonly hasData: boolean = false

  /** @throws TileworkError as StoredTensor */
  constructor({ reason, ...init }: AbsentTensorInit) {
    const byteLength = packedByteLength(init.dtype, sizeOf(init.shape))
    super({ ...init, source: new AbsentSource(byteLength, init.name, reason), start: 0 })
  }
}

class AbsentSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #reason: string

  constructor(byteLength: number, name: string, reason: string) {
    this.byteLength = byteLength
    this.label = `tensor "${name}"`
    this.#reason = reason
  }

  async read(): Promise<Uint8Array> {
    throw this.#error()
  }

  readSync(): Uint8Array {
    throw this.#error()
  }

  #error(): TileworkError {
    return new TileworkError('ERR_NO_DATA', `The data of ${this.label} are missing: ${this.#reason}.`)
  }
}
