/** The tensors of a file and of its shards, made when someone asks for them. */
import type { ByteSource } from '../../bytes/source.js'
import { SwappedSource } from '../../bytes/swapped_source.js'
import { isBlockDtype } from '../../dtype/block_types.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { StoredBlocks } from '../../tensor/block_tensor.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { LazyTensorList } from '../tensor_list.js'
import type { GgufHeader } from './walk.js'

type TextMap = ReadonlyMap<string, string>

/** An open file and its checked header. */
export interface WalkedFile {
  readonly source: ByteSource
  readonly header: GgufHeader
}

function tensorOf({ source, header }: WalkedFile, index: number, metadata: TextMap): AnyTensor {
  const { name, dtype, shape, start, byteLength } = header.table.at(index)
  if (isBlockDtype(dtype)) return new StoredBlocks({ source, start, dtype, shape, name, metadata })
  const swapBytes = DTYPES[dtype].bits / 8
  if (header.isLittleEndian || swapBytes === 1)
    return new StoredTensor({ source, start, dtype, shape, name, metadata })
  const range = { source, start, byteLength, swapBytes: swapBytes as 2 | 4 | 8 }
  return new StoredTensor({ source: new SwappedSource(range), start: 0, dtype, shape, name, metadata })
}

/** Tensors in the order of the infos, file after file. */
export class GgufTensors extends LazyTensorList<AnyTensor> {
  readonly length: number
  readonly #files: readonly WalkedFile[]
  readonly #metadata: TextMap
  /** Number of tensors in the files before each. */
  readonly #before: number[] = []

  /** @param metadata - of the file, as texts */
  constructor(files: readonly WalkedFile[], metadata: TextMap) {
    super()
    this.#metadata = metadata
    this.#files = files
    let length = 0
    for (const { header } of files) {
      this.#before.push(length)
      length += header.table.length
    }
    this.length = length
  }

  protected tensorAt(position: number): AnyTensor {
    const file = this.#before.findLastIndex((before) => before <= position)
    return tensorOf(this.#files[file]!, position - this.#before[file]!, this.#metadata)
  }

  get(name: string): AnyTensor | undefined {
    for (const file of this.#files) {
      const index = file.header.table.find(name)
      if (index !== undefined) return tensorOf(file, index, this.#metadata)
    }
    return undefined
  }
}
