/**
 * The element types as data: what their bits mean, and what each file format calls them. Names are numpy's, and
 * ml_dtypes' where numpy has no such type. Sub-byte elements are packed low bits first (ONNX IR, OpenVINO).
 *
 * Sources. Bits of floats: IEEE 754; the OCP 8-bit floating point specification (e4m3fn, e5m2); the ONNX notes on float8
 * and float4 (FNUZ kinds, e8m0, e2m1); bfloat16 is the upper half of binary32. Codes: `onnx.proto` (TensorProto.DataType),
 * TFRT's `btf.h`, Tengine's `tm2_format.h`, numpy's array interface, `safetensors/src/tensor.rs`. Short names are those of
 * LLVM's MLIR in lower case.
 */

/**
 * Which codes of a float are special.
 * `ieee`: the largest exponent holds infinities and NaN. `fn`: only all ones is NaN. `fnuz`: only the code of -0 is NaN,
 * so there is no -0. `finite`: none. `scale`: an exponent alone, all ones is NaN, no zero, no sign.
 */
export type Specials = 'ieee' | 'fn' | 'fnuz' | 'finite' | 'scale'

export type DtypeKind = 'float' | 'int' | 'uint' | 'bool' | 'complex' | 'string'

/** How a float uses its bits: 1 sign bit (none in e8m0), exponent, mantissa. Of a complex number, either half. */
export interface FloatFields {
  readonly bits: number
  readonly mantissaBits: number
  /** A stored exponent stands for that many less. */
  readonly bias: number
  readonly specials: Specials
}

/** The values that a type with numbers can have; of a complex type, those of either half. */
export interface NumberLimits {
  /** Largest finite value; a bigint for 64-bit integers. */
  readonly max: number | bigint
  /** Least finite value. */
  readonly min: number | bigint
  /** Smallest value above 0, of floats the smallest subnormal. */
  readonly minPositive: number
  /** Smallest float of full precision; 1 for integers. */
  readonly minNormal: number
  readonly hasInfinity: boolean
  readonly hasNaN: boolean
  readonly hasNegativeZero: boolean
}

/** What there is to know about an element type. A name or code is absent where the format has none for it. */
export interface DtypeInfo {
  readonly name: Dtype
  /** Bits of one element in storage; 0 for `string`, whose elements have no fixed size. */
  readonly bits: number
  readonly kind: DtypeKind
  /** For floats and complex numbers. */
  readonly fields?: FloatFields
  /** Absent for `string`. */
  readonly limits?: NumberLimits
  readonly shortName: string
  /** TensorProto.DataType of ONNX. */
  readonly onnx: number
  /** Code in BTF, TFRT's tensor file. */
  readonly btf?: number
  /** Data type of a tensor in a tmfile, Tengine's model file. */
  readonly tmfile?: number
  /** Letter and bytes in numpy's type strings, without the byte order. */
  readonly numpy?: string
  /** Name in the Python package ml_dtypes. */
  readonly mlDtypes?: string
  readonly safetensors?: string
}

// biome-ignore format: a table is read by its columns.
const TABLE = [
  // name               bits  kind       mantissa bias specials short         ONNX  BTF tmfile numpy  safetensors
  ['float32',            32, 'float',   [23,  127, 'ieee'],   'f32',           1,    4,    0, 'f4',  'F32'],
  ['float64',            64, 'float',   [52, 1023, 'ieee'],   'f64',          11,    5, null, 'f8',  'F64'],
  ['float16',            16, 'float',   [10,   15, 'ieee'],   'f16',          10, null,    1, 'f2',  'F16'],
  ['bfloat16',           16, 'float',   [ 7,  127, 'ieee'],   'bf16',         16, null, null, null,  'BF16'],
  ['int8',                8, 'int',     null,                 'i8',            3,    0,    2, 'i1',  'I8'],
  ['int16',              16, 'int',     null,                 'i16',           5,    1,    5, 'i2',  'I16'],
  ['int32',              32, 'int',     null,                 'i32',           6,    2,    4, 'i4',  'I32'],
  ['int64',              64, 'int',     null,                 'i64',           7,    3, null, 'i8',  'I64'],
  ['uint8',               8, 'uint',    null,                 'u8',            2,    6,    3, 'u1',  'U8'],
  ['uint16',             16, 'uint',    null,                 'u16',           4,    7, null, 'u2',  'U16'],
  ['uint32',             32, 'uint',    null,                 'u32',          12,    8, null, 'u4',  'U32'],
  ['uint64',             64, 'uint',    null,                 'u64',          13,    9, null, 'u8',  'U64'],
  ['bool',                8, 'bool',    null,                 'bool',          9, null, null, 'b1',  'BOOL'],
  ['complex64',          64, 'complex', [23,  127, 'ieee'],   'c64',          14, null, null, 'c8',  'C64'],
  ['complex128',        128, 'complex', [52, 1023, 'ieee'],   'c128',         15, null, null, 'c16', null],
  ['string',              0, 'string',  null,                 'str',           8, null, null, null,  null],
  ['float8_e4m3fn',       8, 'float',   [ 3,    7, 'fn'],     'f8e4m3fn',     17, null, null, null,  'F8_E4M3'],
  ['float8_e4m3fnuz',     8, 'float',   [ 3,    8, 'fnuz'],   'f8e4m3fnuz',   18, null, null, null,  'F8_E4M3FNUZ'],
  ['float8_e5m2',         8, 'float',   [ 2,   15, 'ieee'],   'f8e5m2',       19, null, null, null,  'F8_E5M2'],
  ['float8_e5m2fnuz',     8, 'float',   [ 2,   16, 'fnuz'],   'f8e5m2fnuz',   20, null, null, null,  'F8_E5M2FNUZ'],
  ['float8_e8m0fnu',      8, 'float',   [ 0,  127, 'scale'],  'f8e8m0fnu',    24, null, null, null,  'F8_E8M0'],
  ['float4_e2m1fn',       4, 'float',   [ 1,    1, 'finite'], 'f4e2m1fn',     23, null, null, null,  'F4'],
  ['int4',                4, 'int',     null,                 'i4',           22, null, null, null,  null],
  ['uint4',               4, 'uint',    null,                 'u4',           21, null, null, null,  null],
  ['int2',                2, 'int',     null,                 'i2',           26, null, null, null,  null],
  ['uint2',               2, 'uint',    null,                 'u2',           25, null, null, null,  null],
] as const

type Row = (typeof TABLE)[number]

/** Name of an element type. */
export type Dtype = Row[0]

/** A float type below 32 bits. */
export type NarrowFloat = Extract<Row, readonly [string, 4 | 8 | 16, 'float', ...unknown[]]>[0]

/** All element types by name. */
export const DTYPES = Object.fromEntries(TABLE.map((row) => [row[0], infoOf(row)])) as {
  readonly [name in Dtype]: DtypeInfo
}

function infoOf([name, bits, kind, float, shortName, onnx, btf, tmfile, numpy, safetensors]: Row): DtypeInfo {
  // A complex number is two floats of half its bits.
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
  }
}

function floatOf([mantissaBits, bias, specials]: NonNullable<Row[3]>): Omit<FloatFields, 'bits'> {
  return { mantissaBits, bias, specials }
}

function floatLimits({ bits, mantissaBits, bias, specials }: FloatFields): NumberLimits {
  const hasSign = specials !== 'scale'
  const exponents = 2 ** (bits - (hasSign ? 1 : 0) - mantissaBits)
  // `ieee` and `scale` keep the largest exponent for special values, `fn` only its last mantissa.
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

/** True when `name` is an element type. */
export function isDtype(name: unknown): name is Dtype {
  return typeof name === 'string' && Object.hasOwn(DTYPES, name)
}

/** True for a float type below 32 bits. */
export function isNarrowFloat(dtype: Dtype): dtype is NarrowFloat {
  const { bits, kind } = DTYPES[dtype]
  return kind === 'float' && bits < 32
}

/** How a narrow float uses its bits. */
export function fieldsOf(dtype: NarrowFloat): FloatFields {
  return DTYPES[dtype].fields!
}

/** All types that a format has a name or code for, by that name or code. */
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
