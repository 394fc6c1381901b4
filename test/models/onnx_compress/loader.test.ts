/** The files of `compress --out-dir` as transformers.js loads them: by name, and with values in a file beside the model. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { open, save } from '../../../lib/index.js'
import { runCli } from '../../cli/run_cli.js'
import { runtime } from './onnxruntime.js'
import { recorded } from './recorded.js'

/** Suffixes by `dtype`, as the library's table has them. */
const SUFFIXES = {
  fp16: '_fp16',
  q8: '_quantized',
  int8: '_int8',
  uint8: '_uint8',
  q4: '_q4',
  q4f16: '_q4f16',
  q2: '_q2',
  q2f16: '_q2f16',
  bnb4: '_bnb4',
} as const

/** Largest difference to float32, relative to the largest output. */
const TOLERANCE = {
  fp16: 0.01,
  q8: 0.1,
  int8: 0.1,
  uint8: 0.1,
  q4: 0.4,
  q4f16: 0.4,
  q2: 2,
  q2f16: 2,
  bnb4: 0.4,
} as const

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-loader-'))
  await save(join(folder, 'model.onnx'), await recorded('transformer'))
  const targets = Object.keys(SUFFIXES).join(',')
  const { code } = await runCli([
    'compress',
    join(folder, 'model.onnx'),
    '--to',
    targets,
    '--out-dir',
    join(folder, 'onnx'),
  ])
  expect(code).toBe(0)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The library reads `onnx/NAME_SUFFIX.onnx`, and `…onnx_data` beside it, and gives both to the runtime as bytes. */
async function outputOf(path: string, withData: boolean): Promise<Float32Array> {
  const name = path.split('/').at(-1)!
  const data = { path: `${name}_data`, data: withData ? readFileSync(`${path}_data`) : new Uint8Array(0) }
  const session = await runtime!.InferenceSession.create(readFileSync(path), {
    ...(withData && { externalData: [data] }),
  })
  const ids = BigInt64Array.from({ length: 6 }, (_, at) => BigInt((at * 7) % 50))
  const results = await session.run({ ids: new runtime!.Tensor('int64', ids, [1, 6]) })
  return results[session.outputNames[0]!]!.data
}

function lossOf(found: Float32Array, expected: Float32Array): number {
  const most = Math.max(...expected.map(Math.abs))
  return Math.max(...found.map((number, at) => Math.abs(number - expected[at]!))) / most
}

describe.skipIf(!runtime)('files as transformers.js loads them', () => {
  it.each(Object.entries(SUFFIXES))('%s from model%s.onnx', async (dtype, suffix) => {
    const before = await outputOf(join(folder, 'model.onnx'), false)
    const after = await outputOf(join(folder, 'onnx', `model${suffix}.onnx`), false)
    expect(after.length).toBe(before.length)
    expect(lossOf(after, before)).toBeLessThan(TOLERANCE[dtype as keyof typeof TOLERANCE])
  })

  it('values in model_q4.onnx_data beside the model', async () => {
    const path = join(folder, 'onnx', 'model_q4.onnx')
    const inside = await outputOf(path, false)
    const file = await open(path)
    const outside = join(folder, 'external', 'model_q4.onnx')
    const { mkdirSync } = await import('node:fs')
    mkdirSync(join(folder, 'external'))
    await save(outside, file.onnx!, { external: { location: 'model_q4.onnx_data' } })
    expect(await outputOf(outside, true)).toEqual(inside)
  })
})
