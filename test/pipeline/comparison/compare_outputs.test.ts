/** Outputs of two models on the same inputs: what is fed, what is paired, which faults are found. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { open, save, sparseFromDense, stringTensor, tensor } from '../../../lib/index.js'
import {
  type CompareOutputsOptions,
  compareOutputs,
  extract,
  OnnxModel,
  type OutputComparison,
  stripWeights,
  toFloat16,
  type ValueType,
} from '../../../lib/onnx.js'
import { temporaryFolder } from '../../cli/temporary_folder.js'
import { FakeRuntime } from './fake_runtime.js'

const inFolder = temporaryFolder()
let fake = new FakeRuntime()
beforeEach(() => {
  fake = new FakeRuntime()
})

const float = (shape: readonly (number | string | null)[]): ValueType => ({
  kind: 'tensor',
  dtype: 'float32',
  shape,
})

/** `y = x * w + b`, and `z = x * b`. */
function scaled(w = [2, 3, 4], b = [0.5, -0.5, 8]): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  graph.addInput('x', float(['n', 3]))
  graph.setInitializer('w', tensor(Float32Array.from(w)))
  graph.setInitializer('b', tensor(Float32Array.from(b)))
  graph.addNode({ opType: 'Mul', inputs: ['x', 'w'], outputs: ['product'] })
  graph.addNode({ opType: 'Add', inputs: ['product', 'b'], outputs: ['y'] })
  graph.addNode({ opType: 'Mul', inputs: ['x', 'b'], outputs: ['z'] })
  graph.addOutput('y', float(['n', 3]))
  graph.addOutput('z', float(['n', 3]))
  return model
}

/** Rows of a table by indices, which are shifted by 2 first. */
function embedding(rows = 5): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  graph.addInput('ids', { kind: 'tensor', dtype: 'int64', shape: ['batch', 'sequence'] })
  const table = Float32Array.from({ length: rows * 2 }, (_, at) => at)
  graph.setInitializer('table', tensor(table, { shape: [rows, 2] }))
  graph.addNode({ opType: 'Gather', inputs: ['table', 'ids'], outputs: ['y'] })
  graph.addOutput('y', float(['batch', 'sequence', 2]))
  return model
}

function compare(
  a: Parameters<typeof compareOutputs>[0],
  b: Parameters<typeof compareOutputs>[1],
  options: Partial<CompareOutputsOptions> = {},
): Promise<OutputComparison> {
  return compareOutputs(a, b, { runtime: fake, ...options })
}

const statuses = ({ outputs }: OutputComparison): Record<string, string> =>
  Object.fromEntries(outputs.map(({ name, status }) => [name, status]))

describe('faults', () => {
  it('of a copy are none', async () => {
    const found = await compare(scaled(), scaled())
    expect(found).toMatchObject({ isWithin: true, tolerance: 0, seed: 0 })
    expect(found.outputs.map(({ error, status }) => [error, status])).toEqual([
      [0, 'within'],
      [0, 'within'],
    ])
    expect(found.inputs).toEqual([{ name: 'x', dtype: 'float32', shape: [2, 3], isGenerated: true }])
    expect(fake.openSessions).toBe(0)
    for (const path of fake.paths) expect(existsSync(dirname(path))).toBe(false)
  })

  it('of a wrong scale have its error, and pass above it alone', async () => {
    const wrong = scaled([2, 3, 4.04])
    const { outputs } = await compare(scaled(), wrong)
    const [y, z] = outputs
    expect([y!.status, z!.status]).toEqual(['beyond', 'within'])
    const [one, other] = await bothOutputs('y')
    const largest = Math.max(...one.map(Math.abs))
    expect(y!.error).toBeCloseTo(
      Math.max(...one.map((value, at) => Math.abs(value - other[at]!))) / largest,
      6,
    )
    expect(y!.values).toMatchObject({ count: 6, different: 2, beyond: 2 })
    expect((await compare(scaled(), wrong, { tolerance: y!.error! * 1.001 })).isWithin).toBe(true)
    expect((await compare(scaled(), wrong, { tolerance: y!.error! * 0.999 })).isWithin).toBe(false)
  })

  it('of exchanged weights, outputs and shapes are found', async () => {
    expect(statuses(await compare(scaled(), scaled([3, 2, 4])))).toEqual({ y: 'beyond', z: 'within' })
    const exchanged = scaled()
    for (const [from, to] of [
      ['y', 't'],
      ['z', 'y'],
      ['t', 'z'],
    ])
      exchanged.graph.rename(from!, to!)
    expect(statuses(await compare(scaled(), exchanged, { tolerance: 0.4 }))).toEqual({
      y: 'beyond',
      z: 'beyond',
    })
    const gathered = embedding()
    const other = await compare(
      gathered,
      OnnxModelOf(gathered, (graph) => {
        graph.setInitializer('table', tensor(new Float32Array(15), { shape: [5, 3] }))
      }),
      { tolerance: 1e6 },
    )
    expect(other.outputs[0]).toMatchObject({
      status: 'beyond',
      reason: 'it is [2, 8, 2] in a and [2, 8, 3] in b',
    })
  })

  it('of NaN and infinities are beyond every tolerance', async () => {
    const [whole, broken] = [dividing(1), dividing(0)]
    const { outputs, isWithin } = await compare(whole, broken, { tolerance: 1e9 })
    expect([isWithin, outputs[0]!.error]).toEqual([false, Number.POSITIVE_INFINITY])
    expect((await compare(broken, broken)).isWithin).toBe(true)
    expect((await compare(broken, whole, { tolerance: 1e9 })).isWithin).toBe(false)
  })

  it('of a mask do not count relative to its magnitude', async () => {
    const masked = (value: number): OnnxModel => scaled([0, 0, 0], [-3e38, value, 1])
    const { outputs } = await compare(masked(1), masked(1.5), { tolerance: 0.1 })
    expect(outputs[0]).toMatchObject({ name: 'y', status: 'beyond', error: 0.5 })
  })

  it('of values near 0 are relative to 0.001, and beyond a tolerance of 0', async () => {
    const tiny = (value: number): OnnxModel => scaled([0, 0, 0], [value, 0, 0])
    const errorOf = async (a: OnnxModel, b: OnnxModel): Promise<number> =>
      (await compare(a, b, { tolerance: 0.02 })).outputs[0]!.error!
    expect(await errorOf(tiny(2.4e-7), tiny(3.3e-7))).toBeCloseTo(9e-5, 7)
    expect(await errorOf(tiny(0), tiny(1e-6))).toBeCloseTo(1e-3, 6)
    expect(await errorOf(tiny(5e-4), tiny(6e-4))).toBeCloseTo(0.1, 5)
    expect(await errorOf(tiny(2e-3), tiny(3e-3))).toBeCloseTo(0.5, 5)
    expect((await compare(tiny(2.4e-7), tiny(3.3e-7))).isWithin).toBe(false)
    expect((await compare(tiny(2.4e-7), tiny(3.3e-7), { tolerance: 1e-4 })).isWithin).toBe(true)
    expect((await compare(tiny(5e-4), tiny(6e-4), { tolerance: 0.09 })).isWithin).toBe(false)
  })

  it('of two fixed batches are those of equal samples', async () => {
    const batchOf = (size: number | string, w?: number[]): OnnxModel =>
      OnnxModelOf(scaled(w), (graph) => {
        for (const name of ['x', 'y', 'z'])
          graph.setType(name, { kind: 'tensor', dtype: 'float32', shape: [size, 3] })
      })
    for (const [one, other, samples] of [
      [1, 4, 4],
      [4, 1, 4],
      [2, 3, 6],
      [1, 'N', 1],
    ] as const) {
      const found = await compare(batchOf(one), batchOf(other))
      expect([found.isWithin, found.inputs[0]!.shape]).toEqual([true, [samples, 3]])
      if (other !== 'N') expect(found.outputs[0]!.a!.shape).toEqual([samples, 3])
    }
    expect(statuses(await compare(batchOf(1), batchOf(4, [2, 3, 5])))).toEqual({ y: 'beyond', z: 'within' })
    const given = tensor(Float32Array.from({ length: 24 }, Math.sin), { shape: [8, 3], name: 'x' })
    expect((await compare(batchOf(2), batchOf(4), { inputs: [given] })).inputs[0]!.shape).toEqual([8, 3])
    await expect(compare(batchOf(3), batchOf(4), { inputs: [given] })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message:
        'inputs has 8 samples of "x"; batches of 3 and 4 need a multiple of 12, the same for all inputs.',
    })
  })

  it('of a large batch are those of its first samples', async () => {
    const batchOf = (size: number): OnnxModel =>
      OnnxModelOf(scaled(), (graph) => {
        for (const name of ['x', 'y', 'z'])
          graph.setType(name, { kind: 'tensor', dtype: 'float32', shape: [size, 3] })
      })
    const { outputs, isWithin } = await compare(batchOf(1), batchOf(100))
    expect([isWithin, outputs[0]!.b!.shape, fake.paths.length]).toEqual([true, [8, 3], 9])
  })

  it('of an output without the batch are not compared where batches differ', async () => {
    const batchOf = (size: number): OnnxModel => {
      const model = embedding()
      model.graph.setType('ids', { kind: 'tensor', dtype: 'int64', shape: [size, 2] })
      model.graph.addNode({ opType: 'Identity', inputs: ['table'], outputs: ['rows'] })
      model.graph.addOutput('rows', float([5, 2]))
      return model
    }
    const { outputs, isWithin } = await compare(batchOf(1), batchOf(2))
    expect(outputs.map(({ status, reason }) => [status, reason])).toEqual([
      ['within', undefined],
      ['not compared', 'none of its dimensions is the batch, which differs'],
    ])
    expect(isWithin).toBe(true)
  })

  it('of a runtime that returns some outputs under other names are refused', async () => {
    const runtime = new FakeRuntime()
    const { create } = runtime.InferenceSession
    runtime.InferenceSession.create = async (path) => {
      const session = await create(path)
      const run: typeof session.run = async (feeds, names) => {
        const results = Object.values(await session.run(feeds, names))
        return Object.fromEntries(results.map((result, at) => [['y', 'z', 'product'][at]!, result]))
      }
      return { ...session, run }
    }
    const whole = scaled()
    const part = OnnxModelOf(scaled(), (graph) => graph.removeOutput('y'))
    await expect(compareOutputs(whole, part, { runtime, isPart: true })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message:
        'The runtime did not return the output "z"; onnxruntime-node returns some of the outputs from 1.24 on.',
    })
  })

  it('of a result that is not loaded, or lacks an output, are reported', async () => {
    const removed = scaled()
    removed.graph.removeOutput('z')
    const missing = await compare(scaled(), removed)
    expect(missing.outputs[1]).toMatchObject({ name: 'z', status: 'beyond', reason: 'b has no such output' })
    expect(missing.isWithin).toBe(false)
    expect((await compare(removed, scaled())).outputs[1]).toMatchObject({ status: 'not compared' })
    const unknown = OnnxModelOf(scaled(), (graph) => {
      graph.addNode({ opType: 'Nonsense', inputs: ['x'], outputs: ['unused'] })
    })
    const failed = await compare(scaled(), unknown)
    expect(failed.outputs.map(({ reason }) => reason)).toEqual(
      Array(2).fill('b gives no output, onnxruntime does not run it: no kernel for Nonsense'),
    )
    expect(failed.isWithin).toBe(false)
    await expect(compare(unknown, scaled())).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })
})

function dividing(by: number): OnnxModel {
  return OnnxModelOf(scaled(), (graph) => {
    graph.setInitializer('w', tensor(Float32Array.of(by, 1, 1)))
    graph.nodes[0]!.opType = 'Div'
  })
}

function OnnxModelOf(model: OnnxModel, change: (graph: OnnxModel['graph']) => void): OnnxModel {
  const copy = model.copy()
  change(copy.graph)
  return copy
}

/** The values of an output in the last two runs, computed again. */
async function bothOutputs(name: 'y'): Promise<[number[], number[]]> {
  const x = Array.from(fake.feeds.at(-1)!.x!.data as Float32Array)
  expect(fake.feeds.at(-2)!.x!.data).toEqual(fake.feeds.at(-1)!.x!.data)
  const of = (w: readonly number[]): number[] =>
    x.map((value, at) => value * w[at % 3]! + [0.5, -0.5, 8][at % 3]!)
  expect(name).toBe('y')
  return [of([2, 3, 4]), of([2, 3, 4.04])]
}

describe('inputs', () => {
  it('follow from the seed alone, and do not depend on other inputs', async () => {
    for (const seed of [0, 0, 1]) await compare(scaled(), scaled(), { seed })
    const [first, , again, , other] = fake.feeds.map(({ x }) => Array.from(x!.data as Float32Array))
    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
    for (const number of first!) expect(Math.abs(number)).toBeLessThanOrEqual(1)
    expect(new Set(first).size).toBeGreaterThan(3)
  })

  it('are indices of the table', async () => {
    for (const rows of [1, 5]) await compare(embedding(rows), embedding(rows))
    const ids = fake.feeds.map(({ ids: each }) => Array.from(each!.data as BigInt64Array, Number))
    expect(new Set(ids[0])).toEqual(new Set([0]))
    expect([...new Set(ids[2])].toSorted()).toEqual([0, 1, 2, 3, 4])
  })

  it('have the sizes of dims, of either model, or defaults', async () => {
    const shapeOf = async (a: OnnxModel, b: OnnxModel, dims?: Record<string, number>): Promise<unknown> =>
      (await compare(a, b, dims ? { dims } : {})).inputs[0]!.shape
    expect(await shapeOf(embedding(), embedding())).toEqual([2, 8])
    expect(await shapeOf(embedding(), embedding(), { sequence: 3 })).toEqual([2, 3])
    expect(await shapeOf(embedding(), embedding(), { batch: 0, sequence: 3 })).toEqual([0, 3])
    const fixed = OnnxModelOf(embedding(), (graph) =>
      graph.setType('ids', { kind: 'tensor', dtype: 'int64', shape: [4, 'sequence'] }),
    )
    expect(await shapeOf(embedding(), fixed)).toEqual([4, 8])
    expect(await shapeOf(fixed, embedding())).toEqual([4, 8])
    await expect(compare(embedding(), fixed, { dims: { batch: 2 } })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message: expect.stringContaining('dims has 2 for "batch", which is 4 in input "ids"'),
    })
    const other = OnnxModelOf(fixed, (graph) =>
      graph.setType('ids', { kind: 'tensor', dtype: 'int64', shape: [4, 7] }),
    )
    const longer = OnnxModelOf(fixed, (graph) =>
      graph.setType('ids', { kind: 'tensor', dtype: 'int64', shape: [4, 9] }),
    )
    await expect(compare(longer, other)).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: 'Input "ids" is [4, 9] in a and [4, 7] in b: they take no equal inputs.',
    })
  })

  it('follow sums of names', async () => {
    const model = OnnxModelOf(scaled(), (graph) => {
      graph.setType('x', float(['past_sequence_length + 1', 3]))
      graph.addInput('mask', float([null, 'total_sequence_length']))
      graph.addInput('past', float(['n', 'past_sequence_length']))
      graph.addInput('tokens', float(['n', 'sequence_length']))
    })
    const { inputs } = await compare(model, model, { dims: { sequence_length: 3 } })
    expect(inputs.map(({ shape }) => shape)).toEqual([
      [9, 3],
      [2, 11],
      [2, 8],
      [2, 3],
    ])
  })

  it('have other default sizes where the first model refuses them', async () => {
    fake.refuseRun = ({ ids }) => {
      if (ids!.dims[1]! < 64) throw new Error(`too short: ${ids!.dims}`)
    }
    expect((await compare(embedding(), embedding())).inputs[0]!.shape).toEqual([1, 64])
    await expect(compare(embedding(), embedding(), { dims: { sequence: 8 } })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message:
        'Model a: onnxruntime does not run it: too short: 2,8. Give sizes by dims, or values by inputs.',
    })
    const loads = fake.paths.length
    fake.refuseLoad = () => {
      throw new Error('no such operator.')
    }
    await expect(compare(embedding(), embedding())).rejects.toMatchObject({
      message: 'Model a: onnxruntime does not load it: no such operator.',
    })
    expect(fake.paths.length - loads).toBe(1)
  })

  it('are those of the caller, in the types of the models', async () => {
    const x = tensor([1, 2, 3.0002], { dtype: 'float64', shape: [1, 3], name: 'x' })
    const half = scaled()
    await toFloat16(half, { keepIo: false })
    fake.refuseRun = ({ x: fed }) => {
      if (fed!.type === 'float16') throw new Error('stop')
    }
    await compare(scaled(), half, { inputs: [x] })
    const [one, other] = fake.feeds.map(({ x: fed }) => fed!)
    expect(one).toMatchObject({ type: 'float32', dims: [1, 3], data: Float32Array.of(1, 2, 3) })
    expect(other).toMatchObject({ type: 'float16', data: Uint16Array.of(0x3c00, 0x4000, 0x4200) })
    for (const inputs of [{ x }, { x: { type: 'float32', dims: [1, 3], data: Float32Array.of(1, 2, 3) } }]) {
      fake.feeds.length = 0
      const { inputs: used } = await compare(scaled(), half, { inputs })
      expect(used).toEqual([{ name: 'x', dtype: 'float32', shape: [1, 3], isGenerated: false }])
      expect(fake.feeds[0]!.x).toMatchObject({ data: Float32Array.of(1, 2, 3) })
    }
    // Names of inputs that are also names of fields of a tensor.
    for (const name of ['kind', 'dtype', 'type', 'dims']) {
      await expect(compare(scaled(), scaled(), { inputs: { [name]: x } })).rejects.toThrow(
        `inputs has "${name}", which is no input`,
      )
    }
    for (const [options, message] of [
      [{ inputs: [tensor([1], { dtype: 'float32', name: 'X' })] }, 'inputs has "X", which is no input'],
      [{ inputs: { X: x } }, 'inputs has "X", which is no input'],
      [{ inputs: { x: 1 as never } }, 'inputs, "x": '],
      [{ inputs: [tensor([1], { dtype: 'float32' })] }, 'inputs has a tensor without a name; give {'],
      [{ inputs: x as never }, 'it must be { name of an input: tensor }, or a list of tensors'],
      [{ inputs: Float32Array.of(1, 2, 3) as never }, 'it must be { name of an input: tensor }'],
      [{ inputs: 'x' as never }, 'it must be { name of an input: tensor }'],
      [{ dims: { N: 1 } }, 'dims has "N", which no input has as a dimension; expected one of: "n"'],
    ] as const) {
      await expect(compare(scaled(), scaled(), options)).rejects.toMatchObject({
        code: 'ERR_ARGUMENT',
        message: expect.stringContaining(message),
      })
    }
    const sparse = sparseFromDense(tensor([[0, 1, 0]], { dtype: 'float32', name: 'x' }))
    const strings = stringTensor(['a', 'b', 'c'], { shape: [1, 3], name: 'x' })
    for (const wrong of [await sparse, strings])
      await expect(compare(scaled(), scaled(), { inputs: [wrong] })).rejects.toMatchObject({
        code: 'ERR_UNSUPPORTED',
      })
  })

  it('with a default get no value unless the caller gives one', async () => {
    const model = OnnxModelOf(scaled(), (graph) => graph.addInput('w', float([3])))
    expect((await compare(model, model)).inputs.map(({ name }) => name)).toEqual(['x'])
    expect(Object.keys(fake.feeds[0]!)).toEqual(['x'])
    const w = tensor(Float32Array.of(0, 0, 0), { name: 'w' })
    const fixed = scaled([7, 7, 7])
    fixed.graph.addInput('w', float([3]))
    expect(statuses(await compare(model, fixed, { inputs: [w] }))).toEqual({ y: 'within', z: 'within' })
  })

  it('of unknown rank, of other kinds and of too many elements are refused', async () => {
    const typed = (type: ValueType): OnnxModel => OnnxModelOf(scaled(), (graph) => graph.setType('x', type))
    for (const [type, code] of [
      [{ kind: 'tensor', dtype: 'float32' }, 'ERR_UNSUPPORTED'],
      [{ kind: 'sequence', of: float([3]) }, 'ERR_UNSUPPORTED'],
      [{ kind: 'tensor', dtype: 'complex64', shape: [3] }, 'ERR_UNSUPPORTED'],
      [float([2 ** 20, 2 ** 20]), 'ERR_LIMIT'],
      [{ kind: 'tensor', dtype: 'float32', shape: [2n ** 60n, 2n ** 60n] }, 'ERR_LIMIT'],
    ] as const)
      await expect(compare(typed(type as ValueType), typed(type as ValueType))).rejects.toMatchObject({
        code,
      })
    expect(fake.feeds).toEqual([])
  })
})

describe('pairs', () => {
  it('belong together by name, by renamed, or by position', async () => {
    const renamed = scaled()
    for (const [from, to] of [
      ['x', 'in'],
      ['y', 'first'],
      ['z', 'second'],
    ])
      renamed.graph.rename(from!, to!)
    const byPosition = await compare(scaled(), renamed)
    expect(byPosition.outputs.map(({ name, original }) => [name, original])).toEqual([
      ['first', 'y'],
      ['second', 'z'],
    ])
    expect(byPosition.isWithin).toBe(true)
    renamed.graph.reorderOutputs(['second', 'first'])
    expect((await compare(scaled(), renamed)).isWithin).toBe(false)
    const names = { x: 'in', y: 'first', z: 'second' }
    expect((await compare(scaled(), renamed, { renamed: names })).isWithin).toBe(true)
  })

  it('of a part are values inside the whole', async () => {
    const whole = scaled()
    whole.graph.setType('product', float(['n', 3]))
    const part = extract(whole, ['product'], ['y'])
    expect((await compare(whole, part)).isWithin).toBe(false)
    const found = await compare(whole, part, { isPart: true })
    expect(found.outputs).toMatchObject([{ name: 'y', original: 'y', status: 'within' }])
    expect(Object.keys(fake.feeds.at(-1)!)).toEqual(['product'])
    const inner = extract(whole, ['x'], ['product'])
    const wrong = OnnxModelOf(inner, (graph) => graph.setInitializer('w', tensor(Float32Array.of(2, 3, 5))))
    expect(statuses(await compare(whole, inner, { isPart: true }))).toEqual({ product: 'within' })
    expect(statuses(await compare(whole, wrong, { isPart: true }))).toEqual({ product: 'beyond' })
    expect(whole.graph.nodes.length).toBe(3)
  })

  it('that random numbers reach, and sequences, are not compared', async () => {
    const random = OnnxModelOf(scaled(), (graph) => {
      graph.addNode({ opType: 'RandomNormalLike', inputs: ['x'], outputs: ['noise'] })
      graph.addNode({ opType: 'Add', inputs: ['noise', 'z'], outputs: ['noisy'] })
      graph.addOutput('noisy', float(['n', 3]))
    })
    const found = await compare(random, random)
    expect(statuses(found)).toEqual({ y: 'within', z: 'within', noisy: 'not compared' })
    expect(found.outputs[2]!.reason).toBe('it depends on random numbers of RandomNormalLike')
    expect(found.isWithin).toBe(true)
    const sequence = OnnxModelOf(scaled(), (graph) => {
      graph.removeOutput('y')
      graph.removeOutput('z')
      graph.addNode({ opType: 'SequenceConstruct', inputs: ['x'], outputs: ['list'] })
      graph.addOutput('list', { kind: 'none' })
    })
    const none = await compare(sequence, sequence)
    expect(none).toMatchObject({ isWithin: false, inputs: [] })
    expect(none.outputs[0]!.reason).toBe('it is of kind sequence; onnxruntime-node returns tensors alone')
  })
})

describe('models', () => {
  it('are run from their files, and from a copy where the runtime refuses the file', async () => {
    const path = inFolder('model.onnx')
    await save(path, scaled())
    await compare(path, scaled())
    expect(fake.paths[0]).toBe(path)
    fake.refuseLoad = (each) => {
      if (each === path) throw new Error('a link')
    }
    expect((await compare(path, path)).isWithin).toBe(true)
    expect(existsSync(path)).toBe(true)
    const file = await open(path)
    file.onnx!.graph.setInitializer('w', tensor(Float32Array.of(0, 0, 0)))
    expect(statuses(await compare(path, file))).toEqual({ y: 'beyond', z: 'within' })
    file.close()
  })

  it('without values of weights, and files without a model, are refused', async () => {
    const empty = scaled()
    stripWeights(empty)
    await expect(compare(scaled(), empty)).rejects.toMatchObject({
      code: 'ERR_NO_DATA',
      message: 'The weight "w" of b has no values, so the model does not run.',
    })
    const path = inFolder('x.safetensors')
    await save(path, tensor([1], { dtype: 'float32', name: 'x' }))
    await expect(compare(path, scaled())).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })

  it('are compared with right options only', async () => {
    for (const options of [
      { runtime: {} },
      { runtime: { InferenceSession: fake.InferenceSession } },
      { seed: -1 },
      { seed: 2 ** 32 },
      { tolerance: -1 },
      { tolerance: Number.NaN },
      { tolerance: Number.POSITIVE_INFINITY },
      { dims: { n: -1 } },
      { renamed: { x: 1 } },
      { isPart: 1 },
      { inputs: [1] },
      { nonsense: 1 },
    ])
      await expect(compare(scaled(), scaled(), options as never)).rejects.toMatchObject({
        code: 'ERR_ARGUMENT',
      })
    const signal = AbortSignal.abort()
    await expect(compare(scaled(), scaled(), { signal })).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  })
})
