/**
 * Every code of every type up to 16 bits: as it is decoded, one by one and together, and encoded again (without
 * saturation, which has no infinity). And the names of the types that other formats have.
 */
import { describe, expect, it } from 'vitest'
import { decodeAll, decodeCodes, decodeElement } from '../../lib/dtype/decode.js'
import { DTYPES, type Dtype, isNarrowFloat } from '../../lib/dtype/dtypes.js'
import { encodeAll } from '../../lib/dtype/encode.js'
import { packedByteLength } from '../../lib/dtype/packed_codes.js'

const NARROW = (Object.keys(DTYPES) as Dtype[]).filter(
  (name) => DTYPES[name].bits > 0 && DTYPES[name].bits <= 16,
)

/** All codes of a type in ascending order, packed. */
function allCodes(dtype: Dtype): { bytes: Uint8Array; count: number } {
  const { bits } = DTYPES[dtype]
  const count = 2 ** bits
  if (bits === 16)
    return { bytes: new Uint8Array(Uint16Array.from({ length: count }, (_, i) => i).buffer), count }
  if (bits === 8) return { bytes: Uint8Array.from({ length: count }, (_, i) => i), count }
  const bytes = new Uint8Array((count * bits) / 8)
  for (let code = 0; code < count; code++) {
    const at = code * bits
    const shifted = code << (at & 7)
    bytes[at >> 3]! |= shifted
    if (shifted > 0xff) bytes[(at >> 3) + 1]! |= shifted >> 8
  }
  return { bytes, count }
}

describe.each(NARROW)('%s', (dtype) => {
  const { bytes, count } = allCodes(dtype)
  const values = Array.from({ length: count }, (_, i) => decodeElement(dtype, bytes, i))

  it('decodes a single element as in an array', () => {
    expect(packedByteLength(dtype, count)).toBe(bytes.byteLength)
    const together = Array.from<number | bigint>(decodeAll(dtype, bytes, count))
    // In an array a bool is its byte, so that a 2 in a file is visible; a single element is true.
    expect(dtype === 'bool' ? together.map((byte) => byte !== 0) : together).toEqual(values)
  })

  it('every value encodes to its code or to an equivalent one', () => {
    const again = encodeAll(dtype, values, { saturate: false })
    for (let i = 0; i < count; i++) {
      const value = decodeElement(dtype, again, i)
      if (!Object.is(value, values[i])) expect.fail(`code ${i} is ${values[i]} and comes back as ${value}`)
    }
    const isOneToOne = !isNarrowFloat(dtype) && dtype !== 'bool'
    if (isOneToOne) expect(again).toEqual(bytes)
  })

  it('returns its codes unchanged', () => {
    const hasCodes = isNarrowFloat(dtype) || DTYPES[dtype].bits < 8
    if (!hasCodes) return
    expect(Array.from(decodeCodes(dtype, bytes, count))).toEqual(Array.from({ length: count }, (_, i) => i))
  })
})

describe('only NaN has more than one code', () => {
  it.each(NARROW.filter(isNarrowFloat))('%s', (dtype) => {
    const { bytes, count } = allCodes(dtype)
    const again = encodeAll(dtype, decodeAll(dtype, bytes, count), { saturate: false })
    const codes = decodeCodes(dtype, bytes, count)
    const codesAgain = decodeCodes(dtype, again, count)
    for (let i = 0; i < count; i++) {
      if (codes[i] === codesAgain[i]) continue
      if (!Number.isNaN(decodeElement(dtype, bytes, i)))
        expect.fail(`code ${codes[i]} became ${codesAgain[i]}`)
    }
  })
})

describe('types in files', () => {
  it.each([
    [
      'numpy, stored natively',
      'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128',
    ],
    [
      'safetensors',
      'bool uint8 int8 int16 uint16 float16 bfloat16 int32 uint32 float32 complex64 float64 int64 uint64 ' +
        'float8_e5m2 float8_e4m3fn float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz float4_e2m1fn',
    ],
    ['ONNX', 'float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float4_e2m1fn int4 uint4 int2 uint2'],
  ])('%s', (_, names) => {
    for (const name of names.split(' ')) expect(Object.hasOwn(DTYPES, name), name).toBe(true)
  })
})
