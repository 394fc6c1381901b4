/** Quantization parameters from ranges, and scales of biases. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkBiasScales,
  dequantize,
  quantizationParameters,
  quantize,
  stats,
  tensor,
} from '../../lib/index.js'

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

describe('quantizationParameters', () => {
  it('equal the published results of DynamicQuantizeLinear', () => {
    // Its published cases: [0, 2, -3, -2.5, 1.34, 0.5], all below 0, and all above.
    const both = quantizationParameters({ min: -3, max: 2 }, 'uint8')
    expect(both).toEqual({ scale: Math.fround(5 / 255), zeroPoint: 153 })
    expect(quantizationParameters({ min: -4, max: -1.3 }, 'uint8')).toEqual({
      scale: Math.fround(4 / 255),
      zeroPoint: 255,
    })
    expect(quantizationParameters({ min: 1, max: 4 }, 'uint8')).toEqual({
      scale: Math.fround(4 / 255),
      zeroPoint: 0,
    })
  })

  it('can be symmetric, and of float code types', () => {
    const range = { min: -3, max: 2 }
    expect(quantizationParameters(range, 'int8', { symmetric: true })).toEqual({
      scale: Math.fround(3 / 127),
      zeroPoint: 0,
    })
    expect(quantizationParameters(range, 'uint8', { symmetric: true })).toEqual({
      scale: Math.fround(3 / 127),
      zeroPoint: 128,
    })
    expect(quantizationParameters(range, 'float8_e4m3fn')).toEqual({
      scale: Math.fround(3 / 448),
      zeroPoint: 0,
    })
  })

  it('truncate zero points by the rules of tmfile', () => {
    const { zeroPoint, scale } = quantizationParameters({ min: -1, max: 1.9 }, 'uint8', { rules: 'tmfile' })
    expect(zeroPoint).toBe(Math.trunc(1 / (scale as number)))
    const even = quantizationParameters({ min: -1, max: 1.9 }, 'uint8')
    expect(even.zeroPoint).toBe(88)
    expect(zeroPoint).toBe(87)
  })

  it('are lists for lists, with scale 1 for an empty range', () => {
    const found = quantizationParameters({ min: [-1, 0, 5], max: Float32Array.of(1, 0, 10) }, 'int8')
    expect(found).toEqual({
      scale: [2, 1, 10].map((n) => (n === 1 ? 1 : Math.fround(n / 255))),
      zeroPoint: [-1, -128, -128],
    })
  })

  it('have a scale above 0 that reaches the smallest numbers', async () => {
    const { scale } = quantizationParameters({ min: 0, max: 17 * 2 ** -149 }, 'uint4')
    expect(scale).toBe(2 ** -148)
    expect(quantizationParameters({ min: 0, max: 2 ** -149 }, 'int8').scale).toBe(2 ** -149)
  })

  it('keep every number within half a step', async () => {
    const numbers = fc.array(fc.float({ min: -1000, max: 1000, noNaN: true }), { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(
        numbers,
        fc.constantFrom('int8' as const, 'uint8' as const, 'int16' as const, 'uint4' as const),
        fc.boolean(),
        async (list, dtype, symmetric) => {
          const x = tensor(Float32Array.from(list))
          const { min, max } = (await stats(x)) as { min: number; max: number }
          const parameters = quantizationParameters({ min, max }, dtype, { symmetric })
          const back = await dequantize(quantize(x, dtype, parameters), parameters).toTypedArray()
          const step = parameters.scale as number
          // A rounded zero point shifts all codes by up to half a step, so the last value may saturate.
          for (const [i, value] of list.entries()) {
            expect(Math.abs(Number(back[i]) - Math.fround(value))).toBeLessThanOrEqual(step * 1.0001)
          }
        },
      ),
    )
  })

  it.each<[string, () => unknown, string]>([
    [
      'a maximum below the minimum',
      () => quantizationParameters({ min: 1, max: 0 }, 'int8'),
      'ERR_QUANTIZATION',
    ],
    ['NaN', () => quantizationParameters({ min: Number.NaN, max: 0 }, 'int8'), 'ERR_QUANTIZATION'],
    [
      'an infinite range',
      () => quantizationParameters({ min: -3e38, max: 3e38 }, 'int8'),
      'ERR_QUANTIZATION',
    ],
    [
      'lists of two lengths',
      () => quantizationParameters({ min: [0], max: [1, 2] }, 'int8'),
      'ERR_QUANTIZATION',
    ],
    ['a type without codes', () => quantizationParameters({ min: 0, max: 1 }, 'float32'), 'ERR_DTYPE'],
    ['no range', () => quantizationParameters(undefined as never, 'int8'), 'ERR_ARGUMENT'],
  ])('reject %s', (_, act, error) => {
    expect(act).toThrow(code(error))
  })
})

describe('ranges', () => {
  it('the minimum and maximum of 64-bit integers are accepted', async () => {
    const { min, max } = await stats(tensor([1n, -5n, 100n], { dtype: 'int64' }))
    expect(quantizationParameters({ min, max }, 'int8')).toEqual(
      quantizationParameters({ min: -5, max: 100 }, 'int8'),
    )
  })

  it.each<[unknown, unknown]>([
    [{ min: 0, max: 1 }, { rules: 'foo' }],
    [{ min: 0, max: 1 }, { symmetric: 'yes' }],
    [{ min: 0, max: 1 }, { symetric: true }],
    [{ min: null, max: null }, {}],
    [{ min: 'a', max: 'b' }, {}],
    [{ min: [0], max: 1 }, {}],
    [{ min: [null], max: [1] }, {}],
    [null, {}],
  ])('%j with %j is rejected', (range, options) => {
    expect(() => quantizationParameters(range as never, 'int8', options as never)).toThrow(
      code('ERR_ARGUMENT'),
    )
  })
})

describe('checkBiasScales', () => {
  it.each<unknown[]>([
    [null],
    [{ scale: 1 }, { scale: 1 }, { scale: 'x' }],
    [{ scale: null }, { scale: 1 }, { scale: 1 }],
    [{ scale: 1 }, { scale: 1 }, { scale: 1 }, null],
    [{ scale: 1 }, { scale: 1 }, { scale: 1 }, { tolerance: 'x' }],
    [{ scale: 1 }, { scale: 1 }, { scale: 1 }, { tolerence: 1 }],
  ])('%j are rejected as parameters', (...given) => {
    expect(() => checkBiasScales(...(given as Parameters<typeof checkBiasScales>))).toThrow(
      code('ERR_ARGUMENT'),
    )
  })

  it('different counts of zero points and scales are rejected', () => {
    const bias = { scale: [1, 1], zeroPoint: [0, 0, 0] }
    expect(() => checkBiasScales(bias, { scale: 1 }, { scale: [1, 1] })).toThrow(code('ERR_QUANTIZATION'))
  })

  const input = { scale: 0.1, zeroPoint: 5 }
  const weight = { scale: [0.01, 0.02, 0.3] }
  const products = weight.scale.map((scale) => Math.fround(Math.fround(0.1) * Math.fround(scale)))

  it('accepts exact products', () => {
    expect(checkBiasScales({ scale: products }, input, weight)).toEqual([])
    expect(checkBiasScales({ scale: weight.scale.map((s) => s * 0.1) }, input, weight)).toEqual([])
  })

  it('lists wrong scales and zero points', () => {
    const bias = { scale: [products[0]!, 0.5, products[2]!], zeroPoint: [0, 0, 1] }
    expect(checkBiasScales(bias, input, weight)).toEqual([
      { index: 1, expected: products[1], scale: 0.5, zeroPoint: 0 },
      { index: 2, expected: products[2], scale: products[2], zeroPoint: 1 },
    ])
  })

  it('rejects parameters of different lengths', () => {
    expect(() => checkBiasScales({ scale: 1 }, input, weight)).toThrow(code('ERR_QUANTIZATION'))
    expect(() => checkBiasScales(weight, weight, weight)).toThrow(code('ERR_QUANTIZATION'))
  })
})
