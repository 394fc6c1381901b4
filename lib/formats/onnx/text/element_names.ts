/** Names of element types in ONNX text. Source: onnx/defs/parser.h at f7546912. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../schema.js'

/** Element types whose names differ from those of this library. */
const ELEMENT_NAMES: Readonly<Partial<Record<Dtype, string>>> = {
  float32: 'float',
  float64: 'double',
  float8_e4m3fn: 'float8e4m3fn',
  float8_e4m3fnuz: 'float8e4m3fnuz',
  float8_e5m2: 'float8e5m2',
  float8_e5m2fnuz: 'float8e5m2fnuz',
  float8_e8m0fnu: 'float8e8m0',
  float6_e2m3fn: 'float6e2m3',
  float6_e3m2fn: 'float6e3m2',
  float4_e2m1fn: 'float4e2m1',
}

const CODES: ReadonlyMap<string, number> = new Map(
  [...DTYPE_OF_CODE].map(([code, dtype]) => [ELEMENT_NAMES[dtype] ?? dtype, code]),
)

/** The name of a `data_type`. */
export function elementName(code: number | bigint): string {
  const dtype = DTYPE_OF_CODE.get(Number(code))
  return dtype === undefined ? 'undefined' : (ELEMENT_NAMES[dtype] ?? dtype)
}

/** The `data_type` of a name. */
export function codeOfElementName(name: string): number | undefined {
  return CODES.get(name)
}
