/**
 * Places in a model whose names are made when somebody asks: a walk visits thousands, and findings name a few. A name
 * is the chain of owners: `nodes[3].params.axis`.
 */
import type { Place } from '../report.js'

export class Spot implements Place {
  readonly offset: number
  readonly #owner: Spot | undefined
  readonly #name: string | number

  /** @param name - of a field, or the position in a list */
  constructor(offset: number, name: string | number, owner?: Spot) {
    this.offset = offset
    this.#name = name
    this.#owner = owner
  }

  get path(): string {
    const owner = this.#owner?.path ?? ''
    if (typeof this.#name === 'number') return `${owner}[${this.#name}]`
    return owner === '' ? this.#name : `${owner}.${this.#name}`
  }

  /** A field of what is here, or an entry of the list that is here. */
  at(name: string | number, offset: number): Spot {
    return new Spot(offset, name, this)
  }
}
