import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rowOf, TO_TMFILE } from '../../../lib/bridges/onnx_tmfile/to_tmfile/table.js'
import { check, convert, open, serialize, TileworkError, tensor } from '../../../lib/index.js'
import { onnxToTmfile, setBatch, type TmfileModel, type TmfileNode } from '../../../lib/tmfile.js'
import { THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'
import { floats, ints, OnnxNet, scalar } from './onnx_net.js'
import { CASES } from './to_tmfile_cases.js'

const SILENT = new Set(['Const', 'InputOp'])
const operatorsOf = ({ graph }: TmfileModel): string =>
  graph.nodes.flatMap(({ operator }) => (SILENT.has(operator) ? [] : [operator])).join(' ')

/** What the engine needs of every file. */
async function expectRunnable(model: TmfileModel): Promise<void> {
  const { nodes, outputs } = model.graph
  const seen = new Set<unknown>()
  for (const { inputs, outputs: made } of nodes) {
    for (const input of inputs) expect(seen, `${input.name} is produced before it is read`).toContain(input)
    for (const tensor of made) {
      expect(tensor.shape, `${tensor.name}`).not.toBeNull()
      seen.add(tensor)
    }
  }
  const names = nodes.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const { outputs: made } of outputs) {
    expect(nodes.filter(({ inputs }) => inputs.some((tensor) => made.includes(tensor)))).toEqual([])
  }
  expect(await check(await serialize(model, { format: 'tmfile' }))).toEqual([])
}

async function refusalOf(model: OnnxNet['model']): Promise<string> {
  const error = await onnxToTmfile(model).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(TileworkError)
  expect((error as TileworkError).code).toBe('ERR_UNSUPPORTED')
  return (error as TileworkError).message
}

describe('operators', () => {
  test.each(CASES.map((each) => ({ ...each, name: `${each.operator}: ${each.expected}` })))(
    '$name',
    async ({ net, outputs, expected }) => {
      const { model } = await onnxToTmfile(net.out(...outputs))
      expect(operatorsOf(model)).toBe(expected)
      await expectRunnable(model)
    },
  )

  test('each row of the table has a case', () => {
    const tested = new Set(CASES.map(({ operator }) => operator))
    expect(TO_TMFILE.map(({ operator }) => operator).filter((operator) => !tested.has(operator))).toEqual([])
    expect([...tested].filter((operator) => !rowOf(operator))).toEqual([])
  })
})

describe('refusals', () => {
  test('name every node with operator and reason', async () => {
    const net = new OnnxNet()
    const x = net.input([1, 4, 6, 5])
    const [first, second] = [net.op('ArgMax', [x]), net.op('CumSum', [net.op('Relu', [x]), ints(0)])]
    const message = await refusalOf(net.out(first, second))
    expect(message).toMatch(/2 nodes have no counterpart/)
    expect(message).toMatch(/"ArgMax_y2" \(ArgMax\): the engine infers a wrong shape/)
    expect(message).toMatch(/"CumSum_y\d+" \(CumSum\): the engine has no counterpart/)
  })

  test.each([
    ['TopK of rows', /TopK.*2 rows/, (net: OnnxNet) => net.op('TopK', [[2, 7], ints(3)], {}, 2)],
    [
      'a gate before the reset',
      /GRU.*linear_before_reset 0/,
      (net: OnnxNet) => net.op('GRU', [[4, 1, 3], floats(1, 15, 3), floats(1, 15, 5)], { hidden_size: 5 }),
    ],
    [
      'activations that are no list',
      /LSTM.*activations of type STRING/,
      (net: OnnxNet) =>
        net.op('LSTM', [[4, 1, 3], floats(1, 20, 3), floats(1, 20, 5)], {
          hidden_size: 5,
          activations: 'Tanh',
        }),
    ],
    [
      'a weight that varies',
      /Conv.*the weight is not constant/,
      (net: OnnxNet) =>
        net.op('Conv', [
          [1, 2, 5, 5],
          [2, 2, 3, 3],
        ]),
    ],
    ['a bool as output', /output "y\d+" is bool/, (net: OnnxNet) => net.op('Greater', [[2, 3], scalar(0)])],
    [
      'integer inputs',
      /"x1" \(input\): int64 inputs/,
      (net: OnnxNet) => net.op('Cast', [net.input([2], 'int64')], { to: 1 }),
    ],
    [
      'integers of 8 bits that are no codes',
      /"x1" \(uint8\): integers without QuantizeLinear/,
      (net: OnnxNet) => net.op('MaxPool', [net.input([1, 2, 6, 6], 'uint8')], { kernel_shape: [2, 2] }),
    ],
    [
      'a node without its operands',
      /"Where_y\d+" \(Where\): its inputs are constant; Where is not computed/,
      (net: OnnxNet) => net.op('Add', [[2], net.op('Where', [net.constant(floats(2))])]),
    ],
    [
      'a stride that a tmfile cannot hold',
      /Conv.*stride_h is 2147483648; it must be an integer from/,
      (net: OnnxNet) => net.op('Conv', [[1, 2, 5, 5], floats(2, 2, 3, 3)], { strides: [2 ** 31, 1] }),
    ],
    [
      'weights for other channels',
      /Conv.*3 channels; the weights are for 2/,
      (net: OnnxNet) => net.op('Conv', [[1, 3, 5, 5], floats(2, 2, 3, 3)]),
    ],
    [
      'an axis whose positions would take gigabytes',
      /Resize.*134217728 positions along an axis/,
      (net: OnnxNet) => net.op('Resize', [[1, 1, 3, 2], '', '', ints(1, 1, 2 ** 27, 2)], { mode: 'nearest' }),
    ],
    [
      'constants that would take gigabytes',
      /Pad.*more than 268435456 elements of constants/,
      (net: OnnxNet) => net.op('Pad', [[1, 1, 1, 2], ints(0, 0, 0, 2 ** 29, 0, 0, 0, 0)]),
    ],
    [
      'more elements than the engine counts',
      /Tile.*elements; the engine has less than 2147483648/,
      (net: OnnxNet) => net.op('Tile', [[64, 64], ints(1024, 1024)]),
    ],
    [
      'a transposed convolution that leaves gaps before its first element',
      /ConvTranspose.*SAME_UPPER with a kernel smaller than the stride/,
      (net: OnnxNet) =>
        net.op('ConvTranspose', [[1, 1, 1, 3], floats(1, 1, 1, 1)], {
          auto_pad: 'SAME_UPPER',
          strides: [3, 3],
        }),
    ],
    ['a graph of constants', /no inputs/, (net: OnnxNet) => net.op('Relu', [net.constant(floats(2))])],
    [
      'three spatial axes',
      /3 spatial axes/,
      (net: OnnxNet) => net.op('Conv', [[1, 2, 5, 5, 5], floats(2, 2, 3, 3, 3)]),
    ],
  ] as const)('%s', async (_, expected, build) => {
    const net = new OnnxNet()
    const name = build(net)
    expect(await refusalOf(net.out(name))).toMatch(expected)
  })
})

test('bounds of Clip that cross give the upper one, as in ONNX', async () => {
  const net = new OnnxNet()
  const { model } = await onnxToTmfile(net.out(net.op('Clip', [[2, 3], scalar(2), scalar(1)])))
  expect(model.graph.nodes.find(({ operator }) => operator === 'Clip')!.params).toMatchObject({
    min: 1,
    max: 1,
  })
})

test('gaps behind the last element of a transposed convolution are padding of the output', async () => {
  const net = new OnnxNet()
  const attributes = { auto_pad: 'SAME_LOWER', strides: [1, 3] }
  const y = net.op('ConvTranspose', [[1, 1, 1, 3], floats(1, 1, 1, 2)], attributes)
  const { model } = await onnxToTmfile(net.out(y))
  const [node] = model.graph.nodes.filter(({ operator }) => operator === 'Deconvolution') as [TmfileNode]
  expect(node.params).toMatchObject({ pad_w0: 0, pad_w1: 0, output_pad_w0: 1 })
  expect(node.outputs[0]!.shape).toEqual([1, 1, 1, 9])
})

describe('shapes', () => {
  const flattened = (): OnnxNet['model'] => {
    const net = new OnnxNet()
    const x = net.input(['N', 3, 'H', 4])
    const first = net.op('Gather', [net.op('Shape', [x]), tensor([0n], { dtype: 'int64', shape: [] })])
    const target = net.op('Concat', [net.op('Unsqueeze', [first, ints(0)]), ints(-1)], { axis: 0 })
    return net.out(net.op('Relu', [net.op('Reshape', [x, target])]))
  }

  test('follow from given extents; arithmetic of shapes is folded', async () => {
    const { model, report } = await onnxToTmfile(flattened(), { inputShapes: { x1: [2, 3, 5, 4] } })
    expect(operatorsOf(model)).toBe('Reshape ReLu')
    expect(model.graph.outputs[0]!.outputs[0]!.shape).toEqual([2, 60])
    expect(report.folded).toHaveLength(4)
    expect(report.inputs).toEqual({ x1: [2, 3, 5, 4] })
  })

  test('of nothing are refused', async () => {
    const net = new OnnxNet()
    const model = net.out(net.op('Relu', [net.input([3, 0, 5])]))
    await expect(onnxToTmfile(model)).rejects.toThrow(/"x1" is \[3, 0, 5\]/)
    const empty = new OnnxNet()
    const noBatch = empty.out(empty.op('Relu', [empty.input([0, 3])]))
    await expect(onnxToTmfile(noBatch)).rejects.toThrow(/"x1" is \[0, 3\]/)
  })

  test('an open extent behind the first is refused with the input', async () => {
    await expect(onnxToTmfile(flattened())).rejects.toThrow(/"x1" is \[N, 3, H, 4\].*--input-shape/)
    await expect(onnxToTmfile(flattened(), { inputShapes: { x2: [1] } })).rejects.toThrow(
      /"x2", which is not an input/,
    )
  })

  test('the batch can be changed where no node fixes it', async () => {
    const net = new OnnxNet()
    const y = net.op('Relu', [net.op('Conv', [['N', 3, 6, 6] as never, floats(4, 3, 3, 3)])])
    const last = net.op('Gemm', [net.op('Flatten', [y]), floats(64, 5)])
    const { model, report } = await onnxToTmfile(net.out(last), { batch: 1 })
    expect(report.fixedBatch).toEqual([])
    const { blocked } = setBatch(model, 4)
    expect(blocked).toEqual([])
    expect(model.graph.outputs[0]!.outputs[0]!.shape).toEqual([4, 5])
  })
})

describe('outputs', () => {
  test('that other nodes read, inputs and constants are copied to the end, under their names', async () => {
    const net = new OnnxNet()
    const x = net.input([1, 3, 4, 4])
    const y = net.op('Relu', [x])
    const z = net.op('Sigmoid', [y])
    const { model, report } = await onnxToTmfile(net.out(y, z, net.op('Identity', [x])))
    await expectRunnable(model)
    expect(model.graph.outputs.map(({ outputs }) => outputs[0]!.name)).toEqual(['y2', 'y3', 'y4'])
    expect(operatorsOf(model)).toBe('ReLu Sigmoid Reshape Reshape')
    expect(report.copied).toEqual(['y2', 'y4'])
  })
})

describe('weights', () => {
  test('shared by two forms are stored twice', async () => {
    const net = new OnnxNet()
    const weight = net.constant(floats(3, 3))
    const y = net.op('Gemm', [net.op('Gemm', [[2, 3], weight]), weight], { transB: 1 })
    const { model } = await onnxToTmfile(net.out(y))
    const constants = model.graph.tensors.filter(({ role }) => role === 'constant')
    expect(constants.map(({ name }) => name).sort()).toEqual([`${weight}`, `${weight}__1`])
  })

  test('of float16 become float32, and stay on request', async () => {
    const build = (): OnnxNet['model'] => {
      const net = new OnnxNet()
      const half = tensor(new Array(36).fill(0.5), { dtype: 'float16', shape: [4, 1, 3, 3] })
      return net.out(net.op('Conv', [[1, 1, 6, 6], net.op('Cast', [half], { to: 1 })]))
    }
    const typeOf = ({ graph }: TmfileModel): string =>
      graph.tensors.find(({ role }) => role === 'constant')!.dtype
    expect(typeOf((await onnxToTmfile(build())).model)).toBe('float32')
    const { model, report } = await onnxToTmfile(build(), { weights: 'float16' })
    expect(typeOf(model)).toBe('float16')
    expect(report.notes.join()).toMatch(/x86/)
  })
})

describe('integer models', () => {
  const quantized = (behind: (net: OnnxNet, y: string) => string): OnnxNet['model'] => {
    const net = new OnnxNet()
    const record = [scalar(0.5), tensor([3], { dtype: 'uint8', shape: [] })]
    const x = net.op('DequantizeLinear', [net.op('QuantizeLinear', [[1, 3, 6, 6], ...record]), ...record])
    const weight = net.op('DequantizeLinear', [
      tensor(new Uint8Array(54).fill(7), { shape: [2, 3, 3, 3] }),
      ...record,
    ])
    return net.out(
      behind(
        net,
        net.op('QuantizeLinear', [net.op('Relu', [net.op('Conv', [x, weight, floats(2)])]), ...record]),
      ),
    )
  }

  test('keep codes, records and int32 biases', async () => {
    const { model, report } = await onnxToTmfile(quantized((_, y) => y))
    const [conv] = model.graph.nodes.filter(({ operator }) => operator === 'Convolution') as [TmfileNode]
    const [x, weight, bias] = conv.inputs
    expect([x, weight, bias, conv.outputs[0]].map((each) => each!.dtype)).toEqual([
      'uint8',
      'uint8',
      'int32',
      'uint8',
    ])
    expect(Array.from(bias!.quantization!.scales)).toEqual([0.25])
    expect((conv.params as { activation: number }).activation).toBe(0)
    expect(report.notes).toEqual([
      'Input x1 takes uint8 codes: scale 0.5, zero point 3.',
      'Output y17 gives uint8 codes: scale 0.5, zero point 3.',
    ])
  })

  test('with a zero point of int8 are refused, with the option that helps', async () => {
    const net = new OnnxNet()
    const record = [scalar(0.5), tensor([3], { dtype: 'int8', shape: [] })]
    const y = net.op('Relu', [
      net.op('DequantizeLinear', [net.op('QuantizeLinear', [[1, 3, 6, 6], ...record]), ...record]),
    ])
    expect(await refusalOf(net.out(net.op('QuantizeLinear', [y, ...record])))).toMatch(
      /QuantizeLinear\): int8 codes with a zero point;.*\(--quantized dequantize\) writes a float32 model/,
    )
  })

  test('with a float part are refused, or become float32', async () => {
    const build = (): OnnxNet['model'] =>
      quantized((net, y) =>
        net.op('Exp', [
          net.op('DequantizeLinear', [y, scalar(0.5), tensor([3], { dtype: 'uint8', shape: [] })]),
        ]),
      )
    await expect(onnxToTmfile(build())).rejects.toThrow(/\(Exp\): tensor .* stays float32/)
    const { model } = await onnxToTmfile(build(), { quantized: 'dequantize' })
    expect(operatorsOf(model)).toBe('Clip Convolution Clip Unary')
  })
})

test('Gelu that is written with Erf is recognised', async () => {
  const net = new OnnxNet()
  const x = net.input([1, 4, 8])
  const sum = net.op('Add', [net.op('Erf', [net.op('Div', [x, scalar(Math.SQRT2)])]), scalar(1)])
  const { model, report } = await onnxToTmfile(net.out(net.op('Mul', [net.op('Mul', [x, sum]), scalar(0.5)])))
  expect(operatorsOf(model)).toBe('Gelu')
  expect(report.fused.map(({ operator }) => operator)).toEqual(['Erf', 'Add', 'Mul'])
})

test('convert writes the graph, and the weights alone on request', async () => {
  const net = new OnnxNet()
  const bytes = await serialize(net.out(net.op('Conv', [['N', 3, 'H', 6] as never, floats(4, 3, 3, 3)])), {
    format: 'onnx',
  })
  const { Writable } = await import('node:stream')
  const sink = (): InstanceType<typeof Writable> =>
    new Writable({ write: (_chunk, _encoding, done) => done() })
  const options = { format: 'tmfile', inputShapes: { x1: [1, 3, 6, 6] } } as const
  const whole = await convert(bytes, sink(), options)
  expect(whole.graph?.nodes).toBe(1)
  expect(whole.droppedNodes).toBe(0)
  const alone = await convert(bytes, sink(), { format: 'tmfile', weightsOnly: true })
  expect(alone.graph).toBeUndefined()
  await expect(convert(bytes, sink(), { ...options, layout: 'byxf' })).rejects.toThrow(
    /layout changes tensors/,
  )
})

test('options are checked', async () => {
  const { model } = new OnnxNet()
  await expect(onnxToTmfile(model, { batch: 0 })).rejects.toThrow(/batch is 0/)
  await expect(onnxToTmfile(model, { weights: 'int8' as never })).rejects.toThrow(
    /weights is "int8"; expected one of/,
  )
  await expect(onnxToTmfile(model, { inputShapes: { x: [0] } })).rejects.toThrow(/list of integers from 1/)
  await expect(onnxToTmfile(model, { shapes: {} } as never)).rejects.toThrow(/unknown option/)
})

describe('the cases of both engines', THIRD_PARTY, () => {
  const folder = thirdPartyPath('onnx-tmfile')

  test('convert, or are refused as listed', { timeout: 120_000 }, async () => {
    const { results } = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')) as {
      results: { case: string; target: { converts: string } }[]
    }
    const expected = new Map(results.map(({ case: name, target }) => [name, target.converts]))
    const cases = readdirSync(join(folder, 'cases'))
    expect(cases).toHaveLength(170)
    for (const name of cases) {
      using file = await open(join(folder, 'cases', name, 'model.onnx'))
      const made = await onnxToTmfile(file.onnx!).catch((error: unknown) => error as TileworkError)
      expect('model' in made ? 'yes' : 'refuses', name).toBe(expected.get(name))
      if ('model' in made) await expectRunnable(made.model)
    }
  })
})

test('a chain of twenty thousand constants is computed without a stack for each', async () => {
  const net = new OnnxNet()
  let name = net.constant(floats(2, 3))
  for (let count = 0; count < 20_001; count++) name = net.op('Transpose', [name])
  const { model, report } = await onnxToTmfile(net.out(net.op('Add', [[1, 3, 2], name])))
  expect(report.folded).toHaveLength(20_001)
  const [stored] = model.graph.tensors.filter(({ role }) => role === 'constant')
  const data = stored!.buffer!.data!
  const values = 'tensor' in data ? await data.tensor.toTypedArray() : undefined
  const first = (await floats(2, 3).toTypedArray()) as Float32Array
  expect(values).toEqual(Float32Array.from([0, 3, 1, 4, 2, 5], (at) => first[at]!))
})
