/** Caches the values that were requested last, by a text of everything that they depend on. */
export class RecentValues<Value> {
  readonly #maxBytes: number
  readonly #bytesOf: (value: Value) => number
  #bytes = 0
  /** In the order of their last use. */
  readonly #values = new Map<string, Value>()

  /** @param maxBytes - limit of all cached values; the least recently used are dropped */
  constructor(maxBytes: number, bytesOf: (value: Value) => number) {
    this.#maxBytes = maxBytes
    this.#bytesOf = bytesOf
  }

  get(key: string, make: () => Value): Value {
    const known = this.#values.get(key)
    const value = known ?? make()
    if (known === undefined) this.#bytes += this.#bytesOf(value)
    this.#values.delete(key)
    this.#values.set(key, value)
    for (const [oldest, dropped] of this.#values) {
      if (this.#bytes <= this.#maxBytes) break
      this.#values.delete(oldest)
      this.#bytes -= this.#bytesOf(dropped)
    }
    return value
  }
}
