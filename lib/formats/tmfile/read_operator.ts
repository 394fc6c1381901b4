/** Reads an operator record and its parameter block, in whatever form of the last years it has. */
import type { Place } from '../report.js'
import { type Field, isUninitialised, type PlacedField, readScalar, scalarTypeOf } from './fields.js'
import type { Reading } from './file_bytes.js'
import { type OperatorSchema, operatorByNumber } from './operators.js'
import { type BlockForm, formOf, opaqueLength } from './parameter_forms.js'
import type { RecordReader } from './record_reader.js'
import type { BlockRecord, OperatorRecord, TextRecord, VectorRecord } from './records.js'
import { MAX_PARAMETER_ENTRIES } from './schema.js'

export function* readOperator(
  reader: RecordReader,
  at: number,
  owner: string,
): Reading<OperatorRecord | undefined> {
  const place = { path: `${owner}.operator`, offset: at }
  const values = yield* reader.struct('operator', at, place)
  if (!values) return undefined
  const schema = operatorByNumber(values.number)
  if (values.params === 0) {
    return { at, values, schema, block: undefined, params: schema ? defaultParams(schema) : {} }
  }
  const distance = at - values.params
  if (!schema || schema.layout.byteLength === 0) {
    const block = yield* readOpaqueBlock(reader, values.params, distance, owner)
    return block && { at, values, schema, block, params: {} }
  }
  const form = formOf(schema, distance)
  const read = yield* readBlock(reader, values.params, form, { owner, schema })
  return read && { at, values, schema, ...read }
}

function* readOpaqueBlock(
  reader: RecordReader,
  at: number,
  distance: number,
  owner: string,
): Reading<BlockRecord | undefined> {
  const byteLength = opaqueLength(distance)
  const place = { path: `${owner}.params`, offset: at }
  const view = yield* reader.file.load(at, byteLength, `The parameter block of ${owner}`, place)
  if (!view) return undefined
  const opaque = new Uint8Array(view.buffer, view.byteOffset, byteLength).slice()
  return { at, byteLength, form: undefined, opaque, vectors: new Map(), texts: new Map() }
}

interface BlockOwner {
  readonly owner: string
  readonly schema: OperatorSchema
}

function* readBlock(
  reader: RecordReader,
  at: number,
  form: BlockForm,
  { owner, schema }: BlockOwner,
): Reading<{ readonly block: BlockRecord; readonly params: Record<string, unknown> } | undefined> {
  const place = { path: `${owner}.params`, offset: at }
  const loaded = yield* reader.file.loadAligned(at, form.byteLength, `The parameter block of ${owner}`, place)
  if (!loaded) return undefined
  const numbers = decodeBlock(form, loaded)
  const vectors = new Map<string, VectorRecord>()
  const texts = new Map<string, TextRecord>()
  const params = defaultParams(schema)
  for (const { name, field } of form.fields) {
    const number = numbers[name]!
    const value = yield* readField(reader, { name, field, number, numbers, owner })
    if (value === undefined) return undefined
    if (isVectorRecord(value)) vectors.set(name, value)
    if (isTextRecord(value)) texts.set(name, value)
    if (Object.hasOwn(params, name)) params[name] = paramOf(field, value)
  }
  Object.assign(params, form.currentValues?.(numbers))
  return { block: { at, byteLength: form.byteLength, form, vectors, texts }, params }
}

/** The numbers of a block as they stand, offsets of vectors and texts among them. */
export function decodeBlock(form: BlockForm, view: DataView): Record<string, number> {
  const numbers: Record<string, number> = {}
  for (const { name, field, position } of form.fields) {
    numbers[name] = readScalar(view, position, scalarTypeOf(field))
  }
  return numbers
}

interface FieldToRead {
  readonly name: string
  readonly field: Field
  readonly number: number
  readonly numbers: Readonly<Record<string, number>>
  readonly owner: string
}

/** The value of a field; undefined where it cannot be read. An offset that memory left there is not followed. */
function* readField(
  reader: RecordReader,
  { name, field, number, numbers, owner }: FieldToRead,
): Reading<number | null | VectorRecord | TextRecord | undefined> {
  if (field.kind === 'scalar') return number
  if (number === 0 || isUninitialised(field, number, numbers)) return null
  const place: Place = { path: `${owner}.params.${name}`, offset: number }
  if (field.kind === 'string') return yield* reader.text(number, place)
  return yield* reader.vector(number, field.type, place, { most: MAX_PARAMETER_ENTRIES })
}

function isVectorRecord(value: unknown): value is VectorRecord {
  return typeof value === 'object' && value !== null && 'entries' in value
}

function isTextRecord(value: unknown): value is TextRecord {
  return typeof value === 'object' && value !== null && 'bytesAt' in value
}

function paramOf(field: Field, value: number | null | VectorRecord | TextRecord): unknown {
  if (isTextRecord(value)) return value.text
  if (!isVectorRecord(value)) return value
  return field.kind === 'vector' && field.type === 'f32[4]' ? boxesOf(value.entries) : value.entries
}

/** Groups of four: x0, y0, x1, y1. */
export function boxesOf(entries: readonly number[]): number[][] {
  return Array.from({ length: entries.length / 4 }, (_, at) => entries.slice(4 * at, 4 * at + 4))
}

/** Every parameter of the current form with the value that a file means which lacks it. */
export function defaultParams({
  layout,
}: {
  readonly layout: OperatorSchema['layout']
}): Record<string, unknown> {
  return Object.fromEntries(layout.fields.map(({ name, field }: PlacedField) => [name, defaultOf(field)]))
}

function defaultOf(field: Field): number | null {
  return field.kind === 'scalar' ? (field.default ?? 0) : null
}
