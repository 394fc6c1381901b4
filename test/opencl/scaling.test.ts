/** quantize, dequantize and affine on a device give the same codes as on the CPU, ties included. */
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype } from '../../lib/dtype/dtypes.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { affine } from '../../lib/tensor/affine.js'
import { cast } from '../../lib/tensor/cast.js'
import type { FusedTensor } from '../../lib/tensor/fused.js'
import { materialize } from '../../lib/tensor/materialize.js'
import { dequantize, quantize } from '../../lib/tensor/quantize.js'
import { reorder } from '../../lib/tensor/reorder.js'
import { slice } from '../../lib/tensor/slice.js'
import type { DenseTensor } from '../../lib/tensor/tensor.js'
import { compareWithCpu, hasDevice, noise } from './compare.js'

const SHAPE = [2, 19, 24, 13]
const ELEMENTS = 2 * 19 * 24 * 13

/** Ties of all codes, their neighbours, limits, NaN and random bits. */
function floats(): DenseTensor {
  const values = new Float32Array(noise(ELEMENTS * 4).buffer)
  const bits = new Int32Array(values.buffer)
  values.set([0, -0, Number.NaN, Infinity, -Infinity, 1e-45, -1e-45, 3e38, -3e38])
  for (let half = -600; half <= 600; half++) {
    const at = 100 + (half + 600) * 3
    values.fill((half / 2) * 0.25, at, at + 3)
    bits[at + 1]! += 1
    bits[at + 2]! -= 1
  }
  // Quotients near ties for a scale that is not a power of two.
  for (let i = 4000; i < 8000; i++) values[i] = Math.fround((i - 6000) / 2) * Math.fround(0.013)
  return asTensor({ dtype: 'float32', shape: SHAPE, bytes: () => new Uint8Array(values.buffer) })
}

function doubles(): DenseTensor {
  const values = new Float64Array(noise(ELEMENTS * 8).buffer)
  for (let i = 0; i < 8000; i++) values[i] = ((i - 4000) / 2) * (i % 2 === 0 ? 0.25 : 0.013)
  values.set([0, -0, Number.NaN, Infinity, -Infinity, 5e-324, 1e308])
  return asTensor({ dtype: 'float64', shape: SHAPE, bytes: () => new Uint8Array(values.buffer) })
}

function codes(dtype: Dtype): DenseTensor {
  const bytes = noise(Math.ceil((ELEMENTS * DTYPES[dtype].bits) / 8))
  return asTensor({ dtype, shape: SHAPE, bytes: () => bytes })
}

async function expectSame(lazy: DenseTensor): Promise<void> {
  const wanted = await (await materialize(lazy)).bytes()
  const found = await (await materialize(lazy, { device: 'opencl' })).bytes()
  expect(Buffer.compare(found, wanted)).toBe(0)
}

/** Runs a specialized kernel, as large results do, both in place and copied in windows. */
async function expectSameByOwnKernel(lazy: DenseTensor): Promise<void> {
  const { base, to, casts } = (lazy as FusedTensor).recipe
  const { layout, lower, upper } = base.storage
  const plan = {
    dtype: base.dtype,
    shape: base.shape,
    from: { layout, lower, upper },
    to,
    casts: casts!,
    source: Uint8Array.from(await base.bytes()),
  }
  for (const isCopied of [false, true]) {
    await compareWithCpu({ ...plan, settings: { ownKernelBytes: 0 }, isCopied })
  }
}

const INTEGERS = ['int8', 'uint8', 'int4', 'uint4', 'int2', 'uint2', 'int16', 'uint16', 'int32'] as const
const SMALL_FLOATS = [
  'float8_e4m3fn',
  'float8_e4m3fnuz',
  'float8_e5m2',
  'float8_e5m2fnuz',
  'float4_e2m1fn',
] as const
/** One per channel. */
const SCALES = Array.from({ length: 19 }, (_, i) => (i % 2 === 0 ? 0.25 : 0.013 * (i + 1)))

describe.skipIf(!hasDevice)('on an OpenCL device', () => {
  it.each(INTEGERS)('float32 and float64 become %s by both rounding rules', async (dtype) => {
    const zeroPoint = dtype.startsWith('u') ? 1 : dtype === 'int32' ? 0 : -1
    for (const scale of [0.25, 0.013]) {
      for (const tensor of [floats(), doubles()]) {
        await expectSame(quantize(tensor, dtype, { scale, zeroPoint }))
        await expectSame(quantize(tensor, dtype, { scale, zeroPoint, rules: 'tmfile' }))
      }
    }
  })

  it.each(SMALL_FLOATS)('float32 becomes %s', async (dtype) => {
    await expectSame(quantize(floats(), dtype, { scale: 0.013 }))
    await expectSame(quantize(floats(), dtype, { scale: 3, saturate: false }))
  })

  it.each([...INTEGERS, ...SMALL_FLOATS])('%s is dequantized', async (dtype) => {
    for (const to of ['float32', 'float16', 'bfloat16', 'float64'] as const) {
      await expectSame(dequantize(codes(dtype), { scale: 0.013, dtype: to }))
    }
    if (!dtype.startsWith('float')) await expectSame(dequantize(codes(dtype), { scale: 0.25, zeroPoint: 1 }))
  })

  it.each(['uint8', 'int8', 'int32', 'float16', 'float32', 'float64', 'int64'] as const)(
    'an affine map of %s',
    async (dtype) => {
      const tensor = dtype === 'float32' ? floats() : dtype === 'float64' ? doubles() : codes(dtype)
      await expectSame(affine(tensor, { scale: 0.013, bias: -1.7 }))
      await expectSame(affine(tensor, { scale: -1e-30, bias: 1e-38 }))
      // Sums that cancel.
      await expectSame(affine(tensor, { scale: 1 / 3, bias: -41.666668 }))
      await expectSame(affine(tensor, { scale: 1e300, bias: 0, dtype: 'float64' }))
    },
  )

  it('large results have the same codes', async () => {
    const zeroPoint = SCALES.map((_, i) => i - 9)
    const quantized = quantize(floats(), 'int8', { scale: SCALES, zeroPoint, axis: 1 })
    // Kernels for tiles, words and nibbles.
    await expectSameByOwnKernel(reorder(quantized, 'byxf'))
    await expectSameByOwnKernel(reorder(quantized, 'b_fs_yx_fsv4'))
    await expectSameByOwnKernel(reorder(quantize(floats(), 'int4', { scale: 0.013 }), 'b_fs_yx_fsv16'))
    await expectSameByOwnKernel(quantize(doubles(), 'uint8', { scale: 0.013, rules: 'tmfile' }))
    await expectSameByOwnKernel(affine(codes('uint8'), { scale: SCALES, bias: zeroPoint, axis: 1 }))
  })

  it('parameters follow their channels and blocks through layouts, slices and casts', async () => {
    const perChannel = { scale: SCALES, axis: 1 }
    const zeroPoint = SCALES.map((_, i) => i - 9)
    const quantized = quantize(floats(), 'int8', { ...perChannel, zeroPoint })
    await expectSame(quantized)
    await expectSame(reorder(quantized, 'b_fs_yx_fsv16'))
    await expectSame(reorder(quantized, 'byxf'))
    await expectSame(slice(reorder(quantized, 'b_fs_yx_fsv4'), [{}, { start: 3, end: 16 }]))
    const blocked = Array.from({ length: 2 * 19 * 3 * 13 }, (_, i) => 0.01 * (1 + (i % 37)))
    const small = quantize(cast(floats(), 'float16'), 'int4', { scale: blocked, axis: 2, blockSize: 8 })
    await expectSame(reorder(small, 'b_fs_yx_fsv16'))
    await expectSame(cast(dequantize(codes('uint8'), { ...perChannel, zeroPoint: 128 }), 'bfloat16'))
    const [mean, std] = [SCALES, SCALES.map((scale) => scale + 1)]
    await expectSame(reorder(affine(codes('uint8'), { mean, std, axis: 1 }), 'b_fs_yx_fsv8'))
  })
})
