/** Reports about float16: generators without a kernel (07), and sums of integer products beyond 65504 (22). */
import { expect } from 'vitest'
import { tensor } from '../../../../lib/index.js'
import {
  inferTypes,
  type OnnxModel,
  quantizeDynamic,
  type ToFloat16Options,
  toFloat16,
} from '../../../../lib/onnx.js'
import { lossOf, outputsOf } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { type ModelText, modelOf } from '../../onnx_optimize/model_text.js'
import {
  describeKind,
  feedsOf,
  movedInto,
  type Place,
  reported,
  strictErrors,
  withOutputTypes,
} from './kinds.js'

interface FloatCase {
  readonly model: OnnxModel
  readonly options?: ToFloat16Options
}

const GENERATORS = /^(Random|EyeLike|Bernoulli|MelWeight|MeanVariance)/

/** The generator gives float32 as before, and the model runs with the outputs that it had: what is random cancels out. */
async function proveGenerator({ model, options = {} }: FloatCase): Promise<void> {
  const after = model.copy()
  const { nodes } = await toFloat16(after, options)
  expect(await strictErrors(after)).toEqual([])
  for (const graph of [after.graph, ...after.graph.subgraphs()]) {
    for (const node of graph.nodes.filter(({ opType }) => GENERATORS.test(opType))) {
      // One with a float input runs in float16, because onnxruntime inserts Casts.
      const first = inferTypes(after).get(node.inputs[0] ?? '')
      if (first?.kind === 'tensor' && first.dtype === 'float16') continue
      expect(nodes).toContainEqual(
        expect.objectContaining({ opType: node.opType, reason: expect.any(String) }),
      )
      expect([undefined, 1]).toContain(node.attribute('dtype')?.value)
    }
  }
  if (!runtime) return
  const feeds = feedsOf(model)
  for (const level of ['disabled', 'all'] as const) await outputsOf(after, feeds, level)
  if (options.keepIo === undefined) expect(await lossOf(model, after, feeds)).toBeLessThan(0.01)
}

/** `made` is what the generator makes; `y` is `x` plus 0. */
const CANCELLED = 'q = Mul(made, w); z = Sub(q, q); s = ReduceSum<keepdims=0>(z); y = Add(s, x)'

function generator(node: string, { opset = 17, weights = {} }: Pick<ModelText, 'opset' | 'weights'> = {}) {
  const model = modelOf({
    inputs: { x: 'float32 2 3' },
    weights: { w: tensor(Float32Array.of(2)), ...weights },
    nodes: `${node}; ${CANCELLED}`,
    opset,
  })
  model.graph.setType('y', { kind: 'tensor', dtype: 'float32', shape: [2, 3] })
  return model
}

const integers = (...shape: number[]) =>
  tensor(
    BigInt64Array.from({ length: shape.reduce((one, two) => one * two, 1) }, (_, at) => BigInt(at)),
    { shape },
  )
const scalar = (value: number, dtype: 'int64' | 'float32' = 'int64') => tensor([value], { dtype, shape: [] })

describeKind<FloatCase>(
  '07: generators that have no float16 kernel',
  { RandomNormalLike: async () => ({ model: await reported('07-fp16-generators/in.onnx') }) },
  {
    RandomNormal: () => ({ model: generator('made = RandomNormal<shape=[2,3]>()') }),
    'RandomUniform with its type': () => ({
      model: generator('made = RandomUniform<shape=[2,3], dtype=1>()'),
    }),
    'RandomUniform of version 1, also as output': () => ({
      model: generator('made = RandomUniform<shape=[4], low=-1.0>()', { opset: 9 }),
      options: { keepIo: ['x'] },
    }),
    'RandomUniformLike of integers': () => ({
      model: generator('made = RandomUniformLike<dtype=1>(i)', { weights: { i: integers(2, 3) } }),
    }),
    'EyeLike of integers': () => ({
      model: generator('made = EyeLike<dtype=1>(i)', { weights: { i: integers(2, 2) } }),
      options: { block: 'minimal' },
    }),
    'EyeLike without a type': () => ({
      model: generator('e = EyeLike<dtype=1, k=1>(i); made = Neg(e)', {
        weights: { i: integers(3, 2) },
        opset: 22,
      }),
    }),
    MelWeightMatrix: () => ({
      model: generator('made = MelWeightMatrix(bins, length, rate, low, high)', {
        weights: {
          bins: scalar(8),
          length: scalar(16),
          rate: scalar(8000),
          low: scalar(20, 'float32'),
          high: scalar(4000, 'float32'),
        },
      }),
    }),
    MeanVarianceNormalization: () => ({ model: generator('made = MeanVarianceNormalization<axes=[0]>(x)') }),
    ...Object.fromEntries(
      (['If', 'Loop', 'function'] as const).map((place: Place) => [
        `RandomNormal in ${place}`,
        () => ({ model: movedInto(place, generator('made = RandomNormal<shape=[2,3]>()')) }),
      ]),
    ),
  },
  proveGenerator,
)

/** Sums of 512 products of codes exceed 65504; scales that follow bring them back. */
async function proveSums({ model, options = {} }: FloatCase): Promise<void> {
  const after = model.copy()
  await toFloat16(after, options)
  expect(await strictErrors(after)).toEqual([])
  for (const graph of [after.graph, ...after.graph.subgraphs()])
    for (const { outputs } of graph.nodes.filter(({ opType }) => opType.endsWith('Integer')))
      expect(castsBehind(graph, outputs[0]!)).toEqual([1])
  if (!runtime || options.dtype === 'bfloat16') return
  expect(await lossOf(model, after, feedsOf(model, Math.abs))).toBeLessThan(0.01)
}

/** Types to which the sums are cast, also behind nodes that move them. */
function castsBehind(graph: OnnxModel['graph'], name: string): readonly number[] {
  return graph.usersOf(name).flatMap((user) => {
    if (user.opType === 'Cast') return [Number(user.attribute('to')!.value)]
    return castsBehind(graph, user.outputs[0]!)
  })
}

const codes = (dtype: 'uint8' | 'int8', ...shape: number[]) => {
  const size = shape.reduce((one, two) => one * two, 1)
  return tensor(
    Array.from({ length: size }, (_, at) => 40 + (at % 80)),
    { dtype, shape },
  )
}

function sums(nodes: string, w = codes('int8', 512, 4), x = '2 512', opset = 17): OnnxModel {
  return withOutputTypes(
    modelOf({
      inputs: { x: `float32 ${x}` },
      weights: { w, scale: tensor([0.001], { dtype: 'float32', shape: [] }) },
      nodes: `c, s, z = DynamicQuantizeLinear(x); ${nodes}; g = Mul(s, scale); y = Mul(f, g)`,
      opset,
    }),
  )
}

async function dynamic(text: ModelText): Promise<FloatCase> {
  const model = withOutputTypes(modelOf(text))
  await quantizeDynamic(model, { perChannel: true })
  return { model }
}

const positive = (...shape: number[]) => {
  const size = shape.reduce((one, two) => one * two, 1)
  return tensor(
    Float32Array.from({ length: size }, (_, at) => 0.2 + ((at * 37) % 101) / 100),
    { shape },
  )
}

describeKind<FloatCase>(
  '22: sums of integer products, which float16 does not hold',
  {
    'as onnxruntime quantized it': async () => ({ model: await reported('22-fp16-of-int8/int8.onnx') }),
    'with all types changed': async () => ({
      model: await reported('22-fp16-of-int8/int8.onnx'),
      options: { block: 'minimal' },
    }),
  },
  {
    'MatMulInteger behind a Transpose': () => ({
      model: sums('i = MatMulInteger(c, w, z); j = Transpose<perm=[1,0]>(i); f = Cast<to=1>(j)'),
    }),
    ConvInteger: () => ({
      model: sums('i = ConvInteger(c, w, z); f = Cast<to=1>(i)', codes('uint8', 4, 128, 2, 2), '1 128 3 3'),
    }),
    'two sums that are added': () => ({
      model: sums('i = MatMulInteger(c, w, z); h = Add(i, i); f = Cast<to=1>(h)'),
    }),
    'in version 11, minimal': () => ({
      model: sums('i = MatMulInteger(c, w, z); f = Cast<to=1>(i)', codes('uint8', 512, 3), '1 512', 11),
      options: { block: 'minimal' },
    }),
    'as bfloat16': () => ({
      model: sums('i = MatMulInteger(c, w, z); f = Cast<to=1>(i)'),
      options: { dtype: 'bfloat16', keepIo: false },
    }),
    'Gemm that quantizeDynamic made': () =>
      dynamic({
        inputs: { x: 'float32 2 512' },
        weights: { w: positive(4, 512), b: positive(4) },
        nodes: 'y = Gemm<transB=1>(x, w, b)',
      }),
    'Conv that quantizeDynamic made': () =>
      dynamic({
        inputs: { x: 'float32 1 128 4 4' },
        weights: { w: positive(4, 128, 3, 3) },
        nodes: 'y = Conv(x, w)',
      }),
    ...Object.fromEntries(
      (['If', 'Loop', 'function'] as const).map((place) => [
        `MatMulInteger in ${place}`,
        () => ({ model: movedInto(place, sums('i = MatMulInteger(c, w, z); f = Cast<to=1>(i)')) }),
      ]),
    ),
  },
  proveSums,
)
