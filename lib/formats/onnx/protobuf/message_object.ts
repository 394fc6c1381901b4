/**
 * Encodes decoded TensorProto objects of other libraries (protobufjs, @bufbuild/protobuf, onnx-proto) as bytes again, so
 * that one reader checks all rules. Field names may be in snake case or camel case.
 */
import { isTypedArray } from 'node:util/types'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { camelCase, type FieldInfo, isMessageKind, MESSAGES, type MessageName } from '../schema.js'
import { WireWriter } from './wire_writer.js'

/** An object with the fields of a TensorProto, as `data_type` or `dataType`. Integers may be bigints or objects with `toString`. */
export type TensorProtoObject = Readonly<Record<string, unknown>>

/** The bytes of the message. @throws TileworkError ERR_ARGUMENT for a field that does not match the schema */
export function messageOfObject(value: TensorProtoObject): Uint8Array {
  return messageOf('TensorProto', value, 'tensor')
}

function messageOf(name: MessageName, value: TensorProtoObject, path: string): Uint8Array {
  const writer = new WireWriter()
  for (const field of MESSAGES[name]) {
    const content = field && (value[field.name] ?? value[camelCase(field.name)])
    // Libraries give unset fields an empty value, and an empty raw_data would hide the typed field.
    if (content === undefined || content === null || (content as ArrayLike<unknown>).length === 0) continue
    writeField(writer, field!, content, `${path}.${field!.name}`)
  }
  return writer.finish()
}

function writeField(writer: WireWriter, field: FieldInfo, content: unknown, path: string): void {
  if (!field.isRepeated) {
    writeValue(writer, field, content, path)
    return
  }
  // Only real arrays: any object may claim a length that it does not have.
  if (!Array.isArray(content) && !isTypedArray(content)) throw wrong(path, content, 'a list')
  for (const [at, value] of (content as readonly unknown[]).entries())
    writeValue(writer, field, value, `${path}[${at}]`)
}

function writeValue(writer: WireWriter, { number, kind }: FieldInfo, value: unknown, path: string): void {
  if (isMessageKind(kind)) {
    if (typeof value !== 'object' || value === null) throw wrong(path, value, 'a message')
    writer.bytes(number, messageOf(kind, value as TensorProtoObject, path))
  } else if (kind === 'string' || kind === 'bytes') {
    if (typeof value === 'string') writer.text(number, value)
    else if (value instanceof Uint8Array) writer.bytes(number, value)
    else throw wrong(path, value, 'text or bytes')
  } else if (kind === 'float') {
    writer.fixed(number, new Uint8Array(Float32Array.of(numberOf(value, path)).buffer))
  } else if (kind === 'double') {
    writer.fixed(number, new Uint8Array(Float64Array.of(numberOf(value, path)).buffer))
  } else writer.varint(number, integerOf(value, path))
}

function numberOf(value: unknown, path: string): number {
  if (typeof value === 'number') return value
  throw wrong(path, value, 'a number')
}

/** Long objects of other libraries convert to their exact value with `String`. */
function integerOf(value: unknown, path: string): bigint {
  if (typeof value === 'bigint') return value
  const text = typeof value === 'number' || (typeof value === 'object' && value !== null) ? String(value) : ''
  if (/^-?\d+$/.test(text)) return BigInt(text)
  throw wrong(path, value, 'an integer')
}

function wrong(path: string, value: unknown, wanted: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${path} is ${valueText(value)}; it must be ${wanted}.`)
}
