/**
 * Parses the text form of protobuf (TextFormat, `.textproto`) to the bytes of a message. Source: the specification at
 * protobuf.dev/reference/protobuf/textformat-spec. Fields go by the names of onnx.proto; extensions and `Any` are refused.
 */
import type { FieldInfo, MessageName } from '../schema.js'
import { claimField, messageOf, putInteger } from './message_text.js'
import { MessageWriter } from './message_writer.js'
import { TextCursor } from './text_cursor.js'

const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
const INTEGER = /-?(?:0[xX][0-9a-fA-F]+|\d+)(?![\w.])|[A-Za-z_]\w*/y
const FLOAT = /-?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]?|inf(?:inity)?|nan)(?![\w.])/iy

/** @throws TileworkError ERR_HEADER with line and column; ERR_LIMIT */
export function parseTextFormat(text: string, type: MessageName, depthLimit: number): Uint8Array {
  const cursor = new TextCursor(text, depthLimit, true)
  const message = new MessageWriter(type)
  fields(cursor, message, '', 1)
  return message.finish().finish()
}

/** Fields up to `close`, or to the end of the text. */
function fields(cursor: TextCursor, message: MessageWriter, close: string, depth: number): void {
  cursor.checkDepth(depth)
  while (close === '' ? !cursor.isAtEnd : !cursor.takes(close)) {
    const at = cursor.position
    const name = cursor.need(WORD, 'the name of a field')
    const info = claimField(message, name, cursor, at)
    const hasColon = cursor.takes(':')
    if (cursor.next() === '[' && info.isRepeated) list(cursor, message, info, depth)
    else value(cursor, message, info, hasColon, depth)
    if (!cursor.takes(',')) cursor.takes(';')
    cursor.next()
  }
}

function list(cursor: TextCursor, message: MessageWriter, info: FieldInfo, depth: number): void {
  cursor.expect('[')
  if (cursor.takes(']')) return
  do value(cursor, message, info, true, depth)
  while (cursor.takes(','))
  cursor.expect(']')
}

function value(
  cursor: TextCursor,
  message: MessageWriter,
  info: FieldInfo,
  hasColon: boolean,
  depth: number,
): void {
  const type = messageOf(info)
  if (type !== undefined) {
    const inside = new MessageWriter(type)
    const isAngled = cursor.takes('<')
    if (!isAngled) cursor.expect('{')
    fields(cursor, inside, isAngled ? '>' : '}', depth + 1)
    message.message(info, inside)
    return
  }
  if (!hasColon) throw cursor.unexpected('":"')
  if (info.kind === 'string') message.text(info, utf8(cursor, bytesOf(cursor)))
  else if (info.kind === 'bytes') message.bytes(info, bytesOf(cursor))
  else if (info.kind === 'float' || info.kind === 'double')
    message.float(info, cursor.numeral(FLOAT, 'a number').replace(/(?<=[\d.])[fF]$/, ''))
  else putInteger(message, info, cursor.numeral(INTEGER, 'an integer'), cursor)
}

/** Texts side by side are one. */
function bytesOf(cursor: TextCursor): Buffer {
  const parts: Buffer[] = []
  do {
    const at = cursor.position
    parts.push(unescaped(cursor, cursor.quoted(`"'`), at))
  } while (`"'`.includes(cursor.next() || ' '))
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

function utf8(cursor: TextCursor, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw cursor.error('the text before this is not UTF-8')
  }
}

const ESCAPE =
  /\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([abfnrtv\\'"?])|([\s\S]?))/g
const CONTROLS: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** Bytes of a text: escapes in octal and hex are bytes, others are characters. */
function unescaped(cursor: TextCursor, text: string, at: number): Buffer {
  if (!text.includes('\\')) return Buffer.from(text, 'utf8')
  const parts: Buffer[] = []
  let from = 0
  for (const found of text.matchAll(ESCAPE)) {
    if (found.index > from) parts.push(Buffer.from(text.slice(from, found.index), 'utf8'))
    from = found.index + found[0].length
    parts.push(escapedBytes(found) ?? refuseEscape(cursor, found[0], at))
  }
  parts.push(Buffer.from(text.slice(from), 'utf8'))
  return Buffer.concat(parts)
}

function escapedBytes([, octal, hex, short, long, character]: RegExpExecArray): Buffer | undefined {
  const byte = octal === undefined ? hex && Number.parseInt(hex, 16) : Number.parseInt(octal, 8)
  if (typeof byte === 'number') return byte > 255 ? undefined : Buffer.of(byte)
  const point = short ?? long
  if (point !== undefined) {
    const code = Number.parseInt(point, 16)
    const isCharacter = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
    return isCharacter ? Buffer.from(String.fromCodePoint(code), 'utf8') : undefined
  }
  return character === undefined ? undefined : Buffer.from(CONTROLS[character] ?? character, 'utf8')
}

function refuseEscape(cursor: TextCursor, found: string, at: number): never {
  throw cursor.error(`${JSON.stringify(found)} is no escape of a text`, 'ERR_HEADER', at)
}
