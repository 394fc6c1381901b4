/** Reads an operator record and its parameter block, in whatever form of the last years it has. */

import type { Spot } from '../location.js'
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
import type { Reading } from './file_bytes.js'
import type { RecordReader } from './record_reader.js'
import type { BlockRecord, OperatorRecord, TextRecord, VectorRecord } from './records.js'

export function* readOperator(
  reader: RecordReader,
  at: number,
  owner: Spot,
): Reading<OperatorRecord | undefined> {
  const values = yield* reader.struct('operator', at, owner.at('operator', at))
  if (!values) return undefined
  const schema = operatorByNumber(values.number)
  if (values.params === 0) {
    return { at, values, schema, block: undefined, params: schema ? defaultParams(schema) : {} }
  }
  const distance = at - values.params
  const spot = owner.at('params', values.params)
  if (!schema || schema.layout.byteLength === 0) {
    const block = yield* readOpaqueBlock(reader, spot, distance)
    return block && { at, values, schema, block, params: {} }
  }
  const read = yield* readBlock(reader, spot, formOf(schema, distance), schema)
  return read && { at, values, schema, ...read }
}

function* readOpaqueBlock(
  reader: RecordReader,
  spot: Spot,
  distance: number,
): Reading<BlockRecord | undefined> {
  const at = spot.offset
  const byteLength = opaqueLength(distance)
  if (!reader.file.admits(at, byteLength, 'parameter block', spot)) return undefined
  const view = yield* reader.file.read(at, byteLength)
  const opaque = new Uint8Array(view.buffer, view.byteOffset, byteLength).slice()
  return { at, byteLength, form: undefined, opaque, vectors: new Map(), texts: new Map() }
}

function* readBlock(
  reader: RecordReader,
  spot: Spot,
  form: BlockForm,
  schema: OperatorSchema,
): Reading<{ readonly block: BlockRecord; readonly params: Record<string, unknown> } | undefined> {
  const at = spot.offset
  if (!reader.file.admitsAligned(at, form.byteLength, 'parameter block', spot)) return undefined
  const numbers = decodeBlock(form, yield* reader.file.read(at, form.byteLength))
  const vectors = new Map<string, VectorRecord>()
  const texts = new Map<string, TextRecord>()
  const params = defaultParams(schema)
  for (const { name, field } of form.fields) {
    const isKnown = Object.hasOwn(params, name)
    if (field.kind === 'scalar') {
      if (isKnown) params[name] = numbers[name]
      continue
    }
    const value = yield* readPointed(reader, { name, field, numbers, spot })
    if (value === undefined) return undefined
    if (isVectorRecord(value)) vectors.set(name, value)
    if (isTextRecord(value)) texts.set(name, value)
    if (isKnown) params[name] = paramOf(field, value)
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

interface PointedField {
  readonly name: string
  readonly field: VectorField | StringField
  readonly numbers: Readonly<Record<string, number>>
  /** Of the block. */
  readonly spot: Spot
}

/** What an offset of a block leads to; undefined where it cannot be read. One that memory left there is not followed. */
function* readPointed(
  reader: RecordReader,
  { name, field, numbers, spot }: PointedField,
): Reading<null | VectorRecord | TextRecord | undefined> {
  const number = numbers[name]!
  if (number === 0 || isUninitialised(field, number, numbers)) return null
  const place = spot.at(name, number)
  if (field.kind === 'string') return yield* reader.text(number, place)
  return yield* reader.vector(number, field.type, place, { most: MAX_PARAMETER_ENTRIES })
}

function isVectorRecord(value: unknown): value is VectorRecord {
  return typeof value === 'object' && value !== null && 'entries' in value
}

function isTextRecord(value: unknown): value is TextRecord {
  return typeof value === 'object' && value !== null && 'bytesAt' in value
}

function paramOf(field: VectorField | StringField, value: null | VectorRecord | TextRecord): unknown {
  if (isTextRecord(value)) return value.text
  if (!isVectorRecord(value)) return value
  return field.kind === 'vector' && field.type === 'f32[4]' ? boxesOf(value.entries) : value.entries
}

/** Groups of four: x0, y0, x1, y1. */
export function boxesOf(entries: readonly number[]): number[][] {
  return Array.from({ length: entries.length / 4 }, (_, at) => entries.slice(4 * at, 4 * at + 4))
}

/** Every parameter of the current form with the value that a file means which lacks it. */
export function defaultParams({ defaults }: Pick<OperatorSchema, 'defaults'>): Record<string, unknown> {
  return { ...defaults }
}
