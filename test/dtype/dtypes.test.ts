/** The table of element types against what the types can hold, and its columns against each other. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { decodeFloatCode } from '../../lib/dtype/decode.js'
import { DTYPES, type Dtype, dtypesBy, isNarrowFloat } from '../../lib/dtype/dtypes.js'

const ALL = Object.values(DTYPES)

describe('limits', () => {
  it.each((Object.keys(DTYPES) as Dtype[]).filter(isNarrowFloat))('%s: those of its codes', (dtype) => {
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
  })

  it.each<[Dtype, number | bigint, number | bigint, number]>([
    ['float32', (2 - 2 ** -23) * 2 ** 127, -(2 - 2 ** -23) * 2 ** 127, 2 ** -126],
    ['float64', Number.MAX_VALUE, -Number.MAX_VALUE, 2 ** -1022],
    ['complex64', (2 - 2 ** -23) * 2 ** 127, -(2 - 2 ** -23) * 2 ** 127, 2 ** -126],
    ['float16', 65504, -65504, 2 ** -14],
    ['float4_e2m1fn', 6, -6, 1],
    ['int8', 127, -128, 1],
    ['uint2', 3, 0, 1],
    ['bool', 1, 0, 1],
    ['int64', 2n ** 63n - 1n, -(2n ** 63n), 1],
    ['uint64', 2n ** 64n - 1n, 0n, 1],
  ])('%s: %d down to %d, normal from %d', (dtype, max, min, minNormal) => {
    expect(DTYPES[dtype].limits).toMatchObject({ max, min, minNormal })
  })

  it('float64 ends where JavaScript does', () => {
    expect(DTYPES.float64.limits?.minPositive).toBe(Number.MIN_VALUE)
  })

  it('strings have none', () => {
    expect(DTYPES.string.limits).toBeUndefined()
  })
})

describe('names and codes', () => {
  it('name each type once', () => {
    for (const key of ['name', 'shortName', 'onnx', 'btf', 'tmfile', 'numpy', 'safetensors'] as const) {
      const given = ALL.map((info) => info[key]).filter((code) => code !== undefined)
      expect(new Set(given).size, key).toBe(given.length)
    }
  })

  it("cover ONNX's codes 1 to 26, BTF's 0 to 9 and tmfile's 0 to 5", () => {
    const sorted = (key: 'onnx' | 'btf' | 'tmfile') => [...dtypesBy(key).keys()].sort((a, b) => a - b)
    expect(sorted('onnx')).toEqual(Array.from({ length: 26 }, (_, i) => i + 1))
    expect(sorted('btf')).toEqual(Array.from({ length: 10 }, (_, i) => i))
    expect(sorted('tmfile')).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('give numpy items of their own size', () => {
    for (const { numpy, bits } of ALL) {
      if (numpy !== undefined) expect(Number(numpy.slice(1)) * 8, numpy).toBe(bits)
    }
  })

  it('are numpy’s or ml_dtypes’, for all but strings', () => {
    for (const { name, numpy, mlDtypes } of ALL) {
      const owners = [numpy, mlDtypes].filter((owner) => owner !== undefined)
      expect(owners.length, name).toBe(name === 'string' ? 0 : 1)
    }
  })
})

describe('the table of the native core', () => {
  const source = readFileSync(new URL('../../native/dtype/dtypes.def', import.meta.url), 'utf8')
  const line = /^TILEWORK_DTYPE\(k\w+, "(\w+)", (\d+), k(\w+), (\d+), (\d+), k(\w+)\)$/gm
  const rows = [...source.matchAll(line)].map(([, ...columns]) => columns)

  it('has the same facts in the same order, for all types of a fixed size', () => {
    const expected = ALL.filter(({ bits }) => bits > 0).map(({ name, bits, kind, fields }) => [
      name,
      bits,
      kind,
      fields?.mantissaBits ?? 0,
      fields?.bias ?? 0,
      fields?.specials ?? 'none',
    ])
    expect(rows).toEqual(expected.map((row) => row.map((column) => expect.stringMatching(sameWord(column)))))
  })
})

/** `float` and `Float` are the same word of two languages. */
function sameWord(column: string | number): RegExp {
  return new RegExp(`^${column}$`, 'i')
}
