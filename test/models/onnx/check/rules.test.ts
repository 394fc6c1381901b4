/** Models that onnx.checker or onnxruntime refuse, each with the finding of a strict check; and their neighbours, which have none. */
import { describe, expect, it } from 'vitest'
import { check } from '../../../../lib/index.js'
import { type Bytes, field, int, join, tensorProto } from '../../../formats/onnx/onnx_bytes.js'
import {
  BOOL,
  branch,
  call,
  cond,
  errorsOf,
  FLOAT,
  floatAttribute,
  functionOf,
  graphAttribute,
  graphOf,
  INT32,
  INT64,
  inIf,
  intAttribute,
  intsAttribute,
  type ModelText,
  modelOf,
  node,
  opsets,
  strict,
  tensorAttribute,
  textAttribute,
  value,
} from './model_bytes.js'

/** Of element types. */
const FLOAT8 = 17

const conv = (...dims: readonly (readonly number[])[]): ModelText => ({
  nodes: [node({ op: 'Conv', inputs: ['x', 'w'] })],
  inputs: [value('x', FLOAT, dims[0]), value('w', FLOAT, dims[1])],
  outputs: [value('y', FLOAT, ['a', 'b', 'c', 'd'])],
})
const matmul = (left: readonly (number | string)[], right: readonly (number | string)[]): ModelText => ({
  nodes: [node({ op: 'MatMul', inputs: ['x', 'w'] })],
  inputs: [value('x', FLOAT, left), value('w', FLOAT, right)],
  outputs: [value('y', FLOAT, ['a', 'b'])],
})
const add = (one: number, other: number): ModelText => ({
  nodes: [node({ op: 'Add', inputs: ['x', 'w'] })],
  inputs: [value('x', one), value('w', other)],
  outputs: [value('y', one)],
})
const initializer = (name: string): Bytes =>
  tensorProto({ dims: [2], type: FLOAT, name, values: field(9, Array(8).fill(0)) })

describe('a strict check refuses', () => {
  it.each<[string, ModelText, string]>([
    ['a model without operator sets', { opsets: [] }, 'The model imports no operator set'],
    ['a domain that is not imported', { nodes: [node({ op: 'Foo', domain: 'my' })] }, 'of the domain "my"'],
    ['version 0 of an operator set', { opsets: [['', 0]] }, 'not in version 0 of ONNX, only from version 1'],
    ['an unknown operator', { nodes: [node({ op: 'Foo' })] }, 'is not an operator of ONNX'],
    ['an operator of a later version', { nodes: [node({ op: 'Gelu' })] }, 'only from version 20 on'],
    [
      'a deprecated operator',
      { nodes: [node({ op: 'Upsample', inputs: ['x', 'x'] })] },
      'is deprecated since version 10',
    ],
    ['IR version 99', { ir: 99 }, 'ir_version is 99; it must be 3 to 14'],
    ['the IR version after the newest', { ir: 15 }, 'ir_version is 15; it must be 3 to 14'],
    [
      'an unknown attribute with one underscore',
      { nodes: [node({ attributes: [intAttribute('_hint', 1)] })] },
      'no attribute "_hint"',
    ],
    ['the first version beyond 32 bits', { opsets: [['', 2 ** 31]] }, 'it must be at most 2147483647'],
    ['IR version 2', { ir: 2 }, 'ir_version is 2'],
    ['no IR version', { ir: 0 }, 'ir_version is missing'],
    ['a version of more than 32 bits', { opsets: [['', 2 ** 40]] }, 'it must be at most 2147483647'],
    [
      'an axis of Softmax from version 11 on',
      { nodes: [node({ op: 'Softmax', attributes: [intAttribute('axis', 9)] })], opsets: [['', 11]] },
      'has the axis 9',
    ],
    [
      'a scalar as the shape of a Reshape',
      {
        nodes: [node({ op: 'Reshape', inputs: ['x', 's'] })],
        inputs: [value('x'), value('s', INT64, [])],
        outputs: [value('y', FLOAT, ['n'])],
        opsets: [['', 14]],
      },
      'has the rank 0 for input 1',
    ],
    [
      'a Squeeze of an axis that is not there',
      {
        nodes: [node({ op: 'Squeeze', inputs: ['x', 'a'] })],
        initializers: [
          tensorProto({ dims: [1], type: INT64, name: 'a', values: field(9, [1, 0, 0, 0, 0, 0, 0, 0]) }),
        ],
      },
      'has the axis 1',
    ],
    ['a graph without a name', { name: '' }, 'graph has no name'],
    [
      'the same metadata key twice',
      { rest: [field(14, field(1, 'k')), field(14, field(1, 'k'))] },
      'has the key "k" twice',
    ],
    ['a node without an operator', { nodes: [node({ op: '' })] }, 'has no op_type'],
    [
      'an unknown attribute',
      { nodes: [node({ attributes: [intAttribute('foo', 3)] })] },
      'no attribute "foo" in version 13',
    ],
    [
      'an attribute of another type',
      { nodes: [node({ op: 'LeakyRelu', attributes: [textAttribute('alpha', 'a')] })] },
      'has the type STRING in the attribute "alpha", which is FLOAT',
    ],
    [
      'an attribute without its value',
      {
        nodes: [node({ op: 'Constant', inputs: [], attributes: [join(field(1, 'value'), int(20, 4))] })],
        inputs: [],
      },
      'has no value in the attribute "value"',
    ],
    [
      'an attribute without a type',
      { nodes: [node({ op: 'LeakyRelu', attributes: [field(1, 'alpha')] })] },
      'without a type',
    ],
    [
      'an attribute twice',
      { nodes: [node({ op: 'LeakyRelu', attributes: [floatAttribute('alpha'), floatAttribute('alpha')] })] },
      'has the attribute "alpha" twice',
    ],
    [
      'an attribute with two values',
      { nodes: [node({ op: 'LeakyRelu', attributes: [join(floatAttribute('alpha'), int(3, 1))] })] },
      'has more than one value in the attribute "alpha"',
    ],
    [
      'a missing attribute',
      { nodes: [node({ op: 'Concat', inputs: ['x', 'x'] })], outputs: [value('y', FLOAT, [4])] },
      'lacks the attribute "axis"',
    ],
    ['too many inputs', { nodes: [node({ inputs: ['x', 'x'] })] }, 'has 2 inputs; it takes 1'],
    ['too few inputs', { nodes: [node({ op: 'Add' })] }, 'has 1 inputs; it takes 2'],
    [
      'an omitted input that is needed',
      { nodes: [node({ op: 'Add', inputs: ['x', ''] })] },
      'has an empty name for input 1',
    ],
    ['too many outputs', { nodes: [node({ outputs: ['y', 'z'] })] }, 'has 2 outputs; it takes 1'],
    [
      'a Constant without a value',
      { nodes: [node({ op: 'Constant', inputs: [] })], inputs: [] },
      'has 0 values; it takes exactly one',
    ],
    [
      'a Constant with two values',
      {
        nodes: [
          node({
            op: 'Constant',
            inputs: [],
            attributes: [floatAttribute('value_float'), tensorAttribute('value')],
          }),
        ],
        inputs: [],
      },
      'has 2 values',
    ],
    [
      'two nodes of one name',
      { nodes: [node({ outputs: ['a'], name: 'n' }), node({ inputs: ['a'], name: 'n' })] },
      'has the name "n", as another node',
    ],
    [
      'an initializer that is no input below IR version 4',
      {
        ir: 3,
        opsets: [['', 8]],
        nodes: [node({ op: 'Add', inputs: ['x', 'w'] })],
        initializers: [initializer('w')],
      },
      'The initializer "w" of graph is no input',
    ],
    [
      'a function that reads what it does not have',
      {
        nodes: [call],
        opsets,
        rest: [functionOf([node({ op: 'Add', inputs: ['a', 'zz'], outputs: ['b'] })])],
      },
      '"zz"',
    ],
    [
      'a call with too many inputs',
      {
        nodes: [node({ op: 'f', domain: 'd', inputs: ['x', 'x'] })],
        opsets,
        rest: [functionOf([node({ inputs: ['a'], outputs: ['b'] })])],
      },
      'its function takes 1',
    ],
    [
      'a function without operator sets',
      { nodes: [call], opsets, rest: [functionOf([node({ inputs: ['a'], outputs: ['b'] })], 0)] },
      'functions[0].node[0] (Abs) is of the domain ""',
    ],
    [
      'a function whose operator has another meaning',
      {
        nodes: [call],
        opsets,
        rest: [functionOf([node({ op: 'Softmax', inputs: ['a'], outputs: ['b'] })], 12)],
      },
      'differs between version 12',
    ],
    [
      'an output twice in a function',
      {
        nodes: [call],
        opsets,
        rest: [functionOf([node({ inputs: ['a'], outputs: ['b'] })], 17, ['b', 'b'])],
      },
      'has the output "b" twice',
    ],
    [
      'an unknown attribute in a subgraph',
      inIf(branch(node({ outputs: ['z'], attributes: [intAttribute('foo', 1)] }))),
      'graph.node[0].attribute[0].g.node[0] (Abs) has no attribute',
    ],
    [
      'an element type that the operator does not take',
      { nodes: [node({ op: 'Sin' })], inputs: [value('x', INT32)], outputs: [value('y', INT32)] },
      'does not take the type int32 for input 0',
    ],
    ['two types for one variable', add(FLOAT, INT64), 'has the type int64 for input 1, where T is float32'],
    [
      'an output of another type',
      { outputs: [value('y', INT64)] },
      '"y" is declared as int64 [2]; float32 [2] follows',
    ],
    [
      'an output of another size',
      { outputs: [value('y', FLOAT, [3])] },
      '"y" is declared as float32 [3]; float32 [2] follows',
    ],
    [
      'an output of another type than the value beside a reference, outside functions',
      { nodes: [node({ op: 'Cast', attributes: [join(intAttribute('to', INT64), field(21, 'outer'))] })] },
      '"y" is declared as float32 [2]; int64 [2] follows',
    ],
    [
      'a type that the operator lacks in its version, beside a reference',
      {
        nodes: [node({ op: 'Cast', attributes: [join(intAttribute('to', FLOAT8), field(21, 'outer'))] })],
        outputs: [value('y', FLOAT8)],
        opsets: [['', 9]],
      },
      'does not take the type float8_e4m3fn for output 0',
    ],
    ['matrices that do not fit', matmul([2, 3], [4, 5]), 'cannot multiply [2, 3] by [4, 5]'],
    [
      'shapes that cannot be broadcast',
      { ...add(FLOAT, FLOAT), inputs: [value('x'), value('w', FLOAT, [3])] },
      'cannot broadcast the shapes [2], [3]',
    ],
    [
      'a window with other axes',
      conv([1, 3, 5, 5], [2, 3, 1]),
      'has 1 spatial axes in input 1, and 2 in input 0',
    ],
    [
      'a Transpose with an axis twice',
      {
        nodes: [node({ op: 'Transpose', attributes: [intsAttribute('perm', 0, 0)] })],
        inputs: [value('x', FLOAT, [2, 2])],
        outputs: [value('y', FLOAT, [2, 2])],
      },
      'has the perm [0, 0]',
    ],
    [
      'an axis beyond the rank',
      { nodes: [node({ op: 'Softmax', attributes: [intAttribute('axis', 1)] })] },
      'has the axis 1; the rank is 1',
    ],
  ])('%s', async (_, model, message) => {
    expect(await errorsOf(model)).toEqual(expect.arrayContaining([expect.stringContaining(message)]))
    // These rules are those of readers that run models; whoever looks at tensors need not know them.
    expect((await check(modelOf(model))).filter(({ severity }) => severity === 'error')).toEqual([])
  })
})

describe('a strict check has no finding on', () => {
  it.each<[string, ModelText]>([
    ['a plain model', {}],
    ['the oldest and the newest IR version', { ir: 3, opsets: [['', 8]] }],
    ['the newest IR version', { ir: 14 }],
    ['operator sets that readers may not know yet', { opsets: [['', 99]] }],
    [
      'version 0 of a domain that no node has',
      {
        opsets: [
          ['', 17],
          ['my', 0],
        ],
      },
    ],
    [
      'an axis beyond the rank, which early readers do not look at',
      { nodes: [node({ op: 'Softmax', attributes: [intAttribute('axis', 9)] })], opsets: [['', 10]] },
    ],
    [
      'a scalar as the shape of an early Reshape',
      {
        nodes: [node({ op: 'Reshape', inputs: ['x', 's'] })],
        inputs: [value('x'), value('s', INT64, [])],
        outputs: [value('y', FLOAT, ['n'])],
        opsets: [['', 13]],
      },
    ],
    [
      'a Squeeze of an axis that is not there, below version 13',
      { nodes: [node({ op: 'Squeeze', attributes: [intsAttribute('axes', 1)] })], opsets: [['', 12]] },
    ],
    [
      'the first output of a Split omitted',
      { nodes: [node({ op: 'Split', outputs: ['', 'y'] })], outputs: [value('y', FLOAT, [1])] },
    ],
    [
      'an unknown operator of a domain with previews',
      { nodes: [node({ op: 'Foo', domain: 'ai.onnx.preview' })], opsets: [['ai.onnx.preview', 1]] },
    ],
    [
      'a reference outside functions, whose value nothing knows',
      { nodes: [node({ op: 'Cast', attributes: [join(field(1, 'to'), int(20, 2), field(21, 'outer'))] })] },
    ],
    [
      'an output of the type of the value beside a reference',
      {
        nodes: [node({ op: 'Cast', attributes: [join(intAttribute('to', INT64), field(21, 'outer'))] })],
        outputs: [value('y', INT64)],
      },
    ],
    ['the long name of the domain of ONNX', { opsets: [['ai.onnx', 17]] }],
    [
      'operators of other domains',
      {
        nodes: [node({ op: 'Foo', domain: 'my', inputs: ['x', 'x'], attributes: [intAttribute('any', 1)] })],
        opsets: [['my', 1]],
      },
    ],
    ['an attribute with two underscores', { nodes: [node({ attributes: [intAttribute('__hint', 1)] })] }],
    [
      'an omitted optional input',
      { nodes: [node({ op: 'Clip', inputs: ['x', '', 'm'] })], inputs: [value('x'), value('m', FLOAT, [])] },
    ],
    ['a Constant of sparse values, which is dense for its users', sparseConstant()],
    [
      'an initializer that is an input below IR version 4',
      {
        ir: 3,
        opsets: [['', 8]],
        nodes: [node({ op: 'Add', inputs: ['x', 'w'] })],
        inputs: [value('x'), value('w')],
        initializers: [initializer('w')],
      },
    ],
    [
      'a constant with the name of another node',
      {
        nodes: [
          node({
            op: 'Constant',
            inputs: [],
            outputs: ['k'],
            name: 'n',
            attributes: [tensorAttribute('value')],
          }),
          node({ op: 'Add', inputs: ['x', 'k'], name: 'n' }),
        ],
      },
    ],
    ['nodes without names', { nodes: [node({ outputs: ['a'] }), node({ inputs: ['a'] })] }],
    [
      'a node of a subgraph with the name of an outer one',
      inIf(branch(node({ inputs: ['a'], outputs: ['z'], name: 'n' })), [node({ outputs: ['a'], name: 'n' })]),
    ],
    [
      'a function whose operator means the same',
      {
        nodes: [call],
        opsets,
        rest: [functionOf([node({ op: 'Softmax', inputs: ['a'], outputs: ['b'] })], 13)],
      },
    ],
    [
      'an operator before its deprecation',
      {
        nodes: [node({ op: 'Upsample', inputs: ['x', 's'] })],
        inputs: [value('x'), value('s', FLOAT, [1])],
        opsets: [['', 9]],
      },
    ],
    ['names of dimensions that may be equal', matmul([2, 'k'], ['n', 5])],
    ['matrices that fit', matmul([2, 3], [3, 5])],
    ['two inputs of one type', add(INT64, INT64)],
    ['a window that fits', conv([1, 3, 5, 5], [2, 3, 1, 1])],
  ])('%s', async (_, model) => {
    expect(await strict(model)).toEqual([])
  })

  it.each<[string, ModelText]>([
    ['an operator of whose shapes readers infer nothing', { ir: 3, opsets: [['', 1]] }],
    [
      'a shape that depends on data',
      {
        nodes: [node({ op: 'HannWindow' })],
        inputs: [value('x', INT64, [])],
        outputs: [value('y', FLOAT, [2, 2])],
      },
    ],
  ])('another declared shape, but warns: %s', async (_, model) => {
    const findings = await strict({ outputs: [value('y', FLOAT, [3])], ...model })
    expect(findings).toMatchObject([{ severity: 'warning', message: expect.stringContaining('follows') }])
  })

  it('many metadata keys, which are not compared with each other', async () => {
    const keys = Array.from({ length: 300_000 }, (_, at) => field(14, field(1, `key ${at}`)))
    expect(await strict({ rest: [new Uint8Array(Buffer.concat(keys))] })).toEqual([])
  })

  it('one opset that is imported twice, but warns', async () => {
    const findings = await strict({
      opsets: [
        ['', 17],
        ['', 17],
      ],
    })
    expect(findings).toMatchObject([{ severity: 'warning', code: 'ERR_DUPLICATE', path: 'opset_import[1]' }])
  })
})

function sparseConstant(): ModelText {
  const values = tensorProto({ dims: [1], type: FLOAT, name: 'v', values: field(9, [0, 0, 0, 0]) })
  const indices = tensorProto({ dims: [1], type: INT64, values: field(9, Array(8).fill(0)) })
  const sparse = join(field(1, values), field(2, indices), int(3, 2))
  const attribute = join(field(1, 'sparse_value'), field(22, sparse), int(20, 11))
  const nodes = [
    node({ op: 'Constant', inputs: [], outputs: ['k'], attributes: [attribute] }),
    node({ op: 'Add', inputs: ['x', 'k'] }),
  ]
  return { nodes }
}

const loopBody = (outputs: readonly string[]): Bytes =>
  graphOf({
    nodes: [
      node({ op: 'Identity', inputs: ['cond'], outputs: ['again'] }),
      node({ op: 'Identity', inputs: ['state'], outputs: ['next'] }),
    ],
    inputs: [value('i', INT64, []), value('cond', BOOL, []), value('state')],
    outputs: outputs.map((name) => value(name, name === 'again' ? BOOL : FLOAT, name === 'again' ? [] : [2])),
  })
const loopOf = (body: Bytes, inputs: readonly string[] = ['', '', 'x']): ModelText => ({
  nodes: [node({ op: 'Loop', inputs, attributes: [graphAttribute('body', body)] })],
})
const scanBody = (type = FLOAT): Bytes =>
  graphOf({
    inputs: [value('s', type, [])],
    nodes: [node({ op: 'Neg', inputs: ['s'], outputs: ['t'] })],
    outputs: [value('t', type, [])],
  })
const scanOf = (body: Bytes, ...attributes: Bytes[]): ModelText => ({
  nodes: [node({ op: 'Scan', attributes: [graphAttribute('body', body), ...attributes] })],
})
const scanned = intAttribute('num_scan_inputs', 1)

describe('a strict check of subgraphs', () => {
  it.each<[string, ModelText, string]>([
    [
      'an If that takes more values than a branch has',
      {
        nodes: [
          node({
            op: 'If',
            inputs: ['c'],
            outputs: ['o', 'p'],
            attributes: ['then_branch', 'else_branch'].map((name) =>
              graphAttribute(name, branch(node({ outputs: ['z'] }))),
            ),
          }),
        ],
        inputs: [value('x'), cond],
        outputs: [value('o')],
      },
      'takes 2 values from then_branch, which has 1 outputs',
    ],
    [
      'a Loop that passes too few values',
      loopOf(loopBody(['again', 'next']), ['', '']),
      'passes 2 values to body, which has 3 inputs',
    ],
    [
      'a Loop whose body has too few outputs',
      loopOf(loopBody(['again'])),
      'takes 2 values from body, which has 1 outputs',
    ],
    [
      'a Scan of more inputs than it has',
      scanOf(scanBody(), intAttribute('num_scan_inputs', 2)),
      'has 2 scan inputs of 1 inputs',
    ],
    [
      'a Scan with an axis too many',
      scanOf(scanBody(), scanned, intsAttribute('scan_input_axes', 0, 0)),
      'has 2 entries in scan_input_axes; it takes 1',
    ],
    [
      'a Scan with an axis of outputs too many',
      scanOf(scanBody(), scanned, intsAttribute('scan_output_axes', 0, 0)),
      'has 2 entries in scan_output_axes; it takes 1',
    ],
    [
      'a body that declares another type for what is passed to it',
      scanOf(scanBody(INT64), scanned),
      '"s" is declared as int64 []; float32 [] is passed to it.',
    ],
  ])('refuses %s', async (_, model, message) => {
    expect(await errorsOf(model)).toEqual(expect.arrayContaining([expect.stringContaining(message)]))
  })

  it.each<[string, ModelText]>([
    ['a Loop', loopOf(loopBody(['again', 'next']))],
    [
      'a Scan',
      scanOf(scanBody(), scanned, intsAttribute('scan_input_axes', 0), intsAttribute('scan_output_axes', -1)),
    ],
    ['branches', inIf(branch(node({ outputs: ['z'] })))],
  ])('has no finding on %s', async (_, model) => {
    expect(await strict(model)).toEqual([])
  })
})

describe('a strict check of operators', () => {
  const cast = (to: number): ModelText => ({
    nodes: [node({ op: 'Cast', attributes: [intAttribute('to', to)] })],
    outputs: [value('y', to === 0 || to > 20 ? FLOAT : to)],
  })
  const int64 = (name: string, dims: readonly number[], ...values: number[]): Bytes =>
    tensorProto({
      dims,
      type: INT64,
      name,
      values: field(
        9,
        values.flatMap((each) => [each, 0, 0, 0, 0, 0, 0, 0]),
      ),
    })
  const sequence = (name: string): Bytes =>
    join(
      field(1, name),
      field(2, field(4, field(1, field(1, join(int(1, FLOAT), field(2, field(1, int(1, 2)))))))),
    )
  const parts = (axis: number, ...sizes: number[]): ModelText => ({
    nodes: [node({ op: 'SplitToSequence', inputs: ['x', 's'], attributes: [intAttribute('axis', axis)] })],
    initializers: [int64('s', [sizes.length], ...sizes)],
    outputs: [join(field(1, 'y'), field(2, field(4, field(1, field(1, int(1, FLOAT))))))],
  })
  const joinedBy = (axis: number, isNew = 0): ModelText => ({
    nodes: [
      node({
        op: 'ConcatFromSequence',
        attributes: [intAttribute('axis', axis), intAttribute('new_axis', isNew)],
      }),
    ],
    inputs: [sequence('x')],
    outputs: [value('y', FLOAT, isNew === 1 ? ['a', 'b'] : ['a'])],
  })
  const halves = (length: number): ModelText => ({
    nodes: [node({ op: 'Split', outputs: ['y', 'z'] })],
    inputs: [value('x', FLOAT, [length])],
    outputs: [value('y', FLOAT, ['n'])],
  })
  const bits = (to: number): ModelText => ({
    nodes: [node({ op: 'BitCast', attributes: [intAttribute('to', to)] })],
    outputs: [value('y', to)],
    opsets: [['', 26]],
  })

  it.each<[string, ModelText, string]>([
    ['a cast to no type', cast(0), 'has 0 for to, which is the code of no element type'],
    ['a cast to an unknown type', cast(99), 'does not take the type data_type 99 for output 0'],
    ['a cast of bits to more bits', bits(INT64), 'casts 32 bits to 64 bits'],
    ['an axis of SplitToSequence', parts(1, 1, 1), 'has the axis 1; the rank is 1'],
    ['sizes of SplitToSequence', parts(0, 1, 2), 'has sizes with the sum 3 for an axis of 2'],
    ['an axis of ConcatFromSequence', joinedBy(1), 'has the axis 1; the rank is 1'],
    ['new_axis of ConcatFromSequence', joinedBy(0, 2), 'has 2 for new_axis; it takes 0 or 1'],
    ['parts that are not equal', halves(5), 'splits an axis of 5 into 2 equal parts'],
    [
      'samples of another type',
      {
        nodes: [node({ op: 'Multinomial', attributes: [intAttribute('dtype', FLOAT)] })],
        inputs: [value('x', FLOAT, [2, 2])],
        outputs: [value('y', FLOAT, [2, 1])],
      },
      'does not take the type float32 for output 0',
    ],
  ])('refuses %s', async (_, model, message) => {
    expect(await errorsOf(model)).toEqual(expect.arrayContaining([expect.stringContaining(message)]))
  })

  it.each<[string, ModelText]>([
    ['a cast', cast(INT64)],
    ['a cast of bits', bits(INT32)],
    ['sizes of SplitToSequence', parts(0, 1, 1)],
    ['ConcatFromSequence', joinedBy(-1)],
    ['ConcatFromSequence with a new axis', joinedBy(1, 1)],
    ['equal parts', halves(4)],
  ])('has no finding on %s', async (_, model) => {
    expect(await strict(model)).toEqual([])
  })
})
