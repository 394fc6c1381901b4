/** The table of element types: limits against all codes, names and codes against each other. */
import { describe, expect, it } from 'vitest'
import { decodeFloatCode } from '../../lib/dtype/decode.js'
import {
  DTYPES,
  type Dtype,
  type DtypeAlias,
  type DtypeName,
  dtypesBy,
  isNarrowFloat,
  resolveDtype,
} from '../../lib/dtype/dtypes.js'
import { affine, asTensor, cast, parseLayout, planReorder, quantize, tensor } from '../../lib/index.js'

const ALL = Object.values(DTYPES)

describe('limits', () => {
  it.each((Object.keys(DTYPES) as Dtype[]).filter(isNarrowFloat))(
    '%s has the limits of its codes',
    (dtype) => {
      const { bits, limits } = DTYPES[dtype]
      const values = Array.from({ length: 2 ** bits }, (_, code) => decodeFloatCode(dtype, code))
      const finite = values.filter(Number.isFinite)
      expect(limits).toMatchObject({
        max: finite.reduce((most, value) => Math.max(most, value)),
        min: finite.reduce((least, value) => Math.min(least, value)),
        minPositive: finite.filter((value) => value > 0).reduce((least, value) => Math.min(least, value)),
        hasInfinity: values.includes(Number.POSITIVE_INFINITY),
        hasNaN: values.some(Number.isNaN),
        hasNegativeZero: values.some((value) => Object.is(value, -0)),
      })
    },
  )

  it.each<[Dtype, number | bigint, number | bigint, number]>([
    ['float32', (2 - 2 ** -23) * 2 ** 127, -(2 - 2 ** -23) * 2 ** 127, 2 ** -126],
    ['float64', Number.MAX_VALUE, -Number.MAX_VALUE, 2 ** -1022],
    ['complex64', (2 - 2 ** -23) * 2 ** 127, -(2 - 2 ** -23) * 2 ** 127, 2 ** -126],
    ['float16', 65504, -65504, 2 ** -14],
    ['float6_e2m3fn', 7.5, -7.5, 1],
    ['float6_e3m2fn', 28, -28, 0.25],
    ['float4_e2m1fn', 6, -6, 1],
    ['int8', 127, -128, 1],
    ['uint2', 3, 0, 1],
    ['bool', 1, 0, 1],
    ['int64', 2n ** 63n - 1n, -(2n ** 63n), 1],
    ['uint64', 2n ** 64n - 1n, 0n, 1],
  ])('%s: %d down to %d, normal from %d', (dtype, max, min, minNormal) => {
    expect(DTYPES[dtype].limits).toMatchObject({ max, min, minNormal })
  })

  it('the smallest float64 equals Number.MIN_VALUE', () => {
    expect(DTYPES.float64.limits?.minPositive).toBe(Number.MIN_VALUE)
  })

  it('strings have no limits', () => {
    expect(DTYPES.string.limits).toBeUndefined()
  })
})

describe('names and codes', () => {
  it('are unique', () => {
    for (const key of ['name', 'shortName', 'onnx', 'btf', 'tmfile', 'numpy', 'safetensors'] as const) {
      const given = ALL.map((info) => info[key]).filter((code) => code !== undefined)
      expect(new Set(given).size, key).toBe(given.length)
    }
  })

  it("cover ONNX's codes 1 to 28, BTF's 0 to 9 and tmfile's 0 to 5", () => {
    const sorted = (key: 'onnx' | 'btf' | 'tmfile') => [...dtypesBy(key).keys()].sort((a, b) => a - b)
    expect(sorted('onnx')).toEqual(Array.from({ length: 28 }, (_, i) => i + 1))
    expect(sorted('btf')).toEqual(Array.from({ length: 10 }, (_, i) => i))
    expect(sorted('tmfile')).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('have the item size in the numpy code', () => {
    for (const { numpy, bits } of ALL) {
      if (numpy !== undefined) expect(Number(numpy.slice(1)) * 8, numpy).toBe(bits)
    }
  })

  it('match numpy and ml_dtypes, except for strings', () => {
    for (const { name, numpy, mlDtypes } of ALL) {
      const owners = [numpy, mlDtypes].filter((owner) => owner !== undefined)
      expect(owners.length, name).toBe(name === 'string' ? 0 : 1)
    }
  })
})

describe('aliases', () => {
  it.each<[DtypeName, Dtype]>([
    ['f64', 'float64'],
    ['fp64', 'float64'],
    ['double', 'float64'],
    ['f32', 'float32'],
    ['fp32', 'float32'],
    ['float', 'float32'],
    ['single', 'float32'],
    ['f16', 'float16'],
    ['fp16', 'float16'],
    ['half', 'float16'],
    ['bf16', 'bfloat16'],
    ['i8', 'int8'],
    ['u8', 'uint8'],
    ['i16', 'int16'],
    ['u16', 'uint16'],
    ['i32', 'int32'],
    ['u32', 'uint32'],
    ['i64', 'int64'],
    ['u64', 'uint64'],
    ['i4', 'int4'],
    ['u4', 'uint4'],
    ['i2', 'int2'],
    ['u2', 'uint2'],
    ['boolean', 'bool'],
    ['c64', 'complex64'],
    ['c128', 'complex128'],
    ['f8_e4m3', 'float8_e4m3fn'],
    ['float8e5m2fnuz', 'float8_e5m2fnuz'],
  ])('%s means %s, in upper case too', (alias, dtype) => {
    expect(resolveDtype(alias)).toBe(dtype)
    expect(resolveDtype(alias.toUpperCase())).toBe(dtype)
  })

  it('include the names of safetensors', () => {
    for (const { name, safetensors } of ALL) {
      if (safetensors !== undefined) expect(resolveDtype(safetensors), safetensors).toBe(name)
    }
  })

  it('belong to one type each and differ from every canonical name', () => {
    const names = ALL.flatMap(({ name, aliases }) => [name, ...aliases])
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toBe(name.toLowerCase())
  })

  it('are typed: a canonical name, an alias or its upper case, and nothing else', () => {
    const names: DtypeName[] = ['float32', 'FLOAT32', 'half', 'HALF']
    // @ts-expect-error mixed case works at run time and is not part of the type
    names.push('Half' satisfies DtypeAlias)
    expect(names.map(resolveDtype)).toEqual(['float32', 'float32', 'float16', 'float16', 'float16'])
  })

  it('are accepted wherever a caller names an element type', () => {
    const t = tensor([1, 2, 3, 4], { dtype: 'f32', shape: [2, 2] })
    const options = { dtype: 'U8', scale: 1 } as const
    expect(t.dtype).toBe('float32')
    expect(cast(t, 'HALF').dtype).toBe('float16')
    expect(cast(t, 'fp32')).toBe(t)
    expect(quantize(t, 'i8', { scale: 1 }).dtype).toBe('int8')
    expect(affine(t, { dtype: 'bf16' }).dtype).toBe('bfloat16')
    expect(asTensor(new Uint16Array(4), { dtype: 'bf16' }).dtype).toBe('bfloat16')
    expect(parseLayout('bfyx').storage([1, 2, 3, 5], { dtype: options.dtype }).byteLength).toBe(30)
    expect(planReorder({ dtype: 'half', shape: [2, 2], from: 'bfyx', to: 'byxf' }).sourceBytes).toBe(8)
  })

  it.each([
    ['flot32', 'unknown dtype "flot32"; did you mean "float32", "float64" or "float16"?'],
    ['int', 'unknown dtype "int"; did you mean "int8", "int16" or "int32"?'],
    ['bfloat', 'unknown dtype "bfloat"; did you mean "bfloat16"'],
    ['quaternion', 'unknown dtype "quaternion"; expected one of: float32, float64, '],
    ['', 'unknown dtype ""; expected one of: float32'],
    [7, 'unknown dtype 7; expected one of: float32'],
    [undefined, 'unknown dtype undefined; expected one of: float32'],
    ['__proto__', 'unknown dtype "__proto__"; expected one of: float32'],
    ['x'.repeat(1000), `unknown dtype "${'x'.repeat(40)}"; expected one of: float32`],
  ])('%j is rejected with the nearest names', (name, message) => {
    const error = { code: 'ERR_DTYPE', message: expect.stringContaining(message) as string }
    expect(() => resolveDtype(name)).toThrow(expect.objectContaining(error))
  })
})
