/** Converts between TypeProto messages and `ValueType` objects. */

import { readInput } from '../../../caller_input.js'
import { DTYPES, type Dtype, resolveDtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { checkInt64, checkList, checkText } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { WireWriter } from '../../../formats/onnx/protobuf/wire_writer.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { valueText } from '../../../value_text.js'
import type { Dimension, ValueType } from './types.js'

/**
 * Leaves the messages of the type to be read again: a large graph has one for each value, and their objects would fill the memory.
 *
 * @param message - a TypeProto
 */
export function readValueType(message: Message | undefined): ValueType {
  if (!message) return { kind: 'none' }
  const denotation = message.text('denotation')
  return { ...readKind(message), ...(denotation !== '' && { denotation }) }
}

function readKind(message: Message): ValueType {
  for (const [field, kind] of TENSOR_FIELDS) {
    const inside = message.message(field, false)
    if (inside) return tensorType(kind, inside)
  }
  for (const [field, kind] of CONTAINER_FIELDS) {
    const inside = message.message(field, false)
    if (inside) return { kind, of: readValueType(inside.message('elem_type', false)) }
  }
  const map = message.message('map_type', false)
  if (map)
    return {
      kind: 'map',
      key: dtypeOf(map.int('key_type')),
      value: readValueType(map.message('value_type', false)),
    }
  const opaque = message.message('opaque_type', false)
  return opaque
    ? { kind: 'opaque', domain: opaque.text('domain'), name: opaque.text('name') }
    : { kind: 'none' }
}

const TENSOR_FIELDS = [
  ['tensor_type', 'tensor'],
  ['sparse_tensor_type', 'sparse'],
] as const

const CONTAINER_FIELDS = [
  ['sequence_type', 'sequence'],
  ['optional_type', 'optional'],
] as const

function tensorType(kind: 'tensor' | 'sparse', message: Message): ValueType {
  const shape = message.message('shape', false)
  const dtype = dtypeOf(message.int('elem_type'))
  if (!shape) return { kind, dtype }
  const dims = shape.messages('dim', false)
  const denotations = dims.map((dim) => dim.text('denotation'))
  return {
    kind,
    dtype,
    shape: dims.map(dimensionOf),
    ...(denotations.some((text) => text !== '') && { denotations }),
  }
}

/** The last of `dim_value` and `dim_param` wins, as in every oneof of protobuf. */
function dimensionOf(message: Message): Dimension {
  const value = message.int('dim_value')
  if (value !== undefined) return value
  return message.has('dim_param') ? message.text('dim_param') : null
}

function dtypeOf(code: number | bigint | undefined): Dtype | number {
  const number = Number(code ?? 0)
  return DTYPE_OF_CODE.get(number) ?? number
}

/** Nesting limit of types: each is two levels of messages, and readers accept a hundred levels. */
const MAX_NESTED_TYPES = 45

/**
 * Checks a type before anything is changed.
 *
 * @returns the bytes of a TypeProto
 * @throws TileworkError as `encodeValueType`
 */
export function checkValueType(type: ValueType): Uint8Array {
  return readInput('The type', () => encodeValueType(type))
}

/** Appends a TypeProto. @throws TileworkError as `encodeValueType` */
export function writeValueType(owner: Message, field: string, type: ValueType): void {
  owner.insertEncoded(field, encodeValueType(type))
}

/**
 * The bytes of a TypeProto.
 *
 * @param level - number of enclosing types
 * @throws TileworkError ERR_ARGUMENT for an invalid type, ERR_DTYPE for an unknown element type
 */
function encodeValueType(type: ValueType, level = 0): Uint8Array {
  if (level > MAX_NESTED_TYPES) {
    throw new TileworkError('ERR_ARGUMENT', `Types are nested too deeply; the limit is ${MAX_NESTED_TYPES}.`)
  }
  const writer = new WireWriter()
  const { denotation } = type ?? {}
  const denote = (): void => {
    if (denotation !== undefined)
      writer.text(TYPE.denotation, checkText('The denotation of a type', denotation))
  }
  const kind = encodeKind(type, level)
  if (kind && kind.number > TYPE.denotation) denote()
  if (kind) writer.message(kind.number, kind.content)
  if (!kind || kind.number < TYPE.denotation) denote()
  return writer.finish()
}

const TYPE = {
  tensor: 1,
  sequence: 4,
  map: 5,
  denotation: 6,
  opaque: 7,
  sparse: 8,
  optional: 9,
} as const

function encodeKind(type: ValueType, level: number): { number: number; content: WireWriter } | undefined {
  const writer = new WireWriter()
  switch (type?.kind) {
    case 'tensor':
    case 'sparse':
      encodeTensorType(writer, type)
      break
    case 'sequence':
    case 'optional':
      writer.bytes(1, encodeValueType(type.of, level + 1))
      break
    case 'map':
      writer.varint(1, codeOf(type.key)).bytes(2, encodeValueType(type.value, level + 1))
      break
    case 'opaque':
      writer.text(1, checkText('The domain of a type', type.domain))
      writer.text(2, checkText('The name of a type', type.name))
      break
    case 'none':
      return undefined
    default:
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${valueText(type)} is not a value type; its kind must be tensor, sparse, sequence, optional, map, opaque or none.`,
      )
  }
  return { number: TYPE[type.kind], content: writer }
}

function encodeTensorType(writer: WireWriter, type: ValueType & { kind: 'tensor' | 'sparse' }): void {
  writer.varint(1, codeOf(type.dtype))
  if (!type.shape) return
  const shape = new WireWriter()
  for (const [axis, extent] of (checkList('The shape of a type', type.shape) as Dimension[]).entries()) {
    const dim = new WireWriter()
    if (typeof extent === 'string') dim.text(2, checkText('A dimension', extent))
    else if (extent !== null) dim.varint(1, checkInt64('A dimension', extent))
    const denotation = type.denotations?.[axis] ?? ''
    if (denotation !== '') dim.text(3, checkText('The denotation of a dimension', denotation))
    shape.message(1, dim)
  }
  writer.message(2, shape)
}

function codeOf(dtype: Dtype | number): number {
  if (typeof dtype === 'number') return dtype
  return DTYPES[resolveDtype(dtype)].onnx
}

/** A type as text: `float32 [N, 3]`, `sequence of int64`; unknown parts are `?`. */
export function valueTypeText(type: ValueType): string {
  switch (type.kind) {
    case 'tensor':
    case 'sparse': {
      const shape = type.shape ? `[${type.shape.map((extent) => extent ?? '?').join(', ')}]` : '?'
      return `${type.kind === 'sparse' ? 'sparse ' : ''}${dtypeText(type.dtype)} ${shape}`
    }
    case 'sequence':
    case 'optional':
      return `${type.kind} of ${valueTypeText(type.of)}`
    case 'map':
      return `map of ${dtypeText(type.key)} to ${valueTypeText(type.value)}`
    case 'opaque':
      return [type.domain, type.name].filter((part) => part !== '').join('.')
    default:
      return '?'
  }
}

function dtypeText(dtype: Dtype | number): string {
  if (typeof dtype === 'string') return dtype
  return dtype === 0 ? '?' : `data_type ${dtype}`
}
