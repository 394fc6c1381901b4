/**
 * Parses the JSON form of protobuf to the bytes of a message, as google.protobuf.json_format writes it: names of fields as in
 * onnx.proto or in camel case, 64-bit integers as texts, bytes in base64. Source: protobuf.dev/programming-guides/json.
 */
import { camelCase, type FieldInfo, fieldsByName, type MessageName } from '../schema.js'
import { claimField, messageOf, putInteger } from './message_text.js'
import { MessageWriter } from './message_writer.js'
import { TextCursor } from './text_cursor.js'

const INTEGER = /-?(?:0|[1-9]\d*)(?:\.0+)?(?![\w.])/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])/y
const LITERAL = /null|true|false/y
const FLOAT_WORDS = ['NaN', 'Infinity', '-Infinity']

/** @throws TileworkError ERR_HEADER with line and column; ERR_LIMIT */
export function parseJsonFormat(text: string, type: MessageName, depthLimit: number): Uint8Array {
  const cursor = new TextCursor(text, depthLimit, false)
  const message = object(cursor, type, 1)
  if (!cursor.isAtEnd) throw cursor.unexpected('the end of the text')
  return message.finish().finish()
}

function object(cursor: TextCursor, type: MessageName, depth: number): MessageWriter {
  cursor.checkDepth(depth)
  const message = new MessageWriter(type)
  const names = namesOf(type)
  cursor.expect('{')
  if (cursor.takes('}')) return message
  do {
    cursor.next()
    const at = cursor.position
    const name = string(cursor)
    cursor.expect(':')
    const known = names.get(name)
    if (cursor.match(LITERAL) !== undefined) {
      // A field that is null is absent.
      if (!known || cursor.text[cursor.position - 1] !== 'l')
        throw cursor.error(`the field "${name}" of ${type} takes no such value`, 'ERR_HEADER', at)
      continue
    }
    const info = claimField(message, name, cursor, at, known)
    if (info.isRepeated) array(cursor, message, info, depth)
    else value(cursor, message, info, depth)
  } while (cursor.takes(','))
  cursor.expect('}')
  return message
}

/** Fields by both of their names, made once for each message. */
const namesByType = new Map<MessageName, ReadonlyMap<string, FieldInfo>>()

function namesOf(type: MessageName): ReadonlyMap<string, FieldInfo> {
  let names = namesByType.get(type)
  if (!names) {
    const fields = [...fieldsByName(type)]
    names = new Map([...fields, ...fields.map(([name, info]) => [camelCase(name), info] as const)])
    namesByType.set(type, names)
  }
  return names
}

/** A list; a second one for the same field adds to the first. */
function array(cursor: TextCursor, message: MessageWriter, info: FieldInfo, depth: number): void {
  cursor.expect('[')
  if (cursor.takes(']')) return
  do value(cursor, message, info, depth)
  while (cursor.takes(','))
  cursor.expect(']')
}

function value(cursor: TextCursor, message: MessageWriter, info: FieldInfo, depth: number): void {
  const type = messageOf(info)
  if (type !== undefined) message.message(info, object(cursor, type, depth + 1))
  else if (info.kind === 'string') message.text(info, string(cursor))
  else if (info.kind === 'bytes') message.bytes(info, base64(cursor))
  else if (info.kind === 'float' || info.kind === 'double') message.float(info, float(cursor))
  else if (cursor.next() === '"') putInteger(message, info, string(cursor), cursor)
  else putInteger(message, info, cursor.numeral(INTEGER, 'an integer').replace(/\.0+$/, ''), cursor)
}

function float(cursor: TextCursor): string {
  if (cursor.next() !== '"') return cursor.numeral(NUMBER, 'a number')
  const at = cursor.position
  const text = string(cursor)
  NUMBER.lastIndex = 0
  if (FLOAT_WORDS.includes(text) || NUMBER.exec(text)?.[0] === text) return text
  throw cursor.error(`${JSON.stringify(text.slice(0, 20))} is no number`, 'ERR_HEADER', at)
}

/** Of both alphabets, with padding or without. */
function base64(cursor: TextCursor): Buffer {
  cursor.next()
  const at = cursor.position
  const text = string(cursor)
  if (/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return Buffer.from(text, 'base64')
  throw cursor.error('bytes are not base64', 'ERR_HEADER', at)
}

function string(cursor: TextCursor): string {
  cursor.next()
  const at = cursor.position
  const quoted = cursor.quoted()
  if (!/[\\\p{Cc}]/u.test(quoted)) return quoted
  try {
    return JSON.parse(`"${quoted}"`) as string
  } catch {
    throw cursor.error('the text has a control character or an unknown escape', 'ERR_HEADER', at)
  }
}
