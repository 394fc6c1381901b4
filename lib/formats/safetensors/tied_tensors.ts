/**
 * Stores tied tensors once: a checkpoint has several names for one tensor, which a safetensors file cannot express. The tensor is
 * stored under its first name, and metadata map the other names to it, as `safetensors.torch.save_model` does.
 */
import { haveSameElements } from '../../tensor/same_elements.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorSequence } from '../format.js'
import { ALIAS_KEY } from '../tensor_metadata.js'

interface Untied {
  readonly tensors: TensorSequence
  /** The stored name, by each omitted name. */
  readonly aliases: ReadonlyMap<string, string>
}

/** @param taken - keys of the metadata, which an alias must not replace; a tensor with such a name is stored as a copy */
export function untie(tensors: TensorSequence, taken: ReadonlyMap<string, string>): Untied {
  const aliases = new Map<string, string>()
  /** Positions by name; built for the first alias. */
  let positions: Map<string, number> | undefined
  const kept: number[] = []
  let index = 0
  for (const tensor of tensors) {
    const first = tensor.metadata?.get(ALIAS_KEY)
    positions ??= first === undefined ? undefined : positionsOf(tensors)
    const position = first === undefined ? undefined : positions?.get(first)
    const isTied =
      position !== undefined && position < index && haveSameElements(tensors.at(position)!, tensor)
    if (isTied && !taken.has(tensor.name)) aliases.set(tensor.name, first!)
    else kept.push(index)
    index++
  }
  return aliases.size === 0 ? { tensors, aliases } : { tensors: new KeptTensors(tensors, kept), aliases }
}

function positionsOf(tensors: TensorSequence): Map<string, number> {
  return new Map(Array.from(tensors, ({ name }, position) => [name, position]))
}

class KeptTensors implements TensorSequence {
  readonly #tensors: TensorSequence
  readonly #positions: readonly number[]

  constructor(tensors: TensorSequence, positions: readonly number[]) {
    this.#tensors = tensors
    this.#positions = positions
  }

  get length(): number {
    return this.#positions.length
  }

  at(index: number): Tensor | undefined {
    const position = this.#positions[index]
    return position === undefined ? undefined : this.#tensors.at(position)
  }

  *[Symbol.iterator](): Iterator<Tensor> {
    for (const position of this.#positions) yield this.#tensors.at(position)!
  }
}
