/** `If` inside of `If`: a graph that is visited once for each graph around it takes time that doubles with each level. */
import { expect, it } from 'vitest'
import { open } from '../../../lib/index.js'
import {
  addPrefix,
  convertOpset,
  extract,
  inferTypes,
  mergeModels,
  type OnnxModel,
  optimize,
  setBatch,
  toFloat16,
} from '../../../lib/onnx.js'
import { type Bytes, field, int, join } from '../../formats/onnx/onnx_bytes.js'

const FLOAT = 1
const BOOL = 9
/** Far above the time of a linear walk on a busy machine, and far below 2^20 visits. */
const LIMIT_MS = 5000

const value = (name: string, dtype: number, dims: readonly number[]): Bytes => {
  const shape = field(2, join(...dims.map((dim) => field(1, int(1, dim)))))
  return join(field(1, name), field(2, field(1, join(int(1, dtype), shape))))
}

function node(opType: string, input: string, output: string, ...graphs: [string, Bytes][]): Bytes {
  const attributes = graphs.map(([name, graph]) =>
    field(5, join(field(1, name), field(6, graph), int(20, 5))),
  )
  return field(1, join(field(1, input), field(2, output), field(4, opType), ...attributes))
}

/** A graph whose `If` has such a graph in one branch, `depth` times. */
function nested(depth: number, level = 0): Bytes {
  const [out, other] = [`o${level}`, `e${level}`]
  const constant = join(node('Identity', 'x', other), field(2, other), field(12, value(other, FLOAT, [1])))
  const inner =
    depth === 0
      ? node('Identity', 'x', out)
      : node('If', 'c', out, ['then_branch', nested(depth - 1, level + 1)], ['else_branch', constant])
  return join(inner, field(2, `g${level}`), field(12, value(out, FLOAT, [1])))
}

async function model(depth: number): Promise<OnnxModel> {
  const inputs = join(field(11, value('x', FLOAT, [1])), field(11, value('c', BOOL, [])))
  const bytes = join(
    int(1, 8),
    field(7, join(nested(depth), inputs)),
    field(8, join(field(1, ''), int(2, 17))),
  )
  return (await open(bytes, { format: 'onnx', limits: { depth: 1000 } })).onnx!
}

const CALLS: Readonly<Record<string, (model: OnnxModel) => unknown>> = {
  addPrefix: (model) => addPrefix(model, 'p/'),
  'addPrefix of outputs alone': (model) => addPrefix(model, 'p/', { values: false, inputs: false }),
  convertOpset: (model) => convertOpset(model, 21),
  'convertOpset to an earlier one': (model) => convertOpset(model, 13),
  extract: (model) => extract(model, ['x', 'c'], ['o0']),
  inferTypes: (model) => inferTypes(model),
  optimize: (model) => optimize(model),
  setBatch: (model) => setBatch(model, 1),
  toFloat16: (model) => toFloat16(model),
  'rename of an input': (model) => model.graph.rename('x', 'xx'),
}

it.each([20, 40])('models of that depth are merged: %i', async (depth) => {
  const [first, second] = [await model(depth), await model(depth)]
  const started = performance.now()
  const merged = mergeModels(first, second, { ioMap: [['o0', 'x']], prefix1: 'a/', prefix2: 'b/' })
  expect(performance.now() - started).toBeLessThan(LIMIT_MS)
  const graphs = [...merged.graph.subgraphs()]
  expect([merged.graph.nodes.length, graphs.length]).toEqual([2, 4 * depth])
  // The innermost use of the input of the second model is that of an output of the first.
  expect([...merged.graph.subgraphs()].at(-1)!.nodes[0]!.inputs).toEqual(['a/o0'])
})

it.each(Object.keys(CALLS))('%s, 30 deep', async (name) => {
  const deep = await model(30)
  const started = performance.now()
  await CALLS[name]!(deep)
  expect(performance.now() - started).toBeLessThan(LIMIT_MS)
})
