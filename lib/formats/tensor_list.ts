/** Lists of the tensors of a file. */
import { inspect } from 'node:util'
import type { AnyTensor, Tensor } from '../tensor/tensor.js'
import type { TensorList } from './format.js'

/** Tensors that `console.log` of a list shows. */
const SHOWN_TENSORS = 20

/** Makes each tensor when someone asks for it: a file of a million tensors opens without a million objects. */
export abstract class LazyTensorList<T extends AnyTensor = Tensor> implements TensorList<T> {
  abstract readonly length: number

  /** @param position - a whole number from 0 to below the length */
  protected abstract tensorAt(position: number): T

  abstract get(name: string): T | undefined

  at(index: number): T | undefined {
    // Callers without types may give a symbol or a bigint, on which the comparison or the addition throws.
    if (!Number.isInteger(index)) return undefined
    const position = index < 0 ? this.length + index : index
    return position >= 0 && position < this.length ? this.tensorAt(position) : undefined
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let position = 0; position < this.length; position++) yield this.tensorAt(position)
  }

  toJSON(): readonly T[] {
    return [...this]
  }

  [inspect.custom](): string {
    const count = Math.min(this.length, SHOWN_TENSORS)
    const lines = Array.from({ length: count }, (_, position) => `  ${inspect(this.tensorAt(position))}`)
    if (this.length > count) lines.push(`  … ${this.length - count} more`)
    const head = `TensorList(${this.length})`
    return lines.length === 0 ? `${head} []` : `${head} [\n${lines.join(',\n')}\n]`
  }
}

/** The tensors of entries that a reader has found, with unique names. */
export class EntryTensors<Entry> extends LazyTensorList {
  readonly #entries: readonly Entry[]
  readonly #nameOf: (entry: Entry) => string
  readonly #make: (entry: Entry) => Tensor
  #positions: ReadonlyMap<string, number> | undefined

  constructor(entries: readonly Entry[], nameOf: (entry: Entry) => string, make: (entry: Entry) => Tensor) {
    super()
    this.#entries = entries
    this.#nameOf = nameOf
    this.#make = make
  }

  get length(): number {
    return this.#entries.length
  }

  protected tensorAt(position: number): Tensor {
    return this.#make(this.#entries[position]!)
  }

  get(name: string): Tensor | undefined {
    this.#positions ??= new Map(this.#entries.map((entry, position) => [this.#nameOf(entry), position]))
    const position = this.#positions.get(name)
    return position === undefined ? undefined : this.tensorAt(position)
  }
}

/** The tensors of another list after a change, which is made when someone asks for one. */
class ChangedTensors<From extends AnyTensor, To extends AnyTensor> extends LazyTensorList<To> {
  readonly #tensors: TensorList<From>
  readonly #change: (tensor: From) => To

  constructor(tensors: TensorList<From>, change: (tensor: From) => To) {
    super()
    this.#tensors = tensors
    this.#change = change
  }

  get length(): number {
    return this.#tensors.length
  }

  protected tensorAt(position: number): To {
    return this.#change(this.#tensors.at(position)!)
  }

  get(name: string): To | undefined {
    const tensor = this.#tensors.get(name)
    return tensor && this.#change(tensor)
  }
}

/** Tensors of a caller, or the list of a file. */
export type Tensors<T extends AnyTensor = AnyTensor> = readonly T[] | TensorList<T>

/**
 * Each tensor after a change. That of a list of a file is a list too: an array of its tensors may take many times the size of
 * the file.
 */
export function mapTensors<From extends AnyTensor, To extends AnyTensor>(
  tensors: Tensors<From>,
  change: (tensor: From) => To,
): Tensors<To> {
  return 'get' in tensors ? new ChangedTensors(tensors, change) : tensors.map(change)
}

/** Tensors that exist already. Of several with one name `get` gives the last. */
export class TensorArray extends LazyTensorList {
  readonly #tensors: readonly Tensor[]
  readonly #byName: ReadonlyMap<string, Tensor>

  constructor(tensors: readonly Tensor[]) {
    super()
    this.#tensors = tensors
    this.#byName = new Map(tensors.map((tensor) => [tensor.name, tensor]))
  }

  get length(): number {
    return this.#tensors.length
  }

  protected tensorAt(position: number): Tensor {
    return this.#tensors[position]!
  }

  get(name: string): Tensor | undefined {
    return this.#byName.get(name)
  }
}
