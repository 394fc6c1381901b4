/** Ranges of values: collectors by numbers that are known, what the runtime is asked for, and onnxruntime itself where it is. */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { open, save, tensor } from '../../../lib/index.js'
import { calibrate, OnnxModel, type OnnxRuntime, quantizeStatic } from '../../../lib/onnx.js'
import {
  EntropyCollector,
  ExtremesCollector,
  PercentileCollector,
} from '../../../lib/pipeline/calibration/collectors.js'
import { runtime } from './onnxruntime.js'
import { recorded } from './recorded.js'

describe('collectors', () => {
  it('take the extremes of all batches without NaN, or their moving average', () => {
    const [all, average] = [new ExtremesCollector(false), new ExtremesCollector(true)]
    expect(all.range()).toBeUndefined()
    for (const batch of [[1, Number.NaN, 3], [-7, 2], []]) {
      all.add(Float32Array.from(batch))
      average.add(Float32Array.from(batch))
    }
    expect(all.range()).toEqual({ min: -7, max: 3 })
    expect(average.range()).toEqual({ min: 1 + 0.01 * -8, max: 3 - 0.01 })
  })

  it('leave out rare numbers with a percentile', () => {
    const collector = new PercentileCollector(99)
    const numbers = Float32Array.from({ length: 10_000 }, (_, at) => at / 10_000 - 0.5)
    collector.add(numbers)
    collector.add(Float32Array.of(1000, -1000))
    const { min, max } = collector.range()!
    expect(min).toBeGreaterThan(-0.51)
    expect(min).toBeLessThan(-0.49)
    expect(max).toBeGreaterThan(0.49)
    expect(max).toBeLessThan(0.51)
  })

  it('cut nothing with the entropy of one window, and stay within the numbers', () => {
    const collector = new EntropyCollector()
    collector.add(Float32Array.from({ length: 1000 }, (_, at) => Math.sin(at) * 2 + 0.5))
    const { min, max } = collector.range()!
    expect(min).toBeCloseTo(-1.5, 4)
    expect(max).toBeCloseTo(2.5, 4)
  })

  it('take constant zeros', () => {
    for (const collector of [new PercentileCollector(99.9), new EntropyCollector()]) {
      collector.add(new Float32Array(5))
      expect(collector.range()).toEqual({ min: 0, max: 0 })
    }
  })
})

/** Seeded numbers and the ranges of onnxruntime's tool, by test/programs/interop/calibrate.py. */
interface Recorded {
  readonly batch: number
  readonly batches: number
  readonly cases: readonly {
    readonly shape: keyof typeof SHAPES
    readonly growth: number
    readonly seed: number
    readonly expected: Readonly<Record<string, readonly [number, number]>>
  }[]
}

/** Each takes two uniform numbers, as in the program. */
const SHAPES = {
  even: (u: number) => u * 4 - 2,
  peaked: (u: number, v: number) => (u + v - 1) * (u + v - 1) * (u + v - 1) * 8,
  positive: (u: number, v: number) => u * v * 6,
  outliers: (u: number, v: number) => (u - 0.5) * (v > 0.998 ? 100 : 1),
  relu: (u: number) => (u > 0.5 ? (u - 0.5) * 3 : 0),
}

function seededNumbers(seed: number, count: number, shape: (u: number, v: number) => number): Float32Array {
  let state = seed
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  return Float32Array.from({ length: count }, () => shape(next(), next()))
}

describe('ranges of histograms, batch by batch', () => {
  const { batch, batches, cases } = JSON.parse(
    readFileSync(new URL('../../fixtures/calibration.json', import.meta.url), 'utf8'),
  ) as Recorded

  it.each(cases)(
    "are those of onnxruntime's tool: $shape, growing by $growth",
    ({ shape, growth, seed, expected }) => {
      const numbers = Array.from({ length: batches }, (_, at) =>
        seededNumbers(seed + at, batch, (u, v) => SHAPES[shape](u, v) * growth ** at),
      )
      // The tool keeps edges of bins in float32.
      const tolerance = 1e-6 * Math.max(...numbers.flatMap((each) => [...each.map(Math.abs)]))
      for (const [method, [min, max]] of Object.entries(expected)) {
        const collector =
          method === 'entropy' ? new EntropyCollector() : new PercentileCollector(Number(method))
        for (const each of numbers) collector.add(each)
        const found = collector.range()!
        expect(Math.abs(found.min - min), `${method}: ${found.min}, ${min}`).toBeLessThanOrEqual(tolerance)
        expect(Math.abs(found.max - max), `${method}: ${found.max}, ${max}`).toBeLessThanOrEqual(tolerance)
      }
    },
  )
})

function chain(): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const type = { kind: 'tensor', dtype: 'float32', shape: ['n', 4] } as const
  model.graph.addInput('x', type)
  model.graph.setInitializer(
    'w',
    tensor(
      Float32Array.from({ length: 16 }, (_, at) => at / 8 - 1),
      { shape: [4, 4] },
    ),
  )
  model.graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['a'] })
  model.graph.addNode({ opType: 'Relu', inputs: ['a'], outputs: ['y'] })
  model.graph.addOutput('y', type)
  return model
}

/** A runtime that gives -2 and 5 for every output, and notes what it was given. */
function fakeRuntime(): { readonly runtime: OnnxRuntime; readonly fetched: string[]; isReleased: boolean } {
  const fake = {
    fetched: [] as string[],
    isReleased: false,
    runtime: {
      InferenceSession: {
        create: async (path: string) => {
          const file = await open(path)
          expect(file.onnx!.graph.outputs.length).toBeGreaterThan(1)
          file.close()
          return {
            run: async (_: unknown, names: readonly string[]) => {
              fake.fetched.push(...names)
              return Object.fromEntries(names.map((name) => [name, { data: Float32Array.of(-2, 5) }]))
            },
            release: async () => {
              fake.isReleased = true
            },
          }
        },
      },
    },
  }
  return fake
}

describe('calibrate', () => {
  it.each(['minmax', 'percentile', 'entropy'] as const)(
    'gives ranges by %s and leaves the model',
    async (method) => {
      const fake = fakeRuntime()
      const model = chain()
      const before = model.graph.nodes.length
      const ranges = await calibrate(model, [{}, {}], { runtime: fake.runtime, method })
      expect(Object.keys(ranges)).toEqual(['x', 'a', 'y'])
      expect(ranges.a!.min).toBe(-2)
      expect(ranges.a!.max).toBeGreaterThan(4.9)
      expect(model.graph.nodes.length).toBe(before)
      expect(fake.isReleased).toBe(true)
      const symmetric = await calibrate(model, [{}], { runtime: fake.runtime, symmetric: true })
      expect(symmetric.x).toEqual({ min: -5, max: 5 })
    },
  )

  it('refuses feeds without a batch and wrong options', async () => {
    const { runtime: fake } = fakeRuntime()
    const refused = { code: 'ERR_ARGUMENT' }
    await expect(calibrate(chain(), [], { runtime: fake })).rejects.toMatchObject(refused)
    for (const options of [
      { runtime: {} },
      { runtime: fake, method: 'x' },
      { runtime: fake, percentile: 0 },
    ]) {
      await expect(calibrate(chain(), [{}], options as never)).rejects.toMatchObject(refused)
    }
  })

  it.skipIf(!runtime)('measures with onnxruntime-node, and the result runs', async () => {
    const model = await recorded('cnn')
    const { Tensor } = runtime!
    const feeds = Array.from({ length: 4 }, (_, batch) => ({
      x: new Tensor(
        'float32',
        Float32Array.from({ length: 3 * 8 * 8 }, (__, at) => Math.sin(at * (batch + 1))),
        [1, 3, 8, 8],
      ),
    }))
    const ranges = await calibrate(model, feeds, { runtime: runtime! })
    expect(ranges.x!.max).toBeCloseTo(1, 2)
    const before = await outputOf(model, feeds[0]!)
    await quantizeStatic(model, { ranges })
    const after = await outputOf(model, feeds[0]!)
    const error = Math.max(...after.map((number, at) => Math.abs(number - before[at]!)))
    expect(error).toBeLessThan(0.1)
  })
})

async function outputOf(model: OnnxModel, feeds: Readonly<Record<string, unknown>>): Promise<Float32Array> {
  const folder = await mkdtemp(join(tmpdir(), 'tilework-calibrated-'))
  try {
    await save(`${folder}/model.onnx`, model)
    const session = await runtime!.InferenceSession.create(`${folder}/model.onnx`)
    return (await session.run(feeds))[session.outputNames[0]!]!.data
  } finally {
    await rm(folder, { recursive: true })
  }
}
