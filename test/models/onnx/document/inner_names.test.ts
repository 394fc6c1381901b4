/** Subgraphs that define a name which the enclosing graph defines behind them, or as an input that the subgraph hides. */
import { describe, expect, it } from 'vitest'
import { tensor } from '../../../../lib/index.js'
import { sortNodes } from '../../../../lib/models/onnx/edit/graph_passes.js'
import {
  addPrefix,
  convertOpset,
  extract,
  inferShapes,
  initializersToConstants,
  mergeModels,
  narrowInts,
  type OnnxModel,
  optimize,
  quantizeDynamic,
  quantizeWeights,
  setBatch,
  tidy,
  toFloat16,
} from '../../../../lib/onnx.js'
import { lossBetween, outputsOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { graphOf } from '../../onnx_optimize/graph_text.js'
import { modelOf } from '../../onnx_optimize/model_text.js'
import { strictErrors, withOutputTypes } from '../reports/kinds.js'

const floats = (...shape: number[]) => tensor(randomFloats(shape, 5), { shape })
const list = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt))

/** Branches make `y` and `late`, as the If and a later node do; the body of the Loop makes `k` and has an input `x`. */
function model(): OnnxModel {
  const then = graphOf('late = MatMul(x, w); y = Relu(late)', 'y')
  const other = graphOf('late = Reshape(x, s); y = Neg(late)', 'y')
  const body = graphOf('again = Identity(go); h = MatMul(x, w); k = Tanh(h)', 'again k', {
    i: 'int64',
    go: 'bool',
    x: 'float32 1 4',
  })
  const made = modelOf({
    inputs: { x: 'float32 1 4' },
    weights: {
      w: floats(4, 4),
      c: tensor([1], { dtype: 'bool', shape: [] }),
      n: tensor([2n], { dtype: 'int64', shape: [] }),
      s: list(1, 4),
    },
    nodes:
      'a = Abs(x); q = Not(c); y = If<then_branch=@then, else_branch=@other>(q); k = Loop<body=@body>(n, , a); late = Add(y, k); z = MatMul(late, w)',
    outputs: 'y late z',
    graphs: { then, other, body },
  })
  return withOutputTypes(made)
}

/** Each with the largest error of an output that it may have. */
const EDITS: Readonly<Record<string, readonly [(model: OnnxModel) => unknown, number]>> = {
  sort: [({ graph }) => sortNodes(graph), 0],
  optimize: [(given) => optimize(given), 1e-6],
  'optimize with fusions': [(given) => optimize(given, { fuse: true }), 1e-5],
  tidy: [(given) => tidy(given), 1e-6],
  'set-batch, as it was': [(given) => setBatch(given, 1), 0],
  'infer shapes': [(given) => inferShapes(given), 0],
  'a later operator set': [(given) => convertOpset(given, 21), 0],
  'constants of initializers': [(given) => initializersToConstants(given), 0],
  'narrow integers': [(given) => narrowInts(given), 0],
  float16: [(given) => toFloat16(given), 0.01],
  'minimal float16': [(given) => toFloat16(given, { block: 'minimal' }), 0.01],
  q8: [(given) => quantizeDynamic(given), 0.1],
  'blocks of 8 bits': [(given) => quantizeWeights(given, { bits: 8, blockSize: 16 }), 0.05],
}

const FEEDS = { x: { data: randomFloats([1, 4], 3), shape: [1, 4] } }

describe('names that a subgraph defines itself', () => {
  it('are valid', async () => {
    expect(await strictErrors(model())).toEqual([])
    if (runtime) expect(Object.keys(await outputsOf(model(), FEEDS))).toEqual(['y', 'late', 'z'])
  })

  it.each(Object.entries(EDITS))('survive: %s', async (_, [edit, most]) => {
    const after = model()
    await edit(after)
    expect(await strictErrors(after)).toEqual([])
    if (!runtime) return
    const wanted = await outputsOf(model(), FEEDS)
    for (const level of ['disabled', 'all'] as const)
      expect(lossBetween(wanted, await outputsOf(after, FEEDS, level))).toBeLessThanOrEqual(most)
  })

  it('survive another batch', async () => {
    const after = model()
    setBatch(after, 3)
    expect(await strictErrors(after)).toEqual([])
    if (!runtime) return
    const data = new Float32Array([...FEEDS.x.data, ...FEEDS.x.data, ...FEEDS.x.data])
    const { z } = await outputsOf(after, { x: { data, shape: [3, 4] } })
    const alone = (await outputsOf(model(), FEEDS)).z!
    expect(Array.from(z!.data).slice(4, 8)).toEqual(Array.from(alone.data))
  })

  it('survive other names', async () => {
    const wanted = runtime && (await outputsOf(model(), FEEDS))
    const prefixed = model()
    addPrefix(prefixed, 'p/', { inputs: false, outputs: false })
    const renamed = model()
    for (const [name, other] of Object.entries({ a: 'early', k: 'state', w: 'weight', s: 'shape' }))
      renamed.graph.rename(name, other)
    for (const after of [prefixed, renamed]) {
      expect(await strictErrors(after)).toEqual([])
      if (wanted) expect(lossBetween(wanted, await outputsOf(after, FEEDS))).toBe(0)
    }
  })

  it('survive cuts and merges', async () => {
    const cut = extract(model(), ['x'], ['late'])
    expect(await strictErrors(cut)).toEqual([])
    const merged = mergeModels(model(), model(), { prefix1: 'one/', prefix2: 'two/', ioMap: [['z', 'x']] })
    expect(await strictErrors(merged)).toEqual([])
    if (!runtime) return
    expect(lossBetween({ late: (await outputsOf(model(), FEEDS)).late! }, await outputsOf(cut, FEEDS))).toBe(
      0,
    )
  })
})
