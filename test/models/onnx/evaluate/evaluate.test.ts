/** Values of constant nodes: those of onnxruntime, those with symbolic dimensions, and the limits. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { open, type Tensor, tensor } from '../../../../lib/index.js'
import type { Dims } from '../../../../lib/models/onnx/evaluate/dims.js'
import { Evaluator } from '../../../../lib/models/onnx/evaluate/evaluate.js'
import type { Elements, Value } from '../../../../lib/models/onnx/evaluate/value.js'
import { inferModel } from '../../../../lib/models/onnx/infer/infer.js'
import type { Known, NodeView } from '../../../../lib/models/onnx/infer/node_view.js'
import type { NewAttribute, OnnxModel, ValueType } from '../../../../lib/onnx.js'
import { inferTypes, OnnxModel as Model } from '../../../../lib/onnx.js'
import { differenceOf, type RecordedValue } from '../../../programs/interop/onnx_values.mjs'

interface RecordedGraph {
  readonly name: string
  readonly model: string
  readonly values: Readonly<Record<string, RecordedValue>>
}

/** Operators of which the records have values. */
const RECORDED = `Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress
  Concat ConstantOfShape CumSum DequantizeLinear Div Dropout Equal Expand EyeLike Flatten Floor Gather GatherElements GatherND
  Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual MatMul Max Min Mod Mul Neg NonZero Not OneHot Or Pad Pow
  QuantizeLinear Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterElements ScatterND
  Shape Sign Size Slice Split Sqrt Squeeze Sub Sum Tile TopK Transpose Trilu Unsqueeze Where Xor`

test('values of recorded graphs are those of onnxruntime, bit for bit', async () => {
  const path = fileURLToPath(new URL('../../../fixtures/onnx_values.jsonl', import.meta.url))
  // Inference itself leaves quantization to the model.
  const evaluator = new Evaluator({ maxElements: 4096, maxWork: 2 ** 24 })
  const visit = (node: NodeView, outputs: readonly (Known | undefined)[]) =>
    outputs.map((each, at) => each && { ...each, value: evaluator.outputsOf(node)?.[at] ?? each.value })
  const differences: string[] = []
  const found = new Map<string, number>()
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
    const { name, model, values } = JSON.parse(line) as RecordedGraph
    const { onnx } = await open(Buffer.from(model, 'base64'))
    const known = inferModel(onnx!, { isOpen: () => true, visit }).known.get(onnx!.graph)!
    for (const [output, expected] of Object.entries(values)) {
      const made = known.get(output)?.value?.toTensor()
      const operator = onnx!.graph.producerOf(output)?.opType
      if (!made || operator === undefined) continue
      const difference = differenceOf(made, expected)
      if (difference !== undefined) differences.push(`${name}, ${output} of ${operator}: ${difference}`)
      found.set(operator, (found.get(operator) ?? 0) + 1)
    }
  }
  expect(differences).toEqual([])
  expect([...found.keys()].sort()).toEqual(RECORDED.split(/\s+/))
})

const ints = (...values: (number | bigint)[]) =>
  tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })
const int = (value: number | bigint) => tensor(BigInt(value), { dtype: 'int64' })
const float = (value: number) => tensor(value, { dtype: 'float32' })
const floats = (...values: number[]) => tensor(Float32Array.from(values), { shape: [values.length] })

type Given = string | Tensor | ''

/** A graph whose nodes are listed as operator, inputs and attributes; each makes `y` with its number. */
class Net {
  readonly model: OnnxModel
  #count = 0

  constructor(opset = 18) {
    this.model = Model.create({ opset, irVersion: 8 })
  }

  input(name: string, shape: readonly (number | string)[], dtype: 'float32' | 'int64' = 'float32'): string {
    this.model.graph.addInput(name, { kind: 'tensor', dtype, shape })
    return name
  }

  op(
    opType: string,
    given: readonly Given[],
    attributes: Readonly<Record<string, NewAttribute>> = {},
    outputs = 1,
  ): string {
    const { graph } = this.model
    const inputs = given.map((each) => {
      if (typeof each === 'string') return each
      const name = `c${this.#count++}`
      graph.setInitializer(name, each)
      return name
    })
    const made = Array.from({ length: outputs }, () => `y${this.#count++}`)
    graph.addNode({ opType, inputs, outputs: made, attributes })
    return made[0]!
  }

  value(name: string): Value | undefined {
    return inferModel(this.model, { isOpen: () => true })
      .known.get(this.model.graph)!
      .get(name)?.value
  }

  elements(name: string): Elements | undefined {
    return this.value(name)?.elements
  }

  dims(name: string): Dims | undefined {
    const type = inferTypes(this.model).get(name) as ValueType & { kind: 'tensor' }
    return type.shape as Dims
  }
}

const int64 = (value: number) => ({ type: 'INT', value }) as const
const text = (value: string) => ({ type: 'STRING', value }) as const
const list = (...value: number[]) => ({ type: 'INTS', value }) as const

describe('symbolic dimensions', () => {
  it('follow a list of pads through the tables that exporters write', () => {
    // Pads of [left, right, top, bottom] become [0, 0, top, left, 0, 0, bottom, right].
    const net = new Net(13)
    const x = net.input('x', ['n', 3, 'h', 20])
    const missing = net.op('ConstantOfShape', [ints(4)], { value: { type: 'TENSOR', value: ints(0) } })
    const all = net.op('Concat', [ints(1, 2, 3, 4), missing], { axis: int64(0) })
    const table = net.op('Reshape', [all, ints(-1, 2)])
    const turned = net.op('Slice', [table, ints(-1), ints(-(2n ** 63n)), ints(0), ints(-1)])
    const columns = net.op('Transpose', [turned], { perm: list(1, 0) })
    const pads = net.op('Cast', [net.op('Reshape', [columns, ints(-1)])], { to: int64(7) })
    expect(net.elements(pads)).toEqual(BigInt64Array.of(0n, 0n, 3n, 1n, 0n, 0n, 4n, 2n))
    expect(net.dims(net.op('Pad', [x, pads]))).toEqual(['n', 3, 'h + 7', 23])
  })

  it('stay in lists of any rank', () => {
    const net = new Net()
    const shape = net.op('Shape', [net.input('x', ['n', 4, 'm', 2])])
    const table = net.op('Reshape', [shape, ints(2, 2)])
    expect(net.value(table)).toMatchObject({ shape: [2, 2], elements: ['n', 4, 'm', 2] })
    const turned = net.op('Transpose', [table])
    expect(net.elements(turned)).toEqual(['n', 'm', 4, 2])
    expect(net.elements(net.op('Slice', [turned, ints(1), ints(2)]))).toEqual(BigInt64Array.of(4n, 2n))
    expect(net.elements(net.op('ReduceProd', [turned, ints(1)], { keepdims: int64(0) }))).toEqual(['m*n', 8])
    expect(net.elements(net.op('Tile', [turned, ints(1, 2)]))).toEqual(['n', 'm', 'n', 'm', 4, 2, 4, 2])
    expect(net.elements(net.op('ScatterND', [shape, tensor([[0n]], { dtype: 'int64' }), ints(7)]))).toEqual(
      ['n', 4, 'm', 2].with(0, 7),
    )
  })

  it('are unknown where a number does not fit its dtype', () => {
    const net = new Net()
    const shape = net.op('Shape', [net.input('x', ['n', 70_000])])
    const narrow = net.op('Cast', [shape], { to: int64(6) })
    expect(net.elements(narrow)).toEqual(['n', 70_000])
    expect(net.elements(net.op('Mul', [narrow, narrow]))).toEqual(['n*n', null])
    expect(net.elements(net.op('Cast', [net.op('Mul', [shape, ints(2n ** 62n)])], { to: int64(7) }))).toEqual(
      [null, null],
    )
  })

  it('have their place beside a value of which nothing is known', () => {
    const net = new Net()
    const unknown = net.input('k', [2], 'int64')
    const joined = net.op('Concat', [net.op('Shape', [net.input('x', ['n'])]), unknown, ints(5)], {
      axis: int64(0),
    })
    expect(net.elements(joined)).toEqual(['n', null, null, 5])
    const scalar = net.input('s', [], 'int64')
    expect(net.value(net.op('Concat', [scalar, ints(5)], { axis: int64(0) }))).toBeUndefined()
  })

  it.each<[string, bigint, bigint, number, number | null]>([
    ['from the second element to the end', 1n, 2n ** 63n - 1n, 1, 9],
    ['from the last element to the start', -1n, -(2n ** 63n), -1, 10],
    // onnxruntime takes the largest integer for the end in this direction too; numpy does not.
    ['from the last element to the largest integer', -1n, 2n ** 63n - 1n, -1, null],
  ])('a slice %s has its length', (_, start, end, step, length) => {
    const net = new Net()
    const x = net.input('x', [10])
    expect(net.dims(net.op('Slice', [x, ints(start), ints(end), ints(0), ints(step)]))).toEqual([length])
  })
})

describe('versions', () => {
  const grid = tensor(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] })

  it('place the second operand from an axis on, before version 7', () => {
    const net = new Net(6)
    const attributes = { broadcast: int64(1), axis: int64(0) }
    expect(net.elements(net.op('Add', [grid, floats(10, 20)], attributes))).toEqual(
      Float32Array.of(11, 12, 13, 24, 25, 26),
    )
    expect(net.elements(net.op('Add', [grid, floats(1, 2, 3)], { broadcast: int64(1) }))).toEqual(
      Float32Array.of(2, 4, 6, 5, 7, 9),
    )
    expect(net.value(net.op('Add', [grid, floats(1, 2, 3)]))).toBeUndefined()
    expect(
      net.value(net.op('Add', [grid, floats(1, 2)], { broadcast: int64(1), axis: int64(2) })),
    ).toBeUndefined()
  })

  it.each<[string, number, Readonly<Record<string, NewAttribute>>, readonly Given[], boolean]>([
    ['below 7 without is_test is in training', 6, {}, [], false],
    ['below 7 with is_test', 6, { is_test: int64(1) }, [], true],
    ['of version 7', 7, {}, [], true],
    ['in training mode', 13, {}, ['', tensor(true, { dtype: 'bool' })], false],
    ['not in training mode', 13, {}, ['', tensor(false, { dtype: 'bool' })], true],
  ])('Dropout %s', (_, opset, attributes, more, isKnown) => {
    const net = new Net(opset)
    expect(net.value(net.op('Dropout', [floats(1, 2), ...more], attributes)) !== undefined).toBe(isKnown)
  })

  it('take lists by attributes, and refuse inputs of a later version', () => {
    expect(new Net(12).value('none')).toBeUndefined()
    const old = new Net(12)
    expect(old.value(old.op('Unsqueeze', [floats(1)], { axes: list(0) }))?.shape).toEqual([1, 1])
    expect(old.value(old.op('Unsqueeze', [floats(1), ints(0)]))).toBeUndefined()
    const now = new Net(13)
    expect(now.value(now.op('Unsqueeze', [floats(1), ints(-1)]))?.shape).toEqual([1, 1])
    expect(now.value(now.op('Unsqueeze', [floats(1)], { axes: list(0) }))).toBeUndefined()
  })
})

describe('results that engines do not agree on are left', () => {
  const half = (...values: number[]) => tensor(values, { dtype: 'float16', shape: [values.length] })
  const int32 = (...values: number[]) => tensor(Int32Array.from(values), { shape: [values.length] })

  it.each<[string, string, readonly Given[], Readonly<Record<string, NewAttribute>>?]>([
    ['NaN as an integer', 'Cast', [floats(Number.NaN)], { to: int64(6) }],
    ['a number beyond int32', 'Cast', [floats(2 ** 31)], { to: int64(6) }],
    ['a number beyond int64', 'Cast', [floats(2 ** 63)], { to: int64(7) }],
    ['a negative number as uint8', 'Cast', [floats(-1)], { to: int64(2) }],
    [
      'a double that float32 rounds to a tie of float16',
      'Cast',
      [tensor(Float64Array.of(1 + 2 ** -11 + 2 ** -40))],
      { to: int64(10) },
    ],
    ['a division by 0', 'Div', [int32(1), int32(0)]],
    ['the least integer by -1', 'Div', [int32(-(2 ** 31)), int32(-1)]],
    ['a remainder of 0', 'Mod', [ints(1), ints(0)]],
    [
      'a shift by the width',
      'BitShift',
      [tensor(Uint8Array.of(1)), tensor(Uint8Array.of(8))],
      { direction: text('LEFT') },
    ],
    ['a chosen -0', 'Where', [tensor(Uint8Array.of(1), { dtype: 'bool' }), floats(-0), floats(1)]],
    ['the larger of 0 and -0', 'Max', [floats(0), floats(-0)]],
    ['a sum of three floats', 'ReduceSum', [floats(1, 2, 3)]],
    ['a sum of integers that overflows', 'ReduceSum', [ints(2n ** 63n - 1n, 1)]],
    ['the largest of NaN', 'ReduceMax', [floats(1, Number.NaN)]],
    ['a maximum of nothing', 'ReduceMax', [floats()]],
    ['an exponential', 'Exp', [floats(1)]],
    ['infinity of float16 without bounds', 'Clip', [half(Infinity)]],
    ['a power that is no square', 'Pow', [floats(2), floats(3)]],
  ])('%s', (_, operator, inputs, attributes) => {
    const net = new Net()
    expect(net.value(net.op(operator, inputs, attributes))).toBeUndefined()
  })

  it.each<[string, string, readonly Given[], Elements, Readonly<Record<string, NewAttribute>>?]>([
    [
      'the largest float below 2^31',
      'Cast',
      [floats(2147483520)],
      Int32Array.of(2147483520),
      { to: int64(6) },
    ],
    ['a fraction above -1 as uint8', 'Cast', [floats(-0.75)], Uint8Array.of(0), { to: int64(2) }],
    [
      'int64 beyond doubles as float32, rounded once',
      'Cast',
      [ints(2n ** 54n + 2n ** 30n + 1n)],
      Float32Array.of(2 ** 54 + 2 ** 31),
      { to: int64(1) },
    ],
    [
      'a shift below the width',
      'BitShift',
      [tensor(Uint8Array.of(3)), tensor(Uint8Array.of(7))],
      Uint8Array.of(128),
      { direction: text('LEFT') },
    ],
    ['a sum of two floats', 'ReduceSum', [floats(0.1, 0.2)], Float32Array.of(0.1 + 0.2)],
    ['a sum of int64', 'ReduceSum', [ints(2n ** 53n - 3n, 2)], BigInt64Array.of(2n ** 53n - 1n)],
    ['int32 that wraps', 'Mul', [int32(2 ** 31 - 1), int32(2 ** 31 - 1)], Int32Array.of(1)],
    [
      'halves, with the sign of 0',
      'Round',
      [floats(-0.5, -0, 2.5, 3.5, -1.5)],
      Float32Array.of(-0, -0, 2, 4, -2),
    ],
    [
      'an index that counts from the end',
      'OneHot',
      [ints(-1, 2), int(3), floats(0, 1)],
      Float32Array.of(0, 0, 1, 0, 0, 1),
    ],
    ['a sum beyond doubles', 'Add', [ints(2n ** 53n), ints(1)], BigInt64Array.of(2n ** 53n + 1n)],
    ['infinity without bounds', 'Clip', [floats(Infinity)], Float32Array.of(3.4028234663852886e38)],
    ['crossing bounds', 'Clip', [floats(1), float(3), float(2)], Float32Array.of(2)],
  ])('but not %s', (_, operator, inputs, expected, attributes) => {
    const net = new Net()
    expect(net.elements(net.op(operator, inputs, attributes))).toEqual(expected)
  })
})

test('quantization divides in float32, where 6.5000002 is 6.5', () => {
  const net = new Net()
  const [real, scale] = [Math.fround(0.689), Math.fround(0.106)]
  expect(Math.round(real / scale)).toBe(7)
  const name = net.op('QuantizeLinear', [floats(real, -real), float(scale), tensor(0, { dtype: 'int8' })])
  const evaluator = new Evaluator({ maxElements: 16, maxWork: 1000 })
  const made: (Elements | undefined)[] = []
  const visit = (node: NodeView) => {
    made.push(evaluator.outputsOf(node)?.[0]?.elements)
    return []
  }
  inferModel(net.model, { visit })
  expect([made, net.value(name)]).toEqual([[Int8Array.of(6, -6)], undefined])
})

describe('limits', () => {
  it.each([
    [4096, true],
    [4097, false],
  ])('follow values of %d elements: %s', (count, isFollowed) => {
    const net = new Net()
    expect(net.value(net.op('Range', [int(0), int(count), int(1)])) !== undefined).toBe(isFollowed)
    expect(net.value(net.op('Neg', [tensor(new Float32Array(count))])) !== undefined).toBe(isFollowed)
  })

  it('refuse sizes that a small file asks for, before anything is made', () => {
    const net = new Net()
    const huge = 2n ** 62n
    const results = [
      net.op('ConstantOfShape', [ints(huge)]),
      net.op('ConstantOfShape', [ints(2 ** 30, 2 ** 30)]),
      net.op('ConstantOfShape', [ints(0, huge)]),
      net.op('Expand', [int(1), ints(huge)]),
      net.op('Tile', [ints(1), ints(huge)]),
      net.op('Pad', [ints(1), ints(huge, huge)]),
      net.op('Pad', [ints(1), ints(-huge, huge)]),
      net.op('Pad', [ints(1), ints(-1, 2n ** 53n - 1n)]),
      net.op('OneHot', [ints(0), int(huge), ints(0, 1)]),
      net.op('Range', [int(0), int(huge), int(1)]),
      net.op('Split', [ints(1, 2), ints(huge, -huge)], { axis: int64(0) }, 2),
      net.op('Gather', [ints(1), ints(huge)]),
      net.op('Reshape', [ints(1, 2), ints(huge, huge)]),
    ]
    for (const name of results) expect([name, net.value(name)]).toEqual([name, undefined])
  })

  it('leave nodes that are wrong', () => {
    const net = new Net()
    const results = [
      net.op('Slice', [ints(1), ints(0), ints(1), ints(0), ints(0)]),
      net.op('Slice', [ints(1), ints(0, 0), ints(1)]),
      net.op('Transpose', [tensor(new Float32Array(4), { shape: [2, 2] })], { perm: list(0, 0) }),
      net.op('Gather', [ints(1), ints(1)]),
      net.op('Gather', [int(1), ints(0)]),
      net.op('ScatterND', [ints(1), tensor([[3n]], { dtype: 'int64' }), ints(1)]),
      net.op('Concat', [ints(1), floats(1)], { axis: int64(0) }),
      net.op('Concat', [ints(1), ints(1)]),
      net.op('Add', [ints(1), floats(1)]),
      net.op('Add', [ints(1, 2), ints(1, 2, 3)]),
      net.op('Add', [ints(1)]),
      net.op('Where', [floats(1)]),
      net.op('Range', [int(0), int(1), int(0)]),
      net.op('TopK', [floats(1), ints(2)], {}, 2),
      net.op('Squeeze', [ints(1, 2), ints(0)]),
      net.op('Unsqueeze', [ints(1), ints(0, 0)]),
      net.op('Reshape', [ints(1, 2), ints(-1, -1)]),
      net.op('CumSum', [ints(1), int(1)]),
      net.op('Cast', [ints(1)], { to: int64(999) }),
    ]
    for (const name of results) expect([name, net.value(name)]).toEqual([name, undefined])
  })

  it('follow chains of any length', () => {
    const net = new Net()
    let name = net.op('Neg', [ints(5)])
    for (let count = 1; count < 20_001; count++) name = net.op('Neg', [name])
    expect(net.elements(name)).toEqual(BigInt64Array.of(-5n))
  })

  it('follow ranks up to 255, so that a chain costs no more than its nodes', () => {
    const net = new Net()
    let name = net.op('Identity', [ints(5)])
    const ranks = Array.from({ length: 300 }, () => {
      name = net.op('Unsqueeze', [name, ints(0)])
      return name
    })
    const known = inferModel(net.model).known.get(net.model.graph)!
    expect(ranks.filter((each) => known.get(each)?.value !== undefined)).toHaveLength(254)
  })

  it('end with the work that is allowed', () => {
    const net = new Net()
    const name = net.op('Neg', [floats(1, 2, 3, 4)])
    const evaluator = new Evaluator({ maxElements: 4, maxWork: 19 })
    const made: boolean[] = []
    // Four elements are read and four made at each visit, so that the third has to stop.
    const visit = (node: Parameters<Evaluator['outputsOf']>[0]) => {
      for (let count = 0; count < 3; count++) {
        made.push(evaluator.outputsOf(node) !== undefined)
        if (count < 2) expect(evaluator.isExceeded).toBe(false)
      }
      return []
    }
    inferModel(net.model, { visit })
    expect([name, made, evaluator.isExceeded]).toEqual([name, [true, true, false], true])
  })
})
