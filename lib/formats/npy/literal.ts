/**
 * Parses the header's text, the subset of Python literals that numpy writes: one dictionary of strings with either
 * quote, True and False, and tuples of whole numbers. Nothing is ever evaluated.
 */
import { TileworkError } from '../../errors.js'
import { quote } from '../quote.js'

/** An exact dimension: a bigint above 2^53 - 1. */
export type Extent = number | bigint

export type Literal = string | boolean | readonly Extent[]

export interface HeaderLiteral {
  readonly entries: ReadonlyMap<string, Literal>
  /** Python 2 wrote `3L` for long numbers; numpy still reads them. */
  readonly hasLongSuffix: boolean
}

/** The header key of the element type, and the path of its faults. */
export const TYPE_PATH = 'descr'

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/**
 * @throws TileworkError ERR_HEADER where the text is not such a dictionary, ERR_UNSUPPORTED for a structured type (a list or
 * tuple in place of the string); `offset` counts characters of the text
 */
export function parseHeaderLiteral(text: string): HeaderLiteral {
  return new LiteralReader(text).dictionary()
}

class LiteralReader {
  readonly #text: string
  #at = 0
  #hasLongSuffix = false

  constructor(text: string) {
    this.#text = text
  }

  dictionary(): HeaderLiteral {
    const entries = new Map<string, Literal>()
    this.#expect('{')
    while (!this.#takes('}')) {
      const start = this.#at
      const key = this.#string()
      if (entries.has(key)) throw this.#fault(`the key ${quote(key)} occurs twice`, start)
      this.#expect(':')
      entries.set(key, this.#value(key))
      if (this.#takes('}')) break
      this.#expect(',')
    }
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#fault('text follows the dictionary')
    return { entries, hasLongSuffix: this.#hasLongSuffix }
  }

  #value(key: string): Literal {
    this.#skipSpace()
    const next = this.#text[this.#at]
    if (key === TYPE_PATH && (next === '[' || next === '(')) {
      const message =
        'The type is structured (a list or tuple of types); only arrays of one plain type can be read.'
      throw new TileworkError('ERR_UNSUPPORTED', message, { path: TYPE_PATH, offset: this.#at })
    }
    if (next === "'" || next === '"') return this.#string()
    if (next === '(') return this.#tuple()
    if (this.#takesWord('True')) return true
    if (this.#takesWord('False')) return false
    throw this.#fault(`the value of ${quote(key)} must be a string, tuple, True or False`)
  }

  #tuple(): Extent[] {
    const extents: Extent[] = []
    const start = this.#at
    let hasComma = false
    this.#expect('(')
    while (!this.#takes(')')) {
      if (extents.length > 0 && !hasComma) throw this.#fault('a comma is missing')
      extents.push(this.#integer())
      hasComma = this.#takes(',')
    }
    // In Python `(3)` is a number in parentheses, not a tuple.
    if (extents.length === 1 && !hasComma) throw this.#fault('a tuple of one number needs a comma', start)
    return extents
  }

  #integer(): Extent {
    this.#skipSpace()
    const digits = this.#match(/-?(?:0|[1-9]\d*)/y)
    if (digits === undefined) throw this.#fault('a whole number is missing')
    if (this.#match(/[lL]/y) !== undefined) this.#hasLongSuffix = true
    const value = Number(digits)
    return Number.isSafeInteger(value) ? value : BigInt(digits)
  }

  #string(): string {
    this.#skipSpace()
    const start = this.#at
    const mark = this.#text[this.#at]
    if (mark !== "'" && mark !== '"') throw this.#fault('a string is missing')
    this.#at += 1
    let value = ''
    for (;;) {
      const character = this.#text[this.#at]
      if (character === undefined || character === '\n') throw this.#fault('a string does not end', start)
      this.#at += 1
      if (character === mark) return value
      value += character === '\\' ? this.#escape() : character
    }
  }

  #escape(): string {
    const code = this.#match(/x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}/y)
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code.slice(1), 16))
    const plain = ESCAPES.get(this.#text[this.#at] ?? '')
    if (plain === undefined) throw this.#fault('a string has an unknown escape')
    this.#at += 1
    return plain
  }

  #expect(mark: string): void {
    if (!this.#takes(mark)) throw this.#fault(`"${mark}" is missing`)
  }

  #takes(mark: string): boolean {
    this.#skipSpace()
    if (this.#text[this.#at] !== mark) return false
    this.#at += 1
    return true
  }

  #takesWord(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    return true
  }

  #skipSpace(): void {
    this.#match(/[ \t\n\r\f]*/y)
  }

  /** Consumes the match of a sticky expression at the cursor. */
  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #fault(what: string, at: number = this.#at): TileworkError {
    const near = this.#text.slice(at, at + 20)
    const where = near === '' ? 'at its end' : `at character ${at}, ${quote(near)}`
    return new TileworkError(
      'ERR_HEADER',
      `The header is not a dictionary as numpy writes it: ${what} ${where}.`,
      {
        offset: at,
      },
    )
  }
}
