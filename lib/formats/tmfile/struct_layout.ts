/**
 * C structs as data: one list of fields gives the offsets, the size, decoding, encoding and the TypeScript type of the
 * values. Each field is aligned to its own size, and the struct size is a multiple of its widest field, as in C.
 */

/** Fixed-size fields. `offset` is a u32 file offset; 0 means "not set". */
export type ScalarType = 'u8' | 'u16' | 'u32' | 'i32' | 'f32' | 'offset'

/** Element types of the vectors that a struct refers to by offset: a count, followed by the elements. */
export type VectorType = 'i32' | 'f32' | 'f32[4]'

/** When the reference writer leaves a field uninitialised, so that the file contains arbitrary memory. */
export type Uninitialised =
  | { readonly kind: 'always' }
  | { readonly kind: 'when'; readonly field: string; readonly is: number }
  | { readonly kind: 'unless'; readonly field: string; readonly is: number }
  /** Values outside the range are uninitialised memory. */
  | { readonly kind: 'outside'; readonly min: number; readonly max: number }

interface FieldOptions {
  /** Value to assume where an older, shorter form of the struct lacks the field. */
  readonly default?: number
  /** Name of the list of valid values in `enums.ts`. */
  readonly values?: string
  readonly uninitialised?: Uninitialised
}

export interface ScalarField extends FieldOptions {
  readonly kind: 'scalar'
  readonly type: ScalarType
}

export interface VectorField extends FieldOptions {
  readonly kind: 'vector'
  readonly type: VectorType
  /** False where the reference reads the vector without checking that it is set. */
  readonly isOptional: boolean
}

export interface StringField extends FieldOptions {
  readonly kind: 'string'
}

export type Field = ScalarField | VectorField | StringField
export type Fields = Readonly<Record<string, Field>>

/** JavaScript type of a field's value; null for a vector or string that is not set. */
export type ValueOf<F extends Field> = F extends ScalarField
  ? number
  : F extends StringField
    ? string | null
    : F extends { readonly type: 'f32[4]' }
      ? readonly (readonly number[])[] | null
      : readonly number[] | null

export type ValuesOf<F extends Fields> = { -readonly [K in keyof F]: ValueOf<F[K]> }

export const u8 = (options: FieldOptions = {}) => ({ kind: 'scalar', type: 'u8', ...options }) as const
export const u16 = () => ({ kind: 'scalar', type: 'u16' }) as const
export const u32 = (options: FieldOptions = {}) => ({ kind: 'scalar', type: 'u32', ...options }) as const
export const i32 = (options: FieldOptions = {}) => ({ kind: 'scalar', type: 'i32', ...options }) as const
export const f32 = (options: FieldOptions = {}) => ({ kind: 'scalar', type: 'f32', ...options }) as const
export const fileOffset = () => ({ kind: 'scalar', type: 'offset' }) as const
export const text = () => ({ kind: 'string' }) as const

/** A vector that may be absent. */
export const vector = <const T extends VectorType>(type: T, options: FieldOptions = {}) =>
  ({ kind: 'vector', type, isOptional: true, ...options }) as const
/** A vector that the reference reads without checking that it is set. */
export const mandatoryVector = <const T extends VectorType>(type: T) =>
  ({ kind: 'vector', type, isOptional: false }) as const

export const ALWAYS: Uninitialised = { kind: 'always' }
export const when = (field: string, is: number): Uninitialised => ({ kind: 'when', field, is })
export const unless = (field: string, is: number): Uninitialised => ({ kind: 'unless', field, is })
export const outside = (min: number, max: number): Uninitialised => ({ kind: 'outside', min, max })

const SCALAR_BYTES = { u8: 1, u16: 2, u32: 4, i32: 4, f32: 4, offset: 4 } as const

export const ELEMENT_BYTES = { i32: 4, f32: 4, 'f32[4]': 16 } as const satisfies Record<VectorType, number>

export interface FieldLayout {
  readonly name: string
  readonly field: Field
  readonly offset: number
  readonly byteLength: number
}

export interface StructLayout {
  readonly fields: readonly FieldLayout[]
  readonly byteLength: number
}

/** Type of the bytes in the struct: vectors and strings are stored elsewhere, and the struct holds their file offset. */
export function scalarTypeOf(field: Field): ScalarType {
  return field.kind === 'scalar' ? field.type : 'offset'
}

export function structLayout(fields: Fields): StructLayout {
  let end = 0
  let alignment = 1
  const layouts = Object.entries(fields).map(([name, field]) => {
    const byteLength = SCALAR_BYTES[scalarTypeOf(field)]
    alignment = Math.max(alignment, byteLength)
    const offset = Math.ceil(end / byteLength) * byteLength
    end = offset + byteLength
    return { name, field, offset, byteLength }
  })
  return { fields: layouts, byteLength: Math.ceil(end / alignment) * alignment }
}

export function readScalar(view: DataView, offset: number, type: ScalarType): number {
  switch (type) {
    case 'u8':
      return view.getUint8(offset)
    case 'u16':
      return view.getUint16(offset, true)
    case 'i32':
      return view.getInt32(offset, true)
    case 'f32':
      return view.getFloat32(offset, true)
    default:
      return view.getUint32(offset, true)
  }
}

/** Does not write where the bytes decode to the value already, so that the payload bits of a NaN survive a rewrite. */
export function writeScalar(view: DataView, offset: number, type: ScalarType, value: number): void {
  if (Object.is(readScalar(view, offset, type), value)) return
  switch (type) {
    case 'u8':
      view.setUint8(offset, value)
      break
    case 'u16':
      view.setUint16(offset, value, true)
      break
    case 'i32':
      view.setInt32(offset, value, true)
      break
    case 'f32':
      view.setFloat32(offset, value, true)
      break
    default:
      view.setUint32(offset, value, true)
  }
}

/** Whether the reference writer leaves this field uninitialised in a struct with these values. */
export function isUninitialised({ uninitialised }: Field, value: unknown, values: object): boolean {
  const numbers = values as Readonly<Record<string, unknown>>
  switch (uninitialised?.kind) {
    case 'always':
      return true
    case 'when':
      return numbers[uninitialised.field] === uninitialised.is
    case 'unless':
      return numbers[uninitialised.field] !== uninitialised.is
    case 'outside':
      return typeof value === 'number' && (value < uninitialised.min || value > uninitialised.max)
    default:
      return false
  }
}
