/** Encodes a node's operator as chunks: the vectors and texts of its parameters, the block, the operator record. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import type { BlockRecord, OperatorRecord } from '../decode/records.js'
import { type OperatorSchema, operatorByNumber } from '../operators.js'
import { type BlockForm, currentForm } from '../parameter_forms.js'
import { ALIGNMENT, FORMAT_NAME, STRUCT_LAYOUTS } from '../schema.js'
import { type Field, isUninitialised, readScalar, scalarTypeOf } from '../struct_layout.js'
import type { TmfileNode } from '../types.js'
import { type Chunk, type EncodeChunk, encodeField, offsetOf, type WriteMode } from './chunk.js'
import type { ChunkBuilder } from './chunk_builder.js'

interface OperatorContext {
  /** Names the node in errors. */
  readonly path: string
  readonly record: OperatorRecord | undefined
  readonly mode: WriteMode
}

type Params = Readonly<Record<string, unknown>>

export function encodeOperator(builder: ChunkBuilder, node: TmfileNode, context: OperatorContext): Chunk {
  const { path, mode } = context
  // A block of another operator does not apply to this one.
  const record = context.record?.values.number === node.operatorNumber ? context.record : undefined
  const schema = operatorByNumber(node.operatorNumber)
  checkName(node, schema, path)
  const block =
    schema && schema.layout.byteLength > 0
      ? encodeBlock(builder, node, schema, { path, record, mode })
      : encodeOpaqueBlock(builder, node, path, record?.block)
  const values = () => ({
    version: node.operatorVersion,
    number: node.operatorNumber,
    params: offsetOf(block),
  })
  const offset = context.record?.offset
  const original =
    offset === undefined ? undefined : { offset, byteLength: STRUCT_LAYOUTS.operator.byteLength }
  return builder.struct('operator', `${path}.operator`, values, { original })
}

function checkName(
  { operator, operatorNumber }: TmfileNode,
  schema: OperatorSchema | undefined,
  path: string,
): void {
  const expected = schema?.name ?? `operator ${operatorNumber}`
  if (operator === expected) return
  const message = `${path} has the operator ${JSON.stringify(operator)}; its operatorNumber ${operatorNumber} is ${JSON.stringify(expected)}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}

function encodeOpaqueBlock(
  builder: ChunkBuilder,
  { opaqueParams }: TmfileNode,
  path: string,
  record: BlockRecord | undefined,
): Chunk | undefined {
  if (!opaqueParams) return undefined
  const { byteLength } = opaqueParams
  const encode: EncodeChunk = (target) =>
    new Uint8Array(target.buffer, target.byteOffset, byteLength).set(opaqueParams)
  return builder.add({ path: `${path}.params`, byteLength, alignment: ALIGNMENT, original: record, encode })
}

function encodeBlock(
  builder: ChunkBuilder,
  node: TmfileNode,
  schema: OperatorSchema,
  { path, record, mode }: OperatorContext,
): Chunk | undefined {
  checkParamNames(node, schema, path)
  const params: Params = { ...schema.defaults, ...node.params }
  const block = record?.block
  if (record && !block && mode !== 'upgrade' && isDefault(params, schema)) return undefined
  const form = formToEncode(schema, params, record, mode)
  const { byteLength } = form
  const referenced = new Map<string, Chunk | undefined>()
  for (const { name, field } of form.fields) {
    if (field.kind === 'scalar') continue
    const reference = { path: `${path}.params.${name}`, name, block }
    referenced.set(name, encodeReferenced(builder, field, params[name], reference))
  }
  const encode: EncodeChunk = (target, original) => {
    for (const { name, field, offset } of form.fields) {
      const type = scalarTypeOf(field)
      const raw = byteLength === original.byteLength ? readScalar(original, offset, type) : 0
      const value = field.kind === 'scalar' ? (params[name] ?? raw) : referenced.get(name)?.offset
      const fieldTarget = { offset, type, path: `${path}.params.${name}` }
      encodeField(target, original, fieldTarget, valueToEncode(field, value, { raw, params, mode }))
    }
  }
  return builder.add({ path: `${path}.params`, byteLength, alignment: ALIGNMENT, original: block, encode })
}

function checkParamNames(node: TmfileNode, schema: OperatorSchema, path: string): void {
  const unknown = Object.keys(node.params).find((name) => !Object.hasOwn(schema.fields, name))
  if (unknown === undefined) return
  const allowed = Object.keys(schema.fields).join(', ')
  const message = `${path} has the unknown parameter ${valueText(unknown)}; ${schema.name} has: ${allowed}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path: `${path}.params` })
}

/** The number to store in a field: uninitialised bytes are kept only where every byte is kept. */
function valueToEncode(
  field: Field,
  value: unknown,
  { raw, params, mode }: { readonly raw: number; readonly params: Params; readonly mode: WriteMode },
): unknown {
  const isUnset = value === undefined
  const isGarbage = isUninitialised(field, isUnset ? raw : value, params)
  if (isUnset) return isGarbage && mode === 'exact' ? raw : 0
  // A vector that the caller has set is never garbage.
  return isGarbage && mode !== 'exact' && field.kind === 'scalar' ? 0 : value
}

interface Reference {
  readonly path: string
  readonly name: string
  readonly block: BlockRecord | undefined
}

/** Encodes a vector or text that a block refers to. */
function encodeReferenced(
  builder: ChunkBuilder,
  field: Field,
  value: unknown,
  { path, name, block }: Reference,
): Chunk | undefined {
  if (value === null || value === undefined) return undefined
  const refuse = (allowed: string): never => {
    const message = `${path} is ${valueText(value)}; it must be ${allowed} or null.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  }
  if (field.kind === 'string') {
    return typeof value === 'string' ? builder.text(value, path, block?.texts.get(name)) : refuse('a string')
  }
  if (!Array.isArray(value) || field.kind !== 'vector') return refuse('an array')
  const record = block?.vectors.get(name)
  if (field.type !== 'f32[4]') return builder.vector(value as number[], field.type, path, { record })
  return builder.vector((value as number[][]).flat(), field.type, path, { record, count: value.length })
}

/** An older form is kept as long as it can represent the parameters. */
function formToEncode(
  schema: OperatorSchema,
  params: Params,
  record: OperatorRecord | undefined,
  mode: WriteMode,
): BlockForm {
  const current = currentForm(schema)
  const form = record?.block?.form
  if (!form || form.isCurrent || mode === 'upgrade') return current
  const names = new Set(form.fields.map(({ name }) => name))
  const canRepresent = Object.entries(params).every(
    ([name, value]) => (names.has(name) && !form.currentValues) || isSame(value, record.params[name]),
  )
  return canRepresent ? form : current
}

function isDefault(params: Params, { defaults }: OperatorSchema): boolean {
  return Object.entries(defaults).every(([name, value]) => isSame(params[name], value))
}

function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return Object.is(one, other)
  return one.length === other.length && one.every((entry, index) => isSame(entry, other[index]))
}
