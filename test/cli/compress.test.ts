/** `tilework compress`: files under the names of transformers.js, a dry run, and refusals. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { check, type DenseTensor, open, save, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { recordedPath } from '../models/onnx_compress/recorded.js'
import { runCli, runJson } from './run_cli.js'

const MODEL = recordedPath('transformer', 'before')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-compress-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it.each([
  ['f16', 'fp16'],
  ['int4', 'q4'],
])('--to %s is %s', async (alias, to) => {
  const plan = async (name: string) => (await runCli(['compress', MODEL, '--to', name, '--dry-run'])).stdout
  expect(await plan(alias)).toBe(await plan(to))
  const { code, stderr } = await runCli(['compress', MODEL, '--to', `${to}x`, '--dry-run'])
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(`did you mean "${to}"`) })
})

it('writes several targets under the names that transformers.js looks for', async () => {
  const all = 'fp16,q8,int8,uint8,q4,q4f16,q2,q2f16,bnb4,qdq'
  const { code, stdout } = await runCli([
    'compress',
    MODEL,
    '--to',
    all,
    '--out-dir',
    join(folder, 'new', 'onnx'),
  ])
  expect(code).toBe(0)
  expect(stdout.split('\n')[0]).toContain('as fp16,')
  const suffixes = ['bnb4', 'fp16', 'int8', 'q2', 'q2f16', 'q4', 'q4f16', 'qdq', 'quantized', 'uint8']
  const made = join(folder, 'new', 'onnx')
  expect(readdirSync(made).sort()).toEqual(suffixes.map((suffix) => `before_${suffix}.onnx`))
  for (const name of readdirSync(made)) {
    const findings = await check(join(made, name))
    expect(
      findings.filter(({ severity }) => severity === 'error'),
      name,
    ).toEqual([])
    expect(statSync(join(made, name)).size).toBeLessThan(statSync(MODEL).size)
  }
})

it('prints what would become what, and why nodes stay, and writes nothing', async () => {
  const { code, stdout } = await runCli(['compress', MODEL, '--to', 'q4', '--dry-run'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/before\.onnx as q4: weights 42\.9 KB → 13\.4 KB|as q4: weights/)
  expect(stdout).toMatch(/wq +float32 +symmetric blocks of 32/)
  expect(stdout).toMatch(/MatMul +its second input is not a weight/)
  expect(stdout).toMatch(/^3 nodes stay as before$/m)
  expect(readdirSync(folder)).toEqual([])
})

it('says why nodes stay only where it is asked, and that --dry-run is how', async () => {
  const { stdout } = await runCli(['compress', MODEL, '--to', 'q4', '-o', join(folder, 'small.onnx')])
  expect(stdout).toMatch(/^3 nodes stay as before; --dry-run says why$/m)
})

it('does not say that a weight is missing where its node is left out', async () => {
  const path = join(folder, 'model.onnx')
  const model = OnnxModel.create()
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 32] })
  model.graph.setInitializer('w', tensor(new Float32Array(512), { shape: [32, 16] }))
  model.graph.addNode({ opType: 'MatMul', name: 'head', inputs: ['x', 'w'], outputs: ['y'] })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 16] })
  await save(path, model)
  const { stdout } = await runCli(['compress', path, '--to', 'q4', '--exclude', 'head', '--dry-run'])
  expect(stdout).toContain('nothing changed: each node that it could change stays')
})

it.each([
  ['q4', 'nothing changed: the model has no MatMul with a float weight that is a matrix; --tidy finds'],
  ['fp16', 'nothing changed: the model has no float32 value that can be float16\n'],
])('says why %s of such a model changes nothing', async (to, reason) => {
  const path = join(folder, 'model.onnx')
  const model = OnnxModel.create()
  model.graph.addInput('x', { kind: 'tensor', dtype: 'int32', shape: [4] })
  model.graph.setInitializer('y', tensor(Int32Array.of(1, 2, 3, 4), { shape: [4] }))
  model.graph.addNode({ opType: 'Add', inputs: ['x', 'y'], outputs: ['z'] })
  model.graph.addOutput('z', { kind: 'tensor', dtype: 'int32', shape: [4] })
  await save(path, model)
  const { code, stdout } = await runCli(['compress', path, '--to', to, '--dry-run'])
  expect(code).toBe(0)
  expect(stdout).toContain('(100 %)\n')
  expect(stdout).toContain(reason)
  expect(stdout).not.toContain('weight  from')
})

it('gives the same facts as JSON', async () => {
  const output = join(folder, 'half.onnx')
  const report = await runJson<{ to: string; output: string; tensors: unknown[]; bytesAfter: number }>([
    ...['compress', MODEL, '--to', 'fp16', '-o', output, '--json'],
  ])
  expect(report).toMatchObject({ to: 'fp16', output })
  expect(report.tensors.length).toBeGreaterThan(5)
  expect((await open(output)).onnx!.graph.initializer('wq')?.dtype).toBe('float16')
})

it('finds weights behind Transpose with --tidy, and says what it changed', async () => {
  const path = join(folder, 'model.onnx')
  const model = OnnxModel.create()
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 32] })
  graph.setInitializer('w', tensor(new Float32Array(512).fill(0.5), { shape: [16, 32] }))
  graph.addNode({ opType: 'Transpose', inputs: ['w'], outputs: ['t'] })
  graph.addNode({ opType: 'MatMul', inputs: ['x', 't'], outputs: ['y'] })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 16] })
  await save(path, model)
  const plain = ['compress', path, '--to', 'q8', '--dry-run']
  expect((await runCli(plain)).stdout).toContain('its second input is not a weight')
  const { stdout } = await runCli([...plain, '--tidy'])
  expect(stdout).toContain('tidied: fold-weights 1\n')
  expect(stdout).toMatch(/^t +float32 +int8/m)
  const { tidied } = await runJson<{ tidied: { changes: number }[] }>([...plain, '--tidy', '--json'])
  expect(tidied).toContainEqual({ pass: 'fold-weights', changes: 1, nodes: ['t'] })
})

it('takes the external data of a model, and writes one file', async () => {
  const output = join(folder, 'small.onnx')
  const external = recordedPath('matmul', 'before-external')
  expect((await runCli(['compress', external, '--to', 'q4', '-o', output])).code).toBe(0)
  expect(readdirSync(folder)).toEqual(['small.onnx'])
})

it.each([
  [['--to', 'q5', '--dry-run'], '"q5"'],
  [['--to', 'q4'], '-o FILE'],
  [['--to', 'q4,fp16', '-o', 'x.onnx'], '--out-dir'],
  [['--to', 'q4', '-o', 'x.onnx', '--block-size', '24'], 'power of two'],
  [['--to', 'fp16', '-o', 'weights.safetensors'], 'must end in .onnx'],
  [['--to', 'q4', '--dry-run', '--exclude', 'MatMull'], '--exclude: the model has no node "MatMull"'],
  [['--to', 'fp16', '--dry-run', '--block-node', 'nope'], '--block-node: the model has no node "nope"'],
  [['--to', 'fp16', '--dry-run', '--block-op', 'matmul'], 'did you mean "MatMul"?'],
])('refuses %j', async (flags, word) => {
  const { code, stderr } = await runCli(['compress', MODEL, ...flags])
  expect(code).toBe(64)
  expect(stderr).toContain(word)
})

it('is what convert --dtype float16 does with a model', async () => {
  const [converted, compressed] = [join(folder, 'a.onnx'), join(folder, 'b.onnx')]
  expect((await runCli(['convert', MODEL, converted, '--dtype', 'float16'])).code).toBe(0)
  expect((await runCli(['compress', MODEL, '--to', 'fp16', '-o', compressed])).code).toBe(0)
  expect(existsSync(converted)).toBe(true)
  const nodes = async (path: string): Promise<string[]> =>
    (await open(path)).onnx!.graph.nodes.map(({ opType }) => opType)
  expect(await nodes(converted)).toEqual(await nodes(compressed))
})

it('quantizes activations too with ranges from a file', async () => {
  const ranges = recordedPath('cnn', 'ranges').replace(/\.onnx$/, '.json')
  const output = join(folder, 'static.onnx')
  const { code } = await runCli([
    'compress',
    recordedPath('cnn', 'before'),
    '--to',
    'qdq',
    '--ranges',
    ranges,
    '-o',
    output,
  ])
  expect(code).toBe(0)
  const file = await open(output)
  const operators = file.onnx!.graph.nodes.map(({ opType }) => opType)
  expect(operators.filter((each) => each === 'QuantizeLinear')).toHaveLength(7)
  file.close()
  const wrong = await runCli(['compress', MODEL, '--to', 'q4', '--ranges', ranges, '-o', output])
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('--ranges needs --to qdq.')
})

it('takes a calibration cache of text as ranges', async () => {
  const ranges = join(folder, 'calibration.cache')
  const json = JSON.parse(readFileSync(recordedPath('cnn', 'ranges').replace(/\.onnx$/, '.json'), 'utf8'))
  writeFileSync(ranges, `${Object.keys(json).join(' 2\n')} 2\n`)
  const output = join(folder, 'static.onnx')
  const command = ['compress', recordedPath('cnn', 'before'), '--to', 'qdq', '--ranges', ranges, '-o', output]
  expect((await runCli(command)).code).toBe(0)
  const file = await open(output)
  const scale = file.onnx!.graph.initializer('x_scale') as DenseTensor
  expect(await scale.toTypedArray()).toEqual(Float32Array.of(4 / 255))
  file.close()
})

it('quantizes activations to 16 bits and weights to 4 where they are asked for', async () => {
  const ranges = recordedPath('cnn', 'ranges').replace(/\.onnx$/, '.json')
  const command = ['compress', recordedPath('cnn', 'before'), '--to', 'qdq']
  const types = ['--activation-type', 'uint16', '--weight-type', 'int4']
  const output = join(folder, 'static.onnx')
  expect((await runCli([...command, '--ranges', ranges, ...types, '-o', output])).code).toBe(0)
  const file = await open(output)
  const typeOf = (name: string) => (file.onnx!.graph.initializer(name) as DenseTensor).dtype
  expect([typeOf('x_zero_point'), typeOf('w1_quantized')]).toEqual(['uint16', 'int4'])
  file.close()
  const sensitivity = await runCli([...command, '--ranges', ranges, ...types, '--sensitivity'])
  const eight = await runCli([...command, '--ranges', ranges, '--sensitivity'])
  expect(sensitivity.stdout).not.toBe(eight.stdout)
})

it.each([
  [['--to', 'qdq', '--weight-type', 'int4'], '--weight-type needs --to qdq with --ranges'],
  [['--to', 'q8', '--activation-type', 'int8'], '--activation-type needs --to qdq with --ranges'],
  [['--to', 'qdq', '--ranges', 'RANGES', '--weight-type', 'int2'], 'it must be one of int4, uint4, int8,'],
])('refuses %j', async (options, message) => {
  const ranges = recordedPath('cnn', 'ranges').replace(/\.onnx$/, '.json')
  const given = options.map((each) => (each === 'RANGES' ? ranges : each))
  const { code, stderr } = await runCli(['compress', recordedPath('cnn', 'before'), ...given, '--dry-run'])
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(message) })
})

it('prints the error of each weight, worst first', async () => {
  const { code, stdout } = await runCli(['compress', MODEL, '--to', 'q4', '--sensitivity'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/weight +node +max error +RMS +SQNR dB +below the best \(full: 6.0 dB\)\n/)
  expect(stdout).toMatch(/wq +MatMul .*[▏▎▍▌▋▊▉█]\n/)
  expect(readdirSync(folder)).toEqual([])
  const { errors } = (await runJson(['compress', MODEL, '--to', 'q8', '--sensitivity', '--json'])) as {
    readonly errors: readonly { readonly sqnr: number }[]
  }
  expect(errors.length).toBeGreaterThan(4)
  expect(errors.every(({ sqnr }, at) => at === 0 || sqnr >= errors[at - 1]!.sqnr)).toBe(true)
})

it('draws a full bar for the worst weight, and hardly one for the best', async () => {
  const path = join(folder, 'model.onnx')
  const model = OnnxModel.create()
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 32] })
  // One outlier takes the codes of its whole block.
  const plain = Float32Array.from({ length: 1024 }, (_, at) => Math.sin(at))
  graph.setInitializer('plain', tensor(plain, { shape: [32, 32] }))
  graph.setInitializer(
    'outliers',
    tensor(
      plain.map((value, at) => (at < 32 ? 8 : value)),
      { shape: [32, 32] },
    ),
  )
  graph.addNode({ opType: 'MatMul', inputs: ['x', 'plain'], outputs: ['y'] })
  graph.addNode({ opType: 'MatMul', inputs: ['y', 'outliers'], outputs: ['z'] })
  graph.addOutput('z', { kind: 'tensor', dtype: 'float32', shape: [1, 32] })
  await save(path, model)
  const { stdout } = await runCli(['compress', path, '--to', 'q4', '--sensitivity'])
  const lengths = [...stdout.matchAll(/ ([▏▎▍▌▋▊▉█]+)\n/g)].map(([, bar]) => bar!.length)
  expect(lengths).toEqual([20, 1])
})

it('draws no bar where every weight stays exact', async () => {
  const path = join(folder, 'model.onnx')
  const model = OnnxModel.create()
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 2] })
  graph.setInitializer('w', tensor(Float32Array.of(0.5, 1, 2, 4), { shape: [2, 2] }))
  graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 2] })
  await save(path, model)
  const { stdout } = await runCli(['compress', path, '--to', 'fp16', '--sensitivity'])
  expect(stdout).toContain('exact')
  expect(stdout).toContain('full: 6.0 dB')
})

it('makes a float16 model a float32 one again, inputs and outputs too unless they are to stay', async () => {
  const [half, full, kept] = ['half.onnx', 'full.onnx', 'kept.onnx'].map((name) => join(folder, name))
  expect((await runCli(['compress', MODEL, '--to', 'fp16', '--no-keep-io', '-o', half!])).code).toBe(0)
  const { code, stdout } = await runCli(['compress', half!, '--to', 'fp32', '-o', full!])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^\S+ as fp32, \S+: weights .* \(200 %\)/)])
  expect((await runCli(['compress', half!, '--to', 'fp32', '--keep-io', '-o', kept!])).code).toBe(0)
  expect((await runCli(['convert', half!, join(folder, 'converted.onnx'), '--dtype', 'float32'])).code).toBe(
    0,
  )
  const dtypes = await Promise.all(
    [MODEL, full!, kept!, join(folder, 'converted.onnx')].map(async (path) => {
      using file = await open(path)
      const { graph } = file.onnx!
      const weights = [...graph.initializers()].map(({ dtype }) => dtype).filter((each) => each !== 'int64')
      return [
        graph.nodes.length,
        new Set(weights),
        graph.outputs.map(({ type }) => (type as { dtype: string }).dtype),
      ]
    }),
  )
  const [before, after, ends, converted] = dtypes
  expect(after).toEqual(before)
  expect(converted).toEqual(before)
  expect(ends).toEqual([Number(before![0]) + 1, before![1], ['float16']])
  const { stderr } = await runCli(['compress', half!, '--to', 'fp32', '--sensitivity'])
  expect(stderr).toContain('weights lose nothing as fp32')
})

it('raises the opset of a model where it is asked, and says so', async () => {
  const path = join(folder, 'old.onnx')
  const model = OnnxModel.create({ opset: 9 })
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 32] })
  model.graph.setInitializer('w', tensor(new Float32Array(512).fill(0.5), { shape: [32, 16] }))
  model.graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 16] })
  await save(path, model)
  const args = ['compress', path, '--to', 'q8']
  const refused = await runCli([...args, '--dry-run'])
  expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining('--opset auto')])
  const raised = await runCli([...args, '--opset', 'auto', '-o', join(folder, 'raised.onnx')])
  expect([raised.code, raised.stdout]).toEqual([0, expect.stringMatching(/^opset 9 converted to 11 first\n/)])
  expect(await runJson([...args, '--opset', '17', '--dry-run'])).toMatchObject({ opset: { from: 9, to: 17 } })
  const { code, stderr } = await runCli([...args, '--opset', '8', '--dry-run'])
  expect([code, stderr]).toEqual([64, expect.stringContaining('cannot be converted down to 8')])
  expect((await runCli([...args, '--opset', 'newest', '--dry-run'])).code).toBe(64)
})

it('takes 2 bits for --sensitivity of q2', async () => {
  const worst = async (to: string): Promise<number> => {
    const { errors } = await runJson<{ errors: { sqnr: number }[] }>([
      'compress',
      MODEL,
      '--to',
      to,
      '--sensitivity',
    ])
    return errors[0]!.sqnr
  }
  expect((await worst('q4')) - (await worst('q2'))).toBeGreaterThan(6)
})
