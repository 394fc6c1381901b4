/** The tensor lists of a plain file and of an index with its shards. */
import type { ByteSource } from '../../bytes/source.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { Tensor } from '../../tensor/tensor.js'
import { LazyTensorList } from '../tensor_list.js'
import type { Header } from './walk.js'

/** An open file and its checked header. */
export interface WalkedFile {
  readonly source: ByteSource
  readonly header: Header
}

/** The tensor of an entry. */
export function tensorOf({ source, header }: WalkedFile, index: number): StoredTensor {
  const { table, metadata, placements, dataStart } = header
  const { name, type, shape, begin } = table.at(index)!
  const about = { source, start: dataStart + begin, dtype: type.dtype, name, metadata }
  return new StoredTensor({ ...about, shape, ...placements.get(index) })
}

/** A plain file: tensors in the order of their bytes. */
export class FileTensors extends LazyTensorList {
  readonly length: number
  readonly #file: WalkedFile

  constructor(file: WalkedFile) {
    super()
    this.#file = file
    this.length = file.header.order.length
  }

  protected tensorAt(position: number): Tensor {
    return tensorOf(this.#file, this.#file.header.order[position]!)
  }

  get(name: string): Tensor | undefined {
    const { table } = this.#file.header
    const index = table.find(name)
    return index === undefined || !table.isTensor(index) ? undefined : tensorOf(this.#file, index)
  }
}

/** An index and its shards: tensors in the order of the weight map. */
export class ShardedTensors extends LazyTensorList {
  readonly #files: readonly WalkedFile[]
  /** File by tensor name, in the order of the weight map. */
  readonly #fileOf: ReadonlyMap<string, number>
  readonly #names: readonly string[]

  constructor(files: readonly WalkedFile[], fileOf: ReadonlyMap<string, number>) {
    super()
    this.#files = files
    this.#fileOf = fileOf
    this.#names = [...fileOf.keys()]
  }

  get length(): number {
    return this.#names.length
  }

  protected tensorAt(position: number): Tensor {
    return this.get(this.#names[position]!)!
  }

  get(name: string): Tensor | undefined {
    const file = this.#fileOf.get(name)
    if (file === undefined) return undefined
    return tensorOf(this.#files[file]!, this.#files[file]!.header.table.find(name)!)
  }
}
