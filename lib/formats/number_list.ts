/** A list of numbers that grows and has no more bytes than they need: lists of JavaScript have objects for large numbers. */
import { allocateBytes } from '../bytes/view_limit.js'
import { grownLength } from './byte_list.js'

type Numbers = Uint32Array | Int32Array | Float64Array

interface NumbersKind {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: ArrayBuffer): Numbers
}

const FIRST_LENGTH = 16

export class NumberList {
  readonly #kind: NumbersKind
  #numbers: Numbers
  #length = 0

  /** @param kind - Float64Array holds every whole number of a file up to 2^53 - 1 */
  constructor(kind: NumbersKind) {
    this.#kind = kind
    this.#numbers = this.#allocate(FIRST_LENGTH)
  }

  get length(): number {
    return this.#length
  }

  /** @param index - below the length */
  at(index: number): number {
    return this.#numbers[index]!
  }

  /** @param index - below the length */
  set(index: number, number: number): void {
    this.#numbers[index] = number
  }

  /** @throws TileworkError ERR_LIMIT when the memory cannot be had or is more than the budget */
  push(number: number): void {
    if (this.#length === this.#numbers.length) {
      const grown = this.#allocate(grownLength(this.#length, this.#length + 1))
      grown.set(this.#numbers)
      this.#numbers = grown
    }
    this.#numbers[this.#length] = number
    this.#length += 1
  }

  #allocate(length: number): Numbers {
    return new this.#kind(allocateBytes(this.#kind.BYTES_PER_ELEMENT * length).buffer)
  }
}
