/** `tilework merge`. */
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save, tensor } from '../../lib/index.js'
import { addModel } from '../models/onnx/small_model.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MODEL = inFolder('model.onnx')
const OUT = inFolder('out.onnx')

beforeAll(async () => {
  await save(MODEL, addModel())
})

describe('tilework merge', () => {
  const names = ['--connect', 'y=x', '--prefix1', 'a/', '--prefix2', 'b/']

  it('writes one model of two', async () => {
    const report = await runJson<object>(['merge', MODEL, MODEL, ...names, '-o', OUT])
    expect(report).toMatchObject({ output: OUT, nodes: 2, graphInputs: ['a/x'], graphOutputs: ['b/y'] })
    using file = await open(OUT)
    expect(file.onnx!.graph.nodes[1]!.inputs).toEqual(['a/y', 'b/w'])
    const { stdout } = await runCli(['merge', MODEL, MODEL, ...names, '--outputs', 'a/y', '-o', OUT])
    expect(stdout).toMatch(/^1 node from a\/x to a\/y\n/)
  })

  it.each([
    ['names of both', ['--connect', 'y=x'], 'set prefix1 or prefix2'],
    ['no pair', ['--connect', 'y'], '--connect takes OUTPUT=INPUT'],
  ])('refuses %s', async (_, args, text) => {
    const { code, stderr } = await runCli(['merge', MODEL, MODEL, ...args, '-o', OUT])
    expect(code).toBe(64)
    expect(stderr).toContain(text)
  })

  it('refuses a file without a graph', async () => {
    const other = inFolder('t.npy')
    await save(other, [tensor(Float32Array.of(1))])
    const { code, stderr } = await runCli(['merge', MODEL, other, '-o', OUT])
    expect([code, stderr]).toEqual([64, expect.stringContaining('is npy; merge takes ONNX models')])
  })
})
