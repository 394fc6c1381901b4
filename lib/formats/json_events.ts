/**
 * Streams JSON from a range of a source as events with byte offsets, in bounded memory. `@streamparser/json` makes the
 * tokens window by window; the grammar between tokens is checked here.
 *
 * `JSON.parse` is unsuitable: it hides repeated keys, rounds large numbers, gives no offsets, and holds the whole text
 * and tree in memory at any depth.
 */
import { type ParsedTokenInfo, Tokenizer, TokenType } from '@streamparser/json'
import { READER_WINDOW_BYTES } from '../bytes/reader.js'
import type { ByteSource } from '../bytes/source.js'
import { FileFault } from './file_fault.js'

/** Maximum nesting of JSON values, as in the JSON library of safetensors. Only unknown keys can nest. */
export const MAX_DEPTH = 127

/**
 * Maximum characters of one name or metadata value. An escaped string takes many times its bytes until it is complete, and no
 * known writer stores more than a few megabytes in one.
 */
const MAX_TEXT_LENGTH = 2 ** 25

/** Receives events during the read. `at` is the byte offset in the source. */
export interface JsonHandler {
  beginObject(at: number): void
  endObject(at: number): void
  beginArray(at: number): void
  endArray(at: number): void
  key(name: string, at: number): void
  /** A string with its escapes resolved; a number or literal as spelled. */
  value(kind: 'string' | 'number' | 'literal', text: string, at: number): void
}

/** @throws FileFault, and what the source and the handler throw */
export async function readJson(
  source: ByteSource,
  start: number,
  end: number,
  handler: JsonHandler,
): Promise<void> {
  const grammar = new Grammar(start, handler)
  for (let at = start; at < end; at += READER_WINDOW_BYTES) {
    const window = await source.read(at, Math.min(end, at + READER_WINDOW_BYTES))
    grammar.write(window)
  }
  grammar.end(end)
}

/** The grammar's next token. */
type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing'

const LITERALS: ReadonlyMap<TokenType, string> = new Map([
  [TokenType.TRUE, 'true'],
  [TokenType.FALSE, 'false'],
  [TokenType.NULL, 'null'],
])

/** Buffer sizes of the tokenizer; longer strings are collected in chunks. */
const TEXT_BUFFER_BYTES = 64 * 1024
const NUMBER_BUFFER_BYTES = 64

/** Keeps the spelling of a number, which a double could round. */
class SpellingTokenizer extends Tokenizer {
  spelling = ''

  override parseNumber(spelling: string): number {
    this.spelling = spelling
    return Number(spelling)
  }
}

/**
 * Written to the tokenizer before the text. Before its first value the tokenizer skips byte order marks anywhere, even between
 * brackets; JSON does not allow them, and other readers refuse them.
 */
const FIRST_VALUE = '0 '

class Grammar {
  /** Source offset of the tokenizer's first byte. */
  readonly #start: number
  readonly #handler: JsonHandler
  readonly #tokenizer: SpellingTokenizer
  /** One entry per nesting level: true inside an object. */
  readonly #isObject: boolean[] = []
  #expected: Expected = 'value'
  #lastOffset: number

  constructor(start: number, handler: JsonHandler) {
    this.#start = start - FIRST_VALUE.length
    this.#lastOffset = start
    this.#handler = handler
    this.#tokenizer = new SpellingTokenizer({
      stringBufferSize: TEXT_BUFFER_BYTES,
      numberBufferSize: NUMBER_BUFFER_BYTES,
      // Reports an unterminated string after each window, before it fills the memory.
      emitPartialTokens: true,
    })
    this.#tokenizer.onToken = () => {}
    this.#tokenizer.write(FIRST_VALUE)
    this.#tokenizer.onToken = (token) => this.#take(token)
  }

  write(bytes: Uint8Array): void {
    try {
      this.#tokenizer.write(bytes)
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  end(offset: number): void {
    try {
      this.#tokenizer.end()
    } catch (error) {
      throw this.#faultOf(error)
    }
    if (this.#expected !== 'nothing') {
      throw new FileFault('ERR_HEADER', 'The JSON text is incomplete.', offset)
    }
  }

  #take({ token, value, offset, partial }: ParsedTokenInfo & { partial?: boolean }): void {
    const at = this.#start + offset
    this.#lastOffset = at
    const isText = token === TokenType.STRING || token === TokenType.NUMBER
    if (isText) this.#checkLength(token === TokenType.STRING ? String(value) : this.#tokenizer.spelling, at)
    if (partial === true) return
    switch (token) {
      case TokenType.LEFT_BRACE:
        this.#begin(true, at)
        this.#handler.beginObject(at)
        return
      case TokenType.LEFT_BRACKET:
        this.#begin(false, at)
        this.#handler.beginArray(at)
        return
      case TokenType.RIGHT_BRACE:
        this.#finish(true, at)
        this.#handler.endObject(at)
        return
      case TokenType.RIGHT_BRACKET:
        this.#finish(false, at)
        this.#handler.endArray(at)
        return
      case TokenType.COLON:
        if (this.#expected !== 'colon') throw unexpected('a colon', at)
        this.#expected = 'value'
        return
      case TokenType.COMMA:
        if (this.#expected !== 'comma or end') throw unexpected('a comma', at)
        this.#expected = this.#isObject.at(-1) ? 'key' : 'value'
        return
      case TokenType.STRING:
        if (this.#expected === 'key' || this.#expected === 'key or end') {
          this.#expected = 'colon'
          this.#handler.key(value as string, at)
          return
        }
        this.#scalar('string', value as string, at)
        return
      case TokenType.NUMBER:
        this.#scalar('number', this.#tokenizer.spelling, at)
        return
      default:
        this.#scalar('literal', LITERALS.get(token)!, at)
    }
  }

  #scalar(kind: 'string' | 'number' | 'literal', text: string, at: number): void {
    this.#expectValue(`a ${kind}`, at)
    this.#afterValue()
    this.#handler.value(kind, text, at)
  }

  #begin(isObject: boolean, at: number): void {
    this.#expectValue(isObject ? 'an object' : 'an array', at)
    if (this.#isObject.length === MAX_DEPTH) {
      throw new FileFault('ERR_LIMIT', `The JSON text nests deeper than ${MAX_DEPTH} levels.`, at)
    }
    this.#isObject.push(isObject)
    this.#expected = isObject ? 'key or end' : 'value or end'
  }

  #finish(isObject: boolean, at: number): void {
    const first: Expected = isObject ? 'key or end' : 'value or end'
    const isPossible = this.#expected === 'comma or end' || this.#expected === first
    if (!isPossible || this.#isObject.at(-1) !== isObject) throw unexpected(isObject ? '"}"' : '"]"', at)
    this.#isObject.pop()
    this.#afterValue()
  }

  #expectValue(what: string, at: number): void {
    if (this.#expected !== 'value' && this.#expected !== 'value or end') throw unexpected(what, at)
  }

  #afterValue(): void {
    this.#expected = this.#isObject.length === 0 ? 'nothing' : 'comma or end'
  }

  #checkLength(text: string, at: number): void {
    if (text.length <= MAX_TEXT_LENGTH) return
    throw new FileFault('ERR_LIMIT', `A string or number is longer than ${MAX_TEXT_LENGTH} characters.`, at)
  }

  /** Turns the tokenizer's errors into faults with an offset; the handler's errors are returned unchanged. */
  #faultOf(error: unknown): unknown {
    if (!(error instanceof Error)) return error
    if (error.name === 'TypeError' && 'code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      return new FileFault('ERR_HEADER', 'A string is not valid UTF-8.', this.#lastOffset)
    }
    const position = /^Unexpected .* \(absolute position "(\d+)"\) in state/s.exec(error.message)
    if (position) {
      return new FileFault(
        'ERR_HEADER',
        'The text is not valid JSON from here on.',
        this.#start + Number(position[1]),
      )
    }
    if (error.message.startsWith('Tokenizer ended')) {
      return new FileFault('ERR_HEADER', 'The JSON text is incomplete.', this.#lastOffset)
    }
    return error
  }
}

function unexpected(what: string, at: number): FileFault {
  return new FileFault('ERR_HEADER', `JSON has no ${what.replace(/^an? /, '')} here.`, at)
}
