/** A list of tensors that were all made on opening. */
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorList } from '../format.js'

export class TensorArray implements TensorList {
  readonly #tensors: readonly Tensor[]
  readonly #byName: ReadonlyMap<string, Tensor>

  constructor(tensors: readonly Tensor[]) {
    this.#tensors = tensors
    this.#byName = new Map(tensors.map((tensor) => [tensor.name, tensor]))
  }

  get length(): number {
    return this.#tensors.length
  }

  at(index: number): Tensor | undefined {
    return this.#tensors.at(index)
  }

  get(name: string): Tensor | undefined {
    return this.#byName.get(name)
  }

  [Symbol.iterator](): Iterator<Tensor> {
    return this.#tensors[Symbol.iterator]()
  }
}
