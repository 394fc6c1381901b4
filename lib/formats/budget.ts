/**
 * Bounds what a file makes a reader keep, and what it makes a user of all its tensors load. One counter per limit; the
 * schema of a format gives each default and its reason.
 */
import { FileFault } from './file_fault.js'
import type { Limits } from './format.js'

export type LimitName = keyof Limits

/** A number, or a multiple of the bytes of all opened files, which may have bounds of its own. */
export type DefaultLimit =
  | number
  | { readonly perFileByte: number; readonly atLeast?: number; readonly atMost?: number }

/** Limits that a format has. One without a default is unlimited unless the caller gives it. */
export type DefaultLimits = Readonly<Partial<Record<LimitName, DefaultLimit>>>

/** Begins the sentence of an ERR_LIMIT; the limit follows. */
const COUNTED: Readonly<Record<LimitName, (value: number) => string>> = {
  tensors: (value) => `The file has at least ${value} tensors`,
  headerBytes: (value) => `The headers up to here have ${value} bytes`,
  totalBytes: (value) => `The tensors up to here decode to ${value} bytes`,
  depth: (value) => `The messages are nested ${value} deep`,
}

const LIMIT_NAMES = Object.keys(COUNTED) as LimitName[]

export class Budget {
  readonly #limits: Limits
  readonly #defaults: DefaultLimits
  /** The limits in force, computed when a file is added: a walk asks for one of them with every field. */
  readonly #inForce: Record<LimitName, number> = { tensors: 0, headerBytes: 0, totalBytes: 0, depth: 0 }
  readonly #spent: Record<LimitName, number> = { tensors: 0, headerBytes: 0, totalBytes: 0, depth: 0 }
  /** Bytes of all files opened so far. */
  #fileBytes = 0

  /** @param byteLength - of the file, where one is open already; `addFile` adds others */
  constructor(limits: Limits, defaults: DefaultLimits, byteLength = 0) {
    this.#limits = limits
    this.#defaults = defaults
    this.addFile(byteLength)
  }

  /** Raises the limits that are multiples of the file's bytes. */
  addFile(byteLength: number): void {
    this.#fileBytes += byteLength
    for (const name of LIMIT_NAMES) this.#inForce[name] = this.#limits[name] ?? this.#defaultOf(name)
  }

  #defaultOf(name: LimitName): number {
    const fallback = this.#defaults[name] ?? Number.POSITIVE_INFINITY
    if (typeof fallback === 'number') return fallback
    const { perFileByte, atLeast = 0, atMost = Number.POSITIVE_INFINITY } = fallback
    return Math.min(Math.max(perFileByte * this.#fileBytes, atLeast), atMost)
  }

  limit(name: LimitName): number {
    return this.#inForce[name]
  }

  /** How much may still be spent. */
  left(name: LimitName): number {
    return this.#inForce[name] - this.#spent[name]
  }

  spent(name: LimitName): number {
    return this.#spent[name]
  }

  /** Sets a counter back to what `spent` returned: what was charged since is read again. */
  restore(name: LimitName, spent: number): void {
    this.#spent[name] = spent
  }

  /** Adds `amount` to a counter. Gives the sentence for an ERR_LIMIT once the counter exceeds its limit. */
  spend(name: LimitName, amount: number): string | undefined {
    this.#spent[name] += amount
    return this.excess(name, this.#spent[name])
  }

  /** The sentence for an ERR_LIMIT when `value`, which the caller counts, is above the limit. */
  excess(name: LimitName, value: number): string | undefined {
    const limit = this.#inForce[name]
    return value <= limit ? undefined : `${COUNTED[name](value)}; limits.${name} is ${limit}.`
  }

  /** As `spend`. @throws FileFault ERR_LIMIT at `offset` */
  demand(name: LimitName, amount: number, offset: number): void {
    throwExcess(this.spend(name, amount), offset)
  }

  /** As `excess`. @throws FileFault ERR_LIMIT at `offset` */
  require(name: LimitName, value: number, offset: number): void {
    throwExcess(this.excess(name, value), offset)
  }
}

function throwExcess(message: string | undefined, offset: number): void {
  if (message !== undefined) throw new FileFault('ERR_LIMIT', message, offset)
}
