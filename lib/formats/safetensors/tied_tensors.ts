/**
 * Stores tied tensors once: a checkpoint names one tensor several times, and a file holds no two names for the same bytes. The
 * first name keeps the tensor, and the metadata say which name each of the others is, as `safetensors.torch.save_model` does.
 */
import { haveSameElements } from '../../tensor/same_elements.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorSequence } from '../format.js'
import { ALIAS_KEY } from '../tensor_metadata.js'

interface Untied {
  readonly tensors: TensorSequence
  /** The kept name by each that is left out. */
  readonly aliases: ReadonlyMap<string, string>
}

/** @param taken - keys of the metadata, which no alias replaces; such a tensor is stored as a copy */
export function untie(tensors: TensorSequence, taken: ReadonlyMap<string, string>): Untied {
  const aliases = new Map<string, string>()
  /** Positions by the names that others are aliases of; filled when the first alias asks. */
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
