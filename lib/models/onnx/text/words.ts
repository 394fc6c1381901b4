/** Words of ONNX text: identifiers, quoted texts, names of types, lists. Source: onnx/defs/printer.cc and parser.h at f7546912. */
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { ATTRIBUTE_TYPES } from '../../../formats/onnx/schema.js'
import { elementName } from '../../../formats/onnx/text/element_names.js'

/** The name of an attribute's type. */
export function attributeTypeName(code: number | bigint): string {
  return (ATTRIBUTE_TYPES[Number(code)] ?? 'UNDEFINED').toLowerCase()
}

/** A name as it is where it is an identifier of the grammar, else quoted. */
export function identifier(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : quoted(name)
}

export function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}

export function list(open: string, separator: string, close: string, items: readonly string[]): string {
  return open + items.join(separator) + close
}

/** @param type - a TypeProto; an absent one has no text */
export function typeText(type: Message | undefined): string {
  if (!type) return ''
  for (const [field, text] of TYPE_TEXTS) {
    const inside = type.message(field)
    if (inside) return text(inside)
  }
  return ''
}

const TYPE_TEXTS: readonly (readonly [string, (type: Message) => string])[] = [
  ['tensor_type', tensorTypeText],
  ['sequence_type', (type) => `seq(${typeText(type.message('elem_type'))})`],
  [
    'map_type',
    (type) => `map(${elementName(type.int('key_type') ?? 0)}, ${typeText(type.message('value_type'))})`,
  ],
  ['optional_type', (type) => `optional(${typeText(type.message('elem_type'))})`],
  ['sparse_tensor_type', (type) => `sparse_tensor(${tensorTypeText(type)})`],
  ['opaque_type', opaqueText],
]

/** A tensor without a shape has `[]`, and a scalar has none. */
function tensorTypeText(type: Message): string {
  const shape = type.message('shape')
  const dims = shape?.messages('dim').map(dimensionText) ?? []
  const text = shape && dims.length === 0 ? '' : list('[', ',', ']', dims)
  return elementName(type.int('elem_type') ?? 0) + text
}

function dimensionText(dim: Message): string {
  const value = dim.int('dim_value')
  if (value !== undefined) return String(value)
  return dim.has('dim_param') ? identifier(dim.text('dim_param')) : '?'
}

function opaqueText(type: Message): string {
  const domain = type.text('domain')
  return `opaque(${domain === '' ? '' : `${domain},`}${type.text('name')})`
}
