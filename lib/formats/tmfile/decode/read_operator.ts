/** Reads an operator record and its parameter block, in any of the block's current and older forms. */
import type { Location } from '../location.js'
import { type OperatorSchema, operatorByNumber } from '../operators.js'
import { type BlockForm, formOf, opaqueLength } from '../parameter_forms.js'
import { MAX_PARAMETER_ENTRIES } from '../schema.js'
import {
  isUninitialised,
  readScalar,
  type StringField,
  scalarTypeOf,
  type VectorField,
} from '../struct_layout.js'
import type { RecordReader } from './record_reader.js'
import type { BlockRecord, OperatorRecord, TextRecord, VectorRecord } from './records.js'

export function readOperator(
  reader: RecordReader,
  offset: number,
  owner: Location,
): OperatorRecord | undefined {
  const values = reader.struct('operator', offset, owner.child('operator', offset))
  if (!values) return undefined
  const schema = operatorByNumber(values.number)
  if (values.params === 0) {
    return { offset, values, schema, block: undefined, params: { ...schema?.defaults } }
  }
  const distance = offset - values.params
  const location = owner.child('params', values.params)
  if (!schema || schema.layout.byteLength === 0) {
    const block = readOpaqueBlock(reader, location, distance)
    return block && { offset, values, schema, block, params: {} }
  }
  const decoded = readBlock(reader, location, formOf(schema, distance), schema)
  return decoded && { offset, values, schema, ...decoded }
}

function readOpaqueBlock(
  reader: RecordReader,
  location: Location,
  distance: number,
): BlockRecord | undefined {
  const { offset } = location
  const byteLength = opaqueLength(distance)
  if (!reader.file.checkRange(offset, byteLength, 'parameter block', location)) return undefined
  const view = reader.file.view(offset, byteLength)
  const opaque = new Uint8Array(view.buffer, view.byteOffset, byteLength).slice()
  return { offset, byteLength, form: undefined, opaque, vectors: new Map(), texts: new Map() }
}

function readBlock(
  reader: RecordReader,
  location: Location,
  form: BlockForm,
  schema: OperatorSchema,
): { readonly block: BlockRecord; readonly params: Record<string, unknown> } | undefined {
  const { offset } = location
  const { byteLength } = form
  if (!reader.file.checkAlignedRange(offset, byteLength, 'parameter block', location)) return undefined
  const numbers = decodeBlock(form, reader.file.view(offset, byteLength))
  const vectors = new Map<string, VectorRecord>()
  const texts = new Map<string, TextRecord>()
  const params: Record<string, unknown> = { ...schema.defaults }
  for (const { name, field } of form.fields) {
    const isCurrentParam = Object.hasOwn(params, name)
    if (field.kind === 'scalar') {
      if (isCurrentParam) params[name] = numbers[name]
      continue
    }
    const record = readReferenced(reader, { name, field, numbers, block: location })
    if (record === undefined) return undefined
    if (isVectorRecord(record)) vectors.set(name, record)
    if (isTextRecord(record)) texts.set(name, record)
    if (isCurrentParam) params[name] = paramOf(field, record)
  }
  Object.assign(params, form.currentValues?.(numbers, params))
  return { block: { offset, byteLength, form, vectors, texts }, params }
}

/** The raw numbers of a block, including the offsets of vectors and texts. */
function decodeBlock(form: BlockForm, view: DataView): Record<string, number> {
  const numbers: Record<string, number> = {}
  for (const { name, field, offset } of form.fields) {
    numbers[name] = readScalar(view, offset, scalarTypeOf(field))
  }
  return numbers
}

interface ReferenceField {
  readonly name: string
  readonly field: VectorField | StringField
  readonly numbers: Readonly<Record<string, number>>
  /** Location of the block. */
  readonly block: Location
}

/** The record at an offset of a block; undefined where it cannot be read. An uninitialised offset is not followed. */
function readReferenced(
  reader: RecordReader,
  { name, field, numbers, block }: ReferenceField,
): null | VectorRecord | TextRecord | undefined {
  const offset = numbers[name]!
  if (offset === 0 || isUninitialised(field, offset, numbers)) return null
  const location = block.child(name, offset)
  if (field.kind === 'string') return reader.text(offset, location)
  return reader.vector(offset, field.type, location, { maxCount: MAX_PARAMETER_ENTRIES })
}

function isVectorRecord(value: unknown): value is VectorRecord {
  return typeof value === 'object' && value !== null && 'entries' in value
}

function isTextRecord(value: unknown): value is TextRecord {
  return typeof value === 'object' && value !== null && 'bytesOffset' in value
}

function paramOf(field: VectorField | StringField, record: null | VectorRecord | TextRecord): unknown {
  if (isTextRecord(record)) return record.text
  if (!isVectorRecord(record)) return record
  return field.kind === 'vector' && field.type === 'f32[4]' ? boxesOf(record.entries) : record.entries
}

/** Groups of four numbers: x0, y0, x1, y1. */
function boxesOf(entries: readonly number[]): number[][] {
  return Array.from({ length: entries.length / 4 }, (_, index) => entries.slice(4 * index, 4 * index + 4))
}
