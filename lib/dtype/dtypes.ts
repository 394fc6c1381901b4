/**
 * The element types as data. Names are numpy's and ml_dtypes'.
 * Sub-byte elements are packed low bits first (ONNX IR, OpenVINO).
 */

export interface DtypeInfo {
  readonly name: string
  /** Bits of one element in storage; 0 for `string`, whose elements have no fixed size. */
  readonly bits: number
  readonly kind: 'float' | 'int' | 'uint' | 'bool' | 'complex' | 'string'
}

/** One line a type. */
export const DTYPES = {
  float32: { name: 'float32', bits: 32, kind: 'float' },
  float64: { name: 'float64', bits: 64, kind: 'float' },
  float16: { name: 'float16', bits: 16, kind: 'float' },
  bfloat16: { name: 'bfloat16', bits: 16, kind: 'float' },
  int8: { name: 'int8', bits: 8, kind: 'int' },
  int16: { name: 'int16', bits: 16, kind: 'int' },
  int32: { name: 'int32', bits: 32, kind: 'int' },
  int64: { name: 'int64', bits: 64, kind: 'int' },
  uint8: { name: 'uint8', bits: 8, kind: 'uint' },
  uint16: { name: 'uint16', bits: 16, kind: 'uint' },
  uint32: { name: 'uint32', bits: 32, kind: 'uint' },
  uint64: { name: 'uint64', bits: 64, kind: 'uint' },
  bool: { name: 'bool', bits: 8, kind: 'bool' },
  complex64: { name: 'complex64', bits: 64, kind: 'complex' },
  complex128: { name: 'complex128', bits: 128, kind: 'complex' },
  string: { name: 'string', bits: 0, kind: 'string' },
  float8_e4m3fn: { name: 'float8_e4m3fn', bits: 8, kind: 'float' },
  float8_e4m3fnuz: { name: 'float8_e4m3fnuz', bits: 8, kind: 'float' },
  float8_e5m2: { name: 'float8_e5m2', bits: 8, kind: 'float' },
  float8_e5m2fnuz: { name: 'float8_e5m2fnuz', bits: 8, kind: 'float' },
  float8_e8m0fnu: { name: 'float8_e8m0fnu', bits: 8, kind: 'float' },
  float4_e2m1fn: { name: 'float4_e2m1fn', bits: 4, kind: 'float' },
  int4: { name: 'int4', bits: 4, kind: 'int' },
  uint4: { name: 'uint4', bits: 4, kind: 'uint' },
  int2: { name: 'int2', bits: 2, kind: 'int' },
  uint2: { name: 'uint2', bits: 2, kind: 'uint' },
} as const satisfies Record<string, DtypeInfo>

/** Name of an element type. */
export type Dtype = keyof typeof DTYPES

/** True when `name` is an element type. */
export function isDtype(name: unknown): name is Dtype {
  return typeof name === 'string' && Object.hasOwn(DTYPES, name)
}
