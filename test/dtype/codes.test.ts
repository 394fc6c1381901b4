/** Every code of every float below 32 bits, and the rounding rules, against tables written by hand. */
import { describe, expect, it } from 'vitest'
import { decodeAll, decodeCodes, decodeElement, decodeFloatCode } from '../../lib/dtype/decode.js'
import { DTYPES, type Dtype, isNarrowFloat, type NarrowFloat } from '../../lib/dtype/dtypes.js'
import { encodeAll, encodeElement, encodeFloatCode } from '../../lib/dtype/encode.js'
import { packedByteLength } from '../../lib/dtype/packed_codes.js'

const NARROW = (Object.keys(DTYPES) as Dtype[]).filter(isNarrowFloat)
/** Rounding of float8_e8m0fnu; the other types always round to nearest. */
const NEAREST = { round: 'nearest' } as const
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

describe('codes of ONNX and OCP tables', () => {
  it.each<[NarrowFloat, number, number]>([
    ['float16', 0x7bff, 65504],
    ['float16', 0x0400, 2 ** -14],
    ['float16', 0x0001, 2 ** -24],
    ['float16', 0xfc00, Number.NEGATIVE_INFINITY],
    ['float16', 0x7e01, Number.NaN],
    ['float16', 0x8000, -0],
    ['bfloat16', 0x7f7f, 3.3895313892515355e38],
    ['bfloat16', 0x3f80, 1],
    ['bfloat16', 0x0001, 2 ** -133],
    ['bfloat16', 0x7f80, Number.POSITIVE_INFINITY],
    ['float8_e4m3fn', 0x7e, 448],
    ['float8_e4m3fn', 0x7f, Number.NaN],
    ['float8_e4m3fn', 0xff, Number.NaN],
    ['float8_e4m3fn', 0x08, 2 ** -6],
    ['float8_e4m3fn', 0x01, 2 ** -9],
    ['float8_e4m3fn', 0x80, -0],
    ['float8_e4m3fnuz', 0x7f, 240],
    ['float8_e4m3fnuz', 0x80, Number.NaN],
    ['float8_e4m3fnuz', 0x01, 2 ** -10],
    ['float8_e5m2', 0x7b, 57344],
    ['float8_e5m2', 0x7c, Number.POSITIVE_INFINITY],
    ['float8_e5m2', 0x7d, Number.NaN],
    ['float8_e5m2', 0x01, 2 ** -16],
    ['float8_e5m2fnuz', 0x7f, 57344],
    ['float8_e5m2fnuz', 0x80, Number.NaN],
    ['float8_e5m2fnuz', 0x01, 2 ** -17],
    ['float8_e8m0fnu', 0x00, 2 ** -127],
    ['float8_e8m0fnu', 0x7f, 1],
    ['float8_e8m0fnu', 0xfe, 2 ** 127],
    ['float8_e8m0fnu', 0xff, Number.NaN],
    ['float6_e2m3fn', 0x1f, 7.5],
    ['float6_e2m3fn', 0x08, 1],
    ['float6_e2m3fn', 0x01, 0.125],
    ['float6_e2m3fn', 0x20, -0],
    ['float6_e3m2fn', 0x1f, 28],
    ['float6_e3m2fn', 0x04, 0.25],
    ['float6_e3m2fn', 0x01, 0.0625],
    ['float6_e3m2fn', 0x20, -0],
    ['float4_e2m1fn', 0x8, -0],
  ])('%s %i is %d', (dtype, bits, value) => {
    expect(decodeFloatCode(dtype, bits)).toBe(value)
  })

  it('float4_e2m1fn has eight magnitudes', () => {
    const values = Array.from({ length: 16 }, (_, bits) => decodeFloatCode('float4_e2m1fn', bits))
    expect(values).toEqual([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6])
  })

  it('bfloat16 is the upper half of float32, all 65536 codes', () => {
    const view = new DataView(new ArrayBuffer(4))
    for (let bits = 0; bits < 65536; bits++) {
      view.setUint32(0, bits * 65536)
      if (!Object.is(decodeFloatCode('bfloat16', bits), view.getFloat32(0))) expect.fail(`code ${bits}`)
    }
  })

  it('float8_e5m2 is the upper byte of float16', () => {
    for (let bits = 0; bits < 256; bits++) {
      const upper = decodeFloatCode('float16', bits * 256)
      if (!Object.is(decodeFloatCode('float8_e5m2', bits), upper)) expect.fail(`code ${bits}`)
    }
  })
})

describe.each(NARROW)('%s', (dtype) => {
  const count = 2 ** DTYPES[dtype].bits
  const values = Array.from({ length: count }, (_, bits) => decodeFloatCode(dtype, bits))
  /** Codes of distinct finite values, ascending. */
  const finite = values
    .map((value, bits) => ({ value, bits }))
    .filter(({ value }) => Number.isFinite(value) && !Object.is(value, -0))
    .sort((one, other) => one.value - other.value)

  it('is exact in float32, and every number encodes to its own code', () => {
    for (const [bits, value] of values.entries()) {
      if (!Object.is(Math.fround(value), value)) expect.fail(`code ${bits} is not a float32`)
      if (!Number.isFinite(value)) continue
      if (encodeFloatCode(dtype, value) !== bits) expect.fail(`code ${bits} comes back as another`)
    }
  })

  it('rounds to nearest, ties to the even code', () => {
    for (let i = 0; i + 1 < finite.length; i++) {
      const [low, high] = [finite[i]!, finite[i + 1]!]
      const middle = (low.value + high.value) / 2
      const up = dtype === 'float8_e8m0fnu' || high.bits % 2 === 0
      const tie = decodeFloatCode(dtype, encodeFloatCode(dtype, middle, NEAREST))
      if (tie !== (up ? high.value : low.value)) expect.fail(`${middle} became ${tie}`)
      const step = (high.value - low.value) / 1024
      const below = decodeFloatCode(dtype, encodeFloatCode(dtype, middle - step, NEAREST)) + 0
      const above = decodeFloatCode(dtype, encodeFloatCode(dtype, middle + step, NEAREST)) + 0
      if (below !== low.value || above !== high.value) expect.fail(`around ${middle}: ${below}, ${above}`)
    }
  })

  it('keeps NaN where the type has one', () => {
    const stored = decodeFloatCode(dtype, encodeFloatCode(dtype, Number.NaN))
    const without: Partial<Record<NarrowFloat, number>> = {
      float6_e2m3fn: -0,
      float6_e3m2fn: -0,
      float4_e2m1fn: 6,
    }
    expect(stored).toBe(without[dtype] ?? Number.NaN)
  })
})

describe('beyond the largest value', () => {
  it.each<[NarrowFloat, number, number, number]>([
    // dtype, largest value in range, code above it with saturation, and without
    ['float16', 65519.99, 0x7c00, 0x7c00],
    ['bfloat16', 3.396e38, 0x7f80, 0x7f80],
    ['float8_e4m3fn', 464, 0x7e, 0x7f],
    ['float8_e4m3fnuz', 247.99, 0x7f, 0x80],
    ['float8_e5m2', 61439.99, 0x7b, 0x7c],
    ['float8_e5m2fnuz', 61439.99, 0x7f, 0x80],
    ['float8_e8m0fnu', 2 ** 127, 0xfe, 0xff],
    ['float4_e2m1fn', 6.99, 0x7, 0x7],
  ])('%s', (dtype, last, saturated, beyond) => {
    expect(Number.isFinite(decodeFloatCode(dtype, encodeFloatCode(dtype, last, { saturate: false })))).toBe(
      true,
    )
    for (const value of [last * 1.01, 1e300, Number.POSITIVE_INFINITY]) {
      expect(encodeFloatCode(dtype, value)).toBe(saturated)
      expect(encodeFloatCode(dtype, value, { saturate: false })).toBe(beyond)
    }
  })

  it('keeps the sign where the type has one', () => {
    expect(encodeFloatCode('float8_e4m3fn', -1e9)).toBe(0xfe)
    expect(encodeFloatCode('float8_e4m3fn', -1e9, { saturate: false })).toBe(0xff)
    expect(encodeFloatCode('float8_e5m2', Number.NEGATIVE_INFINITY, { saturate: false })).toBe(0xfc)
    expect(encodeFloatCode('float8_e4m3fnuz', -1e-9)).toBe(0)
    expect(encodeFloatCode('float8_e4m3fnuz', -0)).toBe(0)
    expect(encodeFloatCode('float8_e4m3fn', -1e-9)).toBe(0x80)
    expect(encodeFloatCode('float8_e8m0fnu', -2)).toBe(0xff)
    expect(encodeFloatCode('float8_e8m0fnu', 0)).toBe(0)
    expect(encodeFloatCode('float8_e8m0fnu', 0, { saturate: false })).toBe(0xff)
  })

  it.each([
    ['up', 128, 128, 127],
    ['nearest', 127, 128, 127],
    ['down', 127, 127, 127],
  ] as const)('rounds powers of two %s', (round, quarter, half, whole) => {
    const codes = [1.25, 1.5, 1].map((value) => encodeFloatCode('float8_e8m0fnu', value, { round }))
    expect(codes).toEqual([quarter, half, whole])
  })

  it('rounds once: a float64 just above a tie is not rounded to float32 first', () => {
    expect(encodeFloatCode('bfloat16', 1 + 2 ** -8 + 2 ** -30)).toBe(0x3f81)
    expect(encodeFloatCode('float16', 1 + 2 ** -11 + 2 ** -40)).toBe(0x3c01)
  })
})

describe('packed storage', () => {
  const SAMPLES: Partial<Record<Dtype, readonly (number | bigint | boolean)[]>> = {
    float32: [1.5, -0, Math.fround(0.1)],
    float64: [0.1, Number.MAX_VALUE, 5e-324],
    int8: [-128, 127, -1],
    int16: [-32768, 32767, 300],
    int32: [-(2 ** 31), 2 ** 31 - 1, 7],
    int64: [-(2n ** 63n), 2n ** 63n - 1n, -1n],
    uint8: [0, 255, 128],
    uint16: [0, 65535, 256],
    uint32: [0, 2 ** 32 - 1, 2 ** 31],
    uint64: [0n, 2n ** 64n - 1n, 2n ** 63n],
    bool: [true, false, true],
    int4: [-8, 7, -1],
    uint4: [15, 0, 9],
    int2: [-2, 1, -1],
    uint2: [3, 0, 2],
    float4_e2m1fn: [6, -0.5, 1.5],
    float16: [65504, 2 ** -24, -1],
  }

  it.each(Object.entries(SAMPLES) as [Dtype, (number | bigint | boolean)[]][])(
    '%s round-trips element by element, as an array, and at an odd address',
    (dtype, values) => {
      const bytes = encodeAll(dtype, values)
      expect(bytes.length).toBe(packedByteLength(dtype, values.length))
      expect(values.map((_, i) => decodeElement(dtype, bytes, i))).toEqual(values)
      const shifted = new Uint8Array(bytes.length + 1)
      shifted.set(bytes, 1)
      for (const view of [bytes, shifted.subarray(1)]) {
        const all = Array.from<number | bigint>(decodeAll(dtype, view, values.length))
        expect(all).toEqual(values.map((value) => (typeof value === 'boolean' ? Number(value) : value)))
      }
    },
  )

  it('packs sub-byte elements from the low bits', () => {
    expect([...encodeAll('uint4', [1, 2, 3])]).toEqual([0x21, 0x03])
    expect([...encodeAll('int4', [-1, 1])]).toEqual([0x1f])
    expect([...encodeAll('uint2', [0, 1, 2, 3, 1])]).toEqual([0b11100100, 0b01])
    const bytes = Uint8Array.of(0xff)
    encodeElement('uint4', bytes, 1, 0)
    expect([...bytes]).toEqual([0x0f])
  })

  it('returns raw codes of float16, float8 and 4-bit types only', () => {
    expect(decodeCodes('float16', Uint8Array.of(0, 0x3c, 0xff, 0xff), 2)).toEqual(
      Uint16Array.of(0x3c00, 0xffff),
    )
    expect(decodeCodes('float8_e5m2', Uint8Array.of(0x7d), 1)).toEqual(Uint8Array.of(0x7d))
    expect(decodeCodes('int4', Uint8Array.of(0xf8), 2)).toEqual(Uint8Array.of(8, 15))
    expect(() => decodeCodes('int8', Uint8Array.of(1), 1)).toThrow(code('ERR_DTYPE'))
  })

  it('decodes complex numbers as pairs and rejects single elements', () => {
    const bytes = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer)
    expect(decodeAll('complex64', bytes, 2)).toEqual(Float32Array.of(1, 2, 3, 4))
    expect(() => decodeElement('complex64', bytes, 0)).toThrow(code('ERR_DTYPE'))
    expect(() => decodeAll('string', bytes, 1)).toThrow(code('ERR_DTYPE'))
  })

  it.each<[Dtype, unknown]>([
    ['int8', 128],
    ['uint8', -1],
    ['int4', 8],
    ['uint64', 2n ** 64n],
    ['int32', 1.5],
    ['int32', Number.NaN],
    ['int64', '5'],
    ['float32', null],
    ['float32', undefined],
    ['bool', 2],
  ])('%s rejects %s', (dtype, value) => {
    expect(() => encodeAll(dtype, [0, value], { name: (i) => `values[${i}]` })).toThrow(code('ERR_ARGUMENT'))
    expect(() => encodeAll(dtype, [0, value], { name: (i) => `values[${i}]` })).toThrow('values[1]')
  })

  it('covers every type of the table', () => {
    for (const dtype of Object.keys(DTYPES) as Dtype[]) {
      if (dtype === 'string') continue
      expect(packedByteLength(dtype, 8)).toBe(DTYPES[dtype].bits)
      expect(decodeAll(dtype, new Uint8Array(16), 1).length).toBeGreaterThan(0)
    }
  })
})
