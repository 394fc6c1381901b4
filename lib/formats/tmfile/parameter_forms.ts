/**
 * Which form a parameter block has. Nothing in a file says so, not even op_ver: the only witness is the size on disk,
 * which is the distance to the operator record, because every writer puts the block right before it.
 */

import type { OperatorSchema } from './operators.js'
import { MAX_OPAQUE_BLOCK_BYTES, WORD_BYTES } from './schema.js'
import { type Fields, layoutOf, type PlacedField } from './struct_layout.js'

export interface BlockForm {
  readonly byteLength: number
  /** Fields that lie wholly in the block. */
  readonly fields: readonly PlacedField[]
  /** True for the form of the current writer. */
  readonly isCurrent: boolean
  /** Values of current fields that this form says in another way. */
  readonly currentValues?: (values: Readonly<Record<string, number>>) => Readonly<Record<string, unknown>>
}

const CURRENT_FORMS = new Map<OperatorSchema, BlockForm>()

export function currentForm(schema: OperatorSchema): BlockForm {
  const { byteLength, fields } = schema.layout
  const form = CURRENT_FORMS.get(schema) ?? { byteLength, fields, isCurrent: true }
  CURRENT_FORMS.set(schema, form)
  return form
}

/**
 * The form of a block that lies `distance` bytes before its operator record: the current or a known older one, or as
 * much of the current one as there is room for. A distance that fits neither says nothing; the current form is taken.
 */
export function formOf(schema: OperatorSchema, distance: number): BlockForm {
  const current = currentForm(schema)
  if (distance === current.byteLength) return current
  const older = schema.older.find(({ byteLength }) => byteLength === distance)
  const isShort = distance > 0 && distance < current.byteLength && distance % WORD_BYTES === 0
  if (!older && !isShort) return current
  const { currentValues } = older ?? {}
  const fields = placedWithin(older?.fields ?? schema.fields, distance)
  return { byteLength: distance, fields, isCurrent: false, ...(currentValues && { currentValues }) }
}

/** Bytes of a block whose fields nobody knows; 0 where the distance cannot be one. */
export function opaqueLength(distance: number): number {
  return distance > 0 && distance <= MAX_OPAQUE_BLOCK_BYTES ? distance : 0
}

function placedWithin(fields: Fields, byteLength: number): PlacedField[] {
  return layoutOf(fields).fields.filter((field) => field.position + field.byteLength <= byteLength)
}
