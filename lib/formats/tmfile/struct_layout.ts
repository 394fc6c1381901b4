/**
 * Fields of C structs as data: from one list of fields come positions, size, decoding, encoding, and the TypeScript
 * type of the values. Every field lies at a multiple of its own size, and a struct ends at a multiple of its widest.
 */

/** Fixed-size fields. `offset` is a u32 that counts from byte 0 of the file; 0 is "not set". */
export type ScalarType = 'u8' | 'u16' | 'u32' | 'i32' | 'f32' | 'offset'

/** Elements of the vectors that hang on a struct: an offset to a count and so many elements. */
export type VectorType = 'i32' | 'f32' | 'f32[4]'

/** When a writer of the reference leaves a field to whatever memory held. */
export type Uninitialised =
  | { readonly kind: 'always' }
  | { readonly kind: 'when'; readonly field: string; readonly is: number }
  | { readonly kind: 'unless'; readonly field: string; readonly is: number }
  /** Values outside the range are what memory held. */
  | { readonly kind: 'outside'; readonly least: number; readonly most: number }

interface FieldOptions {
  /** Value of a field that an older, shorter form of the struct lacks. */
  readonly default?: number
  /** Values that the format knows; see `enums.ts`. */
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
  /** False where the reference reads the vector without looking whether it is there. */
  readonly isOptional: boolean
}

export interface StringField extends FieldOptions {
  readonly kind: 'string'
}

export type Field = ScalarField | VectorField | StringField
export type Fields = Readonly<Record<string, Field>>

/** What a field's value is in JavaScript; a vector or string that is not set is null. */
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
export const offset = () => ({ kind: 'scalar', type: 'offset' }) as const
export const text = () => ({ kind: 'string' }) as const

/** A vector that may be absent. */
export const vector = <const T extends VectorType>(type: T, options: FieldOptions = {}) =>
  ({ kind: 'vector', type, isOptional: true, ...options }) as const
/** A vector that the reference follows without a look. */
export const mandatoryVector = <const T extends VectorType>(type: T) =>
  ({ kind: 'vector', type, isOptional: false }) as const

export const ALWAYS: Uninitialised = { kind: 'always' }
export const when = (field: string, is: number): Uninitialised => ({ kind: 'when', field, is })
export const unless = (field: string, is: number): Uninitialised => ({ kind: 'unless', field, is })
export const outside = (least: number, most: number): Uninitialised => ({ kind: 'outside', least, most })

const SCALAR_BYTES = { u8: 1, u16: 2, u32: 4, i32: 4, f32: 4, offset: 4 } as const

/** Bytes of one element of a vector. */
export const ELEMENT_BYTES = { i32: 4, f32: 4, 'f32[4]': 16 } as const satisfies Record<VectorType, number>

/** A field and where it lies. */
export interface PlacedField {
  readonly name: string
  readonly field: Field
  readonly position: number
  readonly byteLength: number
}

export interface StructLayout {
  readonly fields: readonly PlacedField[]
  readonly byteLength: number
}

/** Vectors and strings lie elsewhere; in the struct is their offset. */
export function scalarTypeOf(field: Field): ScalarType {
  return field.kind === 'scalar' ? field.type : 'offset'
}

export function layoutOf(fields: Fields): StructLayout {
  let position = 0
  let widest = 1
  const placed = Object.entries(fields).map(([name, field]) => {
    const byteLength = SCALAR_BYTES[scalarTypeOf(field)]
    widest = Math.max(widest, byteLength)
    position = Math.ceil(position / byteLength) * byteLength
    const here = { name, field, position, byteLength }
    position += byteLength
    return here
  })
  return { fields: placed, byteLength: Math.ceil(position / widest) * widest }
}

export function readScalar(view: DataView, position: number, type: ScalarType): number {
  switch (type) {
    case 'u8':
      return view.getUint8(position)
    case 'u16':
      return view.getUint16(position, true)
    case 'i32':
      return view.getInt32(position, true)
    case 'f32':
      return view.getFloat32(position, true)
    default:
      return view.getUint32(position, true)
  }
}

/**
 * Writes a value unless the bytes there already mean it: the bits of a NaN, which a number does not keep, and every
 * padding byte survive a rewrite.
 */
export function writeScalar(view: DataView, position: number, type: ScalarType, value: number): void {
  if (Object.is(readScalar(view, position, type), value)) return
  switch (type) {
    case 'u8':
      view.setUint8(position, value)
      break
    case 'u16':
      view.setUint16(position, value, true)
      break
    case 'i32':
      view.setInt32(position, value, true)
      break
    case 'f32':
      view.setFloat32(position, value, true)
      break
    default:
      view.setUint32(position, value, true)
  }
}

/** True when the writer of the reference leaves this field of these values to chance. */
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
      return typeof value === 'number' && (value < uninitialised.least || value > uninitialised.most)
    default:
      return false
  }
}
