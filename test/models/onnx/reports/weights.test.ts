/** Reports about weights with NaN and infinities (11, 21): the node stays in float in every target, with a reason that names the weight. */
import { expect } from 'vitest'
import { type DenseTensor, tensor } from '../../../../lib/index.js'
import {
  type CompressReport,
  type OnnxModel,
  quantizableValues,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
} from '../../../../lib/onnx.js'
import { lossOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { modelOf } from '../../onnx_optimize/model_text.js'
import { describeKind, feedsOf, movedInto, reported, strictErrors, withOutputTypes } from './kinds.js'

type Target = (model: OnnxModel) => Promise<CompressReport>

const TARGETS: Readonly<Record<string, Target>> = {
  q8: (model) => quantizeDynamic(model),
  int8: (model) => quantizeDynamic(model, { weightType: 'int8', perChannel: true }),
  uint8: (model) => quantizeDynamic(model, { weightType: 'uint8' }),
  q4: (model) => quantizeWeights(model, { gather: true, gemm: true, conv: true }),
  q2: (model) => quantizeWeights(model, { bits: 2, gather: true }),
  'asymmetric 8 bits': (model) => quantizeWeights(model, { bits: 8, symmetric: false, gather: true }),
  bnb4: (model) => quantizeWeights(model, { format: 'bnb4' }),
  qdq: (model) => quantizeWeights(model, { format: 'qdq', raiseOpset: true }),
  static: (model) =>
    quantizeStatic(model, {
      ranges: Object.fromEntries(quantizableValues(model).map((name) => [name, { min: -9, max: 9 }])),
    }),
}

interface WeightCase {
  readonly model: OnnxModel
  /** The weight that no code represents. */
  readonly weight: string
  readonly opType: string
  /** Targets that would convert the node otherwise. */
  readonly targets: readonly string[]
  readonly output?: string
}

async function proveWeights({ model, weight, opType, targets, output = 'y' }: WeightCase): Promise<void> {
  for (const [name, compress] of Object.entries(TARGETS)) {
    const after = model.copy()
    const { nodes } = await compress(after)
    const own = nodes.filter((each) => each.opType === opType && each.reason?.includes(`"${weight}"`))
    if (targets.includes(name)) {
      expect([name, own.length]).toEqual([name, expect.toSatisfy((count: number) => count > 0)])
      for (const { to, reason } of own) {
        expect(to).toBeUndefined()
        expect(reason).toMatch(/^its weight ".+" has .*(NaN|infinite|range)/)
      }
    }
    expect(await strictErrors(after)).toEqual([])
    if (runtime)
      expect([name, await lossOf(only(model, output), only(after, output), feeds(model))]).toEqual([name, 0])
  }
}

/** The output of the node alone, which is in float: what the others lose does not count. */
function only(model: OnnxModel, output: string): OnnxModel {
  const copy = model.copy()
  for (const name of [...copy.graph.outputNames]) if (name !== output) copy.graph.removeOutput(name)
  return copy
}

function feeds(model: OnnxModel): ReturnType<typeof feedsOf> {
  const made = feedsOf(model)
  const indices = model.graph.inputs.filter(({ type }) => type.kind === 'tensor' && type.dtype === 'int64')
  return {
    ...made,
    ...Object.fromEntries(
      indices.map(({ name }) => [name, { data: BigInt64Array.of(1n, 0n, 2n), shape: [3] }]),
    ),
  }
}

function weight(shape: readonly number[], bad: number, at = 5): DenseTensor {
  const values = randomFloats(shape, 4)
  values[at] = bad
  return tensor(values, { shape })
}

function model(nodes: string, w: DenseTensor, x: string, opset = 17): OnnxModel {
  return withOutputTypes(modelOf({ inputs: { x }, weights: { w }, nodes, opset }))
}

const BLOCKS = ['q4', 'q2', 'asymmetric 8 bits', 'bnb4', 'qdq']
const EIGHT = ['q8', 'int8', 'uint8']
const matMul = (bad: number) => model('y = MatMul(x, w)', weight([64, 8], bad), 'float32 2 64')

async function fixed(path: string, shapes: Readonly<Record<string, readonly number[]>>): Promise<OnnxModel> {
  const given = await reported(path)
  for (const [name, shape] of Object.entries(shapes))
    given.graph.setType(name, {
      ...(given.graph.typeOf(name) as { kind: 'tensor'; dtype: 'float32' }),
      shape,
    })
  return withOutputTypes(given)
}

const matMulTargets = [...EIGHT, ...BLOCKS, 'static']

describeKind<WeightCase>(
  '11: a weight with NaN or infinities',
  {
    MatMul: async () => ({
      model: await fixed('11-quantize-nonfinite-weight/in.onnx', { x: [2, 64] }),
      weight: 'w',
      opType: 'MatMul',
      targets: matMulTargets,
    }),
  },
  {
    'Infinity in MatMul': () => ({
      model: matMul(Infinity),
      weight: 'w',
      opType: 'MatMul',
      targets: matMulTargets,
    }),
    'NaN in MatMul': () => ({
      model: matMul(Number.NaN),
      weight: 'w',
      opType: 'MatMul',
      targets: matMulTargets,
    }),
    'a range beyond float32 in Gemm': () => ({
      model: model('y = Gemm<transB=1>(x, w)', weightOf([8, 64], [3e38, -3e38]), 'float32 2 64'),
      weight: 'w',
      opType: 'Gemm',
      targets: [...EIGHT, 'static'],
    }),
    'Infinity in Gemm': () => ({
      model: model('y = Gemm(x, w)', weight([64, 8], -Infinity), 'float32 2 64'),
      weight: 'w',
      opType: 'Gemm',
      targets: [...EIGHT, 'q4', 'static'],
    }),
    'NaN in Conv': () => ({
      model: model('y = Conv(x, w)', weight([8, 64, 1, 1], Number.NaN), 'float32 1 64 2 2'),
      weight: 'w',
      opType: 'Conv',
      targets: [...EIGHT, 'q4', 'static'],
    }),
    'Infinity in the bias of ConvTranspose': () => ({
      model: withOutputTypes(
        modelOf({
          inputs: { x: 'float32 1 4 3 3' },
          weights: { v: weight([4, 2, 2, 2], 1), w: weight([2], Infinity, 1) },
          nodes: 'y = ConvTranspose(x, v, w)',
        }),
      ),
      weight: 'w',
      opType: 'ConvTranspose',
      targets: ['static'],
    }),
    'Infinity in LSTM': () => ({
      model: withOutputTypes(
        modelOf({
          inputs: { x: 'float32 3 1 4' },
          weights: { w: weight([1, 8, 4], Infinity), r: weight([1, 8, 2], 1) },
          nodes: 'y = LSTM<hidden_size=2>(x, w, r)',
        }),
      ),
      weight: 'w',
      opType: 'LSTM',
      targets: EIGHT,
    }),
    ...Object.fromEntries(
      (['If', 'Loop'] as const).map((place) => [
        `Infinity in MatMul in ${place}`,
        () => ({ model: movedInto(place, matMul(Infinity)), weight: 'w', opType: 'MatMul', targets: BLOCKS }),
      ]),
    ),
  },
  proveWeights,
)

function weightOf(shape: readonly number[], first: readonly number[]): DenseTensor {
  const values = randomFloats(shape, 4)
  values.set(first)
  return tensor(values, { shape })
}

/** A row of padding, as a table of embeddings has it. */
function padded(rows: number, columns: number, bad: number): DenseTensor {
  const values = randomFloats([rows, columns], 6)
  values.fill(bad, 0, columns)
  return tensor(values, { shape: [rows, columns] })
}

const table = (nodes: string, w: DenseTensor, opset = 17) => model(nodes, w, 'int64 3', opset)
const GATHER = [...EIGHT, 'q4', 'asymmetric 8 bits', 'static']

describeKind<WeightCase>(
  '21: a table with a row of minus infinity',
  {
    Gather: async () => ({
      model: await fixed('21-int8-gather-neginf/m.onnx', { i: [3], x: [2, 16] }),
      weight: 't',
      opType: 'Gather',
      // Blocks of 32 do not fit its 16 columns.
      targets: [...EIGHT, 'static'],
      output: 'e',
    }),
  },
  {
    'a wider table': () => ({
      model: table('y = Gather(w, x)', padded(12, 64, -Infinity)),
      weight: 'w',
      opType: 'Gather',
      targets: GATHER,
    }),
    'a row of NaN in version 11': () => ({
      model: table('y = Gather(w, x)', padded(12, 32, Number.NaN), 11),
      weight: 'w',
      opType: 'Gather',
      targets: GATHER,
    }),
    'a table that MatMul takes, too': () => ({
      model: table(
        // Not a product of y, whose codes static quantization would give as the output.
        'y = Gather(w, x); t = Transpose<perm=[1,0]>(w); z = MatMul(t, w)',
        padded(12, 32, -Infinity),
      ),
      weight: 'w',
      opType: 'Gather',
      targets: EIGHT,
    }),
    'columns of a table': () => ({
      model: table('y = Gather<axis=1>(w, x)', padded(8, 32, Infinity)),
      weight: 'w',
      opType: 'Gather',
      targets: EIGHT,
    }),
    'the least float32 and the greatest': () => ({
      model: table('y = Gather(w, x)', weightOf([8, 32], [3.4e38, -3.4e38])),
      weight: 'w',
      opType: 'Gather',
      targets: EIGHT,
    }),
    'a table in a branch': () => ({
      model: movedInto('If', table('y = Gather(w, x)', padded(12, 32, -Infinity))),
      weight: 'w',
      opType: 'Gather',
      targets: ['q4', 'asymmetric 8 bits'],
    }),
  },
  proveWeights,
)
