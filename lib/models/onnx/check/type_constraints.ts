/** Compares types of a node's inputs and outputs with the types that its operator allows, and with each other. */
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import type { ValueType } from '../document/types.js'
import { valueTypeText } from '../document/value_type.js'
import type { Known, NodeView } from '../infer/node_view.js'
import { type Parameter, parameterAt, type Schema, typeKey } from '../schemas/schemas.js'

/** What is wrong, as texts that follow the path of the node and its operator. */
export function* typeProblems(
  node: NodeView,
  outputs: readonly (Known | undefined)[],
  schema: Schema,
): Generator<string> {
  /** The first type of each variable, by name. */
  const bound = new Map<string, ValueType>()
  for (const at of node.inputs.keys())
    yield* parameterProblems(`input ${at}`, parameterAt(schema.inputs, at), node.type(at), bound)
  for (const at of node.outputs.keys())
    yield* parameterProblems(`output ${at}`, parameterAt(schema.outputs, at), outputs[at]?.type, bound)
}

function* parameterProblems(
  what: string,
  parameter: Parameter | undefined,
  type: ValueType | undefined,
  bound: Map<string, ValueType>,
): Generator<string> {
  const key = type && typeKeyOf(type)
  if (!parameter || !type || key === undefined) return
  if (!parameter.types.has(key)) {
    yield `does not take the type ${elementText(type)} for ${what}`
    return
  }
  const { variable, isHomogeneous } = parameter
  if (variable === undefined || !isHomogeneous) return
  const first = bound.get(variable)
  if (!first) bound.set(variable, type)
  else if (typeKeyOf(first) !== key)
    yield `has the type ${elementText(type)} for ${what}, where ${variable} is ${elementText(first)}`
}

/** The type without shapes, as messages write it. */
export function elementText(type: ValueType): string {
  return valueTypeText(withoutShape(type)).replace(/ [?]$/, '')
}

function withoutShape(type: ValueType): ValueType {
  if (type.kind === 'sequence' || type.kind === 'optional')
    return { kind: type.kind, of: withoutShape(type.of) }
  if (type.kind === 'map') return { kind: 'map', key: type.key, value: withoutShape(type.value) }
  return type.kind === 'tensor' || type.kind === 'sparse' ? { kind: type.kind, dtype: type.dtype } : type
}

/** Key of a type in a schema, one that no schema has for a type that none allows; undefined for an open type. */
export function typeKeyOf(type: ValueType): string | undefined {
  switch (type.kind) {
    case 'tensor':
      return codeOf(type.dtype) === 0 ? undefined : typeKey(codeOf(type.dtype))
    case 'sequence':
    case 'optional': {
      const inner = typeKeyOf(type.of)
      return inner === undefined
        ? undefined
        : (CONTAINED.get(type.kind)!.get(inner[0]!) ?? '?') + inner.replace(/^[A-Z]/, '')
    }
    case 'map': {
      const { key, value } = type
      return value.kind === 'tensor' ? typeKey(codeOf(key), 'M') + typeKey(codeOf(value.dtype)) : '?'
    }
    case 'none':
      return undefined
    default:
      return '?'
  }
}

/** Marks of containers, by the first letter of the key of what they contain. */
const CONTAINED: ReadonlyMap<string, { get(letter: string): string | undefined }> = new Map([
  [
    'sequence',
    { get: (letter: string) => (letter === 'M' ? 'Q' : /[0-9a-z]/.test(letter) ? 'S' : undefined) },
  ],
  [
    'optional',
    { get: (letter: string) => (letter === 'S' ? 'P' : /[0-9a-z]/.test(letter) ? 'O' : undefined) },
  ],
])

function codeOf(dtype: Dtype | number): number {
  return typeof dtype === 'number' ? dtype : (DTYPES[dtype].onnx ?? 0)
}
