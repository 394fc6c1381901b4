/** The dtypes as records: DTYPES by name, numeric limits derived from the bits, and lookups by a format's code. */
import { TileworkError } from '../errors.js'
import { expectedText } from '../nearest_names.js'
import { valueText } from '../value_text.js'
import { DTYPE_TABLE } from './dtype_table.js'

/**
 * Which bit patterns of a float are special.
 *
 * - `ieee`: the largest exponent encodes infinities and NaN
 * - `fn`: only all ones is NaN
 * - `fnuz`: the bit pattern of -0 is the only NaN, so there is no -0
 * - `finite`: none
 * - `scale`: only an exponent; all ones is NaN; no zero, no sign
 */
export type Specials = 'ieee' | 'fn' | 'fnuz' | 'finite' | 'scale'

export type DtypeKind = 'float' | 'int' | 'uint' | 'bool' | 'complex' | 'string'

/** The bit fields of a float: 1 sign bit (none in e8m0), exponent, mantissa. Of a complex type: the fields of each half. */
export interface FloatFields {
  readonly bits: number
  readonly mantissaBits: number
  /** Subtracted from a stored exponent. */
  readonly bias: number
  readonly specials: Specials
}

/** The range of a numeric type; of a complex type, the range of each half. */
export interface NumberLimits {
  /** Largest finite value; a bigint for 64-bit integers. */
  readonly max: number | bigint
  /** Smallest finite value. */
  readonly min: number | bigint
  /** Smallest value above 0; for floats the smallest subnormal. */
  readonly minPositive: number
  /** Smallest float of full precision; 1 for integers. */
  readonly minNormal: number
  readonly hasInfinity: boolean
  readonly hasNaN: boolean
  readonly hasNegativeZero: boolean
}

/** A dtype: bits, range, and its names and codes in file formats. The field of a format is absent where it lacks the dtype. */
export interface DtypeInfo {
  readonly name: Dtype
  /** Bits of one element in storage; 0 for `string`, whose elements have no fixed size. */
  readonly bits: number
  readonly kind: DtypeKind
  /** For floats and complex numbers. */
  readonly fields?: FloatFields
  /** Range of values. Absent for `string`. */
  readonly limits?: NumberLimits
  readonly shortName: string
  /** TensorProto.DataType of ONNX. */
  readonly onnx: number
  /** Code in BTF, TFRT's tensor file. */
  readonly btf?: number
  /** Data type of a tensor in a tmfile, Tengine's model file. */
  readonly tmfile?: number
  /** Letter and item size in numpy's type strings, without the byte order. */
  readonly numpy?: string
  /** Name in the Python package ml_dtypes. */
  readonly mlDtypes?: string
  readonly safetensors?: string
  /** DLDataTypeCode of DLPack. */
  readonly dlpack?: number
  /** Further names that are accepted, in lower case; `shortName` is the first of them. */
  readonly aliases: readonly string[]
}

type Row = (typeof DTYPE_TABLE)[number]

/** Canonical name of a dtype. Results always use this name. */
export type Dtype = Row[0]

type LowerCaseAlias = Exclude<Row[4] | Row[11][number], Dtype>

/** Alias of a dtype, for example `f32` or `half`; upper case is accepted too. */
export type DtypeAlias = LowerCaseAlias | Uppercase<Dtype | LowerCaseAlias>

/** The dtype names that functions accept. */
export type DtypeName = Dtype | DtypeAlias

type RowNamed<Name, R = Row> = R extends Row ? (Name extends R[0] | R[4] | R[11][number] ? R : never) : never

/** The canonical dtype of an accepted name: `float16` for `half` and for `F16`. */
export type CanonicalDtype<Name extends DtypeName> = Name extends Dtype ? Name : RowNamed<Lowercase<Name>>[0]

/** Canonical names of the dtypes that safetensors supports. */
export type SafetensorsDtype = Extract<Row, { readonly 9: string }>[0]

/** A float type below 32 bits. */
export type NarrowFloat = Extract<Row, readonly [string, 4 | 6 | 8 | 16, 'float', ...unknown[]]>[0]

/** All dtypes by name. */
export const DTYPES = Object.fromEntries(DTYPE_TABLE.map((row) => [row[0], infoOf(row)])) as {
  readonly [name in Dtype]: DtypeInfo
}

function infoOf(row: Row): DtypeInfo {
  const [name, bits, kind, float, shortName, onnx, btf, tmfile, numpy, safetensors, dlpack, aliases] = row
  // A complex number is two floats of half the bits.
  const fields = float && { bits: kind === 'complex' ? bits / 2 : bits, ...floatOf(float) }
  const limits = fields ? floatLimits(fields) : kind === 'string' ? undefined : integerLimits(kind, bits)
  const isOfMlDtypes = numpy === null && kind !== 'string'
  return {
    name,
    bits,
    kind,
    ...(fields && { fields }),
    ...(limits && { limits }),
    shortName,
    onnx,
    ...(btf !== null && { btf }),
    ...(tmfile !== null && { tmfile }),
    ...(numpy !== null && { numpy }),
    ...(isOfMlDtypes && { mlDtypes: name }),
    ...(safetensors !== null && { safetensors }),
    ...(dlpack !== null && { dlpack }),
    aliases: shortName === name ? aliases : [shortName, ...aliases],
  }
}

function floatOf([mantissaBits, bias, specials]: NonNullable<Row[3]>): Omit<FloatFields, 'bits'> {
  return { mantissaBits, bias, specials }
}

function floatLimits({ bits, mantissaBits, bias, specials }: FloatFields): NumberLimits {
  const hasSign = specials !== 'scale'
  const exponents = 2 ** (bits - (hasSign ? 1 : 0) - mantissaBits)
  // `ieee` and `scale` reserve the largest exponent for special values, `fn` only its last mantissa.
  const isTopReserved = specials === 'ieee' || specials === 'scale'
  const top = exponents - (isTopReserved ? 2 : 1) - bias
  const unit = 2 ** -mantissaBits
  const max = (2 - (specials === 'fn' ? 2 : 1) * unit) * 2 ** top
  const smallest = hasSign ? 1 - bias : -bias
  return {
    max,
    min: hasSign ? -max : 2 ** smallest,
    minPositive: unit * 2 ** smallest,
    minNormal: 2 ** smallest,
    hasInfinity: specials === 'ieee',
    hasNaN: specials !== 'finite',
    hasNegativeZero: hasSign && specials !== 'fnuz',
  }
}

function integerLimits(kind: DtypeKind, bits: number): NumberLimits {
  const numbers = kind === 'bool' ? 1 : bits
  const max = 2n ** BigInt(kind === 'int' ? bits - 1 : numbers) - 1n
  const min = kind === 'int' ? -max - 1n : 0n
  const own = bits === 64 ? { max, min } : { max: Number(max), min: Number(min) }
  return { ...own, minPositive: 1, minNormal: 1, hasInfinity: false, hasNaN: false, hasNegativeZero: false }
}

/** True when `name` is the canonical name of a dtype. */
export function isDtypeName(name: unknown): name is Dtype {
  return typeof name === 'string' && Object.hasOwn(DTYPES, name)
}

const BY_NAME: ReadonlyMap<string, Dtype> = new Map(
  Object.values(DTYPES).flatMap(({ name, aliases }) => [name, ...aliases].map((alias) => [alias, name])),
)

/**
 * The dtype with this name or alias, in lower or upper case.
 *
 * @throws TileworkError ERR_DTYPE with the nearest names
 */
export function resolveDtype(name: unknown): Dtype {
  if (isDtypeName(name)) return name
  const dtype = typeof name === 'string' ? BY_NAME.get(name.toLowerCase()) : undefined
  if (dtype !== undefined) return dtype
  throw new TileworkError(
    'ERR_DTYPE',
    `unknown dtype ${valueText(name)}${expectedText(name, Object.keys(DTYPES))}`,
  )
}

/** True for a float type below 32 bits. */
export function isNarrowFloat(dtype: Dtype): dtype is NarrowFloat {
  const { bits, kind } = DTYPES[dtype]
  return kind === 'float' && bits < 32
}

/** Whether single elements can be moved: elements of 4, 8 or more bits. Others are copied in runs only. */
export function isMovable(dtype: Dtype): boolean {
  const { bits } = DTYPES[dtype]
  return bits === 4 || bits >= 8
}

/** The bit fields of a narrow float. */
export function fieldsOf(dtype: NarrowFloat): FloatFields {
  return DTYPES[dtype].fields!
}

/** The dtypes of a format, by the format's name or code. */
export function dtypesBy<Key extends 'onnx' | 'btf' | 'tmfile' | 'numpy' | 'safetensors'>(
  format: Key,
): ReadonlyMap<NonNullable<DtypeInfo[Key]>, Dtype> {
  return new Map(
    Object.values(DTYPES).flatMap((info) => {
      const code = info[format]
      return code === undefined ? [] : [[code, info.name] as const]
    }),
  )
}
