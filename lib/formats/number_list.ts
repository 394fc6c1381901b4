/** A list of numbers that grows and has no more bytes than they need: lists of JavaScript have objects for large numbers. */
type Numbers = Uint32Array | Int32Array | Float64Array

export class NumberList {
  readonly #kind: new (
    length: number,
  ) => Numbers
  #numbers: Numbers
  #length = 0

  constructor(kind: new (length: number) => Numbers) {
    this.#kind = kind
    this.#numbers = new kind(16)
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

  push(number: number): void {
    if (this.#length === this.#numbers.length) {
      const grown = new this.#kind(Math.ceil(this.#length * 1.5))
      grown.set(this.#numbers)
      this.#numbers = grown
    }
    this.#numbers[this.#length] = number
    this.#length += 1
  }
}
