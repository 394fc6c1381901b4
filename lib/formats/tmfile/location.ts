/**
 * Locations inside a file, for findings. The path is built only when it is read: a walk visits thousands of locations and
 * findings name a few. A path is the chain of owners: `nodes[3].params.axis`.
 */
import type { Place } from '../report.js'

export class Location implements Place {
  readonly offset: number
  readonly #owner: Location | undefined
  readonly #name: string | number

  /** @param name - a field name, or the index in a list */
  constructor(offset: number, name: string | number, owner?: Location) {
    this.offset = offset
    this.#name = name
    this.#owner = owner
  }

  get path(): string {
    const owner = this.#owner?.path ?? ''
    if (typeof this.#name === 'number') return `${owner}[${this.#name}]`
    return owner === '' ? this.#name : `${owner}.${this.#name}`
  }

  /** A field of the struct, or an entry of the list, at this location. */
  child(name: string | number, offset: number): Location {
    return new Location(offset, name, this)
  }
}
