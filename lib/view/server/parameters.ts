/** Parses the parameters of a request: whole numbers, lists of numbers, and names from a fixed set. */
import { TileworkError } from '../../errors.js'
import { expectedText } from '../../nearest_names.js'

/** Longest list of numbers: more axes than any layout has. */
const MAX_LIST = 64

export class Parameters {
  readonly #query: URLSearchParams

  constructor(query: URLSearchParams) {
    this.#query = query
  }

  has(name: string): boolean {
    return this.#query.has(name)
  }

  text(name: string, fallback?: string): string {
    const found = this.#query.get(name) ?? fallback
    if (found !== undefined) return found
    throw new TileworkError('ERR_ARGUMENT', `The parameter ${name} is missing.`)
  }

  /** A whole number from `low` to `high`. */
  whole(name: string, low: number, high: number, fallback?: number): number {
    if (fallback !== undefined && !this.has(name)) return fallback
    return wholeNumber(name, this.text(name), low, high)
  }

  /** A number from 0 on. */
  number(name: string, fallback: number): number {
    const found = Number(this.text(name, String(fallback)))
    if (Number.isFinite(found) && found >= 0) return found
    throw new TileworkError('ERR_ARGUMENT', `${name} is "${this.text(name)}"; it must be a number from 0 on.`)
  }

  /** Whole numbers from 0 on, separated by commas; an empty list for an empty text. */
  list(name: string, fallback?: readonly number[]): readonly number[] {
    if (fallback !== undefined && !this.has(name)) return fallback
    const text = this.text(name)
    const parts = text === '' ? [] : text.split(',')
    if (parts.length > MAX_LIST) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${name} has ${parts.length} numbers; at most ${MAX_LIST} are allowed.`,
      )
    }
    return parts.map((part) => wholeNumber(name, part, 0, Number.MAX_SAFE_INTEGER))
  }

  oneOf<Name extends string>(name: string, names: readonly Name[], fallback: Name): Name {
    const text = this.text(name, fallback)
    const found = names.find((each) => each === text)
    if (found !== undefined) return found
    throw new TileworkError('ERR_ARGUMENT', `${name} is "${text}"${expectedText(text, names)}`)
  }
}

function wholeNumber(name: string, text: string, low: number, high: number): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= low && number <= high) return number
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${name} is "${text}"; it must be a whole number from ${low} to ${high}.`,
  )
}
