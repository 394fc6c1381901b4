/** Ways to compress a model, in test/programs/compress_models.mjs and models.mjs: passes, and what `compress --to` does. */
import {
  optimize,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  tidy,
  toFloat16,
} from '../../../dist/onnx.js'

/**
 * `most` is the largest error, relative to the largest output, that the bits explain in built nets, which are random and small.
 * `reduced` names the target that does the same with one bit less.
 */
export const TARGETS = {
  optimized: { most: 1e-5, run: optimizeAll },
  'tidy-q4': {
    most: 0.8,
    run: async (model) => {
      await tidy(model, { fold: 'all' })
      return quantizeWeights(model)
    },
  },
  fp16: { most: 0.02, run: (model) => toFloat16(model) },
  'fp16-io': { most: 0.02, run: (model) => toFloat16(model, { keepIo: false, block: 'minimal' }) },
  q8: { most: 0.2, run: (model) => quantizeDynamic(model, { raiseOpset: true }) },
  int8: {
    most: 0.2,
    reduced: 'int8-reduced',
    run: (model) => quantizeDynamic(model, { weightType: 'int8', perChannel: true, raiseOpset: true }),
  },
  'int8-reduced': {
    most: 0.2,
    run: (model) =>
      quantizeDynamic(model, { weightType: 'int8', perChannel: true, raiseOpset: true, reduceRange: true }),
  },
  uint8: { most: 0.2, run: (model) => quantizeDynamic(model, { weightType: 'uint8', raiseOpset: true }) },
  q4: { most: 0.8, run: (model) => quantizeWeights(model) },
  'q4-gather': { most: 0.8, run: (model) => quantizeWeights(model, { gather: true, symmetric: false }) },
  q4f16: {
    most: 0.8,
    run: async (model) => {
      await quantizeWeights(model)
      return toFloat16(model)
    },
  },
  bnb4: { most: 0.8, run: (model) => quantizeWeights(model, { format: 'bnb4' }) },
  qdq: { most: 0.8, run: (model) => quantizeWeights(model, { format: 'qdq', raiseOpset: true }) },
  static: {
    most: 0.5,
    reduced: 'static-reduced',
    run: (model, ranges) => quantizeStatic(model, { ranges, perChannel: true, raiseOpset: true }),
  },
  'static-reduced': {
    most: 0.5,
    run: (model, ranges) =>
      quantizeStatic(model, { ranges, perChannel: true, raiseOpset: true, reduceRange: true }),
  },
}

/** Every pass; none of those that are repeated may find anything in a second run. */
async function optimizeAll(model) {
  await optimize(model)
  const again = (await optimize(model)).filter(({ changes }) => changes > 0)
  if (again.length > 0) throw new Error(`a second run changed ${again[0].pass}`)
  await optimize(model, { only: ['fix-names', 'add-default-attributes'] })
}
