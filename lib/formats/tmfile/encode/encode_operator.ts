/** The operator of a node as parts of a file: vectors and texts of the parameters, the block, the operator record. */
import { TileworkError } from '../../../errors.js'
import { defaultParams } from '../decode/read_operator.js'
import type { BlockRecord, OperatorRecord } from '../decode/records.js'
import type { TmfileNode } from '../model/types.js'
import { type OperatorSchema, operatorByNumber } from '../operators.js'
import { type BlockForm, currentForm } from '../parameter_forms.js'
import { ALIGNMENT, FORMAT_NAME, PLACED } from '../schema.js'
import { type Field, isUninitialised, readScalar, scalarTypeOf } from '../struct_layout.js'
import { type Fill, fillField, offsetOf, type Piece, type WriteMode } from './chunk.js'
import type { PieceList } from './chunk_builder.js'

interface OperatorContext {
  /** Names the node in errors. */
  readonly path: string
  readonly record: OperatorRecord | undefined
  readonly mode: WriteMode
}

type Params = Readonly<Record<string, unknown>>

export function layOutOperator(parts: PieceList, node: TmfileNode, context: OperatorContext): Piece {
  const { path, mode } = context
  // The record of another operator says nothing about this one.
  const record = context.record?.values.number === node.operatorNumber ? context.record : undefined
  const schema = operatorByNumber(node.operatorNumber)
  checkName(node, schema, path)
  const block =
    schema && schema.layout.byteLength > 0
      ? layOutBlock(parts, node, schema, { path, record, mode })
      : layOutOpaque(parts, node, path, record?.block)
  const values = () => ({
    version: node.operatorVersion,
    number: node.operatorNumber,
    params: offsetOf(block),
  })
  const at = context.record?.at
  const base = at === undefined ? undefined : { at, byteLength: PLACED.operator.byteLength }
  return parts.struct('operator', `${path}.operator`, values, { base })
}

function checkName(
  { operator, operatorNumber }: TmfileNode,
  schema: OperatorSchema | undefined,
  path: string,
): void {
  const expected = schema?.name ?? `operator ${operatorNumber}`
  if (operator === expected) return
  const message = `${path} has the operator ${JSON.stringify(operator)} and the number ${operatorNumber}, which is ${JSON.stringify(expected)}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}

function layOutOpaque(
  parts: PieceList,
  { opaqueParams }: TmfileNode,
  path: string,
  old: BlockRecord | undefined,
): Piece | undefined {
  if (!opaqueParams) return undefined
  const { byteLength } = opaqueParams
  const base = old && { at: old.at, byteLength: old.byteLength }
  const fill: Fill = (target) =>
    new Uint8Array(target.buffer, target.byteOffset, byteLength).set(opaqueParams)
  return parts.add({ path: `${path}.params`, byteLength, alignment: ALIGNMENT, base, fill })
}

function layOutBlock(
  parts: PieceList,
  node: TmfileNode,
  schema: OperatorSchema,
  { path, record, mode }: OperatorContext,
): Piece | undefined {
  const params: Params = { ...defaultParams(schema), ...node.params }
  const unknown = Object.keys(node.params).find((name) => !Object.hasOwn(schema.fields, name))
  if (unknown !== undefined) {
    const message = `${path}: ${unknown} is no parameter of ${schema.name}; known are ${Object.keys(schema.fields).join(', ')}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path: `${path}.params` })
  }
  if (!record?.block && record && mode !== 'upgrade' && isDefault(params, schema)) return undefined
  const old = record?.block
  const form = formToWrite(schema, params, record, mode)
  const pointed = new Map<string, Piece | undefined>()
  for (const { name, field } of form.fields) {
    if (field.kind === 'scalar') continue
    pointed.set(
      name,
      layOutPointed(parts, field, params[name], { path: `${path}.params.${name}`, name, old }),
    )
  }
  const fill: Fill = (target, base) => {
    for (const { name, field, position } of form.fields) {
      const place = { position, type: scalarTypeOf(field), path: `${path}.params.${name}` }
      const raw = form.byteLength === base.byteLength ? readScalar(base, position, place.type) : 0
      const value = field.kind === 'scalar' ? (params[name] ?? raw) : pointed.get(name)?.at
      fillField(target, base, place, writtenValue(field, value, { raw, params, mode }))
    }
  }
  const base = old && { at: old.at, byteLength: old.byteLength }
  return parts.add({ path: `${path}.params`, byteLength: form.byteLength, alignment: ALIGNMENT, base, fill })
}

/** What goes into a field: garbage stays only where every byte is to stay. */
function writtenValue(
  field: Field,
  value: unknown,
  { raw, params, mode }: { readonly raw: number; readonly params: Params; readonly mode: WriteMode },
): unknown {
  const isUnset = value === undefined
  const isGarbage = isUninitialised(field, isUnset ? raw : value, params)
  if (isUnset) return isGarbage && mode === 'exact' ? raw : 0
  // A vector that the caller has given is there on purpose.
  return isGarbage && mode !== 'exact' && field.kind === 'scalar' ? 0 : value
}

function layOutPointed(
  parts: PieceList,
  field: Field,
  value: unknown,
  {
    path,
    name,
    old,
  }: { readonly path: string; readonly name: string; readonly old: BlockRecord | undefined },
): Piece | undefined {
  if (value === null || value === undefined) return undefined
  if (field.kind === 'string') {
    if (typeof value === 'string') return parts.text(value, path, old?.texts.get(name))
    throw new TileworkError('ERR_ARGUMENT', `${path} must be a string or null.`, {
      format: FORMAT_NAME,
      path,
    })
  }
  if (!Array.isArray(value) || field.kind !== 'vector') {
    throw new TileworkError('ERR_ARGUMENT', `${path} must be an array or null.`, {
      format: FORMAT_NAME,
      path,
    })
  }
  const record = old?.vectors.get(name)
  if (field.type !== 'f32[4]') return parts.vector(value as number[], field.type, path, { record })
  return parts.vector((value as number[][]).flat(), field.type, path, { record, count: value.length })
}

/** An older form stays as long as it can say what the parameters are. */
function formToWrite(
  schema: OperatorSchema,
  params: Params,
  record: OperatorRecord | undefined,
  mode: WriteMode,
): BlockForm {
  const current = currentForm(schema)
  const form = record?.block?.form
  if (!form || form.isCurrent || mode === 'upgrade') return current
  const held = new Set(form.fields.map(({ name }) => name))
  const isHeld = Object.entries(params).every(
    ([name, value]) => (held.has(name) && !form.currentValues) || isSame(value, record.params[name]),
  )
  return isHeld ? form : current
}

function isDefault(params: Params, schema: OperatorSchema): boolean {
  return Object.entries(defaultParams(schema)).every(([name, value]) => isSame(params[name], value))
}

function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return Object.is(one, other)
  return one.length === other.length && one.every((entry, at) => isSame(entry, other[at]))
}
