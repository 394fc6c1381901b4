/** Casts against the test data that the ONNX project publishes for its Cast operator, where that is at hand. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { asTensor, cast, type Dtype } from '../../lib/index.js'

const folder = resolve(import.meta.dirname, '../../../shared/fixtures/onnx/node')
const hasData = existsSync(folder)
if (!hasData) console.warn(`skipped: ONNX's test data are not in ${folder}`)

/** Field 9 (raw_data) of a TensorProto: a walk over the wire format, enough for these small files. */
function rawData(name: string, file: string): Uint8Array {
  const bytes = readFileSync(join(folder, name, 'test_data_set_0', file))
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

describe.skipIf(!hasData)('published casts from float32', () => {
  it.each<[string, Dtype, { saturate?: boolean; input?: string }]>([
    ['test_cast_FLOAT_to_FLOAT8E4M3FN', 'float8_e4m3fn', {}],
    // The float8 cases share one input, which is kept with the first of them.
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

  it('differ from the specification in NaN as float4 alone', async () => {
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
