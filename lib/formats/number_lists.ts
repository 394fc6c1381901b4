/** Lists of whole numbers below 2^32 in one array: a list for each of a million nodes would be an object each. */
import { NumberList } from './number_list.js'

export class NumberLists {
  readonly #numbers = new NumberList(Uint32Array)
  readonly #ends = new NumberList(Uint32Array)

  push(number: number): void {
    this.#numbers.push(number)
  }

  endList(): void {
    this.#ends.push(this.#numbers.length)
  }

  /** The number of lists. */
  get length(): number {
    return this.#ends.length
  }

  /** Offset of the first number of a list. */
  start(list: number): number {
    return list === 0 ? 0 : this.#ends.at(list - 1)
  }

  end(list: number): number {
    return this.#ends.at(list)
  }

  at(offset: number): number {
    return this.#numbers.at(offset)
  }

  /**
   * The lists with each number, once for each time that it is there: those of a number are `lists[starts[number], starts[number + 1])`.
   *
   * @param count - above all numbers
   */
  inverted(count: number): { readonly starts: Uint32Array; readonly lists: Uint32Array } {
    const starts = new Uint32Array(count + 1)
    for (let at = 0; at < this.#numbers.length; at++) starts[this.at(at) + 1]! += 1
    for (let number = 0; number < count; number++) starts[number + 1]! += starts[number]!
    const next = starts.slice()
    const lists = new Uint32Array(this.#numbers.length)
    for (let list = 0; list < this.#ends.length; list++)
      for (let at = this.start(list); at < this.end(list); at++) lists[next[this.at(at)]!++] = list
    return { starts, lists }
  }
}
