/** Types of values, as data: what a TypeProto says. */
import type { Dtype } from '../dtype/dtypes.js'
import type { Message } from '../formats/onnx/message.js'
import { DTYPE_OF_CODE } from '../formats/onnx/schema.js'

/** An extent: a number, a name for one that is not known yet, or null for one without a name. */
export type Dimension = number | bigint | string | null

/** The type of a value. A `shape` that is absent is of any rank; a `dtype` that is a number is a code that nobody knows. */
export type ValueType =
  | {
      readonly kind: 'tensor' | 'sparse'
      readonly dtype: Dtype | number
      readonly shape?: readonly Dimension[]
    }
  | { readonly kind: 'sequence' | 'optional'; readonly of: ValueType }
  | { readonly kind: 'map'; readonly key: Dtype | number; readonly value: ValueType }
  | { readonly kind: 'opaque'; readonly domain: string; readonly name: string }
  | { readonly kind: 'none' }

/** @param message - a TypeProto */
export function readValueType(message: Message | undefined): ValueType {
  if (!message) return { kind: 'none' }
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
  return { kind, dtype, ...(shape && { shape: shape.messages('dim').map(dimensionOf) }) }
}

/** Of a number and a name the last one is set, as of every choice of protobuf. */
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

/** For people: `float32 [N, 3]`, `sequence of int64`; a `?` stands for what is not known. */
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
