/** Growing lists of numbers in typed arrays: a JavaScript array may hold an object for each large number. */
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

  /** @param kind - Float64Array represents every whole number up to 2^53 - 1 */
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

  every(isTrue: (number: number) => boolean): boolean {
    for (let index = 0; index < this.#length; index++) if (!isTrue(this.#numbers[index]!)) return false
    return true
  }

  /** @throws TileworkError ERR_LIMIT when the memory cannot be allocated or exceeds the budget */
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

const MAX_UINT32 = 2 ** 32 - 1

/** File offsets: four bytes each while all are below 4 GiB, eight once one is not. */
export class OffsetList {
  #numbers = new NumberList(Uint32Array)
  #isWide = false

  get length(): number {
    return this.#numbers.length
  }

  /** @param index - below the length */
  at(index: number): number {
    return this.#numbers.at(index)
  }

  /** @param index - below the length; `number` from 0 to 2^53 - 1 */
  set(index: number, number: number): void {
    if (number > MAX_UINT32) this.#widen()
    this.#numbers.set(index, number)
  }

  /** @param number - from 0 to 2^53 - 1. @throws TileworkError as `NumberList.push` */
  push(number: number): void {
    if (number > MAX_UINT32) this.#widen()
    this.#numbers.push(number)
  }

  #widen(): void {
    if (this.#isWide) return
    const narrow = this.#numbers
    this.#numbers = new NumberList(Float64Array)
    for (let index = 0; index < narrow.length; index++) this.#numbers.push(narrow.at(index))
    this.#isWide = true
  }
}
