/** Converts between TypeProto messages and `ValueType` objects. */

import { readInput } from '../../../caller_input.js'
import { DTYPES, type Dtype, resolveDtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { checkList } from '../protobuf/field_input.js'
import { Message } from '../protobuf/message.js'
import { DTYPE_OF_CODE } from '../schema.js'
import type { Dimension, ValueType } from './types.js'

/** @param message - a TypeProto */
export function readValueType(message: Message | undefined): ValueType {
  if (!message) return { kind: 'none' }
  const denotation = message.text('denotation')
  return { ...readKind(message), ...(denotation !== '' && { denotation }) }
}

function readKind(message: Message): ValueType {
  for (const [field, kind] of TENSOR_FIELDS) {
    const inside = message.message(field)
    if (inside) return tensorType(kind, inside)
  }
  for (const [field, kind] of CONTAINER_FIELDS) {
    const inside = message.message(field)
    if (inside) return { kind, of: readValueType(inside.message('elem_type')) }
  }
  const map = message.message('map_type')
  if (map)
    return { kind: 'map', key: dtypeOf(map.int('key_type')), value: readValueType(map.message('value_type')) }
  const opaque = message.message('opaque_type')
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
  const shape = message.message('shape')
  const dtype = dtypeOf(message.int('elem_type'))
  if (!shape) return { kind, dtype }
  const dims = shape.messages('dim')
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
  const [numbers, names] = ['dim_value', 'dim_param'].map((name) => message.fieldsOf(name))
  const order = message.fields
  const isName = order.indexOf(names!.at(-1)!) > order.indexOf(numbers!.at(-1)!)
  if (isName) return message.text('dim_param')
  return message.int('dim_value') ?? null
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
 * @throws TileworkError as `writeValueType`
 */
export function checkValueType(type: ValueType): void {
  readInput('The type', () => writeValueType(new Message('TypeProto'), type))
}

/**
 * Writes a type into an empty TypeProto.
 *
 * @param level - number of enclosing types
 * @throws TileworkError ERR_ARGUMENT for an invalid type, ERR_DTYPE for an unknown element type
 */
export function writeValueType(message: Message, type: ValueType, level = 0): void {
  if (level > MAX_NESTED_TYPES) {
    throw new TileworkError('ERR_ARGUMENT', `Types are nested too deeply; the limit is ${MAX_NESTED_TYPES}.`)
  }
  switch (type?.kind) {
    case 'tensor':
    case 'sparse':
      writeTensorType(message.insert(type.kind === 'tensor' ? 'tensor_type' : 'sparse_tensor_type'), type)
      break
    case 'sequence':
    case 'optional': {
      const inside = message.insert(type.kind === 'sequence' ? 'sequence_type' : 'optional_type')
      writeValueType(inside.insert('elem_type'), type.of, level + 1)
      break
    }
    case 'map': {
      const inside = message.insert('map_type')
      inside.setInt('key_type', codeOf(type.key))
      writeValueType(inside.insert('value_type'), type.value, level + 1)
      break
    }
    case 'opaque': {
      const inside = message.insert('opaque_type')
      inside.setText('domain', type.domain)
      inside.setText('name', type.name)
      break
    }
    case 'none':
      break
    default:
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${valueText(type)} is not a value type; its kind must be tensor, sparse, sequence, optional, map, opaque or none.`,
      )
  }
  if (type.denotation !== undefined) message.setText('denotation', type.denotation)
}

function writeTensorType(message: Message, type: ValueType & { kind: 'tensor' | 'sparse' }): void {
  message.setInt('elem_type', codeOf(type.dtype))
  if (!type.shape) return
  const shape = message.insert('shape')
  checkList('The shape of a type', type.shape)
  for (const [axis, extent] of type.shape.entries()) {
    const dim = shape.insert('dim')
    if (typeof extent === 'string') dim.setText('dim_param', extent)
    else if (extent !== null) dim.setInt('dim_value', extent)
    const denotation = type.denotations?.[axis] ?? ''
    if (denotation !== '') dim.setText('denotation', denotation)
  }
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
