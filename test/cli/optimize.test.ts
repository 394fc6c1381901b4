/** `tilework optimize`. */
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save, tensor } from '../../lib/index.js'
import { modelOf, textsOf } from '../models/onnx_optimize/model_text.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MODEL = inFolder('model.onnx')
const OUT = inFolder('out.onnx')

beforeAll(async () => {
  const column = (value: number) => tensor(new Float32Array([value, value]), { shape: [1, 2, 1, 1] })
  const model = modelOf({
    inputs: { x: 'float32 N 2 5 5' },
    weights: {
      w: tensor(new Float32Array(36).fill(0.1), { shape: [2, 2, 3, 3] }),
      k: column(3),
      j: column(2),
    },
    nodes:
      'a = Identity(x); b = Conv(a, w); c = Mul(b, k); d = Add(c, j); e = Neg(d); f = Neg(e); y = Relu(f)',
  })
  await save(MODEL, model)
})

describe('tilework optimize', () => {
  it('is followed by NHWC, which edit --channels-last makes', async () => {
    const { code, stdout } = await runCli(['edit', MODEL, '--channels-last', '-o', OUT])
    expect(code).toBe(0)
    expect(stdout).toContain('channels last: inputs x; outputs none')
    expect(stdout).toContain('Transposes: 0 before, 1 stay')
  })

  it('reads and writes models as text', async () => {
    const [text, simple, back] = ['m.onnxtxt', 's.textproto', 's.onnx'].map((name) => inFolder(name)) as [
      string,
      string,
      string,
    ]
    expect((await runCli(['convert', MODEL, text])).code).toBe(0)
    expect((await runCli(['optimize', text, '-o', simple])).code).toBe(0)
    expect((await runCli(['convert', simple, back])).code).toBe(0)
    using file = await open(back)
    expect(textsOf(file.onnx!.graph)).toEqual([
      'b = Conv(x, w)',
      'c = Mul(b, k)',
      'd = Add(c, j)',
      'y = Relu(d)',
    ])
    const { stdout } = await runCli(['diff', text, MODEL])
    expect(stdout).toContain('0 edits of the graph')
  })

  it('prints passes, operators and sizes', async () => {
    const { code, stdout } = await runCli(['optimize', MODEL, '--report', '-o', OUT])
    expect(code).toBe(0)
    const [size] = /\d+ B → \d+ B/.exec(stdout) ?? ['no size']
    expect(stdout).toBe(
      [
        'pass              changes',
        'remove-identity         1',
        'merge-neighbours        1',
        '',
        'operator  before  after',
        'Identity       1      0',
        'Neg            2      0',
        '',
        'remove-identity: a',
        'merge-neighbours: f',
        `7 → 4 nodes, ${size}: ${OUT}`,
        '',
      ].join('\n'),
    )
    using file = await open(OUT)
    expect(textsOf(file.onnx!.graph)).toEqual([
      'b = Conv(x, w)',
      'c = Mul(b, k)',
      'd = Add(c, j)',
      'y = Relu(d)',
    ])
  })

  it('fuses on request, and says how large errors of weights are', async () => {
    const report = await runJson<{ changes: { pass: string; largestError?: number }[] }>([
      ...['optimize', MODEL, '--fuse', '-o', OUT],
    ])
    expect(report).toMatchObject({
      before: { nodes: 7 },
      after: { nodes: 2 },
      operators: { Add: [1, 0], Identity: [1, 0], Mul: [1, 0], Neg: [2, 0] },
    })
    const fused = report.changes.find(({ pass }) => pass === 'fuse-conv-bn')!
    expect(fused.largestError).toBeLessThan(1e-7)
    const { stdout } = await runCli(['optimize', MODEL, '--fuse', '-o', OUT])
    expect(stdout).toMatch(/^pass +changes +largest error\n/)
  })

  it('runs some passes alone, and says so where there is nothing to do', async () => {
    const { stdout } = await runCli(['optimize', MODEL, '--only', 'sort,remove-dropout', '-o', OUT])
    expect(stdout).toMatch(/^7 → 7 nodes, /)
  })

  it.each([
    ['an unknown pass', [MODEL, '--only', 'remove-identitys'], 'did you mean "remove-identity"'],
    ['a size that is no number', [MODEL, '--max-growth', 'much'], '--max-growth'],
  ])('refuses %s', async (_, args, text) => {
    const { code, stderr } = await runCli(['optimize', ...args, '-o', OUT])
    expect([code, stderr]).toEqual([64, expect.stringContaining(text)])
  })

  it('refuses a file without a graph', async () => {
    const other = inFolder('t.npy')
    await save(other, [tensor(Float32Array.of(1))])
    const { code, stderr } = await runCli(['optimize', other, '-o', OUT])
    expect([code, stderr]).toEqual([64, expect.stringContaining('is npy; optimize takes ONNX models')])
  })
})
