/** `tilework diff`: exit codes, the table, JSON and refusals. */
import { expect, it } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import { recordedPath } from '../models/onnx_compress/recorded.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()

async function made(name: string, values: Record<string, readonly number[]>): Promise<string> {
  const tensors = Object.entries(values).map(([key, numbers]) =>
    tensor([...numbers], { dtype: 'float32', name: key }),
  )
  await save(inFolder(name), tensors)
  return inFolder(name)
}

it('exits with 0 for the same, 1 for different files and above 1 for trouble', async () => {
  const a = await made('a.safetensors', { w: [1, 2], v: [3] })
  const b = await made('b.safetensors', { w: [1, 2.0001], v: [3] })
  const same = await runCli(['diff', a, a])
  expect(same).toMatchObject({ code: 0, stderr: '' })
  expect(same.stdout).toContain('the same\n2 tensors the same, 0 changed, 0 removed, 0 added\n')
  expect((await runCli(['diff', a, b])).code).toBe(1)
  const within = await runCli(['diff', a, b, '--tolerance', '1e-3', '--ignore', 'dtype'])
  expect(within.code).toBe(0)
  expect(within.stdout).toContain(': the same within the tolerance\n')
  expect((await runCli(['diff', a, b, '--tolerance', '0,1e-6'])).code).toBe(1)
  const ignored = await runCli(['diff', a, b, '--ignore', 'values,dtype'])
  expect(ignored.code).toBe(0)
  expect(ignored.stdout).toContain(': the same apart from values\n')
  expect((await runCli(['diff', a, inFolder('none.btf')])).code).toBe(74)
  expect(await runCli(['diff', a, b, '--tolerance', 'much'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('--tolerance is "much"; it must be ATOL or ATOL,RTOL'),
  })
  expect((await runCli(['diff', a, b, '--ignore', 'layot'])).stderr).toContain(
    '"layot"; did you mean "layout"?',
  )
})

it('prints a summary, then the changed tensors, worst first', async () => {
  const a = await made('c.safetensors', { good: [1, 2, 3], bad: [1, 2, 3], gone: [9, 8] })
  const b = await made('d.safetensors', { good: [1, 2, 3.01], bad: [3, 2, 1], more: [0] })
  const { stdout } = await runCli(['diff', a, b])
  const lines = stdout.split('\n')
  expect(lines[1]).toBe('0 tensors the same, 2 changed, 1 removed, 1 added')
  expect(lines[3]).toMatch(
    /^tensor +changed +max error +max relative +SQNR dB +cosine +different +beyond +first$/,
  )
  expect(lines[4]).toMatch(/^bad +values +2 +2 +2\.43038 +0\.714286 +2 of 3 +2 +\[0\] 1 -> 3$/)
  expect(lines[5]).toMatch(/^good +values +0\.00999999 /)
  expect(stdout).toContain('removed gone: float32 [2], 8 B\n')
  expect(stdout).toContain('added more: float32 [1], 4 B\n')
  const { stdout: cut } = await runCli(['diff', a, b, '--limit', '1'])
  expect(cut).toContain('… and 1 more changed tensor (--limit)')
})

it('prints the same facts as JSON', async () => {
  const a = await made('e.safetensors', { w: [1, 2] })
  const b = await made('f.safetensors', { w: [1, Number.POSITIVE_INFINITY] })
  const found = await runJson<Record<string, unknown>>(['diff', a, b], 1)
  expect(found).toMatchObject({
    isSame: false,
    changed: [
      { changes: ['values'], values: { maxError: 'Infinity', first: { index: [1], a: 2, b: 'Infinity' } } },
    ],
    graph: null,
  })
})

it('compares a model with its float16 variant on disk', async () => {
  const before = recordedPath('transformer', 'before')
  const after = inFolder('half.onnx')
  expect((await runCli(['compress', before, '--to', 'fp16', '-o', after])).code).toBe(0)
  const { code, stdout } = await runCli(['diff', before, after])
  expect(code).toBe(1)
  expect(stdout).toMatch(/wq +float32 -> float16, values/)
  expect(stdout).toMatch(/added node Cast/)
  const { code: tolerant } = await runCli([
    ...['diff', before, after, '--ignore', 'dtype,graph', '--tolerance', '1e-4,1e-3'],
  ])
  expect(tolerant).toBe(0)
})
