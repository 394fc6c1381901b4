/** Third-party ONNX files: their contents, and saving them byte for byte. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { check, open, save, serialize } from '../../../lib/index.js'
import type { FileMessage } from '../../../lib/models/onnx/index.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../shared_fixtures.js'

const FILES = thirdPartyFiles('onnx').map(({ path, sha256 }) => ({
  name: path.slice('onnx/'.length),
  sha256,
}))

const pathOf = (name: string): string => thirdPartyPath(`onnx/${name}`)
const out = mkdtempSync(join(tmpdir(), 'tilework-onnx-'))
afterAll(() => rmSync(out, { recursive: true }))

/** Contents of the files, from their manifest and from the operators that made them. */
const VALUES: readonly [name: string, dtype: string, shape: number[], values: (number | bigint)[]][] = [
  ['node/test_cast_FLOAT_to_INT4/test_data_set_0/output_0.pb', 'int4', [5, 5], [7, -8, -7, -6, -5, -4]],
  ['node/test_cast_FLOAT_to_UINT2/test_data_set_0/output_0.pb', 'uint2', [7, 1], [1, 2, 3, 0, 1, 2, 3]],
  ['node/test_dequantizelinear_int4/test_data_set_0/input_0.pb', 'int4', [5], [0, 1, 7, -4, -8]],
  [
    'node/test_quantizelinear_int2/test_data_set_0/output_0.pb',
    'int2',
    [3, 4],
    [0, 1, 1, 1, -1, -1, 0, 1, 0],
  ],
  ['node/test_quantizelinear_e4m3fn/test_data_set_0/output_0.pb', 'float8_e4m3fn', [5], [0, 0.5, 1, 448, 96]],
  [
    'node/test_cast_e8m0_FLOAT_to_FLOAT8E8M0/test_data_set_0/output_0.pb',
    'float8_e8m0fnu',
    [2, 4],
    [2 ** -127, 0.125, 0.25, 0.5, 2, 2, 4, 8],
  ],
  [
    'node/test_cast_FLOAT_to_FLOAT4E2M1/test_data_set_0/output_0.pb',
    'float4_e2m1fn',
    [3, 5],
    [0.5, 0, 1, -4, -6, 6],
  ],
  ['node/test_castlike_FLOAT_to_BFLOAT16/test_data_set_0/input_1.pb', 'bfloat16', [0], []],
  ['simple/test_gradient_of_add_and_mul/test_data_set_0/input_0.pb', 'float32', [], [1]],
  ['simple/test_sequence_model8/test_data_set_0/input_0.pb', 'float32', [0], []],
  ['simple/test_sequence_model1/model.onnx', 'int64', [], [1n]],
]

describe('the real files', THIRD_PARTY, () => {
  it.each(FILES)('$name opens without findings and is saved byte for byte', async ({ name, sha256 }) => {
    const file = await open(pathOf(name), { level: 'strict' })
    expect(file.format).toBe('onnx')
    const codes = [...file.findings, ...(await check(pathOf(name), { level: 'strict' }))].map(
      ({ code }) => code,
    )
    expect(codes.filter((code) => code !== 'AMBIGUOUS_MESSAGE')).toEqual([])
    for (const tensor of file.tensors) {
      if (tensor.kind === 'dense') expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
      if (tensor.kind === 'string') expect((await tensor.strings()).length).toBe(tensor.size)
    }
    const target = join(out, name.replaceAll('/', '-'))
    await save(target, file)
    const saved = readFileSync(target)
    expect(createHash('sha256').update(saved).digest('hex')).toBe(sha256)
    expect(Buffer.from(await serialize(file)).equals(saved)).toBe(true)
    file.close()
  })

  it.each(VALUES)('%s is %s %j', async (name, dtype, shape, values) => {
    using file = await open(pathOf(name))
    const tensor = file.dense(0)
    expect([tensor.dtype, tensor.shape]).toEqual([dtype, shape])
    expect([...(await tensor.toTypedArray())].slice(0, values.length)).toEqual(values)
  })

  it.each([
    [
      'node/test_identity_sequence/test_data_set_0/input_0.pb',
      'SequenceProto',
      [
        [1, 2, 3, 4],
        [2, 3, 1, 5],
      ],
    ],
    ['node/test_loop16_seq_none/test_data_set_0/input_2.pb', 'OptionalProto', [[0]]],
    ['node/test_optional_has_element_empty_optional_input/test_data_set_0/input_0.pb', 'OptionalProto', []],
  ] as const)('%s as the %s that it is', async (name, message, values) => {
    for (const options of [{}, { message: message as FileMessage }]) {
      using file = await open(pathOf(name), options)
      const all = await Promise.all([...file.tensors].map((_, index) => file.dense(index).toTypedArray()))
      expect(all.map((array) => [...array])).toEqual(values)
    }
  })

  it('finds the 52 initializers of SqueezeNet by name', async () => {
    using file = await open(pathOf('light/light_squeezenet.onnx'), { mode: 'read' })
    expect(file.tensors.length).toBe(52)
    expect([...(await file.dense('conv10_w_0__SHAPE').toTypedArray())]).toEqual([1000n, 512n, 1n, 1n])
  })

  it('reads the strings of the weekdays', async () => {
    using file = await open(
      pathOf('simple/test_strnorm_model_monday_casesensintive_lower/test_data_set_0/input_0.pb'),
    )
    const tensor = file.tensors.at(0)!
    expect(tensor.kind === 'string' && (await tensor.strings())).toEqual([
      'monday',
      'tuesday',
      'wednesday',
      'thursday',
    ])
  })
})
