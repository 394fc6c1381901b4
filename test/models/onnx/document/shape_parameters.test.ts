/** Values from which onnx infers shapes stay in the model: it opens no data file to infer, and its checker would refuse the model. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ExternalOptions } from '../../../../lib/formats/onnx/external/options.js'
import { open, save, type Tensor, tensor } from '../../../../lib/index.js'
import { Graph, OnnxModel } from '../../../../lib/onnx.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'shape-parameters-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const integers = (count: number, dtype: 'int64' | 'int32' | 'uint8' = 'int64', shape = [count]): Tensor =>
  tensor(new Array<number>(count).fill(1), { dtype, shape })

/** The initializers of the main graph and of a branch, by name, that a save moves outside. */
async function movedOf(
  values: Readonly<Record<string, Tensor>>,
  external: ExternalOptions,
): Promise<string[]> {
  const model = OnnxModel.create()
  const branch = Graph.create('branch')
  for (const [name, value] of Object.entries(values)) {
    model.graph.setInitializer(name, value)
    branch.setInitializer(`inner_${name}`, value)
  }
  model.graph.setInitializer('c', tensor([1], { dtype: 'bool', shape: [] }))
  branch.addNode({ opType: 'Identity', inputs: [`inner_${Object.keys(values)[0]}`], outputs: ['b'] })
  branch.addOutput('b', { kind: 'tensor', dtype: 'int64' })
  const attributes = {
    then_branch: { type: 'GRAPH', value: branch },
    else_branch: { type: 'GRAPH', value: branch },
  } as const
  model.graph.addNode({ opType: 'If', inputs: ['c'], outputs: ['y'], attributes })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'int64', shape: [null] })
  const path = join(folder, 'm.onnx')
  await save(path, model, { external })
  using file = await open(path)
  const graphs = [...file.onnx!.graphs()]
  const fields = graphs.flatMap((graph) => graph.initializerFields('initializer'))
  const moved = fields.filter(({ field }) => field.kind === 'message' && field.int('data_location') === 1)
  return [...new Set(moved.map(({ name }) => name))].filter((name) => name !== 'c').sort()
}

it.each([
  ['padding', integers(8)],
  ['ends of slices', integers(16, 'int32')],
  ['an axis', integers(1, 'int64', [])],
  ['127 numbers', integers(127)],
])('%s stay inside below any threshold', async (_, value) => {
  for (const threshold of [0, 4, 64]) expect(await movedOf({ v: value }, { threshold })).toEqual([])
  expect(await movedOf({ v: value }, { threshold: 0, format: 'safetensors' })).toEqual([])
})

it.each([
  ['1024 bytes, as by default', integers(128)],
  ['a table', integers(16, 'int64', [4, 4])],
  ['bytes', integers(100, 'uint8')],
  ['floats', tensor(new Float32Array(16))],
])('%s go outside', async (_, value) => {
  expect(await movedOf({ v: value }, { threshold: 64 })).toEqual(['inner_v', 'v'])
})

it.each([
  ['Resize', ['x', '', 'scales']],
  ['Upsample', ['x', 'scales']],
  ['Range', ['x', 'scales', 'x']],
  ['OneHot', ['x', 'scales', 'x']],
] as const)('floats from which shapes of %s follow stay inside', async (opType, inputs) => {
  const model = OnnxModel.create()
  for (const name of ['scales', 'other']) model.graph.setInitializer(name, tensor(new Float32Array(4)))
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 1, 2, 2] })
  model.graph.addNode({ opType, inputs, outputs: ['y'] })
  model.graph.addNode({ opType: 'Add', inputs: ['other', 'x'], outputs: ['z'] })
  const path = join(folder, `${opType}.onnx`)
  await save(path, model, { external: { threshold: 0 } })
  using file = await open(path)
  const fields = file.onnx!.graph.initializerFields('initializer')
  const moved = fields.filter(({ field }) => field.kind === 'message' && field.int('data_location') === 1)
  expect(moved.map(({ name }) => name)).toEqual(['other'])
})
