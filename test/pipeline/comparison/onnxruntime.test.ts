/** Comparisons in onnxruntime-node, where it is installed: kinds of inputs and outputs, compressed models, seeded faults. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type DenseTensor, save, tensor } from '../../../lib/index.js'
import {
  compareOutputs,
  Graph,
  type NewNode,
  OnnxModel,
  type OutputComparison,
  quantizeWeights,
  toFloat16,
  type ValueType,
} from '../../../lib/onnx.js'
import { temporaryFolder } from '../../cli/temporary_folder.js'
import { runtime } from '../../models/onnx_compress/onnxruntime.js'

const inFolder = temporaryFolder()
const typed = (
  dtype: 'float32' | 'float16' | 'int64' | 'bool' | 'string',
  ...shape: (number | string)[]
): ValueType => ({
  kind: 'tensor',
  dtype,
  shape,
})

const sines = (rows: number, columns: number, seed: number) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(seed + at * at)),
    { shape: [rows, columns] },
  )

/** Words to scores: a table, two products, a mask, and the greatest score. */
function network(): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  graph.addInput('ids', typed('int64', 'n', 'length'))
  graph.addInput('mask', typed('int64', 'n', 'length'))
  graph.setInitializer('table', sines(50, 64, 1))
  graph.setInitializer('first', sines(64, 64, 2))
  graph.setInitializer('second', sines(64, 32, 3))
  graph.setInitializer('axes', tensor([2n], { dtype: 'int64' }))
  const nodes: readonly NewNode[] = [
    { opType: 'Gather', inputs: ['table', 'ids'], outputs: ['words'] },
    { opType: 'MatMul', name: 'one', inputs: ['words', 'first'], outputs: ['hidden'] },
    { opType: 'Tanh', inputs: ['hidden'], outputs: ['bent'] },
    { opType: 'MatMul', name: 'two', inputs: ['bent', 'second'], outputs: ['scores'] },
    { opType: 'Cast', inputs: ['mask'], outputs: ['flags'], attributes: { to: { type: 'INT', value: 1 } } },
    { opType: 'Unsqueeze', inputs: ['flags', 'axes'], outputs: ['column'] },
    { opType: 'Mul', inputs: ['scores', 'column'], outputs: ['y'] },
    { opType: 'ArgMax', inputs: ['y'], outputs: ['best'], attributes: { axis: { type: 'INT', value: -1 } } },
  ]
  for (const node of nodes) graph.addNode(node)
  graph.addOutput('y', typed('float32', 'n', 'length', 32))
  graph.addOutput('best', typed('int64', 'n', 'length', 1))
  return model
}

function compare(
  a: Parameters<typeof compareOutputs>[0],
  b: Parameters<typeof compareOutputs>[1],
  options: Partial<Parameters<typeof compareOutputs>[2]> = {},
): Promise<OutputComparison> {
  return compareOutputs(a, b, { runtime: runtime!, ...options })
}

const errorOf = ({ outputs }: OutputComparison, name: string): number =>
  outputs.find((each) => each.name === name)!.error!

describe.skipIf(!runtime)('in onnxruntime', () => {
  it('compressed models have the errors of their bits, and faults much larger ones', async () => {
    const model = network()
    expect(errorOf(await compare(model, model.copy()), 'y')).toBe(0)
    for (const keepIo of [true, false]) {
      const half = model.copy()
      await toFloat16(half, { keepIo })
      const error = errorOf(await compare(model, half), 'y')
      expect(error).toBeGreaterThan(1e-5)
      expect(error).toBeLessThan(0.005)
    }
    const blocks = model.copy()
    await quantizeWeights(blocks)
    const error = errorOf(await compare(model, blocks), 'y')
    expect(error).toBeGreaterThan(0.005)
    expect(error).toBeLessThan(0.3)
    for (const [name, rows, columns, seed] of [
      ['table', 50, 64, 1 + Math.PI / 2],
      ['first', 64, 64, 2 + Math.PI / 2],
      ['second', 64, 32, 3 + Math.PI / 2],
    ] as const) {
      const wrong = model.copy()
      wrong.graph.setInitializer(name, sines(rows, columns, seed))
      await quantizeWeights(wrong)
      expect(errorOf(await compare(model, wrong), 'y'), name).toBeGreaterThan(0.4)
    }
  })

  it('a scale that is wrong by 1 % is found in float16', async () => {
    const model = network()
    const [half, wrong] = [model.copy(), model.copy()]
    const values = await (model.graph.initializer('second') as DenseTensor<'float32'>).toTypedArray()
    wrong.graph.setInitializer(
      'second',
      tensor(
        values.map((each) => each * 1.01),
        { shape: [64, 32] },
      ),
    )
    for (const each of [half, wrong]) await toFloat16(each)
    expect((await compare(model, half, { tolerance: 0.005 })).outputs[0]!.status).toBe('within')
    expect((await compare(model, wrong, { tolerance: 0.005 })).outputs[0]!.status).toBe('beyond')
  })

  it('every dtype of inputs runs, strings and no elements included', async () => {
    const dtypes = [
      'float32',
      'float64',
      'float16',
      'int8',
      'uint8',
      'int16',
      'uint16',
      'int32',
      'uint32',
    ] as const
    for (const dtype of [...dtypes, 'int64', 'uint64', 'bool', 'string'] as const) {
      const model = OnnxModel.create({ opset: 17 })
      model.graph.addInput('x', { kind: 'tensor', dtype, shape: ['n', 3] })
      model.graph.addNode({ opType: 'Identity', inputs: ['x'], outputs: ['y'] })
      model.graph.addOutput('y', { kind: 'tensor', dtype, shape: ['n', 3] })
      for (const n of [0, 4]) {
        const { outputs, isWithin } = await compare(model, model, { dims: { n } })
        expect(isWithin, dtype).toBe(true)
        expect(outputs[0], dtype).toMatchObject({ a: { dtype, shape: [n, 3] }, error: 0 })
      }
    }
  })

  it('external data, early IR versions and branches run', async () => {
    const folder = inFolder('external')
    mkdirSync(folder)
    const path = join(folder, 'model.onnx')
    await save(path, network(), { external: { location: 'weights', threshold: 0 } })
    expect((await compare(path, network())).isWithin).toBe(true)

    const early = OnnxModel.create({ irVersion: 3, opset: 8 })
    early.graph.addInput('x', typed('float32', 2, 64))
    early.graph.addInput('w', typed('float32', 64, 32))
    early.graph.setInitializer('w', sines(64, 32, 1))
    early.graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
    early.graph.addOutput('y', typed('float32', 2, 32))
    expect((await compare(early, early)).inputs.map(({ name }) => name)).toEqual(['x'])

    const branches = network()
    const branch = Graph.create('branch')
    branch.addNode({ opType: 'Gather', inputs: ['small', 'ids'], outputs: ['rows'] })
    branch.addOutput('rows', { kind: 'none' })
    branches.graph.setInitializer('small', sines(3, 2, 1))
    branches.graph.addInput('condition', typed('bool'))
    const value = { type: 'GRAPH', value: branch } as const
    const attributes = { then_branch: value, else_branch: value }
    branches.graph.addNode({ opType: 'If', inputs: ['condition'], outputs: ['chosen'], attributes })
    branches.graph.addOutput('chosen', typed('float32', 'n', 'length', 2))
    expect((await compare(branches, branches, { dims: { length: 40 } })).isWithin).toBe(true)
  })

  it('random numbers differ, and are not compared', async () => {
    const model = network()
    model.graph.addNode({ opType: 'RandomNormalLike', inputs: ['y'], outputs: ['noise'] })
    model.graph.addOutput('noise', typed('float32', 'n', 'length', 32))
    const { outputs, isWithin } = await compare(model, model)
    expect(outputs.map(({ status }) => status)).toEqual(['within', 'within', 'not compared'])
    expect(isWithin).toBe(true)
  })
})
