/** `tilework convert`: casts that destroy values, and quantization with scales from the values. */

import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  castLosses,
  convert,
  type DenseTensor,
  dequantize,
  lazyTensor,
  open,
  quantizationParameters,
  save,
  serialize,
  type TensorLosses,
  tensor,
} from '../../lib/index.js'
import { replaceConstant } from '../../lib/tmfile.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const SUMS_ALONE = /^Wrote .*; 0 skipped, 0 failed\.\n$/

describe('castLosses', () => {
  const f32 = (...values: number[]) => tensor(Float32Array.from(values))
  it.each([
    [f32(0.1, -0.9, 0), 'int8', { saturated: 0, allZero: true }],
    [f32(0.1, 1, 0), 'int8', { saturated: 0, allZero: false }],
    [f32(0, 0), 'int8', { saturated: 0, allZero: false }],
    [f32(127.9, -128.9, 128, -129, 1e9, Number.POSITIVE_INFINITY), 'int8', { saturated: 4, allZero: false }],
    [f32(-3, -2), 'uint8', { saturated: 2, allZero: true }],
    [f32(65504, 65519, 65520, -1e6), 'float16', { saturated: 2, allZero: false }],
    [f32(1e-9, -1e-9), 'float16', { saturated: 0, allZero: true }],
    [f32(448, 1000, -1000), 'float8_e4m3fn', { saturated: 2, allZero: false }],
    [f32(1e30, 1e-30), 'bfloat16', { saturated: 0, allZero: false }],
    [f32(6, 8), 'float4_e2m1fn', { saturated: 1, allZero: false }],
    [f32(1, 2), 'bool', { saturated: 0, allZero: false }],
    [tensor(Int32Array.of(256, 512, 1)), 'uint8', { saturated: 2, allZero: false }],
    [tensor(Int32Array.of(256, 512)), 'uint8', { saturated: 2, allZero: true }],
    [tensor(BigInt64Array.of(1n, 2n ** 40n)), 'int32', { saturated: 1, allZero: false }],
    [tensor(Int8Array.of(1, -2)), 'int16', { saturated: 0, allZero: false }],
    [tensor(Int32Array.of(70000, 1)), 'float16', { saturated: 1, allZero: false }],
    [f32(Number.NaN, 0.1), 'int8', { saturated: 0, allZero: false }],
  ] as const)('of %o as %s', async (given, dtype, expected) => {
    expect(await castLosses(given, dtype)).toEqual({ count: given.size, ...expected })
  })

  it('reads nothing where the type holds everything', async () => {
    const load = () => Promise.reject(new Error('never read'))
    const unread = lazyTensor(load, { dtype: 'float32', shape: [2] })
    expect(await castLosses(unread, 'float64')).toEqual({ count: 2, saturated: 0, allZero: false })
    await expect(castLosses(unread, 'int8')).rejects.toThrow('never read')
  })
})

describe('a type that numpy lacks', () => {
  it('is named on stderr, because the file holds raw items', async () => {
    const input = inFolder('named.safetensors')
    await save(input, [tensor(Float32Array.of(0.25, -0.5), { name: 'w' })])
    const to = async (name: string, dtype: string) =>
      (await runCli(['convert', input, inFolder(name), '--dtype', dtype, '--quiet'])).stderr
    expect(await to('raw.npz', 'bf16')).toMatch(/raw\.npz: numpy has no bfloat16; npz stores raw items/)
    expect(await to('named.npz', 'float16')).toBe('')
    expect(await to('named.onnx', 'bf16')).toBe('')
  })
})

describe('a cast that destroys values', () => {
  const input = inFolder('weights.safetensors')
  const write = () =>
    save(input, [
      tensor(Float32Array.of(0.25, -0.5, 0.125), { name: 'small' }),
      tensor(Float32Array.of(1000, 1, 2), { name: 'large' }),
      tensor(Float32Array.of(1, 2), { name: 'fine' }),
    ])

  it('is reported with counts, and names --quantize', async () => {
    await write()
    const output = inFolder('int8.safetensors')
    const { code, stderr } = await runCli(['convert', input, output, '--dtype', 'int8'])
    expect(code).toBe(0)
    expect(stderr).toContain('weights.safetensors: 2 tensors lose values as int8: ')
    expect(stderr).toContain('"small" (all 3 become 0)')
    expect(stderr).toContain('"large" (1 of 3 are out of range)')
    expect(stderr).toContain('; --quantize int8 stores quantized values with scales instead.\n')
    const { losses } = await runJson<{ losses: TensorLosses[] }>([
      'convert',
      input,
      output,
      '--dtype',
      'int8',
    ])
    expect(losses).toContainEqual({ name: 'small', dtype: 'int8', count: 3, saturated: 0, allZero: true })
    expect(await convert(input, output, { dtype: 'int8' })).toMatchObject({ losses: [] })
    expect((await convert(input, output, { dtype: 'int8', countLosses: true })).losses).toHaveLength(2)
  })

  it('is reported for integers that a float type rounds, which --keep-integers leaves', async () => {
    const path = inFolder('ids.safetensors')
    await save(path, [
      tensor(
        BigInt64Array.from({ length: 5000 }, (_, at) => BigInt(at)),
        { name: 'ids' },
      ),
      tensor(Int32Array.of(2 ** 24 + 1, -(2 ** 24) - 2, 3), { name: 'wide' }),
      tensor(Uint16Array.of(2048, 70, 65_535), { name: 'both' }),
      tensor(Int8Array.of(-128, 127), { name: 'small' }),
      tensor([true, false], { dtype: 'bool', name: 'flag' }),
      tensor(Float32Array.of(0.5), { name: 'w' }),
    ])
    const half = inFolder('half.safetensors')
    const args = ['convert', path, half, '--dtype']
    const { stderr } = await runCli([...args, 'float16'])
    // Of numpy: (ids.astype(float16).astype(int64) != ids).sum()
    expect(stderr).toContain('"ids" (1702 of 5000 integers are rounded)')
    expect(stderr).toContain('"both" (1 of 3 are out of range)')
    expect(stderr).not.toContain('"small"')
    expect(stderr).toContain('; --keep-integers leaves integers as they are.\n')
    expect((await runCli([...args, 'float32'])).stderr).toContain(
      '1 tensor loses values as float32: "wide" (1 of 3',
    )
    const kept = await runCli([...args, 'float16', '--keep-integers'])
    expect(kept.stderr).not.toContain('lose')
    using file = await open(half)
    const types = Object.fromEntries([...file.tensors].map(({ name, dtype }) => [name, dtype]))
    expect(types).toEqual({
      ...{ ids: 'int64', wide: 'int32', both: 'uint16', small: 'int8', flag: 'bool', w: 'float16' },
    })
    expect(await file.dense('ids').toTypedArray()).toHaveLength(5000)
  })

  it('is reported for many files, and not for a harmless cast', async () => {
    await write()
    const many = ['convert', input, '--out-dir', inFolder('many'), '--no-manifest', '--dtype']
    expect((await runCli([...many, 'int8'])).stderr).toContain('2 tensors lose values as int8')
    expect((await runCli([...many, 'float16'])).stderr).toMatch(SUMS_ALONE)
    expect((await runCli([...many, 'float16', '--format', 'npz'])).stderr).toMatch(SUMS_ALONE)
    expect(
      (await runCli([...many, 'bfloat16', '--format', 'npz'])).stderr.match(/numpy has no bfloat16/g),
    ).toHaveLength(1)
  })

  it('is reported for the weights of a model', async () => {
    const model = smallModel()
    replaceConstant(model, 'conv/b', tensor(Float32Array.of(1e6, 1)) as DenseTensor)
    await save(inFolder('model.tmfile'), model)
    const args = ['convert', inFolder('model.tmfile'), inFolder('half.tmfile'), '--dtype', 'float16']
    expect((await runCli(args)).stderr).toContain(
      '"conv/b" (1 of 2 are out of range); --quantize int8 stores',
    )
  })
})

it.each([
  ['one run of 1.2 % of the elements is large', 1e6, 0.012, 1],
  ['single outliers are large', 1e6, 0.000_001, 0],
  ['nothing is large', 1, 0.1, 0],
])('of a large tensor: %s', async (_, large, share, expected) => {
  const count = 3_000_000
  const values = new Float32Array(count).fill(1)
  const start = Math.floor(count * 0.7331)
  values.fill(large, start, start + Math.ceil(count * share))
  const { losses } = await convert(await serialize(tensor(values)), inFolder('large.npy'), {
    ...{ format: 'npy', dtype: 'float16', countLosses: true },
  })
  expect(losses).toHaveLength(expected)
  if (expected > 0) expect(losses[0]!.saturated).toBe(Math.ceil(count * share))
})

describe('--quantize', () => {
  const input = inFolder('floats.safetensors')
  const values = Float32Array.from({ length: 4 * 6 }, (_, i) => Math.sin(i) * (1 + Math.floor(i / 6)))
  const prepare = () =>
    save(input, [
      tensor(values, { name: 'w', shape: [4, 6] }),
      tensor(Float32Array.of(1, 2), { name: 'bias' }),
      tensor(Int32Array.of(1, 2, 3, 4), { name: 'ids', shape: [2, 2] }),
    ])

  it.each([
    ['int8', [], {}, 0.02],
    ['uint8', [], {}, 0.03],
    ['int8:0', [4], { axis: 0 }, 0.02],
    ['int8:axis', [4], { axis: 0 }, 0.02],
    ['int8:axis=-1', [6], { axis: 1 }, 0.02],
    ['int8:block=4', [4, 2], { axis: 1, blockSize: 4 }, 0.02],
    ['int4:block=3', [4, 2], { axis: 1, blockSize: 3 }, 0.6],
    ['float8_e4m3fn:0', [4], { axis: 0 }, 0.3],
  ])('%s writes codes, scales and zero points', async (quantize, shape, place, tolerance) => {
    await prepare()
    const output = inFolder('codes.safetensors')
    expect(
      await runCli(['convert', input, output, '--quantize', quantize, '--format', 'onnx']),
    ).toMatchObject({
      code: 0,
      stdout: '',
    })
    const file = await open(output)
    expect([...file.tensors].map(({ name }) => name).sort()).toEqual([
      'bias',
      'ids',
      'w',
      'w_scale',
      'w_zero_point',
    ])
    const [codes, scales, zeros] = ['w', 'w_scale', 'w_zero_point'].map((name) => file.dense(name))
    expect([scales!.shape, zeros!.shape, scales!.dtype, zeros!.dtype]).toEqual([
      shape,
      shape,
      'float32',
      codes!.dtype,
    ])
    const scale = (await scales!.toTypedArray()) as Float32Array
    const zeroPoint = Array.from({ length: zeros!.size }, (_, i) => Number(zeros!.at(...indexOf(i, shape))))
    const back = (await dequantize(codes!, { scale, zeroPoint, ...place }).toTypedArray()) as Float32Array
    const worst = Math.max(...back.map((value, index) => Math.abs(value - values[index]!)))
    expect(worst).toBeGreaterThan(0)
    expect(worst).toBeLessThan(tolerance)
    file.close()
  })

  // The first has more elements than are read at a time, and no multiple of a block in a row.
  it.each([
    [[3, 1_500_007], undefined, 32],
    [[5, 7], undefined, 4],
    [[2, 9, 5], 1, 4],
    [[3, 8, 1], 1, 4],
    [[4, 6], 0, undefined],
    [[4, 6], 1, undefined],
    [[3, 700_001], 0, undefined],
    [[2, 3, 400_001], 1, undefined],
  ])('takes the range of each block: %j, axis %s, block %s', async (shape, axis, blockSize) => {
    const size = shape.reduce((product, extent) => product * extent)
    const values = Float32Array.from({ length: size }, (_, at) => Math.fround(Math.sin(at) * (1 + (at % 97))))
    values[3] = Number.NaN
    const place = { ...(axis !== undefined && { axis }), ...(blockSize !== undefined && { blockSize }) }
    const output = inFolder('blocks.safetensors')
    await convert(await serialize([tensor(values, { shape, name: 'w' })], { format: 'npy' }), output, {
      quantizeTo: { dtype: 'uint8', symmetric: false, ...place },
    })
    const { scale, zeroPoint } = quantizationParameters(rangesOf(values, shape, place), 'uint8')
    using file = await open(output)
    const scales = await file.dense('arr_0_scale').toTypedArray()
    const zeroPoints = await file.dense('arr_0_zero_point').toTypedArray()
    expect(Buffer.from(scales.buffer).equals(Buffer.from(Float32Array.from(scale as number[]).buffer))).toBe(
      true,
    )
    expect(Buffer.from(zeroPoints.buffer).equals(Buffer.from(zeroPoint as number[]))).toBe(true)
  })

  it('leaves vectors and integers as they are, but quantizes a named vector', async () => {
    await prepare()
    const output = inFolder('some.safetensors')
    await runCli(['convert', input, output, '--quantize', 'int8'])
    const whole = await open(output)
    expect(whole.dense('bias').dtype).toBe('float32')
    expect(whole.dense('ids').dtype).toBe('int32')
    whole.close()
    await runCli(['convert', input, output, '--quantize', 'int8', '--tensor', 'bias'])
    const named = await open(output)
    expect([...named.tensors].map(({ name, dtype }) => [name, dtype])).toContainEqual(['bias', 'int8'])
    named.close()
  })

  it.each([
    [['--quantize', 'int8:x'], '--quantize takes TYPE, TYPE:AXIS or TYPE:block=N'],
    [['--quantize', 'int64'], 'holds no quantized codes'],
    [['--quantize', 'in8'], 'did you mean "int8"'],
    [['--quantize', 'int8:2'], 'Tensor "w" has rank 2 and no axis 2.'],
    [['--quantize', 'int8', '--dtype', 'int8'], 'cannot be combined with --dtype'],
    [['--quantize', 'int8', '--format', 'tmfile'], 'tilework edit --quantize'],
  ])('%j is refused', async (options, message) => {
    await prepare()
    const output = inFolder('refused.safetensors')
    const { code, stderr } = await runCli(['convert', input, output, ...options])
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
    expect(existsSync(output)).toBe(false)
  })

  it('refuses infinite values by the name of the tensor, and names that are taken', async () => {
    const bad = inFolder('bad.safetensors')
    const infinite = tensor(Float32Array.of(1, Number.NEGATIVE_INFINITY), { name: 'w', shape: [1, 2] })
    await save(bad, [infinite])
    for (const quantize of ['int8', 'int8:0']) {
      const { stderr } = await runCli(['convert', bad, inFolder('x.npz'), '--quantize', quantize])
      expect(stderr).toContain('Tensor "w" has infinite values')
    }
    await save(bad, [tensor(values, { name: 'w', shape: [4, 6] }), tensor(values, { name: 'w_scale' })])
    const { stderr } = await runCli(['convert', bad, inFolder('x.npz'), '--quantize', 'int8'])
    expect(stderr).toContain('The file has a tensor "w_scale"')
  })
})

function indexOf(flat: number, shape: readonly number[]): number[] {
  const index: number[] = []
  for (const extent of [...shape].reverse()) {
    index.unshift(flat % extent)
    flat = Math.floor(flat / extent)
  }
  return index
}

/** The ranges that scales stand for, element by element. */
function rangesOf(
  values: Float32Array,
  shape: readonly number[],
  { blockSize, axis = shape.length - 1 }: { axis?: number; blockSize?: number },
) {
  const inner = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
  const extent = shape[axis]!
  const blocks = Math.ceil(extent / (blockSize ?? extent))
  const groups = blockSize === undefined ? extent : (values.length / extent) * blocks
  const min = new Float32Array(groups)
  const max = new Float32Array(groups)
  for (const [at, value] of values.entries()) {
    const index = Math.floor(at / inner) % extent
    const outer = Math.floor(at / inner / extent)
    const block = (outer * blocks + Math.floor(index / blockSize!)) * inner + (at % inner)
    const group = blockSize === undefined ? index : block
    // A range contains 0.
    if (value < min[group]!) min[group] = value
    if (value > max[group]!) max[group] = value
  }
  return { min, max }
}
