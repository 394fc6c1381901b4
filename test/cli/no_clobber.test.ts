/** `--no-clobber` of every command that writes, `--max-output` and `--replace-graph`. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save, tensor } from '../../lib/index.js'
import { addModel } from '../models/onnx/small_model.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MODEL = inFolder('model.onnx')
const TENSORS = inFolder('tensors.npz')
const PIXELS = inFolder('pixels.npy')
const OUT_DIR = inFolder('out')

beforeAll(async () => {
  mkdirSync(OUT_DIR)
  await save(MODEL, addModel())
  await save(TENSORS, [tensor(Float32Array.of(1, 2), { name: 'w' })])
  await save(PIXELS, [tensor(new Uint8Array(12), { shape: [2, 2, 3] })])
})

/** Each command with the file that it writes. */
const at = (name: string): string => inFolder(`out/${name}`)
const COMMANDS: readonly (readonly [args: readonly string[], output: string])[] = [
  [['convert', TENSORS, at('a.npz')], at('a.npz')],
  [['convert', TENSORS, '--out-dir', OUT_DIR, '--no-manifest'], at(basename(TENSORS))],
  [['convert', `${inFolder('')}/t*.npz`, '--out-dir', OUT_DIR, '--no-manifest'], at(basename(TENSORS))],
  [
    ['convert', TENSORS, at('undone.npz'), '--format', 'btf', '--layout', 'oiyx', '--undo', at('undo.sh')],
    at('undo.sh'),
  ],
  [['compress', MODEL, '--to', 'fp16', '-o', at('half.onnx')], at('half.onnx')],
  [['compress', MODEL, '--to', 'fp16', '--out-dir', OUT_DIR], at('model_fp16.onnx')],
  [['edit', MODEL, '--metadata', 'a=b', '-o', at('edited.onnx')], at('edited.onnx')],
  [['externalize', MODEL, '--threshold', '1', '-o', at('outside.onnx')], at('outside.onnx')],
  [['internalize', MODEL, '-o', at('inside.onnx')], at('inside.onnx')],
  [['optimize', MODEL, '-o', at('simple.onnx')], at('simple.onnx')],
  [
    ['merge', MODEL, MODEL, '--connect', 'y=x', '--prefix1', 'a/', '--prefix2', 'b/', '-o', at('two.onnx')],
    at('two.onnx'),
  ],
  [['image', PIXELS, '-o', at('batch.npy')], at('batch.npy')],
  [['layout', 'byxf', '--shape', '1,2,2,2', '--svg', at('drawn.svg')], at('drawn.svg')],
]

describe('--no-clobber', () => {
  it.each(
    COMMANDS.map(
      ([args, output]) =>
        [
          args
            .slice(0, 3)
            .map((arg) => basename(arg))
            .join(' '),
          args,
          output,
        ] as const,
    ),
  )('%s', async (_, args, output) => {
    rmSync(output, { force: true })
    expect((await runCli([...args, '--no-clobber'])).code).toBe(0)
    writeFileSync(output, 'kept')
    const { code, stderr } = await runCli([...args, '--no-clobber'])
    expect([64, 74]).toContain(code)
    expect(stderr).toMatch(/exist/)
    expect(readFileSync(output, 'utf8')).toBe('kept')
    expect((await runCli(args)).code).toBe(0)
    expect(readFileSync(output, 'utf8')).not.toBe('kept')
  })

  it('names every command that writes', async () => {
    const { stdout } = await runCli(['--help'])
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) .*<?/gm)].map(([, name]) => name!)
    const writes = new Set(COMMANDS.map(([[name]]) => name))
    expect(commands).toEqual(expect.arrayContaining([...writes]))
    for (const name of commands) {
      const { stdout: help } = await runCli([name, '--help'])
      const isWriter = /--output |--out-dir |--svg /.test(help)
      expect([name, help.includes('--no-clobber')]).toEqual([name, isWriter])
      expect([name, writes.has(name)]).toEqual([name, isWriter])
    }
  })

  it('is refused together with --queue', async () => {
    const queue = ['--queue', 'redis://localhost:1', '--out-dir', OUT_DIR]
    const { code, stderr } = await runCli(['convert', TENSORS, ...queue, '--no-clobber'])
    expect([code, stderr]).toEqual([64, expect.stringContaining('do not go together')])
  })
})

describe('--max-output', () => {
  it.each(['convert', 'compress', 'edit', 'externalize', 'internalize', 'merge', 'optimize'])(
    '%s',
    async (command) => {
      const [args, output] = COMMANDS.find(([[name]]) => name === command)!
      rmSync(output, { force: true })
      const { code, stderr } = await runCli([...args, '--max-output', '10'])
      expect([code, stderr]).toEqual([
        64,
        expect.stringMatching(/ERR_LIMIT.*would have \d+ bytes; --max-output allows 10/),
      ])
      expect(existsSync(output)).toBe(false)
      expect((await runCli([...args, '--max-output', '1MiB'])).code).toBe(0)
    },
  )

  it('is an option of each worker', async () => {
    const queue = ['--queue', 'redis://localhost:1', '--out-dir', OUT_DIR]
    const { code, stderr } = await runCli(['convert', TENSORS, ...queue, '--max-output', '1'])
    expect([code, stderr]).toEqual([64, expect.stringContaining('option of each worker')])
    const deadline = await runCli(['convert', TENSORS, ...queue, '--deadline', '1'])
    expect([deadline.code, deadline.stderr]).toEqual([64, expect.stringContaining('option of each worker')])
  })
})

describe('--replace-graph', () => {
  it.each([
    ['convert', (out: string) => ['convert', TENSORS, out]],
    ['image', (out: string) => ['image', PIXELS, '-o', out]],
  ])('%s', async (_, args) => {
    const out = inFolder('replaced.onnx')
    await save(out, addModel())
    const { code, stderr } = await runCli(args(out))
    expect([code, stderr]).toEqual([64, expect.stringContaining('--replace-graph')])
    expect((await runCli([...args(out), '--replace-graph'])).code).toBe(0)
    using file = await open(out)
    expect(file.onnx?.graph.nodes).toHaveLength(0)
    rmSync(out)
  })
})
