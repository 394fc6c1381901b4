/** Casts on a device are bit-identical to casts on the CPU. */
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype } from '../../lib/dtype/dtypes.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { cast } from '../../lib/tensor/cast.js'
import { materialize } from '../../lib/tensor/materialize.js'
import { reorder } from '../../lib/tensor/reorder.js'
import type { DenseTensor } from '../../lib/tensor/tensor.js'
import { hasDevice, noise } from './compare.js'

const REALS = Object.values(DTYPES)
  .filter(({ bits, kind, name }) => bits !== 6 && kind !== 'complex' && name !== 'string')
  .map(({ name }) => name)

/** Source bytes that include every float16 and bfloat16 code. */
function allCodes(dtype: Dtype): DenseTensor {
  const { bits } = DTYPES[dtype]
  const elements = 19 * 4096
  const bytes = bits === 16 ? new Uint8Array(elements * 2) : noise(Math.ceil((elements * bits) / 8))
  if (bits === 16) {
    const view = new DataView(bytes.buffer)
    for (let i = 0; i < elements; i++) view.setUint16(i * 2, i & 0xffff, true)
  }
  return asTensor({ dtype, shape: [1, 19, 64, 64], bytes: () => bytes })
}

async function expectSame(lazy: DenseTensor): Promise<void> {
  const wanted = await (await materialize(lazy)).bytes()
  const found = await (await materialize(lazy, { device: 'opencl' })).bytes()
  expect(Buffer.compare(wanted, found)).toBe(0)
}

describe.skipIf(!hasDevice)('casts on an OpenCL device', () => {
  const others = REALS.filter((dtype) => dtype !== 'float32')

  it.each(others)('float32 to %s', (to) => expectSame(cast(allCodes('float32'), to)))
  it.each(others)('%s to float32', (from) => expectSame(cast(allCodes(from), 'float32')))

  it('as ONNX, without saturation, and with each rounding of scales', async () => {
    for (const to of ['float8_e4m3fn', 'float8_e5m2', 'float8_e8m0fnu', 'float4_e2m1fn'] as const) {
      await expectSame(cast(allCodes('float32'), to, { mode: 'onnx' }))
      await expectSame(cast(allCodes('float32'), to, { saturate: false, round: 'nearest' }))
      await expectSame(cast(allCodes('float32'), to, { round: 'down' }))
    }
  })

  it('fused into a reorder, chained, with zero holes', async () => {
    const halves = cast(cast(allCodes('float32'), 'bfloat16'), 'float16')
    await expectSame(reorder(halves, 'b_fs_yx_fsv16'))
    await expectSame(reorder(cast(allCodes('float16'), 'float8_e8m0fnu'), 'b_fs_yx_fsv16'))
    await expectSame(reorder(cast(allCodes('int8'), 'int4'), 'b_fs_yx_fsv4'))
  })

  it.each(['float6_e2m3fn', 'float6_e3m2fn'] as const)('rejects %s', async (dtype) => {
    for (const lazy of [cast(allCodes('float32'), dtype), cast(allCodes(dtype), 'float32')]) {
      await expect(materialize(lazy, { device: 'opencl' })).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    }
  })

  it('rejects complex numbers', async () => {
    const complex = asTensor({ dtype: 'complex64', shape: [1, 2, 2, 1], bytes: () => new Uint8Array(32) })
    await expect(materialize(cast(complex, 'complex128'), { device: 'opencl' })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    })
  })
})
