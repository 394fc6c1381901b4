/** Reports about static quantization: biases and their scales (01, 03, 04), calibration caches (13), models that are quantized already (23). */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { serialize, tensor } from '../../../../lib/index.js'
import {
  calibrate,
  type OnnxModel,
  type QuantizeStaticOptions,
  quantizableValues,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  readRanges,
  type ValueRanges,
} from '../../../../lib/onnx.js'
import { lossOf, randomFloats, tensorsOf } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { modelOf } from '../../onnx_optimize/model_text.js'
import {
  describeKind,
  feedsOf,
  movedInto,
  reported,
  reportPath,
  strictErrors,
  withOutputTypes,
} from './kinds.js'

interface BiasCase {
  readonly model: OnnxModel
  /** Measured where they are absent. */
  readonly ranges?: ValueRanges
  readonly options?: Partial<QuantizeStaticOptions>
}

/** The reports say about 1 % of the largest output; the fixtures give up to 1.2 %. */
const MOST_ERROR = 0.035

/** Ranges wide enough for the random inputs, where nothing can measure them. */
function wideRanges(model: OnnxModel): ValueRanges {
  return Object.fromEntries(quantizableValues(model).map((name) => [name, { min: -30, max: 30 }]))
}

async function proveBiases({ model, ranges, options }: BiasCase): Promise<void> {
  for (const perChannel of [true, false]) {
    const quantized = model.copy()
    const measured =
      ranges ??
      (runtime ? await calibrate(model, [tensorsOf(feedsOf(model))], { runtime }) : wideRanges(model))
    await quantizeStatic(quantized, {
      ranges: measured,
      perChannel: perChannel && Number(model.opsetImports.get('')) >= 13,
      reduceRange: true,
      ...options,
    })
    expect(await strictErrors(quantized)).toEqual([])
    await expectBiases(model, quantized)
    if (runtime) expect(await lossOf(model, quantized, feedsOf(model))).toBeLessThan(MOST_ERROR)
  }
}

/** Codes of each bias times their scales, and times beta, are beta times the numbers of the float model. */
async function expectBiases(before: OnnxModel, after: OnnxModel): Promise<void> {
  const numbers = async ({ graph }: OnnxModel, name: string): Promise<number[]> =>
    Array.from(
      (await (graph.value(name)!.constant as ReturnType<typeof tensor>).toTypedArray()) as Int32Array,
    )
  for (const node of after.graph.nodes) {
    const [, , bias = ''] = node.inputs
    const decode = after.graph.producerOf(bias)
    const original = before.graph.producerOf(node.outputs[0]!.replace(/_QuantizeLinear_Input$/, ''))
    if (decode?.opType !== 'DequantizeLinear' || !original) continue
    const [codes, scales] = [await numbers(after, decode.inputs[0]!), await numbers(after, decode.inputs[1]!)]
    const factors = [node, original].map((each) => Number(each.attribute('beta')?.value ?? 1))
    const wanted = await numbers(before, original.inputs[2]!)
    for (const [at, code] of codes.entries()) {
      const scale = scales[at % scales.length]!
      expect(Math.abs(code * scale * factors[0]! - wanted[at]! * factors[1]!)).toBeLessThanOrEqual(scale)
    }
  }
}

const floats = (shape: readonly number[], seed: number, factor = 1) =>
  tensor(
    randomFloats(shape, seed).map((value) => factor * value),
    { shape },
  )

const window =
  (
    node: string,
    x: readonly number[],
    w: readonly number[],
    b: readonly number[],
    options: Partial<QuantizeStaticOptions> = {},
    opset = 17,
  ) =>
  (): BiasCase => ({
    model: withOutputTypes(
      modelOf({
        inputs: { x: `float32 ${x.join(' ')}` },
        weights: { w: floats(w, 7), b: floats(b, 8, 3) },
        nodes: node,
        opset,
      }),
    ),
    options,
  })

const rangesOf = (path: string): ValueRanges => JSON.parse(readFileSync(reportPath(path), 'utf8'))

function reportedBiases(folder: string, names: readonly string[]) {
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (): Promise<BiasCase> => ({ model: withOutputTypes(await reported(`${folder}/${name}.onnx`)) }),
    ]),
  )
}

describeKind<BiasCase>(
  '01: biases with another number of elements than the weight has scales',
  {
    ...reportedBiases('01-static-bias-depthwise-convtranspose', ['depthwise']),
    'with its ranges': async () => ({
      model: withOutputTypes(await reported('01-static-bias-depthwise-convtranspose/depthwise.onnx')),
      ranges: rangesOf('01-static-bias-depthwise-convtranspose/depthwise.ranges.json'),
    }),
  },
  {
    'ConvTranspose of one axis in three groups': window(
      'y = ConvTranspose<group=3>(x, w, b)',
      [1, 6, 8],
      [6, 2, 3],
      [6],
    ),
    'ConvTranspose of three axes': window(
      'y = ConvTranspose<group=2>(x, w, b)',
      [1, 4, 3, 3, 3],
      [4, 3, 2, 2, 2],
      [6],
    ),
    'depthwise ConvTranspose with uint8 weights': window(
      'y = ConvTranspose<group=6>(x, w, b)',
      [1, 6, 8, 8],
      [6, 1, 3, 3],
      [6],
      { weightType: 'uint8', reduceRange: false },
    ),
    'depthwise ConvTranspose in version 11': window(
      'y = ConvTranspose<group=6, strides=[2,2]>(x, w, b)',
      [1, 6, 5, 5],
      [6, 1, 3, 3],
      [6],
      {},
      11,
    ),
    'depthwise Conv with a multiplier': window(
      'y = Conv<group=6>(x, w, b)',
      [1, 6, 8, 8],
      [12, 1, 3, 3],
      [12],
    ),
    'a bias of two ConvTranspose in other groups': window(
      'a = ConvTranspose<group=6>(x, w, b); c = Conv<group=6>(x, w, b); d = ReduceMax<keepdims=1>(c); y = Mul(a, d)',
      [1, 6, 8, 8],
      [6, 1, 3, 3],
      [6],
    ),
    'a bias that a Constant makes': () => {
      const { model } = window('y = ConvTranspose<group=6>(x, w, c)', [1, 6, 8, 8], [6, 1, 3, 3], [6])()
      const value = model.graph.initializer('b')!
      const attributes = { value: { type: 'TENSOR', value } } as const
      model.graph.addNode({ opType: 'Constant', outputs: ['c'], attributes }, 0)
      return { model: withOutputTypes(model) }
    },
    'depthwise ConvTranspose in a branch, which stays': () => ({
      model: movedInto(
        'If',
        window('y = ConvTranspose<group=6>(x, w, b)', [1, 6, 8, 8], [6, 1, 3, 3], [6])().model,
      ),
    }),
  },
  proveBiases,
)

const gemm = (bias: readonly number[], attributes = '', w: readonly number[] = [6, 10], opset = 17) =>
  window(`y = Gemm<${attributes}>(x, w, b)`, [3, 6], w, bias, {}, opset)

describeKind<BiasCase>(
  '03: biases of Gemm of any shape',
  reportedBiases(
    '03-static-bias-gemm-2d',
    ['', '1', '1x10', '3x1', '3x10', 'control'].map((shape) => `gemm_bias_${shape}`),
  ),
  {
    'a bias [1, 1]': gemm([1, 1]),
    'a bias [M, 1] with transB': gemm([3, 1], 'transB=1', [10, 6]),
    'a bias [1, N] with transB in version 11': gemm([1, 10], 'transB=1', [10, 6], 11),
    'a bias [M, 1] of one column': gemm([3, 1], '', [6, 1]),
    'a bias [M, N] with uint8 weights': window('y = Gemm(x, w, b)', [3, 6], [6, 10], [3, 10], {
      weightType: 'uint8',
      reduceRange: false,
    }),
    'a bias [1, N] of two nodes': window(
      'a = Gemm(x, w, b); c = Gemm<alpha=0.5>(x, w, b); y = Add(a, c)',
      [3, 6],
      [6, 10],
      [1, 10],
    ),
    'a scalar bias in a branch, which stays': () => ({ model: movedInto('If', gemm([])().model) }),
  },
  proveBiases,
)

describeKind<BiasCase>(
  '04: Gemm with beta',
  reportedBiases(
    '04-static-gemm-beta',
    ['-1.0', '0.5', '1.0', '2.0'].map((beta) => `gemm_beta_${beta}`),
  ),
  {
    'beta 0': gemm([10], 'beta=0.0'),
    'beta 3 and alpha 0.5 with transB': gemm([10], 'beta=3.0, alpha=0.5, transB=1', [10, 6]),
    'beta -2 and a bias [1, N]': gemm([1, 10], 'beta=-2.0'),
    'beta 0.25 and a bias [M, N]': gemm([3, 10], 'beta=0.25'),
    'beta 2 and alpha -1': gemm([10], 'beta=2.0, alpha=-1.0'),
    'beta 2 and a scalar in version 11': gemm([], 'beta=2.0', [6, 10], 11),
    'beta 1.5 and a bias [M, 1] in a Loop, which stays': () => ({
      model: movedInto('Loop', gemm([3, 1], 'beta=1.5')().model),
    }),
    'two betas of one bias': window(
      'a = Gemm<beta=2.0>(x, w, b); c = Gemm<beta=-0.5>(x, w, b); y = Add(a, c)',
      [3, 6],
      [6, 10],
      [10],
    ),
  },
  proveBiases,
)

interface CacheCase {
  /** The bytes of a file, or the name of a reported one. */
  readonly cache: string | Uint8Array
  /** The range of "x"; read from the JSON where it is absent. */
  readonly x?: readonly [number, number]
}

const CALIBRATED = '13-ranges-ort-cache'

/** The scale and zero point of "x" are those of its range in the file, by the rule of uint8: 0 has a code. */
async function proveCache({ cache, x }: CacheCase): Promise<void> {
  const input = typeof cache === 'string' ? reportPath(`${CALIBRATED}/${cache}`) : cache
  const ranges = await readRanges(input)
  const [min, max] = x ?? reportedRange(readFileSync(input as string, 'utf8'))
  expect(ranges.x).toEqual({ min, max })
  const model = withOutputTypes(
    modelOf({
      inputs: { x: 'float32 2 4' },
      weights: { w: floats([4, 3], 5) },
      nodes: 'h = MatMul(x, w); y = Relu(h)',
    }),
  )
  await quantizeStatic(model, { ranges: { h: { min: -1, max: 1 }, y: { min: 0, max: 1 }, ...ranges } })
  const scale = (await (model.graph.initializer('x_scale') as ReturnType<typeof tensor>).toTypedArray())[0]
  expect(Number(scale)).toBeCloseTo((Math.max(0, max) - Math.min(0, min)) / 255, 6)
}

/** As Python reads it: numbers, or arrays of numpy with `data`. */
function reportedRange(text: string): readonly [number, number] {
  const { lowest, highest } = JSON.parse(text).data.x
  return [lowest, highest].map((each) => Number(each?.data ?? each)) as [number, number]
}

const json = (entry: unknown, rest: object = {}): Uint8Array =>
  Buffer.from(
    JSON.stringify({ CLS: 'TensorsData', data: { x: { CLS: 'TensorData', ...(entry as object) } }, ...rest }),
  )
const array = (data: unknown, dtype = 'float32') => ({ CLS: 'numpy.array', data, dtype })

describeKind<CacheCase>(
  '13: calibration caches of onnxruntime',
  Object.fromEntries(
    [
      'MinMax',
      'Entropy',
      'Percentile',
      'Distribution',
      'cachepath_MinMax',
      'cachepath_Entropy',
      'cachepath_Percentile',
    ].map((name) => [name, () => ({ cache: `${name}.json` })]),
  ),
  {
    'plain numbers': () => ({ cache: json({ lowest: -1, highest: 2.5 }), x: [-1, 2.5] }),
    'arrays of one number': () => ({
      cache: json({ lowest: array([-1]), highest: array([2.5]) }),
      x: [-1, 2.5],
    }),
    'arrays without dimensions, and a histogram': () => ({
      cache: json({
        lowest: array(-1, 'float64'),
        highest: array(2.5),
        hist: array([1, 2], 'int64'),
        bins: 3,
      }),
      x: [-1, 2.5],
    }),
    'a number and an array, with the method': () => ({
      cache: json(
        { lowest: -1, highest: array(0) },
        { calibration_method: { CLS: 'CalibrationMethod', value: 'x' } },
      ),
      x: [-1, 0],
    }),
    'averages and deviations': () => ({
      cache: json({
        avg: array(0.5),
        std: array(1),
        lowest: array(-3),
        highest: array(4),
        hist_edges: array([0, 1]),
      }),
      x: [-3, 4],
    }),
    'pairs, as earlier versions wrote them': () => ({
      cache: Buffer.from('{"x": [-0.5, 0.25]}'),
      x: [-0.5, 0.25],
    }),
    'lines of text': () => ({ cache: Buffer.from('x 2.5\nh 1.0\n'), x: [-2.5, 2.5] }),
    "TensorRT's table": () => ({
      cache: Buffer.from('TRT-8601-EntropyCalibration2\nx: 3c000000\n'),
      x: [-127 / 128, 127 / 128],
    }),
  },
  proveCache,
)

/** Refused by the operator's name, and nothing has changed. */
async function proveRefusal({ model }: BiasCase): Promise<void> {
  const before = await serialize(model)
  for (const perChannel of [false, true]) {
    const ranges = Object.fromEntries(
      [...model.graph.values()].map(({ name }) => [name, { min: -4, max: 4 }]),
    )
    await expect(quantizeStatic(model, { ranges, perChannel })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringMatching(/^the model is quantized already: it has \w+ "/),
    })
  }
  expect(await serialize(model)).toEqual(before)
}

const twoProducts = () =>
  withOutputTypes(
    modelOf({
      inputs: { x: 'float32 2 16' },
      weights: { v: floats([16, 16], 3), w: floats([16, 16], 4) },
      nodes: 'h = Relu(x); a = MatMul(h, v); b = MatMul(h, w); y = Add(a, b)',
      opset: 21,
    }),
  )

const compressed = (compress: (model: OnnxModel) => Promise<unknown>) => async (): Promise<BiasCase> => {
  const model = twoProducts()
  for (const [at, node] of model.graph.nodes.entries()) node.name = `node ${at}`
  await compress(model)
  return { model }
}

const quantizedNodes =
  (nodes: string, domain?: string): (() => BiasCase) =>
  () => {
    const model = modelOf({
      inputs: { x: 'float32 2 16' },
      weights: {
        s: tensor([0.1], { dtype: 'float32', shape: [] }),
        z: tensor([3], { dtype: 'uint8', shape: [] }),
        c: tensor(new Uint8Array(256).fill(7), { shape: [16, 16] }),
      },
      nodes,
    })
    if (domain !== undefined) {
      model.setOpsetImport(domain, 1)
      for (const node of model.graph.nodes) if (node.opType.startsWith('Q')) node.domain = domain
    }
    return { model }
  }

describeKind<BiasCase>(
  '23: static quantization of a model that is quantized already',
  {
    'by quantize_dynamic in part': async () => ({ model: await reported('23-qdq-duplicate-names/m.onnx') }),
  },
  {
    'int8 of one node': compressed((model) => quantizeDynamic(model, { exclude: ['node 1'] })),
    'uint8 per channel': compressed((model) =>
      quantizeDynamic(model, { weightType: 'uint8', perChannel: true }),
    ),
    'static int8 of one node': compressed((model) =>
      quantizeStatic(model, {
        ranges: Object.fromEntries([...model.graph.values()].map(({ name }) => [name, { min: -4, max: 4 }])),
        exclude: ['node 1', 'node 3'],
      }),
    ),
    'blocks of DequantizeLinear': compressed((model) =>
      quantizeWeights(model, { format: 'qdq', nodes: { exclude: ['node 2'] } }),
    ),
    QLinearMatMul: quantizedNodes('q = QuantizeLinear(x, s, z); y = QLinearMatMul(q, s, z, c, s, z, s, z)'),
    'a weight that is decoded': quantizedNodes('w = DequantizeLinear(c, s, z); y = MatMul(x, w)'),
    'QGemm of onnxruntime': quantizedNodes('y = QGemm(x, s, z, c, s, z)', 'com.microsoft'),
    'QLinearAdd of onnxruntime': quantizedNodes('y = QLinearAdd(x, s, z, x, s, z, s, z)', 'com.microsoft'),
  },
  proveRefusal,
)
