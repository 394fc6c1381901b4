/**
 * How the floats below 32 bits use their bits: 1 sign bit (none in e8m0), exponent, mantissa.
 * Sources: IEEE 754 binary16; the OCP 8-bit floating point specification (e4m3fn, e5m2); the ONNX notes on float8
 * and float4 (FNUZ kinds, e8m0, e2m1); bfloat16 is the upper half of binary32.
 */
import type { Dtype } from './dtypes.js'

/**
 * Which codes are special.
 * `ieee`: the largest exponent holds infinities and NaN. `fn`: only all ones is NaN. `fnuz`: only the code of
 * -0 is NaN, so there is no -0. `finite`: none. `scale`: an exponent alone, all ones is NaN, no zero, no sign.
 */
export type Specials = 'ieee' | 'fn' | 'fnuz' | 'finite' | 'scale'

export interface FloatFields {
  readonly bits: number
  readonly mantissaBits: number
  readonly bias: number
  readonly specials: Specials
}

export const FLOAT_FIELDS = {
  float16: { bits: 16, mantissaBits: 10, bias: 15, specials: 'ieee' },
  bfloat16: { bits: 16, mantissaBits: 7, bias: 127, specials: 'ieee' },
  float8_e4m3fn: { bits: 8, mantissaBits: 3, bias: 7, specials: 'fn' },
  float8_e4m3fnuz: { bits: 8, mantissaBits: 3, bias: 8, specials: 'fnuz' },
  float8_e5m2: { bits: 8, mantissaBits: 2, bias: 15, specials: 'ieee' },
  float8_e5m2fnuz: { bits: 8, mantissaBits: 2, bias: 16, specials: 'fnuz' },
  float8_e8m0fnu: { bits: 8, mantissaBits: 0, bias: 127, specials: 'scale' },
  float4_e2m1fn: { bits: 4, mantissaBits: 1, bias: 1, specials: 'finite' },
} as const satisfies Partial<Record<Dtype, FloatFields>>

/** A float type below 32 bits. */
export type NarrowFloat = keyof typeof FLOAT_FIELDS

/** True for a float type below 32 bits. */
export function isNarrowFloat(dtype: Dtype): dtype is NarrowFloat {
  return Object.hasOwn(FLOAT_FIELDS, dtype)
}
