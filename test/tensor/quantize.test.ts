/**
 * quantize, dequantize and affine compared with JavaScript arithmetic: every code type, parameters per tensor, axis and
 * block, in all orders with casts, slices and reorders, from memory and from files.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype } from '../../lib/dtype/dtypes.js'
import {
  affine,
  asTensor,
  cast,
  type DenseTensor,
  dequantize,
  materialize,
  open,
  type QuantizationParameters,
  type QuantizeOptions,
  quantize,
  reorder,
  save,
  slice,
  tensor,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

const INTEGERS = ['int8', 'uint8', 'int4', 'uint4', 'int2', 'uint2', 'int16', 'uint16', 'int32'] as const

function roundEven(value: number): number {
  const low = Math.floor(value)
  const fraction = value - low
  return fraction > 0.5 || (fraction === 0.5 && low % 2 !== 0) ? low + 1 : low
}

function roundAway(value: number): number {
  return Math.sign(value) * Math.floor(Math.abs(value) + (Math.abs(value) % 1 >= 0.5 ? 0.5 : 0))
}

/** One code by the formula in docs/quantization.md. */
function codeOf(x: number, scale: number, zero: number, dtype: Dtype, rules: 'onnx' | 'tmfile'): number {
  const { min, max } = DTYPES[dtype].limits as { min: number; max: number }
  const quotient = dtype === 'int32' ? x / scale : Math.fround(x / Math.fround(scale))
  if (Number.isNaN(quotient)) return zero
  const least = rules === 'tmfile' && dtype === 'int8' ? -127 : min
  const sum = dtype === 'int32' ? quotient + zero : Math.fround(quotient + zero)
  const whole = rules === 'tmfile' ? roundAway(sum) : roundEven(quotient) + zero
  return Math.min(max, Math.max(least, whole)) + 0
}

/** Index of the parameters of an element. */
function entryOf(shape: readonly number[], index: readonly number[], parameters: QuantizationParameters) {
  const { axis = 0, blockSize, scale } = parameters
  if (typeof scale === 'number') return 0
  if (blockSize === undefined) return index[axis]!
  return index.reduce((entry, at, i) => {
    const block = i === axis ? blockSize : 1
    return entry * Math.ceil(shape[i]! / block) + Math.floor(at / block)
  }, 0)
}

function* indices(shape: readonly number[], lead: readonly number[] = []): Generator<number[]> {
  if (lead.length === shape.length) {
    yield [...lead]
    return
  }
  for (let i = 0; i < shape[lead.length]!; i++) yield* indices(shape, [...lead, i])
}

const pick = (list: number | ArrayLike<number> | undefined, at: number): number =>
  typeof list === 'number' ? list : (list?.[at] ?? list?.[0] ?? 0)

async function expectCodes(x: DenseTensor, dtype: Dtype, options: QuantizeOptions): Promise<DenseTensor> {
  const codes = quantize(x, dtype, options)
  const found = await codes.toTypedArray()
  let at = 0
  for (const index of indices(x.shape)) {
    const entry = entryOf(x.shape, index, options)
    const scale = pick(options.scale, entry)
    const zero = pick(options.zeroPoint, entry)
    const expected = codeOf(Number(x.at(...index)), scale, zero, dtype, options.rules ?? 'onnx')
    if (found[at] !== expected) {
      expect.fail(`${dtype} of ${x.at(...index)} at ${index}: ${found[at]}, not ${expected}`)
    }
    at++
  }
  return codes
}

const SPECIAL = [0, -0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, 1e38, Number.NaN, Infinity, -Infinity]

const shapes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 })

/** A tensor with values near the range of the codes, and its parameters. */
const cases = fc
  .record({
    shape: shapes,
    dtype: fc.constantFrom(...INTEGERS),
    rules: fc.constantFrom('onnx' as const, 'tmfile' as const),
    kind: fc.constantFrom('tensor', 'axis', 'block'),
    seed: fc.array(fc.float({ min: -40, max: 40, noNaN: true }), { minLength: 8, maxLength: 40 }),
    axis: fc.nat(3),
    blockSize: fc.integer({ min: 1, max: 4 }),
    scales: fc.array(fc.float({ min: Math.fround(0.01), max: 3, noNaN: true }), {
      minLength: 5,
      maxLength: 20,
    }),
  })
  .map(({ shape, seed, axis, blockSize, scales, kind, dtype, rules }) => {
    const size = shape.reduce((a, b) => a * b, 1)
    const numbers = Float32Array.from({ length: size }, (_, i) =>
      i % 7 === 6 ? SPECIAL[i % SPECIAL.length]! : seed[(i * 5) % seed.length]!,
    )
    const at = axis % shape.length
    const counts = shape.map((extent, i) => {
      if (kind === 'tensor') return 1
      if (kind === 'axis') return i === at ? extent : 1
      return Math.ceil(extent / (i === at ? blockSize : 1))
    })
    const entries = counts.reduce((a, b) => a * b, 1)
    const { max } = DTYPES[dtype].limits as { max: number }
    const parameters: QuantizationParameters =
      kind === 'tensor'
        ? { scale: scales[0]!, zeroPoint: max > 1 ? 1 : 0 }
        : {
            scale: Array.from({ length: entries }, (_, i) => scales[i % scales.length]!),
            zeroPoint: Array.from({ length: entries }, (_, i) => i % 2),
            axis: at,
            ...(kind === 'block' && { blockSize }),
          }
    return { shape, dtype, rules, x: tensor(numbers, { shape }), parameters }
  })

describe('quantize', () => {
  it('gives the documented codes per tensor, axis and block', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ x, dtype, rules, parameters }) => {
        await expectCodes(x, dtype, { ...parameters, rules })
      }),
      { numRuns: 300 },
    )
  })

  it('then dequantize is within half a step where nothing saturates', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: -12700, max: 12700 }), { minLength: 1 }), async (list) => {
        const x = tensor(Float32Array.from(list, (value) => value / 100))
        for (const [dtype, zeroPoint] of [
          ['int8', 0],
          ['uint8', 127],
          ['int16', -3],
        ] as const) {
          const parameters = { scale: 1, zeroPoint }
          const back = await dequantize(quantize(x, dtype, parameters), parameters).toTypedArray()
          for (const [i, value] of list.entries()) {
            expect(Math.abs(Number(back[i]) - value / 100)).toBeLessThanOrEqual(0.5)
          }
        }
      }),
    )
  })

  it('float8: the quotient is cast, with and without saturation', async () => {
    const x = tensor([0, 1, 2, 100000, 200, Number.NaN], { dtype: 'float32' })
    const codes = quantize(x, 'float8_e4m3fn', { scale: 2 })
    expect(await codes.toTypedArray()).toEqual(Float32Array.of(0, 0.5, 1, 448, 96, Number.NaN))
    const open = quantize(x, 'float8_e4m3fn', { scale: 2, saturate: false })
    expect(await open.toTypedArray()).toEqual(Float32Array.of(0, 0.5, 1, Number.NaN, 96, Number.NaN))
    expect(await quantize(x, 'float4_e2m1fn', { scale: 1 }).toTypedArray()).toEqual(
      Float32Array.of(0, 1, 2, 6, 6, 6),
    )
    expect(() => quantize(x, 'float8_e5m2', { scale: 1, zeroPoint: 1 })).toThrow(code('ERR_QUANTIZATION'))
  })

  it.each(['float16', 'bfloat16', 'float64', 'int8', 'int32', 'bool'] as const)('of %s', async (from) => {
    const numbers = tensor(
      Array.from({ length: 37 }, (_, i) => (from === 'bool' ? i % 2 : (i * 7) % 100)),
      { dtype: from },
    )
    const found = await quantize(numbers, 'uint8', { scale: 2, zeroPoint: 5 }).toTypedArray()
    expect([...(found as Uint8Array)]).toEqual(
      Array.from({ length: 37 }, (_, i) => roundEven(Number(numbers.at(i)) / 2) + 5),
    )
  })

  it('of float64 has a float64 quotient', () => {
    const x = tensor([0.5 - 2 ** -40, 0.5 + 2 ** -40], { dtype: 'float64' })
    const codes = quantize(x, 'int8', { scale: 1 })
    expect([codes.at(0), codes.at(1)]).toEqual([0, 1])
  })

  it('packs sub-byte codes, odd counts too', async () => {
    const x = tensor([1, -8, 7, 100, -100], { dtype: 'float32' })
    expect(await quantize(x, 'int4', { scale: 1 }).bytes()).toEqual(Uint8Array.of(0x81, 0x77, 0x08))
    expect(await quantize(x, 'uint2', { scale: 1, zeroPoint: 1 }).bytes()).toEqual(Uint8Array.of(0xf2, 0x00))
  })
})

const SHAPE = [2, 19, 5, 7]
const images = (): DenseTensor =>
  tensor(
    Float32Array.from({ length: 2 * 19 * 5 * 7 }, (_, i) => (i - 300) / 8),
    { shape: SHAPE, name: 'x' },
  )
const CHANNELS = {
  scale: Array.from({ length: 19 }, (_, c) => (c + 1) / 8),
  zeroPoint: Array.from({ length: 19 }, (_, c) => c - 9),
  axis: 1,
}

describe('fused', () => {
  it('gives the same bytes in any order with reorder and slice', async () => {
    const part = [null, { start: 1, end: 18, step: 2 }, { start: -1, step: -1 }]
    const stored = await materialize(quantize(images(), 'int8', CHANNELS))
    const expected = await reorder(await materialize(slice(stored, part)), 'b_fs_yx_fsv16').bytes()
    const odd = (list: readonly number[]) => list.filter((_, c) => c % 2 === 1 && c < 18)
    const ofPart = { scale: odd(CHANNELS.scale), zeroPoint: odd(CHANNELS.zeroPoint), axis: -3 }
    const orders = [
      reorder(slice(quantize(images(), 'int8', CHANNELS), part), 'b_fs_yx_fsv16'),
      slice(quantize(reorder(images(), 'b_fs_yx_fsv16'), 'int8', CHANNELS), part),
      slice(reorder(quantize(images(), 'int8', CHANNELS), 'b_fs_yx_fsv16'), part),
      reorder(quantize(slice(images(), part), 'int8', ofPart), 'b_fs_yx_fsv16'),
      quantize(reorder(slice(images(), part), 'b_fs_yx_fsv16'), 'int8', ofPart),
    ]
    for (const lazy of orders) {
      expect(await lazy.bytes()).toEqual(expected)
      expect(lazy.bytesSync({ start: 5, end: 77 })).toEqual(expected.slice(5, 77))
    }
  })

  it('parameters follow their elements along a reversed axis', async () => {
    const pixels = asTensor(new Uint8Array(12).fill(100), { shape: [1, 2, 2, 3] })
    const swapped = slice(pixels, [null, null, null, { step: -1 }])
    const scaled = affine(swapped, { mean: [10, 20, 30], axis: 3 })
    expect([...(await scaled.toTypedArray())].slice(0, 3)).toEqual([90, 80, 70])
    const codes = quantize(slice(asTensor(new Float32Array(3).fill(100)), [{ step: -1 }]), 'int8', {
      scale: [1, 2, 4],
      axis: 0,
    })
    expect([...(await codes.toTypedArray())]).toEqual([100, 50, 25])
  })

  it('blocks that a slice splits keep their scales', async () => {
    const parameters = {
      scale: Array.from({ length: 2 * 19 * 5 * 3 }, (_, i) => 1 + (i % 13) / 8),
      axis: 3,
      blockSize: 3,
    }
    const stored = await materialize(quantize(images(), 'int16', parameters))
    const part = [{ start: 1 }, { step: 3 }, null, { start: 5, end: 0, step: -2 }]
    const expected = await slice(stored, part).toTypedArray()
    expect(await slice(quantize(images(), 'int16', parameters), part).toTypedArray()).toEqual(expected)
    const once = slice(images(), part)
    const own = { scale: Array.from({ length: 1 * 7 * 5 * 2 }, (_, i) => 1 + i / 4), axis: 3, blockSize: 2 }
    const again = [null, { start: 1 }, null, { start: 1 }]
    const codes = await materialize(quantize(await materialize(once), 'int16', own))
    expect(await slice(quantize(once, 'int16', own), again).toTypedArray()).toEqual(
      await slice(codes, again).toTypedArray(),
    )
  })

  it.each<Dtype>(['int8', 'int4', 'uint16', 'float8_e4m3fn'])('%s: holes are zero bits', async (dtype) => {
    const parameters = dtype === 'float8_e4m3fn' ? { scale: 2 } : { scale: 2, zeroPoint: 3 }
    const lazy = reorder(quantize(images(), dtype, parameters), 'b_fs_yx_fsv16')
    const stored = reorder(await materialize(quantize(images(), dtype, parameters)), 'b_fs_yx_fsv16')
    expect(await lazy.bytes()).toEqual(await stored.bytes())
  })

  it('with casts before and after, from a file into a file', async () => {
    const path = inFolder('x.npy')
    await save(path, [cast(images(), 'float16')])
    for (const mode of ['map', 'read'] as const) {
      const file = await open(path, { mode })
      const x = file.tensors.at(0) as DenseTensor
      const codes = quantize(cast(x, 'float32'), 'int8', CHANNELS)
      const lazy = reorder(cast(dequantize(codes, CHANNELS), 'bfloat16'), 'b_fs_yx_fsv16')
      const owned = await materialize(codes)
      const expected = reorder(
        cast(await materialize(dequantize(owned, CHANNELS)), 'bfloat16'),
        'b_fs_yx_fsv16',
      )
      expect(await lazy.bytes()).toEqual(await expected.bytes())
      const output = inFolder(`codes_${mode}.npy`)
      await save(output, [reorder(codes, 'byxf')])
      const saved = await open(output)
      const stored = await reorder(owned, 'byxf').bytes()
      expect(await (saved.tensors.at(0) as DenseTensor).bytes()).toEqual(stored)
      saved.close()
      file.close()
    }
  })

  it('a large tensor is split over threads', async () => {
    const channels = 600
    const x = asTensor(
      Float32Array.from({ length: channels * 5000 }, (_, i) => (i % 4001) - 2000),
      { shape: [channels, 5000] },
    )
    const scale = Array.from({ length: channels }, (_, c) => 8 + c)
    const found = await quantize(x, 'int8', { scale, axis: 0 }).toTypedArray()
    for (let i = 0; i < found.length; i += 97) {
      const expected = codeOf((i % 4001) - 2000, scale[Math.floor(i / 5000)]!, 0, 'int8', 'onnx')
      if (found[i] !== expected) expect.fail(`element ${i}: ${found[i]}, not ${expected}`)
    }
  })

  it('keeps the name of the tensor', () => {
    expect(quantize(images(), 'int8', { scale: 1 })).toMatchObject({ name: 'x', shape: SHAPE, dtype: 'int8' })
  })

  it('scalars and tensors without elements', async () => {
    expect(quantize(tensor(3, { dtype: 'float32' }), 'int8', { scale: 2 }).at()).toBe(2)
    const none = tensor([], { dtype: 'float32', shape: [0, 3] })
    expect(await quantize(none, 'int8', { scale: [1, 2, 3], axis: 1 }).toTypedArray()).toEqual(Int8Array.of())
  })
})

describe('dequantize', () => {
  it('rounds difference and product', async () => {
    const codes = tensor([-128, -1, 0, 1, 127], { dtype: 'int8' })
    const scale = Math.fround(0.1)
    expect(await dequantize(codes, { scale, zeroPoint: 3 }).toTypedArray()).toEqual(
      Float32Array.of(-131 * scale, -4 * scale, -3 * scale, -2 * scale, 124 * scale),
    )
    const wide = dequantize(codes, { scale: 0.1, zeroPoint: 3, dtype: 'float64' })
    expect(wide.at(4)).toBe(124 * 0.1)
    expect(dequantize(codes, { scale: 0.1, dtype: 'float16' }).dtype).toBe('float16')
  })

  it.each<Dtype>([
    'int4',
    'uint4',
    'int2',
    'uint2',
    'int16',
    'uint16',
    'int32',
    'float8_e5m2',
    'float6_e2m3fn',
    'float6_e3m2fn',
    'float4_e2m1fn',
  ])('%s', async (dtype) => {
    const codes = tensor(
      Array.from({ length: 21 }, (_, i) => (dtype.startsWith('float') ? i % 4 : i % 2)),
      { dtype },
    )
    const zeroPoint = dtype.startsWith('float') ? 0 : 1
    const found = await dequantize(codes, { scale: 0.25, zeroPoint }).toTypedArray()
    const expected = Array.from({ length: 21 }, (_, i) => (Number(codes.at(i)) - zeroPoint) * 0.25)
    expect([...(found as Float32Array)]).toEqual(expected)
  })
})

describe('affine', () => {
  const pixels = (): DenseTensor =>
    asTensor(
      Uint8Array.from({ length: 2 * 5 * 7 * 3 }, (_, i) => (i * 37) % 256),
      { shape: [2, 5, 7, 3], dtype: 'uint8' },
    )

  it('normalizes image bytes from NHWC to NCHW in one plan', async () => {
    const stored = pixels()
    const mean = [123.675, 116.28, 103.53]
    const std = [58.395, 57.12, 57.375]
    const named = affine(stored, { mean, std, axis: 3 })
    expect(named.dtype).toBe('float32')
    const found = (await named.toTypedArray()) as Float32Array
    for (const [i, value] of found.entries()) {
      expect(value).toBeCloseTo((Number((i * 37) % 256) - mean[i % 3]!) / std[i % 3]!, 5)
    }
  })

  it('is x * scale + bias, exact where a float32 can represent it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: -2048, max: 2048 }), { minLength: 3, maxLength: 3 }),
        fc.array(fc.integer({ min: -2048, max: 2048 }), { minLength: 3, maxLength: 3 }),
        async (scales, biases) => {
          const scale = scales.map((value) => value / 64)
          const bias = biases.map((value) => value / 64)
          const found = await affine(pixels(), { scale, bias, axis: -1 }).toTypedArray()
          const expected = Float32Array.from({ length: 210 }, (_, i) =>
            Math.fround(((i * 37) % 256) * scale[i % 3]! + bias[i % 3]!),
          )
          expect([...(found as Float32Array)].map((value) => value + 0)).toEqual(
            [...expected].map((v) => v + 0),
          )
        },
      ),
    )
  })

  it('rounds once', () => {
    // x * scale is slightly above 1 - 2^-24; rounding before the addition would give 1.
    const x = tensor([1 + 2 ** -12], { dtype: 'float32' })
    const scale = 1 - 2 ** -12 + 2 ** -23
    const exact = (1 + 2 ** -12) * Math.fround(scale) - 1
    expect(affine(x, { scale, bias: -1 }).at(0)).toBe(Math.fround(exact))
  })

  it('in other float types', async () => {
    const x = tensor([1, 2, 3], { dtype: 'int32' })
    expect(affine(x, { scale: 0.1, dtype: 'float64' }).at(2)).toBe(3 * 0.1)
    expect(await affine(x, { scale: 0.5, bias: 1, dtype: 'bfloat16' }).toTypedArray()).toEqual(
      Float32Array.of(1.5, 2, 2.5),
    )
  })
})

describe('refuses', () => {
  const x = images()
  const scales = (length: number) => Array(length).fill(1)
  it.each<[string, () => unknown, string]>([
    ['a scale of 0', () => quantize(x, 'int8', { scale: 0 }), 'ERR_QUANTIZATION'],
    [
      'a scale below 0',
      () => dequantize(quantize(x, 'int8', { scale: 1 }), { scale: -1 }),
      'ERR_QUANTIZATION',
    ],
    ['a scale of NaN', () => quantize(x, 'int8', { scale: Number.NaN }), 'ERR_QUANTIZATION'],
    ['a scale that float32 has not', () => quantize(x, 'int8', { scale: 1e-60 }), 'ERR_QUANTIZATION'],
    [
      'a zero point that is not a code',
      () => quantize(x, 'uint8', { scale: 1, zeroPoint: -1 }),
      'ERR_QUANTIZATION',
    ],
    ['half a zero point', () => quantize(x, 'int8', { scale: 1, zeroPoint: 0.5 }), 'ERR_QUANTIZATION'],
    ['scales without axis', () => quantize(x, 'int8', { scale: scales(19) }), 'ERR_ARGUMENT'],
    ['too few scales', () => quantize(x, 'int8', { scale: scales(18), axis: 1 }), 'ERR_QUANTIZATION'],
    [
      'other zero points',
      () => quantize(x, 'int8', { scale: scales(19), zeroPoint: [0, 1], axis: 1 }),
      'ERR_QUANTIZATION',
    ],
    ['an axis', () => quantize(x, 'int8', { scale: scales(19), axis: 4 }), 'ERR_ARGUMENT'],
    ['half an axis', () => quantize(x, 'int8', { scale: 1, axis: 0.5 }), 'ERR_ARGUMENT'],
    ['blocks of nothing', () => quantize(x, 'int8', { scale: 1, axis: 0, blockSize: 0 }), 'ERR_ARGUMENT'],
    ['blocks without axis', () => quantize(x, 'int8', { scale: 1, blockSize: 2 }), 'ERR_ARGUMENT'],
    [
      'scales for other blocks',
      () => quantize(x, 'int8', { scale: scales(20), axis: 1, blockSize: 2 }),
      'ERR_QUANTIZATION',
    ],
    ['no scale', () => quantize(x, 'int8', {} as QuantizeOptions), 'ERR_ARGUMENT'],
    ['a word for a scale', () => quantize(x, 'int8', { scale: ['1'] as never }), 'ERR_ARGUMENT'],
    ['no options', () => quantize(x, 'int8', undefined as never), 'ERR_ARGUMENT'],
    ['rules', () => quantize(x, 'int8', { scale: 1, rules: 'numpy' as never }), 'ERR_ARGUMENT'],
    ['a saturation', () => quantize(x, 'int8', { scale: 1, saturate: 1 as never }), 'ERR_ARGUMENT'],
    ['codes of a type that has none', () => quantize(x, 'float16', { scale: 1 }), 'ERR_DTYPE'],
    ['codes of 64 bits', () => quantize(x, 'int64', { scale: 1 }), 'ERR_DTYPE'],
    ['floats as codes', () => dequantize(x, { scale: 1 }), 'ERR_DTYPE'],
    [
      'real numbers that are integers',
      () => dequantize(cast(x, 'int8'), { scale: 1, dtype: 'int32' }),
      'ERR_DTYPE',
    ],
    ['complex numbers', () => affine(cast(x, 'complex64'), { scale: 2 }), 'ERR_DTYPE'],
    ['complex codes', () => quantize(cast(x, 'complex64'), 'int8', { scale: 2 }), 'ERR_DTYPE'],
    ['integers as features', () => affine(x, { scale: 2, dtype: 'int8' }), 'ERR_DTYPE'],
    ['scale and mean', () => affine(x, { scale: 2, mean: 1 }), 'ERR_ARGUMENT'],
    ['a deviation of 0', () => affine(x, { std: 0 }), 'ERR_QUANTIZATION'],
    [
      'a mean over deviation that float32 has not',
      () => affine(x, { mean: 1e38, std: 1e-5 }),
      'ERR_QUANTIZATION',
    ],
    [
      'one that float64 has not',
      () => affine(x, { mean: 1e300, std: 1e-300, dtype: 'float64' }),
      'ERR_QUANTIZATION',
    ],
    [
      'an option that is none',
      () => quantize(x, 'int8', { scale: 1, rule: 'onnx' } as never),
      'ERR_ARGUMENT',
    ],
    ['an infinite bias', () => affine(x, { bias: Infinity }), 'ERR_QUANTIZATION'],
    ['no tensor', () => affine(undefined as never, { scale: 1 }), 'ERR_ARGUMENT'],
  ])('%s', (_, act, error) => {
    expect(act).toThrow(code(error))
  })
})
