/** `--verify` of compress, edit and convert: nothing wrong is written, and nothing is replaced before it is proved right. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { FakeRuntime } from '../pipeline/comparison/fake_runtime.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
/** A project in which onnxruntime-node is installed, in whose place the test's runtime is. */
const PROJECT = inFolder('project')
const MODEL = inFolder('model.onnx')
const shared = globalThis as { fakeRuntime?: FakeRuntime }

beforeAll(async () => {
  const folder = join(PROJECT, 'node_modules', 'onnxruntime-node')
  mkdirSync(folder, { recursive: true })
  const names = ['InferenceSession', 'Tensor'].map(
    (name) => `get ${name}() { return globalThis.fakeRuntime.${name} }`,
  )
  writeFileSync(join(folder, 'index.js'), `module.exports = { ${names.join(', ')} }`)
  await save(MODEL, model())
})

beforeEach(() => {
  shared.fakeRuntime = new FakeRuntime()
  vi.spyOn(process, 'cwd').mockReturnValue(PROJECT)
})

afterAll(() => {
  vi.restoreAllMocks()
  delete shared.fakeRuntime
})

/** `y = (x + w) * w`. */
function model(): OnnxModel {
  const made = OnnxModel.create({ opset: 17 })
  const type = { kind: 'tensor', dtype: 'float32', shape: ['n', 3] } as const
  made.graph.addInput('x', type)
  made.graph.setInitializer('w', tensor(Float32Array.of(1, 2.001, 3)))
  made.graph.addNode({ opType: 'Add', name: 'sum', inputs: ['x', 'w'], outputs: ['hidden'] })
  made.graph.addNode({ opType: 'Mul', name: 'product', inputs: ['hidden', 'w'], outputs: ['y'] })
  made.graph.setType('hidden', type)
  made.graph.addOutput('y', type)
  return made
}

/** A copy of the model that a test may replace. */
async function copied(name: string): Promise<string> {
  const path = inFolder(name)
  await save(path, model())
  return path
}

it('compress writes a result that is within the tolerance of its target', async () => {
  const output = inFolder('half.onnx')
  const { code, stdout, stderr } = await runCli(['compress', MODEL, '--to', 'fp16', '--verify', '-o', output])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(
    /^verified y: float32 \[2, 3\], 2 of 6 elements differ, error at most \S+, mean \S+, 0\.000\d+ of the largest value, 0\.02 allowed$/m,
  )
  expect(stdout).toContain('inputs of seed 0: x [2, 3]')
  expect(existsSync(output)).toBe(true)
})

it('compress does not write a result beyond it, and replaces nothing', async () => {
  const output = await copied('kept.onnx')
  const before = readFileSync(output)
  const args = ['compress', MODEL, '--to', 'fp16', '--verify', '--tolerance', '1e-6', '-o', output]
  const { code, stdout, stderr } = await runCli(args)
  expect(code).toBe(1)
  expect(stdout).toMatch(/^differs y: /m)
  expect(stderr).toBe(
    `tilework: ${output} was not written: 1 output of 1 is beyond the tolerance of 0.000001.\n`,
  )
  expect(readFileSync(output)).toEqual(before)
  const report = await runJson<{ output?: string; verification: { isWithin: boolean } }>(args, 1)
  expect(report.output).toBe(undefined)
  expect(report.verification).toMatchObject({
    isWithin: false,
    tolerance: 1e-6,
    outputs: [
      { name: 'y', status: 'beyond', different: 2, count: 6, a: { dtype: 'float32', shape: [2, 3] } },
    ],
  })
  const dry = await runCli(['compress', MODEL, '--to', 'fp16', '--verify', '--dry-run'])
  expect([dry.code, dry.stdout.includes('verified y')]).toEqual([0, true])
})

it('edit in place replaces the file only after the proof', async () => {
  const path = await copied('in-place.onnx')
  const before = readFileSync(path)
  const refused = await runCli(['edit', path, '--remove-node', 'sum', '--verify', '-o', path])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('was not written')
  expect(readFileSync(path)).toEqual(before)
  const renamed = await runCli(['edit', path, '--rename', 'y=t', '--rename', 't=z', '--verify', '-o', path])
  expect(renamed.stdout).toContain('verified z (y before): float32 [2, 3], equal')
  expect(renamed.code).toBe(0)
  expect(readFileSync(path)).not.toEqual(before)
})

it('edit compares a part with values inside the whole', async () => {
  const output = inFolder('part.onnx')
  const head = ['edit', MODEL, '--from', 'hidden', '--to', 'y', '--verify', '-o', output]
  expect((await runCli(head)).stdout).toContain('verified y: float32 [2, 3], equal')
  const features = ['edit', MODEL, '--outputs', 'hidden', '--rename', 'hidden=f', '--verify', '-o', output]
  expect((await runCli(features)).stdout).toContain('verified f (hidden before): float32 [2, 3], equal')
  expect((await runCli([...features, '--replace-constant', `w=${await zeros()}`])).code).toBe(1)
})

async function zeros(): Promise<string> {
  const path = inFolder('zeros.npy')
  await save(path, tensor(new Float32Array(3)))
  return path
}

it('convert writes after the proof, and only models are compared', async () => {
  const output = inFolder('converted.onnx')
  const half = ['convert', MODEL, output, '--dtype', 'float16', '--verify']
  expect((await runCli([...half, '--tolerance', '0'])).code).toBe(1)
  expect(existsSync(output)).toBe(false)
  const { code, stdout } = await runCli(half)
  expect([code, stdout.startsWith('verified y')]).toEqual([0, true])
  expect(existsSync(output)).toBe(true)
  const report = await runJson<{ verification: object }>([...half])
  expect(report.verification).toMatchObject({ isWithin: true, tolerance: 0.02 })
  for (const args of [
    [MODEL, inFolder('w.safetensors'), '--verify'],
    [await zeros(), inFolder('x.npz'), '--verify'],
    [MODEL, '--out-dir', inFolder('many'), '--verify'],
  ]) {
    const refused = await runCli(['convert', ...args])
    expect(refused.code).toBe(64)
    expect(refused.stderr).toContain('--verify')
  }
  expect(existsSync(inFolder('w.safetensors'))).toBe(false)
})

it('takes values, seeds and sizes of the caller', async () => {
  const inputs = inFolder('inputs.npz')
  await save(inputs, [tensor(Float32Array.of(1, 2, 3), { shape: [1, 3], name: 'x' })])
  const run = (...flags: string[]) =>
    runCli(['edit', MODEL, '--verify', '-o', inFolder('same.onnx'), ...flags])
  const given = await run('--verify-inputs', inputs)
  expect(given.stdout).toContain('verified y: float32 [1, 3], equal\n')
  expect(given.stdout).not.toContain('inputs of seed')
  expect(shared.fakeRuntime!.feeds[0]!.x!.data).toEqual(Float32Array.of(1, 2, 3))
  const sized = await run('--verify-dim', 'n=5', '--verify-seed', '7')
  expect(sized.stdout).toContain('inputs of seed 7: x [5, 3]')
  for (const flags of [
    ['--verify-seed', 'x'],
    ['--tolerance', 'x'],
    ['--verify-dim', 'n'],
    ['--verify-dim', 'N=1'],
  ])
    expect((await run(...flags)).code).toBe(64)
})

it('takes an npz with names that files cannot have', async () => {
  const name = '/model.10/x?:0'
  const made = model()
  made.graph.rename('x', name)
  await save(inFolder('named.onnx'), made)
  await save(inFolder('named.npz'), [tensor(Float32Array.of(1, 2, 3), { shape: [1, 3], name })])
  const verify = ['--verify', '--verify-inputs', inFolder('named.npz')]
  const run = await runCli(['edit', inFolder('named.onnx'), ...verify, '-o', inFolder('same.onnx')])
  expect(run).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('verified y') })
  expect(shared.fakeRuntime!.feeds[0]![name]!.data).toEqual(Float32Array.of(1, 2, 3))
})

it('refuses its options without --verify, other models, and a folder without the runtime', async () => {
  const output = inFolder('never.onnx')
  for (const flags of [
    ['--tolerance', '0'],
    ['--verify-seed', '1'],
    ['--verify-inputs', MODEL],
    ['--verify-dim', 'n=1'],
  ]) {
    const { code, stderr } = await runCli(['edit', MODEL, '-o', output, ...flags])
    expect([code, stderr]).toEqual([64, expect.stringContaining(`${flags[0]} needs --verify`)])
  }
  vi.spyOn(process, 'cwd').mockReturnValue(inFolder(''))
  const { code, stderr } = await runCli(['edit', MODEL, '--verify', '-o', output])
  expect([code, stderr]).toEqual([64, expect.stringContaining('npm install onnxruntime-node')])
  expect(existsSync(output)).toBe(false)
})
