/** `raiseOpset`: models of early operator sets are converted to the one that a compression needs, and compute what they did. */
import { describe, expect, it } from 'vitest'
import { serialize, tensor } from '../../../lib/index.js'
import {
  type CompressReport,
  convertOpset,
  OnnxModel,
  quantizableValues,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
} from '../../../lib/onnx.js'
import { lossOf, randomFloats } from './compare_outputs.js'
import { runtime } from './onnxruntime.js'

const SIZE = 64

/** Operators whose attributes became inputs in versions 11 (Clip) and 13 (Squeeze, Unsqueeze). */
function oldModel(opset = 9): OnnxModel {
  const model = OnnxModel.create({ opset, irVersion: 4 })
  const { graph } = model
  const type = { kind: 'tensor', dtype: 'float32', shape: [1, SIZE] } as const
  const axes = { type: 'INTS', value: [0] } as const
  graph.addInput('x', type)
  graph.setInitializer('w', tensor(randomFloats([SIZE, SIZE]), { shape: [SIZE, SIZE] }))
  graph.addNode({ opType: 'MatMul', name: 'product', inputs: ['x', 'w'], outputs: ['p'] })
  const limits = { min: { type: 'FLOAT', value: -9 }, max: { type: 'FLOAT', value: 9 } } as const
  graph.addNode({ opType: 'Clip', inputs: ['p'], outputs: ['c'], attributes: limits })
  graph.addNode({ opType: 'Squeeze', inputs: ['c'], outputs: ['s'], attributes: { axes } })
  graph.addNode({ opType: 'Unsqueeze', inputs: ['s'], outputs: ['y'], attributes: { axes } })
  graph.addOutput('y', type)
  return model
}

type Step = (model: OnnxModel, options: { readonly raiseOpset?: boolean }) => Promise<CompressReport>

/**
 * Each with the version that it needs, and the largest loss: 8 bits lose 0.03, and 0.07 on processors whose products of uint8 and
 * int8 saturate (x86-64 without VNNI).
 */
const STEPS: readonly (readonly [name: string, step: Step, needed: number, loss: number])[] = [
  ['quantizeDynamic', quantizeDynamic, 11, 0.1],
  ['quantizeWeights as qdq', (model, each) => quantizeWeights(model, { ...each, format: 'qdq' }), 21, 0.2],
  [
    'quantizeStatic per channel',
    (model, each) => {
      const ranges = Object.fromEntries(quantizableValues(model).map((name) => [name, { min: -30, max: 30 }]))
      return quantizeStatic(model, { ...each, ranges, perChannel: true })
    },
    13,
    0.1,
  ],
]

describe.each(STEPS)('%s', (_, step, needed, loss) => {
  it('refuses an early operator set, names the remedy, and changes nothing', async () => {
    const model = oldModel()
    await expect(step(model, {})).rejects.toThrow(
      `needs ${needed}, to which convertOpset or the option raiseOpset`,
    )
    expect(await serialize(model)).toEqual(await serialize(oldModel()))
  })

  it('raises it where it is allowed, no further than needed', async () => {
    const model = oldModel()
    expect((await step(model, { raiseOpset: true })).opset).toEqual({ from: 9, to: needed })
    expect(model.opsetImports.get('')).toBe(needed)
    const later = oldModel()
    convertOpset(later, needed)
    expect((await step(later, { raiseOpset: true })).opset).toBeUndefined()
  })

  it.skipIf(!runtime)('gives a model that computes what the early one did', async () => {
    const model = oldModel()
    await step(model, { raiseOpset: true })
    const feeds = { x: { data: randomFloats([1, SIZE], 5), shape: [1, SIZE] } }
    expect(await lossOf(oldModel(), model, feeds)).toBeLessThan(loss)
  })

  it('refuses another value than true and false', async () => {
    await expect(step(oldModel(), { raiseOpset: 1 as never })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })
})

it('changes nothing where nodes cannot be converted', async () => {
  const model = oldModel()
  model.graph.addNode({ opType: 'NoOperator', inputs: ['y'], outputs: ['z'] })
  await expect(quantizeDynamic(model, { raiseOpset: true })).rejects.toThrow(
    'cannot be converted to operator set 11',
  )
  expect(model.opsetImports.get('')).toBe(9)
})
