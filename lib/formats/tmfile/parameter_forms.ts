/**
 * Finds the form of a parameter block. The file does not state it, not even in op_ver. The only evidence is the size of
 * the block, which is the distance to the operator record: every writer puts the block directly before it.
 */

import type { CurrentValues, OperatorSchema } from './operators.js'
import { MAX_OPAQUE_BLOCK_BYTES, WORD_BYTES } from './schema.js'
import { type FieldLayout, type Fields, structLayout } from './struct_layout.js'

export interface BlockForm {
  readonly byteLength: number
  /** Fields that the block holds completely. */
  readonly fields: readonly FieldLayout[]
  /** Whether this is the form that the current reference writer stores. */
  readonly isCurrent: boolean
  /** Converts fields that this form stores differently to the current ones. */
  readonly currentValues?: CurrentValues
}

const CURRENT_FORMS = new Map<OperatorSchema, BlockForm>()

export function currentForm(schema: OperatorSchema): BlockForm {
  const { byteLength, fields } = schema.layout
  const form = CURRENT_FORMS.get(schema) ?? { byteLength, fields, isCurrent: true }
  CURRENT_FORMS.set(schema, form)
  return form
}

/**
 * The form of a block `distance` bytes before its operator record: the current form, a known older form, or a truncated
 * current form. For any other distance the current form is assumed.
 */
export function formOf(schema: OperatorSchema, distance: number): BlockForm {
  const current = currentForm(schema)
  if (distance === current.byteLength) return current
  const older = schema.older.find(({ byteLength }) => byteLength === distance)
  const isShort = distance > 0 && distance < current.byteLength && distance % WORD_BYTES === 0
  if (!older && !isShort) return current
  const { currentValues } = older ?? {}
  const fields = fieldsWithin(older?.fields ?? schema.fields, distance)
  return { byteLength: distance, fields, isCurrent: false, ...(currentValues && { currentValues }) }
}

/** Size of a block with unknown fields; 0 where the distance cannot be the size of a block. */
export function opaqueLength(distance: number): number {
  return distance > 0 && distance <= MAX_OPAQUE_BLOCK_BYTES ? distance : 0
}

function fieldsWithin(fields: Fields, byteLength: number): FieldLayout[] {
  return structLayout(fields).fields.filter((field) => field.offset + field.byteLength <= byteLength)
}
