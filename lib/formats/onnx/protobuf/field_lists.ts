/**
 * Fields of a message that are known as objects: one list per field number, in chunks, so that an insertion or removal in
 * the middle of 100,000 nodes moves a few hundred of them.
 */

/** A scalar, or an occurrence of a message. */
export type Item = Scalar | Listed
export type Scalar = string | number | bigint | Uint8Array

/** An object in a list, which knows its chunk. */
export interface Listed {
  chunk: Chunk | undefined
}

/** Part of a list; the chunks of a list follow each other. */
export interface Chunk {
  readonly number: number
  readonly owner: FieldLists
  items: Item[]
}

/** Longer chunks are split in halves. */
const MAX_CHUNK_ITEMS = 512

export class FieldLists {
  /** Replaced, not appended to: most messages have one or two, and an array that grows has room for 17. */
  #chunks: readonly Chunk[] = []
  /** Bit set of the numbers of edited fields, which are below 32. */
  #edited = 0

  /** The items of a field; undefined for one that is not known. */
  items(number: number): readonly Item[] | undefined {
    const [from, end] = this.#range(number)
    if (from === end) return undefined
    return end - from === 1
      ? this.#chunks[from]!.items
      : this.#chunks.slice(from, end).flatMap(({ items }) => items)
  }

  isKnown(number: number): boolean {
    for (const chunk of this.#chunks) if (chunk.number === number) return true
    return false
  }

  chunks(): readonly Chunk[] {
    return this.#chunks
  }

  isEdited(number: number): boolean {
    return (this.#edited & (1 << number)) !== 0
  }

  markEdited(number: number): void {
    this.#edited |= 1 << number
  }

  /** Adds the list of a field as it is in the file. */
  load(number: number, items: readonly Item[]): void {
    this.#chunks = this.#chunks.concat(this.#split(number, items))
  }

  /** Replaces the list of a field. */
  set(number: number, items: readonly Item[]): void {
    const [from, end] = this.#range(number)
    for (let at = from; at < end; at++)
      for (const item of this.#chunks[at]!.items) if (isListed(item)) item.chunk = undefined
    this.#replaceChunks(from, end, this.#split(number, items))
    this.markEdited(number)
  }

  /** Inserts into a known list; default: at its end. */
  insert(number: number, added: readonly Item[], at = Number.POSITIVE_INFINITY): void {
    const [from, end] = this.#range(number)
    if (added.length > MAX_CHUNK_ITEMS) {
      const items = this.items(number)!
      this.set(number, items.slice(0, at).concat(added, items.slice(at)))
      return
    }
    let before = 0
    let index = at < 0 ? from : end - 1
    const isInside = at >= 0 && at < Number.POSITIVE_INFINITY
    for (let each = from; isInside && each < end; each++) {
      const next = before + this.#chunks[each]!.items.length
      if (at <= next) {
        index = each
        break
      }
      if (each < end - 1) before = next
    }
    const chunk = this.#chunks[index]!
    // biome-ignore lint/plugin: at most MAX_CHUNK_ITEMS are added here
    chunk.items.splice(Math.max(0, Math.min(at - before, chunk.items.length)), 0, ...added)
    for (const item of added) if (isListed(item)) item.chunk = chunk
    if (chunk.items.length > MAX_CHUNK_ITEMS) {
      this.#replaceChunks(index, index + 1, this.#split(number, chunk.items, MAX_CHUNK_ITEMS / 2))
    }
  }

  holds(number: number, item: Listed): boolean {
    return item.chunk?.owner === this && item.chunk.number === number
  }

  /** Position of an item that is held, in the list of its field. */
  indexOf(item: Listed): number {
    const chunk = item.chunk!
    let before = 0
    for (let at = this.#range(chunk.number)[0]; this.#chunks[at] !== chunk; at++)
      before += this.#chunks[at]!.items.length
    return before + chunk.items.indexOf(item)
  }

  remove(item: Listed): void {
    const { items } = item.chunk!
    items.splice(items.indexOf(item), 1)
    item.chunk = undefined
  }

  replace(item: Listed, other: Listed): void {
    const chunk = item.chunk!
    chunk.items[chunk.items.indexOf(item)] = other
    other.chunk = chunk
    item.chunk = undefined
  }

  /** @param cloneOf - the item of the clone */
  clone(cloneOf: (item: Item) => Item): FieldLists {
    const clone = new FieldLists()
    clone.#edited = this.#edited
    for (const { number, items } of this.#chunks) clone.load(number, items.map(cloneOf))
    return clone
  }

  #replaceChunks(from: number, end: number, added: readonly Chunk[]): void {
    const chunks = this.#chunks
    this.#chunks =
      from === end ? chunks.concat(added) : chunks.slice(0, from).concat(added, chunks.slice(end))
  }

  /** The chunks of a field; a range of none for a field that is not known. */
  #range(number: number): [number, number] {
    const chunks = this.#chunks
    let from = 0
    while (from < chunks.length && chunks[from]!.number !== number) from++
    let end = from
    while (end < chunks.length && chunks[end]!.number === number) end++
    return [from, end]
  }

  /** Chunks of a list, at least one. */
  #split(number: number, items: readonly Item[], length = MAX_CHUNK_ITEMS): Chunk[] {
    // Edits of nodes set lists of one or two texts by the hundred thousand.
    if (items.length <= length) return [this.#chunk(number, items.slice())]
    const chunks: Chunk[] = []
    for (let at = 0; at < items.length; at += length)
      chunks.push(this.#chunk(number, items.slice(at, at + length)))
    return chunks
  }

  #chunk(number: number, items: Item[]): Chunk {
    const chunk: Chunk = { number, owner: this, items }
    for (const item of items) if (isListed(item)) item.chunk = chunk
    return chunk
  }
}

function isListed(item: Item): item is Listed {
  return typeof item === 'object' && 'chunk' in item
}
