/** The initializers of a model as it is now. */
import type { OnnxModel } from '../../model/model.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorList } from '../format.js'

export class ModelTensors implements TensorList {
  readonly #model: OnnxModel

  constructor(model: OnnxModel) {
    this.#model = model
  }

  get length(): number {
    return this.#model.graph.initializerNames.length
  }

  at(index: number): Tensor | undefined {
    const name = this.#model.graph.initializerNames.at(index)
    return name === undefined ? undefined : this.get(name)
  }

  get(name: string): Tensor | undefined {
    return this.#model.graph.initializer(name)
  }

  [Symbol.iterator](): Iterator<Tensor> {
    return this.#model.graph.initializers()
  }
}
