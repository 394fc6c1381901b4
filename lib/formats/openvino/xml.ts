/**
 * Reads the elements of an XML file one by one, with the byte offsets of attribute values, so that an edit can replace a value and
 * keep every other byte. Not recursive. Source: XML 1.0, fifth edition; sections in brackets.
 *
 * The file is decoded as Latin-1, so that the index of a character is its byte offset; values are decoded as UTF-8. A document
 * type, undefined entities and other violations of well-formedness are refused.
 */
import { isUtf8 } from 'node:buffer'
import type { ErrorCode } from '../../errors.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import { MAX_ATTRIBUTES } from './schema.js'

/** An attribute of an element. */
export interface Attribute {
  readonly name: string
  /** Byte offset of the name. */
  readonly at: number
  /** The value: entities resolved, line ends and tabs as spaces [3.3.3]. */
  readonly text: string
  /** Byte range of the value, between its quotes. */
  readonly start: number
  readonly end: number
}

export type XmlEvent = 'open' | 'close' | 'text' | 'end'

// Bytes above 127 belong to UTF-8 characters and count as name characters.
const NAME = /[A-Za-z_:\x80-\xff][\w:.\x80-\xff-]*/y
const ENTITY = /&(?:(amp|lt|gt|quot|apos)|#(?:x([\dA-Fa-f]{1,6})|(\d{1,7})));/y
// Values that have none of these are what their bytes are.
const NOT_PLAIN = /[<&\t\r\n\x80-\xff]/
const DECLARED_ENCODING = /[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']*)["']/
// Not characters of XML [2]: controls, and the two noncharacters at the end of the basic plane.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const NO_CHARACTER = /[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]/

const CHARACTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const BYTE_ORDER_MARK = '\xef\xbb\xbf'

export class XmlCursor {
  /** Name of the element that was opened or closed last. */
  name = ''
  /** Attributes of the element that was opened last. */
  attributes: readonly Attribute[] = []
  /** Byte offset of the last event. */
  start = 0
  /** Byte offset after the last event. */
  end = 0
  readonly #bytes: Buffer
  readonly #text: string
  readonly #maxDepth: number
  readonly #open: string[] = []
  /** Byte offset after the name that was read last. */
  #nameEnd = 0
  #isEmpty = false
  #hasRoot = false
  #isData = false

  /** @throws FileFault ERR_UNSUPPORTED for another encoding than UTF-8, ERR_HEADER for bytes that are not characters of XML */
  constructor(bytes: Uint8Array, maxDepth: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#maxDepth = maxDepth
    refuseWideCharacters(this.#bytes)
    this.#text = this.#bytes.toString('latin1')
    if (this.#text.startsWith(BYTE_ORDER_MARK)) this.end = BYTE_ORDER_MARK.length
    this.#declaration()
    if (!isUtf8(this.#bytes)) throw fault('The file is not UTF-8.', 0)
    const bad = NO_CHARACTER.exec(this.#text)
    if (bad) throw fault(`The byte ${bad[0].charCodeAt(0)} is not a character of XML.`, bad.index)
  }

  /** Number of open elements. */
  get depth(): number {
    return this.#open.length
  }

  /** Moves to the next start or end of an element, or to text inside of one. Comments and instructions are skipped. */
  next(): XmlEvent {
    if (this.#isEmpty) {
      this.#isEmpty = false
      this.#open.pop()
      return 'close'
    }
    for (;;) {
      this.start = this.#skipSpace(this.end)
      this.end = this.start
      if (this.start >= this.#text.length) return this.#finish()
      if (this.#text[this.start] !== '<') return this.#readText()
      const mark = this.#text[this.start + 1]
      if (mark === '/') return this.#close()
      if (mark === '?') this.#skipInstruction()
      else if (mark !== '!') return this.#openElement()
      else if (this.#text.startsWith('<![CDATA[', this.start)) return this.#readData()
      else this.#skipComment()
    }
  }

  /** The text of the last event `text`. */
  text(): string {
    const text = this.#bytes.toString('utf8', this.start, this.end)
    if (this.#isData) return text.slice(CDATA_START.length, -CDATA_END.length)
    return resolved(text)
  }

  #declaration(): void {
    const at = this.end
    if (!/^<\?xml[ \t\r\n]/.test(this.#text.slice(at, at + 6))) return
    const end = this.#find('?>', at, 'The XML declaration')
    const encoding = DECLARED_ENCODING.exec(this.#text.slice(at, end))?.[1]
    if (encoding !== undefined && !/^(?:utf-8|us-ascii|ascii)$/i.test(encoding)) {
      throw fault(`The encoding is ${quote(encoding)}; only UTF-8 is read.`, at, 'ERR_UNSUPPORTED')
    }
    this.end = end + 2
  }

  #finish(): 'end' {
    const open = this.#open.at(-1)
    if (open !== undefined) {
      throw fault(`The file ends inside of the element ${quote(open)}.`, this.start, 'ERR_TRUNCATED')
    }
    if (!this.#hasRoot) throw fault('The file has no element.', this.start, 'ERR_TRUNCATED')
    return 'end'
  }

  #readText(): 'text' {
    this.#requireInside('Text')
    const end = this.#text.indexOf('<', this.start)
    this.end = end === -1 ? this.#text.length : end
    this.#isData = false
    const text = this.#text.slice(this.start, this.end)
    const wrong = text.indexOf(CDATA_END)
    if (wrong !== -1) throw fault('Text has "]]>", which ends character data.', this.start + wrong)
    this.#checkEntities(text, this.start)
    return 'text'
  }

  #readData(): 'text' {
    this.#requireInside('Character data')
    this.end = this.#find(CDATA_END, this.start, 'Character data') + CDATA_END.length
    this.#isData = true
    return 'text'
  }

  #requireInside(what: string): void {
    if (this.#open.length === 0) throw fault(`${what} stands outside of the root element.`, this.start)
  }

  #skipComment(): void {
    if (!this.#text.startsWith('<!--', this.start)) {
      if (/^<!DOCTYPE/i.test(this.#text.slice(this.start, this.start + 9))) {
        throw fault(
          'The file has a document type, which could define entities.',
          this.start,
          'ERR_UNSUPPORTED',
        )
      }
      throw fault('"<!" starts neither a comment nor character data.', this.start)
    }
    const end = this.#find('--', this.start + 4, 'A comment')
    if (this.#text[end + 2] !== '>') throw fault('A comment has "--" in it.', end)
    this.end = end + 3
  }

  #skipInstruction(): void {
    const target = this.#name(this.start + 2)
    if (/^xml$/i.test(target))
      throw fault('An XML declaration stands only at the start of a file.', this.start)
    this.end = this.#find('?>', this.start, 'An instruction') + 2
  }

  #openElement(): 'open' {
    const { start } = this
    if (this.#open.length === 0 && this.#hasRoot) throw fault('The file has a second root element.', start)
    if (this.#open.length >= this.#maxDepth) {
      throw fault(
        `Elements are nested more than ${this.#maxDepth} deep; limits.depth is ${this.#maxDepth}.`,
        start,
        'ERR_LIMIT',
      )
    }
    const name = this.#name(start + 1)
    let at = this.#readAttributes(this.#nameEnd)
    this.#isEmpty = this.#text[at] === '/'
    if (this.#isEmpty) at += 1
    if (this.#text[at] !== '>')
      throw this.#cutOr(
        `The element ${quote(name)} has ${quote(this.#text[at] ?? '')} where ">" is wanted.`,
        at,
      )
    this.end = at + 1
    this.name = name
    this.#hasRoot = true
    this.#open.push(name)
    return 'open'
  }

  /** @returns the offset of what follows the attributes and the space after them */
  #readAttributes(start: number): number {
    const attributes: Attribute[] = []
    for (let from = start; ; ) {
      const at = this.#skipSpace(from)
      const next = this.#text[at]
      if (next === undefined || next === '>' || next === '/') {
        this.attributes = attributes
        return at
      }
      if (at === from) throw fault('An attribute needs a space before it.', at)
      const name = this.#name(at)
      if (attributes.some((each) => each.name === name)) {
        throw fault(`The element has the attribute ${quote(name)} twice.`, at, 'ERR_DUPLICATE')
      }
      if (attributes.length >= MAX_ATTRIBUTES) {
        throw fault(`An element has more than ${MAX_ATTRIBUTES} attributes.`, at, 'ERR_LIMIT')
      }
      const equals = this.#skipSpace(this.#nameEnd)
      const valueAt = this.#skipSpace(equals + 1)
      const mark = this.#text[valueAt]
      if (this.#text[equals] !== '=' || (mark !== '"' && mark !== "'")) {
        throw this.#cutOr(`The attribute ${quote(name)} has no quoted value.`, valueAt)
      }
      const end = this.#find(mark, valueAt + 1, 'A value')
      attributes.push({ name, at, text: this.#value(valueAt + 1, end), start: valueAt + 1, end })
      from = end + 1
    }
  }

  #value(start: number, end: number): string {
    const value = this.#text.slice(start, end)
    if (!NOT_PLAIN.test(value)) return value
    const wrong = value.indexOf('<')
    if (wrong !== -1) throw fault('A value has "<" in it.', start + wrong)
    this.#checkEntities(value, start)
    return resolved(this.#bytes.toString('utf8', start, end).replace(/\r\n|[\t\r\n]/g, ' '))
  }

  #checkEntities(text: string, start: number): void {
    for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
      ENTITY.lastIndex = at
      const match = ENTITY.exec(text)
      if (!match) throw fault(`The entity ${quote(text.slice(at, at + 12))} is not defined.`, start + at)
      if (characterOf(match) === undefined) {
        throw fault(`${quote(match[0])} is not a character of XML.`, start + at)
      }
    }
  }

  #close(): 'close' {
    const name = this.#name(this.start + 2)
    const at = this.#skipSpace(this.#nameEnd)
    if (this.#text[at] !== '>') throw this.#cutOr(`The end of ${quote(name)} has no ">".`, at)
    const open = this.#open.pop()
    if (open !== name) {
      const wanted = open === undefined ? 'none is open' : `${quote(open)} is open`
      throw fault(`The end of ${quote(name)} is here; ${wanted}.`, this.start)
    }
    this.end = at + 1
    this.name = name
    return 'close'
  }

  #name(at: number): string {
    NAME.lastIndex = at
    if (!NAME.test(this.#text)) throw this.#cutOr('A name is wanted here.', at)
    this.#nameEnd = NAME.lastIndex
    const name = this.#text.slice(at, this.#nameEnd)
    return NOT_PLAIN.test(name) ? this.#bytes.toString('utf8', at, this.#nameEnd) : name
  }

  /** The offset after whitespace [3], of which JavaScript's `\s` has more. */
  #skipSpace(from: number): number {
    let at = from
    while (isSpace(this.#text.charCodeAt(at))) at += 1
    return at
  }

  #find(mark: string, from: number, what: string): number {
    const at = this.#text.indexOf(mark, from)
    if (at === -1) throw fault(`${what} has no end.`, from, 'ERR_TRUNCATED')
    return at
  }

  #cutOr(message: string, at: number): FileFault {
    return at >= this.#text.length
      ? fault('The file ends inside of a tag.', at, 'ERR_TRUNCATED')
      : fault(message, at)
  }
}

const CDATA_START = '<![CDATA['
const CDATA_END = ']]>'

function refuseWideCharacters(bytes: Buffer): void {
  const wide = [
    [0xff, 0xfe],
    [0xfe, 0xff],
    [0x3c, 0x00],
    [0x00, 0x3c],
  ]
  if (wide.some(([one, other]) => bytes[0] === one && bytes[1] === other)) {
    throw fault('The encoding is UTF-16 or UTF-32; only UTF-8 is read.', 0, 'ERR_UNSUPPORTED')
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x09 || code === 0x0d
}

function resolved(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(new RegExp(ENTITY.source, 'g'), (...match) => characterOf(match as string[]) ?? '')
}

/** The character of an entity; undefined for a number that is none [2]. */
function characterOf(match: readonly (string | undefined)[]): string | undefined {
  const [, name, hex, decimal] = match
  if (name !== undefined) return CHARACTERS[name]
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
  const isCharacter =
    code === 9 ||
    code === 10 ||
    code === 13 ||
    (code >= 0x20 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff)
  return isCharacter ? String.fromCodePoint(code) : undefined
}

function fault(message: string, offset: number, code: ErrorCode = 'ERR_HEADER'): FileFault {
  return new FileFault(code, message, offset)
}
