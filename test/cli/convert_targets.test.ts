/** `tilework convert`: names of outputs, and what is checked before the input is opened. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { convert, open, save, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const INPUT = inFolder('in.safetensors')
const VALUES = tensor(Float32Array.of(1, 2, 3), { name: 'w' })

beforeAll(() => save(INPUT, [VALUES]))

it('a folder as input names the pattern for its files', async () => {
  const folder = inFolder('shapes')
  mkdirSync(folder)
  writeFileSync(join(folder, 'notes.txt'), '')
  writeFileSync(join(folder, 'a.npz'), '')
  const { code, stderr } = await runCli(['convert', folder, inFolder('out')])
  expect(code).toBe(64)
  expect(stderr).toContain(`tilework convert '${folder}/**/*.npz' --out-dir ${inFolder('out')}`)
  expect((await runCli(['inspect', folder])).stderr).toContain(`${folder} is a folder; name a file in it.`)
})

describe('the extension of an output', () => {
  it('is refused where it is unknown, with the extensions that are known', async () => {
    const output = inFolder('out.safetensor')
    const { code, stderr } = await runCli(['convert', INPUT, output])
    expect(code).toBe(64)
    expect(stderr).toContain('unknown extension ".safetensor"; did you mean ".safetensors" or ')
    const { stderr: other } = await runCli(['convert', INPUT, inFolder('out.q')])
    expect(other).toContain('unknown extension ".q"; expected one of: .npy, .npz, .gguf, .safetensors,')
    expect(stderr).not.toContain('.tflite')
    expect(stderr).toContain('For another name set --format.')
    expect(existsSync(output)).toBe(false)
    await expect(convert(INPUT, output)).rejects.toThrow('set the option format')
    const file = await open(INPUT)
    await expect(convert(file, output)).rejects.toThrow('unknown extension')
    await expect(save(output, file)).rejects.toThrow('unknown extension')
    file.close()
  })

  it('may be any with --format, the one of the input, or none', async () => {
    const other = inFolder('blob.bin')
    copyFileSync(INPUT, other)
    expect(await runCli(['convert', INPUT, inFolder('x.weights'), '--format', 'npz'])).toMatchObject({
      code: 0,
    })
    expect(await runCli(['convert', other, inFolder('y.bin')])).toMatchObject({ code: 0 })
    expect(await runCli(['convert', INPUT, inFolder('noext')])).toMatchObject({ code: 0 })
    expect(readFileSync(inFolder('y.bin'))).toEqual(readFileSync(INPUT))
    expect(readFileSync(inFolder('noext'))).toEqual(readFileSync(INPUT))
  })

  it('is asked for where tensors of no file are saved', async () => {
    const message = 'noext has no extension that names a format; set the option format to one of: npy, npz'
    await expect(save(inFolder('noext2'), [VALUES])).rejects.toThrow(message.replace('noext', 'noext2'))
    expect(existsSync(inFolder('noext2'))).toBe(false)
    await save(inFolder('noext2'), [VALUES], { format: 'npy' })
    expect(readFileSync(inFolder('noext2')).subarray(1, 6).toString()).toBe('NUMPY')
  })
})

describe('the graph of a model', () => {
  const MODEL = inFolder('model.onnx')
  beforeAll(async () => {
    const model = OnnxModel.create()
    model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 2] })
    model.graph.setInitializer('w', tensor(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] }))
    model.graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
    model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 2] })
    await save(MODEL, model)
    await save(inFolder('model.tmfile'), smallModel())
  })

  it('is kept, or the conversion is refused and names --weights-only', async () => {
    const output = inFolder('half.onnx')
    expect((await runCli(['convert', MODEL, inFolder('kept.onnx'), '--dtype', 'float16'])).code).toBe(0)
    const kept = (await open(inFolder('kept.onnx'))).onnx!.graph
    expect(kept.nodes.map(({ opType }) => opType)).toEqual(['Cast', 'MatMul', 'Cast'])
    const { code, stderr } = await runCli(['convert', MODEL, output, '--dtype', 'int8'])
    expect(code).toBe(64)
    expect(stderr).toMatch(/is a model of 1 nodes?, .* --weights-only/)
    expect(existsSync(output)).toBe(false)
    const tmfile = await runCli([
      'convert',
      inFolder('model.tmfile'),
      inFolder('x.tmfile'),
      '--dtype',
      'int8',
    ])
    expect(tmfile).toMatchObject({ code: 64, stderr: expect.stringContaining('--weights-only') })
  })

  it.each(['onnx', 'safetensors', 'npz'])('is left out with --weights-only in %s', async (format) => {
    const output = inFolder(`half.${format}`)
    const args = ['convert', MODEL, output, '--dtype', 'float16', '--weights-only', '--quiet']
    expect(await runCli(args)).toEqual({ code: 0, stdout: '', stderr: '' })
    const file = await open(output)
    expect([...file.tensors].map(({ name, dtype, shape }) => ({ name, dtype, shape }))).toEqual([
      { name: 'w', dtype: 'float16', shape: [2, 2] },
    ])
    expect(file.onnx?.graph.nodes ?? []).toEqual([])
    file.close()
  })

  it('takes the constants of a tmfile with --weights-only', async () => {
    const output = inFolder('weights.tmfile')
    const { code } = await runCli(['convert', inFolder('model.tmfile'), output, '--weights-only'])
    expect(code).toBe(0)
    const [from, to] = await Promise.all([open(inFolder('model.tmfile')), open(output)])
    expect(to.tensors.length).toBe(
      from.tmfile!.graph.tensors.filter(({ role }) => role === 'constant').length,
    )
    from.close()
    to.close()
  })

  it('is reported where another format drops it, also for many files', async () => {
    const output = inFolder('weights.safetensors')
    const line = `tilework: ${MODEL} is a model of 1 node; ${output} holds its weights and not its graph.\n`
    expect(await runCli(['convert', MODEL, output, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: line })
    expect((await convert(MODEL, output)).droppedNodes).toBe(1)
    const many = ['convert', MODEL, INPUT, '--out-dir', inFolder('many'), '--format', 'npz']
    const { stderr } = await runCli(many)
    const [first, sums] = stderr.split('\n')
    expect(first).toBe('tilework: 1 input was a model; its output holds the weights and not the graph.')
    expect(sums).toMatch(/^Wrote 2 files, .*; 0 skipped, 0 failed\.$/)
    const copy = await runCli(['convert', MODEL, inFolder('copy.onnx')])
    expect(copy).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Wrote .*copy\.onnx: .*\n$/) })
    const both = await runCli(['convert', MODEL, output, '--weights-only', '--tensor', 'w'])
    expect(both).toMatchObject({ code: 64, stderr: expect.stringContaining('both select tensors') })
  })
})

it('--undo takes the commands that are printed otherwise', async () => {
  const image = inFolder('image.npy')
  await save(image, [tensor(new Float32Array(32), { shape: [1, 4, 2, 4] })])
  const args = ['convert', image, inFolder('blocked.npy'), '--layout', 'b_fs_yx_fsv4']
  const { stdout } = await runCli(args)
  expect(stdout).toMatch(/^tilework convert .*\n$/)
  const undo = inFolder('undo.sh')
  expect(await runCli([...args, '--undo', undo, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(readFileSync(undo, 'utf8')).toBe(stdout)
  expect(await runCli([...args, '--undo', image])).toMatchObject({ code: 64 })
})

describe('options are checked before the input is opened', () => {
  it.each([
    [['--format', 'nonsense'], 'ERR_ARGUMENT: unknown format "nonsense"'],
    [['--device', 'nonsense'], 'ERR_'],
    [['--dtype', 'nonsense'], 'ERR_DTYPE'],
  ])('%j', async (options, message) => {
    const { code, stderr } = await runCli(['convert', inFolder('missing.btf'), inFolder('x.btf'), ...options])
    expect(code).toBe(64)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('missing.btf')
  })

  it('and so is the extension of the output', async () => {
    const { code, stderr } = await runCli(['convert', inFolder('missing.btf'), inFolder('x.nonsense')])
    expect(code).toBe(64)
    expect(stderr).toContain('.nonsense')
  })
})
