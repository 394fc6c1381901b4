/** Prints the bytes of a message in the text and the JSON form of protobuf. Fields that onnx.proto does not define are left out. */
import { TileworkError } from '../../../errors.js'
import { FIXED32, LENGTH, VARINT, visitFields, WireCursor } from '../protobuf/wire.js'
import {
  ENUM_NAMES,
  type FieldInfo,
  FORMAT_NAME,
  isMessageKind,
  MESSAGES,
  type MessageName,
} from '../schema.js'
import { floatText } from './float_text.js'

/** Limit of the text: strings of Node have at most 2^29 characters. */
const MAX_TEXT_LENGTH = 2 ** 28

/** How one of the forms is written. */
interface Form {
  /** Quotes and escapes. */
  readonly text: (bytes: Uint8Array) => string
  readonly bytes: (bytes: Uint8Array) => string
  /** A 64-bit integer. */
  readonly long: (digits: string) => string
  /** NaN and infinities. */
  readonly word: (text: string) => string
  readonly enumName: (name: string) => string
  readonly message: (print: Printer, type: MessageName, bytes: Uint8Array, indent: string) => void
}

/** The bytes of a message as TextFormat. @throws TileworkError ERR_LIMIT beyond 2^28 characters; ERR_HEADER, ERR_TRUNCATED */
export function printTextFormat(bytes: Uint8Array, type: MessageName): string {
  const printer = new Printer(TEXT_FORM)
  TEXT_FORM.message(printer, type, bytes, '')
  return printer.finish()
}

/** As `printTextFormat`, as JSON with the names of onnx.proto. */
export function printJsonFormat(bytes: Uint8Array, type: MessageName): string {
  const printer = new Printer(JSON_FORM)
  JSON_FORM.message(printer, type, bytes, '')
  printer.put('\n')
  return printer.finish()
}

class Printer {
  readonly form: Form
  readonly #parts: string[] = []
  #length = 0

  constructor(form: Form) {
    this.form = form
  }

  put(text: string): void {
    this.#length += text.length
    if (this.#length > MAX_TEXT_LENGTH) {
      const message = `The text would have more than ${MAX_TEXT_LENGTH} characters; save the model as .onnx, or its values as external data.`
      throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
    }
    this.#parts.push(text)
  }

  finish(): string {
    return this.#parts.join('')
  }
}

/** A value of a scalar as text, or the bytes of a message. */
type Value = string | Uint8Array

/** Values of the fields of a message, in the order of the numbers of the fields; the last of a singular one counts. */
function fieldsOf(
  form: Form,
  type: MessageName,
  bytes: Uint8Array,
): readonly (readonly [FieldInfo, readonly Value[]])[] {
  const found = new Map<FieldInfo, Value[]>()
  const cursor = WireCursor.over(bytes)
  const steps = visitFields(cursor, bytes.byteLength, () => {
    const info = MESSAGES[type][cursor.number]
    if (!info) return undefined
    const values = found.get(info) ?? []
    found.set(info, values)
    addValues(values, { form, type, info, cursor, bytes })
    return undefined
  })
  // Bytes in memory need no load, so a walk that stops has met the end.
  if (steps?.next().done === false)
    throw new TileworkError('ERR_TRUNCATED', `A message of type ${type} ends inside a field.`, {
      format: FORMAT_NAME,
    })
  return [...found]
    .sort(([one], [other]) => one.number - other.number)
    .map(([info, values]) => [info, info.isRepeated ? values : [merged(info, values)]])
}

/** Several occurrences of a singular message are one, whose bytes are theirs in turn. */
function merged({ kind }: FieldInfo, values: readonly Value[]): Value {
  if (values.length === 1 || !isMessageKind(kind)) return values.at(-1)!
  return Buffer.concat(values as Uint8Array[])
}

interface Occurrence {
  readonly form: Form
  readonly type: MessageName
  readonly info: FieldInfo
  readonly cursor: WireCursor
  readonly bytes: Uint8Array
}

/** One value, or those of a packed run. Wire types that protobuf would skip are skipped. */
function addValues(values: Value[], { form, type, info, cursor, bytes }: Occurrence): void {
  const { wireType, valueStart: start, position: end } = cursor
  const { kind } = info
  if (wireType === info.wireType && wireType === LENGTH) {
    const value = bytes.subarray(start, end)
    if (isMessageKind(kind)) values.push(value)
    else values.push(kind === 'string' ? form.text(value) : form.bytes(value))
  } else if (wireType === info.wireType) values.push(numberText(form, type, info, cursor, bytes))
  else if (wireType === LENGTH && info.isRepeated) {
    const run = WireCursor.over(bytes.subarray(start, end))
    const length = end - start
    const width = info.wireType === FIXED32 ? 4 : 8
    while (run.position < length) {
      run.valueStart = run.position
      if (info.wireType === VARINT) run.varint(length)
      else run.position += width
      if (run.position <= length) values.push(numberText(form, type, info, run, bytes.subarray(start, end)))
    }
  }
}

function numberText(
  form: Form,
  type: MessageName,
  { kind, name }: FieldInfo,
  cursor: WireCursor,
  bytes: Uint8Array,
): string {
  if (kind === 'float' || kind === 'double') {
    const view = new DataView(bytes.buffer, bytes.byteOffset + cursor.valueStart)
    const value = kind === 'float' ? view.getFloat32(0, true) : view.getFloat64(0, true)
    if (!Number.isFinite(value)) return form.word(Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf')
    // Python reads "-0" as the integer 0.
    return Object.is(value, -0) ? '-0.0' : floatText(value, kind === 'float')
  }
  if (kind === 'int32') return String(cursor.int32())
  if (kind === 'enum') {
    const known = ENUM_NAMES[`${type}.${name}`]![cursor.int32()]
    return known === undefined ? String(cursor.int32()) : form.enumName(known)
  }
  const value = cursor.int64()
  return form.long(String(kind === 'uint64' ? BigInt.asUintN(64, BigInt(value)) : value))
}

const TEXT_FORM: Form = {
  text: (bytes) => `"${escaped(Buffer.from(bytes).toString('utf8'))}"`,
  bytes: (bytes) => `"${escaped(Buffer.from(bytes).toString('latin1')).replace(/[\u0080-\u00ff]/g, octal)}"`,
  long: (digits) => digits,
  word: (text) => text,
  enumName: (name) => name,
  message: (printer, type, bytes, indent) => {
    for (const [{ name, kind }, values] of fieldsOf(TEXT_FORM, type, bytes)) {
      for (const value of values) {
        if (typeof value === 'string') printer.put(`${indent}${name}: ${value}\n`)
        else {
          printer.put(`${indent}${name} {\n`)
          TEXT_FORM.message(printer, kind as MessageName, value, `${indent}  `)
          printer.put(`${indent}}\n`)
        }
      }
    }
  },
}

function escaped(text: string): string {
  return text.replace(/["\\]/g, '\\$&').replace(/\p{Cc}/gu, (each) => (each < '\x80' ? octal(each) : each))
}

function octal(character: string): string {
  return `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
}

const JSON_FORM: Form = {
  text: (bytes) => JSON.stringify(Buffer.from(bytes).toString('utf8')),
  bytes: (bytes) => `"${Buffer.from(bytes).toString('base64')}"`,
  long: (digits) => `"${digits}"`,
  word: (text) => ({ nan: '"NaN"', inf: '"Infinity"', '-inf': '"-Infinity"' })[text]!,
  enumName: (name) => `"${name}"`,
  message: (printer, type, bytes, indent) => {
    const inner = `${indent}  `
    printer.put('{')
    let separator = '\n'
    for (const [{ name, kind, isRepeated }, values] of fieldsOf(JSON_FORM, type, bytes)) {
      const around = isRepeated ? `${inner}  ` : inner
      printer.put(`${separator}${inner}"${name}": ${isRepeated ? '[' : ''}`)
      for (const [at, value] of values.entries()) {
        if (isRepeated) printer.put(`${at > 0 ? ',' : ''}\n${around}`)
        if (typeof value === 'string') printer.put(value)
        else JSON_FORM.message(printer, kind as MessageName, value, around)
      }
      if (isRepeated) printer.put(`${values.length > 0 ? `\n${inner}` : ''}]`)
      separator = ',\n'
    }
    printer.put(separator === '\n' ? '}' : `\n${indent}}`)
  },
}
