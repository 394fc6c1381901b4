/**
 * Compares cast, quantize and dequantize with the test data that the ONNX project publishes for Cast, QuantizeLinear and
 * DequantizeLinear.
 */
import { describe, expect, it } from 'vitest'
import {
  asTensor,
  cast,
  type DenseTensor,
  type Dtype,
  dequantize,
  materialize,
  open,
  quantize,
  tensor,
} from '../../lib/index.js'
import { THIRD_PARTY, thirdPartyBytes, thirdPartyPath } from '../shared_fixtures.js'

/** Field 9 (raw_data) of a TensorProto, read by a minimal parser that suffices for these small files. */
function rawData(name: string, file: string): Uint8Array {
  const bytes = thirdPartyBytes(`onnx/node/${name}/test_data_set_0/${file}`)
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const key = varint()
    if (key % 8 === 0) varint()
    else if (key % 8 === 2) {
      const length = varint()
      if (key >> 3 === 9) return bytes.subarray(at, at + length)
      at += length
    } else throw new Error(`wire type ${key % 8} in ${name}`)
  }
  throw new Error(`no raw_data in ${name}/${file}`)
}

const FLOAT8_INPUT = 'test_cast_FLOAT_to_FLOAT8E4M3FN'

describe('published casts from float32', THIRD_PARTY, () => {
  it.each<[string, Dtype, { saturate?: boolean; input?: string }]>([
    ['test_cast_FLOAT_to_FLOAT8E4M3FN', 'float8_e4m3fn', {}],
    // The float8 cases share one input, stored with the first of them.
    [
      'test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN',
      'float8_e4m3fn',
      { saturate: false, input: FLOAT8_INPUT },
    ],
    ['test_cast_FLOAT_to_FLOAT8E4M3FNUZ', 'float8_e4m3fnuz', { input: FLOAT8_INPUT }],
    ['test_cast_FLOAT_to_FLOAT8E5M2', 'float8_e5m2', { input: FLOAT8_INPUT }],
    [
      'test_cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ',
      'float8_e5m2fnuz',
      { saturate: false, input: FLOAT8_INPUT },
    ],
    ['test_cast_FLOAT_to_BFLOAT16', 'bfloat16', {}],
    ['test_cast_FLOAT_to_FLOAT4E2M1', 'float4_e2m1fn', {}],
    ['test_cast_FLOAT_to_INT4', 'int4', {}],
    ['test_cast_e8m0_FLOAT_to_FLOAT8E8M0', 'float8_e8m0fnu', {}],
  ])('%s', async (name, dtype, { saturate = true, input = name }) => {
    const values = asTensor(Uint8Array.from(rawData(input, 'input_0.pb')), { dtype: 'float32' })
    const expected = rawData(name, 'output_0.pb')
    const stored = await cast(values, dtype, { mode: 'onnx', saturate }).bytes()
    expect(stored).toEqual(new Uint8Array(expected))
  })

  it('differ from the specification only for NaN as float4', async () => {
    const raw = rawData('test_cast_FLOAT_to_FLOAT4E2M1', 'input_0.pb')
    const values = asTensor(Uint8Array.from(raw), { dtype: 'float32' })
    const numbers = (await values.toTypedArray()) as Float32Array
    const onnx = await cast(values, 'float4_e2m1fn', { mode: 'onnx' }).toTypedArray()
    const spec = await cast(values, 'float4_e2m1fn').toTypedArray()
    for (const [i, value] of numbers.entries()) {
      expect(spec[i], `${value}`).toBe(Number.isNaN(value) ? 6 : onnx[i])
    }
    expect(Array.from(numbers).some(Number.isNaN)).toBe(true)
  })
})

/** A tensor of a case, in any storage. */
async function published(name: string, file: string): Promise<DenseTensor> {
  const opened = await open(thirdPartyPath(`onnx/node/${name}/test_data_set_0/${file}`), {
    format: 'onnx',
    message: 'TensorProto',
  })
  const owned = await materialize(opened.tensors.at(0) as DenseTensor)
  opened.close()
  return owned
}

/** Stored tensors of cases; the expected values are in the operator tests (onnx/backend/test/case/node). */
describe('published cases of', THIRD_PARTY, () => {
  it('Cast to uint2', async () => {
    const numbers = tensor([-3, -2, -1, 0, 1, 2, 3], { dtype: 'float32', shape: [7, 1] })
    const expected = await published('test_cast_FLOAT_to_UINT2', 'output_0.pb')
    for (const mode of ['spec', 'onnx'] as const) {
      expect(await cast(numbers, 'uint2', { mode }).bytes()).toEqual(await expected.bytes())
    }
  })

  it('QuantizeLinear to int2, along an axis', async () => {
    const numbers = [
      [0, 2.5, 4.8, 8.6],
      [-4, -3, 1, 2],
      [-0, -2.5, -4.8, -8.6],
    ]
    const codes = quantize(tensor(numbers, { dtype: 'float32' }), 'int2', { scale: [2, 3, 4], axis: 0 })
    const expected = await published('test_quantizelinear_int2', 'output_0.pb')
    expect(expected.dtype).toBe('int2')
    expect(await codes.bytes()).toEqual(await expected.bytes())
  })

  it('QuantizeLinear to float8_e4m3fn', async () => {
    const numbers = tensor([0, 1, 2, 100000, 200], { dtype: 'float32' })
    const expected = await published('test_quantizelinear_e4m3fn', 'output_0.pb')
    expect(await quantize(numbers, 'float8_e4m3fn', { scale: 2 }).bytes()).toEqual(await expected.bytes())
  })

  it('DequantizeLinear of int4', async () => {
    const codes = await published('test_dequantizelinear_int4', 'input_0.pb')
    expect(codes.dtype).toBe('int4')
    const found = await dequantize(codes, { scale: 2, zeroPoint: 1 }).toTypedArray()
    expect(found).toEqual(Float32Array.of(-2, 0, 12, -10, -18))
  })
})
