/** `tilework convert model.onnx model.tmfile`: the graph becomes one of another format. */
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save } from '../../lib/index.js'
import { floats, OnnxNet } from '../bridges/onnx_tmfile/onnx_net.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const INPUT = inFolder('model.onnx')

beforeAll(async () => {
  const net = new OnnxNet()
  const y = net.op('Relu', [net.op('Conv', [net.input(['N', 3, 'H', 6]), floats(4, 3, 3, 3)])])
  await save(INPUT, net.out(net.op('Sigmoid', [y])))
})

describe('an ONNX model as a tmfile', () => {
  it('has the shapes of --input-shape and --batch, and says what was done', async () => {
    const output = inFolder('model.tmfile')
    const { code, stderr } = await runCli([
      'convert',
      INPUT,
      output,
      '--input-shape',
      'x1=1,3,8,6',
      '--batch',
      '2',
    ])
    expect(stderr).toMatch(/^tilework: (.*) has 2 nodes \(1 fused\)\.\nWrote \1: \d+ tensors?, .*\.\n$/)
    expect(code).toBe(0)
    using file = await open(output)
    expect(file.tmfile!.graph.inputs[0]!.outputs[0]!.shape).toEqual([2, 3, 8, 6])
  })

  it('prints its report as JSON', async () => {
    const args = ['convert', INPUT, inFolder('json.tmfile'), '--input-shape', 'x1=1,3,8,6']
    const { graph, droppedNodes } = await runJson<{ graph: { nodes: number }; droppedNodes: number }>(args)
    expect(graph).toMatchObject({ nodes: 2, inputs: { x1: [1, 3, 8, 6] }, folded: [], fixedBatch: [] })
    expect(droppedNodes).toBe(0)
  })

  it('is refused without a shape, and by wrong flags', async () => {
    const output = inFolder('never.tmfile')
    const missing = await runCli(['convert', INPUT, output])
    expect(missing.stderr).toContain(
      '"x1" is [N, 3, H, 6]. Set them with inputShapes (--input-shape NAME=1,3,224,224)',
    )
    expect(missing.code).toBe(64)
    const noShape = await runCli(['convert', INPUT, output, '--input-shape', 'x1'])
    expect(noShape.stderr).toContain('--input-shape takes NAME=N,N,…')
    const elsewhere = await runCli(['convert', INPUT, inFolder('weights.npz'), '--batch', '2'])
    expect(elsewhere.stderr).toContain('batch applies only to conversions of a graph to another format')
  })

  it('holds the weights alone with --weights-only', async () => {
    const output = inFolder('weights.tmfile')
    expect(await runCli(['convert', INPUT, output, '--weights-only'])).toMatchObject({ code: 0 })
    using file = await open(output)
    expect(file.tmfile!.graph.nodes.map(({ operator }) => operator)).toEqual(['Const'])
  })
})
