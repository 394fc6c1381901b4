/** The constants of an IR as tensors, each made when someone asks for it. */
import type { ByteSource } from '../../bytes/source.js'
import { AbsentTensor } from '../../tensor/absent.js'
import { NO_METADATA } from '../../tensor/base_tensor.js'
import { StoredTensor } from '../../tensor/dense.js'
import { sizeOf } from '../../tensor/shape.js'
import type { Tensor } from '../../tensor/tensor.js'
import { LazyTensorList } from '../tensor_list.js'
import type { Constant } from './constant.js'
import type { Weights } from './constants.js'
import { UnpackedSource } from './packed.js'
import { TYPE_KEY } from './schema.js'
import { OpenvinoStrings } from './strings.js'

export class OpenvinoTensors extends LazyTensorList {
  readonly #constants: readonly Constant[]
  readonly #weights: Weights
  #positions: ReadonlyMap<string, number> | undefined

  constructor(constants: readonly Constant[], weights: Weights) {
    super()
    this.#constants = constants
    this.#weights = weights
  }

  get length(): number {
    return this.#constants.length
  }

  protected tensorAt(position: number): Tensor {
    return makeTensor(this.#constants[position]!, this.#weights)
  }

  get(name: string): Tensor | undefined {
    this.#positions ??= new Map(this.#constants.map(({ key }, position) => [key, position]))
    const position = this.#positions.get(name)
    return position === undefined ? undefined : this.tensorAt(position)
  }
}

function makeTensor(constant: Constant, weights: Weights): Tensor {
  const { key: name, type, typeName, shape } = constant
  const { dtype, packed } = type
  const metadata = packed ? new Map([[TYPE_KEY, typeName]]) : NO_METADATA
  const about = { name, dtype, shape, metadata }
  if ('missing' in weights) return new AbsentTensor({ ...about, reason: weights.missing })
  const { offset: start, size } = constant
  const { source } = weights
  if (dtype === 'string') return new OpenvinoStrings({ source, start, end: start + size }, about)
  return new StoredTensor({ ...about, ...storage(constant, source, packed) })
}

function storage(
  { offset, shape }: Constant,
  source: ByteSource,
  packed: Constant['type']['packed'],
): { readonly source: ByteSource; readonly start: number } {
  return packed
    ? { source: new UnpackedSource(source, offset, packed, sizeOf(shape)), start: 0 }
    : { source, start: offset }
}
