/** What the text and the JSON form of protobuf have in common: values by the kind of their field. */
import { ENUM_NAMES, type FieldInfo, isMessageKind, type MessageName } from '../schema.js'
import type { MessageWriter } from './message_writer.js'
import { INTEGER_RANGES } from './numbers.js'
import type { TextCursor } from './text_cursor.js'

/** Puts an integer or the name of an enum value, which `at` is the position of. */
export function putInteger(message: MessageWriter, info: FieldInfo, token: string, cursor: TextCursor): void {
  const at = cursor.position - token.length
  const name = info.kind === 'enum' ? enumNumber(message.type, info, token) : undefined
  const value = name ?? integerOf(token)
  if (value === undefined)
    throw cursor.error(`"${token}" is no value of the field "${info.name}"`, 'ERR_HEADER', at)
  const [lowest, highest] = INTEGER_RANGES[info.kind as 'int64']!
  if (value < lowest || value > highest)
    throw cursor.error(`${value} is not from ${lowest} to ${highest}`, 'ERR_OVERFLOW', at)
  message.int(info, value)
}

function integerOf(token: string): bigint | undefined {
  const [, sign, digits] = /^(-?)(0[xX][0-9a-fA-F]+|\d+)$/.exec(token) ?? []
  if (digits === undefined) return undefined
  // A numeral with a leading zero is octal, as in C.
  const isOctal = /^0[0-7]+$/.test(digits)
  if (!isOctal && /^0\d/.test(digits)) return undefined
  const value = BigInt(isOctal ? `0o${digits.slice(1)}` : digits)
  return sign === '-' ? -value : value
}

function enumNumber(message: MessageName, { name }: FieldInfo, token: string): bigint | undefined {
  const at = ENUM_NAMES[`${message}.${name}`]!.indexOf(token)
  return at < 0 ? undefined : BigInt(at)
}

/** The field of a name. @throws TileworkError ERR_HEADER for an unknown one, and for one that is given twice */
export function claimField(
  message: MessageWriter,
  name: string,
  cursor: TextCursor,
  at: number,
  info = message.field(name),
): FieldInfo {
  if (!info) throw cursor.error(`${message.type} has no field "${name}"`, 'ERR_HEADER', at)
  if (message.claim(info)) return info
  const other = info.oneof === undefined ? 'is given' : 'or another of its oneof is given'
  throw cursor.error(`the field "${name}" of ${message.type} ${other} twice`, 'ERR_HEADER', at)
}

/** The message of a field. */
export function messageOf({ kind }: FieldInfo): MessageName | undefined {
  return isMessageKind(kind) ? kind : undefined
}
