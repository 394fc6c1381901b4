/** A position in a text that is parsed: tokens, whitespace, comments, and errors with line and column. */
import { type ErrorCode, TileworkError } from '../../../errors.js'
import { FORMAT_NAME } from '../schema.js'

/** Longest numeral. The exact decimal expansion of a float64 has 767 digits. */
const MAX_NUMERAL_LENGTH = 1024

/** Characters of the text that an error shows. */
const SHOWN_LENGTH = 20

export class TextCursor {
  readonly text: string
  position = 0
  readonly #depthLimit: number
  readonly #hasComments: boolean

  /** @param hasComments - whether `#` begins a comment up to the end of the line */
  constructor(text: string, depthLimit: number, hasComments: boolean) {
    this.text = text
    this.#depthLimit = depthLimit
    this.#hasComments = hasComments
    // A byte order mark is no part of the text.
    if (text.startsWith('\uFEFF')) this.position = 1
  }

  /** Skips whitespace and comments. @returns the next character, empty at the end */
  next(): string {
    const { text } = this
    for (let at = this.position; ; ) {
      while (isSpace(text.charCodeAt(at))) at++
      this.position = at
      if (!this.#hasComments || text[at] !== '#') return text.charAt(at)
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length : end
    }
  }

  get isAtEnd(): boolean {
    return this.next() === ''
  }

  /** Skips `token`, if it is next. */
  takes(token: string): boolean {
    this.next()
    if (!this.text.startsWith(token, this.position)) return false
    this.position += token.length
    return true
  }

  /** @throws TileworkError ERR_HEADER unless `token` is next */
  expect(token: string): void {
    if (!this.takes(token)) throw this.unexpected(JSON.stringify(token))
  }

  /** The match of a sticky pattern at the next token, which is skipped; undefined where it does not match. */
  match(pattern: RegExp): string | undefined {
    this.next()
    pattern.lastIndex = this.position
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.position += found.length
    return found
  }

  /** As `match`, for a token that must be there. */
  need(pattern: RegExp, what: string): string {
    return this.match(pattern) ?? this.#fail(what)
  }

  /**
   * The characters between two quotes, with their escapes.
   *
   * @param quotes - the quotes that are allowed
   */
  quoted(quotes = '"'): string {
    const quote = this.next()
    if (quote === '' || !quotes.includes(quote)) throw this.unexpected('a quoted text')
    const start = this.position + 1
    for (let at = start; ; ) {
      const end = this.text.indexOf(quote, at)
      if (end < 0) throw this.error('the quoted text has no end')
      let escapes = 0
      while (end - 1 - escapes >= start && this.text[end - 1 - escapes] === '\\') escapes++
      this.position = end + 1
      if (escapes % 2 === 0) return this.text.slice(start, end)
      at = end + 1
    }
  }

  /** As `need`, for numbers. */
  numeral(pattern: RegExp, what: string): string {
    const found = this.need(pattern, what)
    if (found.length <= MAX_NUMERAL_LENGTH) return found
    this.position -= found.length
    throw this.error(
      `a numeral has ${found.length} characters; the limit is ${MAX_NUMERAL_LENGTH}`,
      'ERR_LIMIT',
    )
  }

  /** The word that comes next, without skipping it. */
  peek(pattern: RegExp): string | undefined {
    const start = this.position
    const found = this.match(pattern)
    this.position = start
    return found
  }

  /** @throws TileworkError ERR_LIMIT where messages are nested deeper than allowed */
  checkDepth(depth: number): void {
    if (depth > this.#depthLimit)
      throw this.error(
        `messages are nested deeper than limits.depth, which is ${this.#depthLimit}`,
        'ERR_LIMIT',
      )
  }

  unexpected(wanted: string): TileworkError {
    const end = this.next() === ''
    const found = this.text.slice(this.position, this.position + SHOWN_LENGTH)
    return this.error(
      `${wanted} was expected; ${end ? 'the text ends' : `${JSON.stringify(found)} was found`}`,
    )
  }

  #fail(wanted: string): never {
    throw this.unexpected(wanted)
  }

  /** An error at the position. */
  error(message: string, code: ErrorCode = 'ERR_HEADER', at = this.position): TileworkError {
    const before = this.text.slice(0, at)
    const line = before.split('\n').length
    const column = at - before.lastIndexOf('\n')
    return new TileworkError(code, `Line ${line}, column ${column}: ${message}.`, {
      format: FORMAT_NAME,
      offset: Buffer.byteLength(before),
    })
  }
}

/** Space, tab, line feed, vertical tab, form feed, carriage return. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}
