/** The tensors of a checkpoint, each made when someone asks for it. */
import type { Tensor } from '../../tensor/tensor.js'
import { LazyTensorList } from '../tensor_list.js'
import { ALIAS_KEY } from '../tensor_metadata.js'
import type { NamedTensor } from './checkpoint.js'
import { makeMeta, makeStrided } from './make_tensor.js'
import { makeSparse } from './sparse.js'

export class CheckpointTensors extends LazyTensorList {
  readonly #tensors: readonly NamedTensor[]
  #positions: ReadonlyMap<string, number> | undefined

  constructor(tensors: readonly NamedTensor[]) {
    super()
    this.#tensors = tensors
  }

  get length(): number {
    return this.#tensors.length
  }

  protected tensorAt(position: number): Tensor {
    return makeTensor(this.#tensors[position]!)
  }

  get(name: string): Tensor | undefined {
    this.#positions ??= new Map(this.#tensors.map((tensor, position) => [tensor.name, position]))
    const position = this.#positions.get(name)
    return position === undefined ? undefined : this.tensorAt(position)
  }
}

export function makeTensor({ file, form, aliasOf, name, requiresGrad, quantization }: NamedTensor): Tensor {
  const about = {
    ...{ name, requiresGrad },
    ...(aliasOf !== undefined && { metadata: [[ALIAS_KEY, aliasOf] as const] }),
    ...(quantization && { quantization }),
  }
  if (form.kind === 'strided') return makeStrided(file, form, about)
  return form.kind === 'meta' ? makeMeta(form, about) : makeSparse(file, form, about)
}
