/** Report 06: what onnx.checker and onnxruntime refuse is an error of a strict check, wherever it stands in the model. */
import { expect } from 'vitest'
import { OnnxModel } from '../../../../lib/onnx.js'
import { type Bytes, field, int, join, tensorProto } from '../../../formats/onnx/onnx_bytes.js'
import {
  BOOL,
  call,
  errorsOf,
  FLOAT,
  floatAttribute,
  functionOf,
  graphAttribute,
  graphOf,
  If,
  INT32,
  INT64,
  inIf,
  intAttribute,
  type ModelText,
  node,
  opsets,
  tensorAttribute,
  textAttribute,
  value,
} from '../check/model_bytes.js'
import { describeKind, reported, strictErrors } from './kinds.js'

interface CheckCase {
  readonly model: ModelText
  /** Part of an error; absent for a model that is valid. */
  readonly message?: string
}

async function proveCheck({ model, message }: CheckCase): Promise<void> {
  const errors = await errorsOf(model)
  if (message === undefined) expect(errors).toEqual([])
  else expect(errors).toEqual(expect.arrayContaining([expect.stringContaining(message)]))
}

/** Nodes that make the value `z` from `x`, a float32 of two elements. */
type Nodes = readonly Bytes[]

const loopBody = (nodes: Nodes): Bytes =>
  graphOf({
    nodes: [...nodes, node({ op: 'Identity', inputs: ['cond'], outputs: ['again'] })],
    inputs: [value('i', INT64, []), value('cond', BOOL, [])],
    outputs: [value('again', BOOL, []), value('z')],
  })

/** Where the nodes stand. */
const PLACES: Readonly<Record<string, (nodes: Nodes) => ModelText>> = {
  'the graph': (nodes) => ({ nodes, outputs: [value('z')] }),
  'a branch': (nodes) => inIf(graphOf({ nodes, inputs: [], outputs: [value('z')] })),
  'a Loop': (nodes) => ({
    nodes: [
      node({ op: 'Constant', inputs: [], outputs: ['once'], attributes: [count()] }),
      node({ op: 'Loop', inputs: ['once', ''], attributes: [graphAttribute('body', loopBody(nodes))] }),
    ],
    outputs: [value('y', FLOAT, [1, 2])],
  }),
  'a branch in a branch': (nodes) => {
    const inner = graphOf({ nodes, inputs: [], outputs: [value('z')] })
    return inIf(graphOf({ nodes: [If(inner)], inputs: [], outputs: [value('o')] }))
  },
  'a function': (nodes) => ({
    nodes: [call],
    opsets,
    rest: [functionOf([node({ op: 'Identity', inputs: ['a'], outputs: ['x'] }), ...nodes], 17, ['z'])],
  }),
}

const count = (): Bytes =>
  join(
    field(1, 'value'),
    field(5, tensorProto({ dims: [], type: INT64, values: field(9, [1, 0, 0, 0, 0, 0, 0, 0]) })),
    int(20, 4),
  )

const z = (op: string, inputs: readonly string[], ...attributes: Bytes[]): Bytes =>
  node({ op, inputs, outputs: ['z'], attributes })
/** A value `w` of a type and shape that follows from `x`. */
const cast = (to: number): Bytes => node({ op: 'Cast', outputs: ['w'], attributes: [intAttribute('to', to)] })
const join3 = node({
  op: 'Concat',
  inputs: ['x', 'x', 'x'],
  outputs: ['w'],
  attributes: [intAttribute('axis', 0)],
})

const FAULTS: Readonly<Record<string, readonly [Nodes, string]>> = {
  'an unknown operator': [[z('Foo', ['x'])], 'is not an operator of ONNX'],
  'an operator of a domain without import': [
    [node({ op: 'Foo', domain: 'my', outputs: ['z'] })],
    'of the domain "my"',
  ],
  'an operator of a later version': [[z('Gelu', ['x'])], 'only from version 20 on'],
  'a deprecated operator': [[z('Upsample', ['x', 'x'])], 'is deprecated since version 10'],
  'an unknown attribute': [[z('Abs', ['x'], intAttribute('foo', 3))], 'no attribute "foo"'],
  'an attribute of a later version': [
    [z('Softmax', ['x'], intAttribute('stash_type', 1))],
    'no attribute "stash_type"',
  ],
  'an attribute of another type': [
    [z('LeakyRelu', ['x'], textAttribute('alpha', 'yes'))],
    'has the type STRING in the attribute "alpha"',
  ],
  'an attribute twice': [
    [z('LeakyRelu', ['x'], floatAttribute('alpha'), floatAttribute('alpha'))],
    'has the attribute "alpha" twice',
  ],
  'a missing attribute': [[z('Cast', ['x'])], 'lacks the attribute "to"'],
  'too many inputs': [[z('Abs', ['x', 'x'])], 'has 2 inputs; it takes 1'],
  'too few inputs': [[z('Mul', ['x'])], 'has 1 inputs; it takes 2'],
  'too many outputs': [[node({ op: 'Neg', outputs: ['z', 'more'] })], 'has 2 outputs; it takes 1'],
  'a type that the operator does not take': [
    [cast(INT32), node({ op: 'Sqrt', inputs: ['w'], outputs: ['v'] }), z('Abs', ['x'])],
    'does not take the type int32 for input 0',
  ],
  'two types for one variable': [
    [cast(INT64), z('Add', ['x', 'w'])],
    'has the type int64 for input 1, where T is float32',
  ],
  'shapes that cannot be broadcast': [[join3, z('Add', ['x', 'w'])], 'cannot broadcast the shapes [2], [6]'],
  'matrices that do not fit': [
    [join3, node({ op: 'MatMul', inputs: ['x', 'w'], outputs: ['v'] }), z('Abs', ['x'])],
    'cannot multiply [2] by [6]',
  ],
  'a Constant with two values': [
    [
      node({
        op: 'Constant',
        inputs: [],
        outputs: ['w'],
        attributes: [floatAttribute('value_float'), tensorAttribute('value')],
      }),
      z('Mul', ['x', 'w']),
    ],
    'has 2 values',
  ],
  'a Constant without a value': [
    [node({ op: 'Constant', inputs: [], outputs: ['w'] }), z('Mul', ['x', 'w'])],
    'has 0 values; it takes exactly one',
  ],
  'a value that nothing makes': [[z('Add', ['x', 'none'])], '"none"'],
  'two nodes of one name': [
    [node({ outputs: ['w'], name: 'n' }), node({ op: 'Neg', inputs: ['w'], outputs: ['z'], name: 'n' })],
    'has the name "n", as another node',
  ],
}

/** A model whose branch makes a value of a name that the graph may have: of an input, an initializer or a node before or behind. */
function hiding(name: string, wrap: (body: Bytes) => Bytes = (body) => body): ModelText {
  const body = graphOf({ nodes: [node({ op: 'Neg', outputs: [name] })], inputs: [], outputs: [value(name)] })
  const { nodes = [], ...rest } = inIf(wrap(body))
  return {
    ...rest,
    initializers: [tensorProto({ dims: [2], type: FLOAT, name: 'w', values: field(9, Array(8).fill(0)) })],
    nodes: [node({ outputs: ['early'] }), ...nodes, node({ inputs: ['early'], outputs: ['late'] })],
  }
}

/** Faults of the model itself, with others of their kind. */
const OF_MODEL: Readonly<Record<string, readonly [ModelText, string]>> = {
  'no operator set': [{ opsets: [] }, 'imports no operator set'],
  'an operator set of another domain alone': [{ opsets: [['my', 1]] }, 'of the domain ""'],
  'IR version 99': [{ ir: 99 }, 'ir_version is 99'],
  'no IR version': [{ ir: 0 }, 'ir_version is missing'],
  'IR version 1': [{ ir: 1 }, 'ir_version is 1'],
  'a graph without a name': [{ name: '' }, 'graph has no name'],
  'an output that nothing makes': [{ outputs: [value('other')] }, '"other"'],
  'an input twice': [{ inputs: [value('x'), value('x')] }, '"x"'],
  'an input without a type': [{ inputs: [field(1, 'x')] }, 'graph.input[0]'],
  'a branch that makes an input of the graph': [
    hiding('x'),
    '"x", output of graph.node[1].attribute[0].g.node[0]',
  ],
  'a branch that makes an initializer of the graph': [hiding('w'), '"w", output of graph.node[1].attribute'],
  'a branch that makes a value of an earlier node': [
    hiding('early'),
    '"early", output of graph.node[1].attribute',
  ],
  'a branch in a branch that makes a value of an earlier node': [
    hiding('early', (body) => graphOf({ nodes: [If(body)], inputs: [], outputs: [value('o')] })),
    '"early", output of graph.node[1].attribute[0].g.node[0].attribute[0].g.node[0]',
  ],
  'an initializer of another type than its input': [
    {
      nodes: [node({ op: 'Add', inputs: ['x', 'w'] })],
      inputs: [value('x'), value('w')],
      initializers: [tensorProto({ dims: [2], type: INT64, name: 'w', values: field(9, Array(16).fill(0)) })],
    },
    '"w"',
  ],
  'an initializer that is no input, at IR version 3': [
    {
      ir: 3,
      opsets: [['', 8]],
      nodes: [node({ op: 'Add', inputs: ['x', 'w'] })],
      initializers: [tensorProto({ dims: [2], type: FLOAT, name: 'w', values: field(9, Array(8).fill(0)) })],
    },
    'is no input',
  ],
  'channels of Conv': [
    {
      nodes: [node({ op: 'Conv', inputs: ['x', 'w'] })],
      inputs: [value('x', FLOAT, [1, 3, 5, 5]), value('w', FLOAT, [2, 3, 1, 1])],
      outputs: [value('y', FLOAT, [1, 3, 5, 5])],
    },
    '[1, 2, 5, 5] follows',
  ],
  'channels of ConvTranspose': [
    {
      nodes: [node({ op: 'ConvTranspose', inputs: ['x', 'w'], attributes: [intAttribute('group', 3)] })],
      inputs: [value('x', FLOAT, [1, 3, 5, 5]), value('w', FLOAT, [3, 2, 1, 1])],
      outputs: [value('y', FLOAT, [1, 2, 5, 5])],
    },
    '[1, 6, 5, 5] follows',
  ],
  'a function with too many inputs': [
    {
      nodes: [node({ op: 'f', domain: 'd', inputs: ['x', 'x'] })],
      opsets,
      rest: [functionOf([node({ inputs: ['a'], outputs: ['b'] })])],
    },
    'its function takes 1',
  ],
  'a function without operator sets': [
    { nodes: [call], opsets, rest: [functionOf([node({ inputs: ['a'], outputs: ['b'] })], 0)] },
    'of the domain ""',
  ],
}

const placed = Object.entries(FAULTS).flatMap(([fault, [nodes, message]]) =>
  Object.entries(PLACES).map(([place, make]) => [
    `${fault} in ${place}`,
    (): CheckCase => ({ model: make(nodes), message }),
  ]),
)
const ofModel = Object.entries(OF_MODEL).map(([fault, [model, message]]) => [
  fault,
  (): CheckCase => ({ model, message }),
])
const valid = [
  ...Object.entries(PLACES).map(([place, make]) => [`none in ${place}`, make([z('Abs', ['x'])])] as const),
  ['none in a branch that makes a value as a later node does', hiding('late')] as const,
  ['none in a branch whose value has the name of its node', hiding('o')] as const,
].map(([title, model]) => [title, (): CheckCase => ({ model })] as const)

describeKind<CheckCase | OnnxModel>(
  '06: models that readers refuse',
  // The program keeps its last model alone: an attribute that refers to one of a function, which readers accept.
  { 'the last model of the program': () => reported('06-check-schema/c.onnx') },
  Object.fromEntries([...placed, ...ofModel, ...valid]),
  async (given) => {
    if (given instanceof OnnxModel) expect(await strictErrors(given)).toEqual([])
    else await proveCheck(given)
  },
)
