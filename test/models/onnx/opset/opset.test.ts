/** convertOpset. `test/programs/onnx_opsets.mjs` compares the outputs of converted models in onnxruntime. */
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../../lib/index.js'
import { adapterOf } from '../../../../lib/models/onnx/opset/adapters.js'
import { CHANGED } from '../../../../lib/models/onnx/opset/versions.js'
import {
  addFunction,
  convertOpset,
  Graph,
  inferShapes,
  inferTypes,
  type NewAttribute,
  type NewNode,
  OnnxModel,
  printModel,
  type ValueType,
} from '../../../../lib/onnx.js'

type Attributes = Readonly<Record<string, NewAttribute>>
const int = (value: number): NewAttribute => ({ type: 'INT', value })
const ints = (...value: readonly number[]): NewAttribute => ({ type: 'INTS', value })
const float = (value: number): NewAttribute => ({ type: 'FLOAT', value })
const text = (value: string): NewAttribute => ({ type: 'STRING', value })
const FLOAT = (...shape: readonly (number | string)[]): ValueType => ({
  kind: 'tensor',
  dtype: 'float32',
  shape,
})

/** A model of one node with the inputs a, b, … of the shapes. */
function model(
  opset: number,
  node: NewNode,
  ...shapes: readonly (readonly (number | string)[])[]
): OnnxModel {
  const made = OnnxModel.create({ opset, irVersion: 7, graphName: 'g' })
  for (const [at, shape] of shapes.entries()) made.graph.addInput('abc'[at]!, FLOAT(...shape))
  made.graph.addNode({
    ...node,
    outputs: node.outputs ?? ['z'],
    inputs: node.inputs ?? ['a', 'b', 'c'].slice(0, shapes.length),
  })
  for (const name of made.graph.nodes[0]!.outputs)
    if (name !== '') made.graph.addOutput(name, { kind: 'tensor', dtype: 'float32' })
  return made
}

/** The nodes of a model as text. */
async function nodesOf(made: OnnxModel): Promise<readonly string[]> {
  const lines = (await printModel(made)).split('\n')
  return lines
    .filter((line) => line.startsWith('   ') && line.includes(' = ') && !line.includes('<float['))
    .map((line) => line.trim())
}

const node = (opType: string, attributes: Attributes = {}, others: Partial<NewNode> = {}): NewNode => ({
  opType,
  attributes,
  ...others,
})

describe('convertOpset', () => {
  it.each<[string, number, number, NewNode, readonly (readonly (number | string)[])[], readonly string[]]>([
    [
      'sets the old default',
      3,
      4,
      node('Concat'),
      [
        [2, 3],
        [2, 3],
      ],
      ['z = Concat <axis: int = 1> (a, b)'],
    ],
    [
      'moves a list to an input',
      4,
      5,
      node('Reshape', { shape: ints(3, 2) }),
      [[2, 3]],
      ['z_shape = Constant <value: tensor = int64[2] {3,2}> ()', 'z = Reshape (a, z_shape)'],
    ],
    [
      'drops attributes without meaning',
      5,
      6,
      node('Relu', { consumed_inputs: ints(0) }),
      [[2]],
      ['z = Relu (a)'],
    ],
    [
      'sets old constants',
      5,
      6,
      node('Selu'),
      [[2]],
      ['z = Selu <alpha: float = 1.6732, gamma: float = 1.0507> (a)'],
    ],
    [
      'keeps trailing broadcasts',
      6,
      7,
      node('Add', { broadcast: int(1), axis: int(1) }),
      [
        [2, 3, 4],
        [3, 4],
      ],
      ['z = Add (a, b)'],
    ],
    [
      'expands other broadcasts',
      6,
      13,
      node('Mul', { broadcast: int(1), axis: int(-2) }),
      [[2, 3, 4], [3]],
      [
        'b_expanded_axes = Constant <value: tensor = int64[1] {1}> ()',
        'b_expanded = Unsqueeze (b, b_expanded_axes)',
        'z = Mul (a, b_expanded)',
      ],
    ],
    [
      'expands slopes of channels',
      6,
      7,
      node('PRelu'),
      [[2, 3, 4], [3]],
      ['b_expanded = Unsqueeze <axes: ints = [1]> (b)', 'z = PRelu (a, b_expanded)'],
    ],
    [
      'drops test modes',
      6,
      21,
      node('BatchNormalization', { is_test: int(1), spatial: int(1) }, { inputs: ['a', 'b', 'b', 'b', 'b'] }),
      [[2, 3], [3]],
      ['z = BatchNormalization (a, b, b, b, b)'],
    ],
    [
      'turns Upsample into Resize',
      7,
      13,
      node('Upsample', { scales: { type: 'FLOATS', value: [1, 2] }, mode: text('nearest') }),
      [[2, 3]],
      [
        'z_scales = Constant <value: tensor = float[2] {1,2}> ()',
        'z = Resize <mode: string = "nearest", coordinate_transformation_mode: string = "asymmetric", nearest_mode: string = "floor"> (a, "", z_scales)',
      ],
    ],
    [
      'moves several lists',
      9,
      10,
      node('Slice', { starts: ints(1), ends: ints(9), axes: ints(0) }),
      [[4]],
      [
        'z_starts = Constant <value: tensor = int64[1] {1}> ()',
        'z_ends = Constant <value: tensor = int64[1] {9}> ()',
        'z_axes = Constant <value: tensor = int64[1] {0}> ()',
        'z = Slice (a, z_starts, z_ends, z_axes)',
      ],
    ],
    [
      'moves floats of the type of the data',
      10,
      11,
      node('Clip', { max: float(0.5) }),
      [[4]],
      ['z_max = Constant <value: tensor = float {0.5}> ()', 'z = Clip (a, "", z_max)'],
    ],
    [
      'moves the count of TopK',
      9,
      10,
      node('TopK', { k: int(2) }),
      [[4]],
      ['z_k = Constant <value: tensor = int64[1] {2}> ()', 'z = TopK (a, z_k)'],
    ],
    [
      'renames operators',
      10,
      11,
      node('Scatter', {}, { inputs: ['a', 'b', 'b'] }),
      [[4], [4]],
      ['z = ScatterElements (a, b, b)'],
    ],
    [
      'keeps Softmax of the last axis',
      12,
      13,
      node('Softmax', { axis: int(2) }),
      [['N', 3, 4]],
      ['z = Softmax <axis: int = -1> (a)'],
    ],
    [
      'flattens Softmax of several',
      12,
      13,
      node('Softmax'),
      [['N', 3, 4]],
      [
        'z_shape = Shape (a)',
        'z_flat = Flatten <axis: int = 1> (a)',
        'z_flat_result = Softmax <axis: int = -1> (z_flat)',
        'z = Reshape (z_flat_result, z_shape)',
      ],
    ],
    [
      'reshapes a Softmax of any extents where Reshape takes zeros',
      12,
      14,
      node('LogSoftmax', { axis: int(0) }),
      [['N', 3]],
      [
        'z_shape = Shape (a)',
        'z_flat = Flatten <axis: int = 0> (a)',
        'z_flat_result = LogSoftmax <axis: int = -1> (z_flat)',
        'z = Reshape <allowzero: int = 1> (z_flat_result, z_shape)',
      ],
    ],
    [
      'flattens a Softmax of known extents',
      12,
      13,
      node('Hardmax', { axis: int(-2) }),
      [[2, 3, 4]],
      [
        'z_shape = Shape (a)',
        'z_flat = Flatten <axis: int = -2> (a)',
        'z_flat_result = Hardmax <axis: int = -1> (z_flat)',
        'z = Reshape (z_flat_result, z_shape)',
      ],
    ],
    [
      'counts the parts of Split',
      17,
      18,
      node('Split', {}, { outputs: ['z', 'y'] }),
      [[4]],
      ['z, y = Split <num_outputs: int = 2> (a)'],
    ],
    [
      'moves axes of reductions',
      11,
      21,
      node('ReduceMean', { axes: ints(0) }),
      [[4, 2]],
      ['z_axes = Constant <value: tensor = int64[1] {0}> ()', 'z = ReduceMean (a, z_axes)'],
    ],
    [
      'moves the axis of DFT',
      17,
      20,
      node('DFT'),
      [[1, 4, 1]],
      ['z_axis = Constant <value: tensor = int64 {1}> ()', 'z = DFT (a, "", z_axis)'],
    ],
    [
      'renames modes',
      16,
      20,
      node('GridSample', { mode: text('bicubic') }),
      [
        [1, 1, 2, 2],
        [1, 2, 2, 2],
      ],
      ['z = GridSample <mode: string = "cubic"> (a, b)'],
    ],
    [
      'numbers the target of Cast',
      5,
      6,
      node('Cast', { to: text('float') }),
      [[2]],
      ['z = Cast <to: int = 1> (a)'],
    ],
    [
      'renames paddings',
      1,
      2,
      node('Pad', { paddings: ints(0, 1) }),
      [[2]],
      ['z = Pad <pads: ints = [0, 1]> (a)'],
    ],
    [
      'makes norms integers',
      1,
      2,
      node('LpPool', { p: float(3), kernel_shape: ints(2) }),
      [[1, 1, 4]],
      ['z = LpPool <p: int = 3, kernel_shape: ints = [2]> (a)'],
    ],
    ['keeps the default norm', 1, 2, node('GlobalLpPool'), [[1, 1, 4]], ['z = GlobalLpPool (a)']],
    [
      'keeps the lengths of Split',
      1,
      2,
      node('Split', { axis: int(1), split: ints(1, 2) }, { outputs: ['z', 'y'] }),
      [[2, 3]],
      ['z, y = Split <axis: int = 1, split: ints = [1, 2]> (a)'],
    ],
    [
      'joins the scales of Upsample, up to Resize',
      6,
      11,
      node('Upsample', { height_scale: float(2), width_scale: float(3), mode: text('bilinear') }),
      [[1, 1, 2, 2]],
      [
        'z_scales = Constant <value: tensor = float[4] {1,1,2,3}> ()',
        'z_region = Constant <value: tensor = float[0] {}> ()',
        'z = Resize <mode: string = "linear", coordinate_transformation_mode: string = "asymmetric"> (a, z_region, z_scales)',
      ],
    ],
    [
      'repeats scale and bias of groups for their channels',
      18,
      21,
      node('GroupNormalization', { num_groups: int(2) }),
      [[1, 6, 2], [2], [2]],
      [
        'b_column_shape = Constant <value: tensor = int64[2] {2,1}> ()',
        'b_column = Reshape (b, b_column_shape)',
        'b_rows_shape = Constant <value: tensor = int64[2] {2,3}> ()',
        'b_rows = Expand (b_column, b_rows_shape)',
        'b_channels_shape = Constant <value: tensor = int64[1] {6}> ()',
        'b_channels = Reshape (b_rows, b_channels_shape)',
        'c_column_shape = Constant <value: tensor = int64[2] {2,1}> ()',
        'c_column = Reshape (c, c_column_shape)',
        'c_rows_shape = Constant <value: tensor = int64[2] {2,3}> ()',
        'c_rows = Expand (c_column, c_rows_shape)',
        'c_channels_shape = Constant <value: tensor = int64[1] {6}> ()',
        'c_channels = Reshape (c_rows, c_channels_shape)',
        'z = GroupNormalization <num_groups: int = 2> (a, b_channels, c_channels)',
      ],
    ],
  ])('%s', async (_, from, to, given, shapes, expected) => {
    const made = model(from, given, ...shapes)
    expect(convertOpset(made, to).from).toBe(from)
    expect(await nodesOf(made)).toEqual(expected)
    expect(made.opsetImports.get('')).toBe(to)
    expect(inferShapes(made).conflicts).toEqual([])
  })

  it('keeps bytes of nodes that need no adapter', async () => {
    const made = model(13, node('Add'), [2], [2])
    const { adapted } = convertOpset(made, 28)
    expect(adapted).toEqual([])
    expect(await nodesOf(made)).toEqual(['z = Add (a, b)'])
  })

  it('converts subgraphs and functions, with fresh names', async () => {
    const inner = Graph.create('i')
    inner.addNode({ opType: 'Squeeze', inputs: ['a'], outputs: ['p'], attributes: { axes: ints(0) } })
    inner.addOutput('p', FLOAT())
    const made = model(
      12,
      node('If', { then_branch: { type: 'GRAPH', value: inner } }, { inputs: ['c'] }),
      [1],
    )
    made.irVersion = 8
    made.graph.setInitializer('c', tensor([true], { dtype: 'bool', shape: [] }))
    made.graph.addNode({ opType: 'Identity', inputs: ['a'], outputs: ['p_axes'] })
    const body = { opType: 'Unsqueeze', inputs: ['x'], outputs: ['y'], attributes: { axes: ints(0) } }
    addFunction(made, { domain: 'own', name: 'F', inputs: ['x'], outputs: ['y'], nodes: [body] })
    const { adapted } = convertOpset(made, 13)
    expect(adapted.map(({ opType, inputs }) => [opType, inputs])).toEqual([
      ['Squeeze', ['a', 'p_axes_1']],
      ['Unsqueeze', ['x', 'y_axes']],
    ])
    expect(made.functions[0]!.opsetImports.get('')).toBe(13)
  })

  it('names all nodes that it cannot convert, and changes none', async () => {
    const made = model(8, node('Clip', { max: float(1) }), [2])
    const { graph } = made
    graph.addNode({ opType: 'Scan', name: 'scan', inputs: ['a', 'a'], outputs: ['s'] })
    graph.addNode({ opType: 'Mystery', inputs: ['a'], outputs: ['m'] })
    graph.addNode({ opType: 'Clip', inputs: ['m'], outputs: ['n'], attributes: { min: float(0) } })
    graph.addNode({ opType: 'Dropout', inputs: ['a'], outputs: ['d', 'mask'] })
    graph.addNode({ opType: 'Identity', inputs: ['mask'], outputs: ['same'] })
    const before = await serialize(made)
    expect(() => convertOpset(made, 12)).toThrow(
      'Nodes cannot be converted to operator set 12: Mystery before "m" (the operator is not known); ' +
        'Scan "scan" (it has sequence lengths); Dropout before "d" (its mask is used); ' +
        'Clip before "n" (the type of its input is not known).',
    )
    expect(await serialize(made)).toEqual(before)
  })

  it.each<[string, number, readonly (number | string)[]]>([
    ['an open extent', 0, ['N', 3]],
    ['an extent of 0', 0, [0, 3]],
    ['an open extent that is not the first', 1, [2, 'N', 3]],
    ['an open first extent in the flattened part', -3, ['N', 2, 3]],
  ])('refuses a Softmax with %s, which Reshape of version 13 would misread', (_, axis, shape) => {
    const given = node('Softmax', { axis: int(axis) })
    expect(() => convertOpset(model(12, given, shape), 13)).toThrow(
      '(an extent of its input may be 0; convert to version 14 or later)',
    )
  })

  /** Dropout with a mask; `hasUse` gives the mask a node that uses it. */
  function masked(opset: number, hasUse: boolean): OnnxModel {
    const made = model(
      opset,
      node('Dropout', opset < 12 ? { ratio: float(0.25) } : {}, { outputs: ['z', ''] }),
      [2],
    )
    made.graph.nodes[0]!.outputs = ['z', 'mask']
    made.graph.setType('z', FLOAT(2))
    made.graph.setType('mask', opset < 10 ? FLOAT(2) : { kind: 'tensor', dtype: 'bool', shape: [2] })
    if (hasUse) made.graph.addNode({ opType: 'Identity', inputs: ['mask'], outputs: ['same'] })
    return made
  }

  it.each([
    [6, 7],
    [9, 10],
    [10, 12],
    [6, 22],
  ])('takes a Dropout from %d to %d without its unused mask', async (from, to) => {
    const made = masked(from, false)
    convertOpset(made, to)
    expect(made.graph.nodes.at(-1)!.outputs).toEqual(['z'])
    expect(await check(await serialize(made), { level: 'strict' })).toEqual([])
    expect(() => convertOpset(masked(from, true), to)).toThrow(
      /converted to operator set \d+: Dropout before "z" \(its mask is used\)\.$/,
    )
  })

  it('refuses a mask that is an output, of the graph or of a function', () => {
    const made = masked(10, false)
    made.graph.addOutput('mask', { kind: 'tensor', dtype: 'bool', shape: [2] })
    expect(() => convertOpset(made, 12)).toThrow('its mask is used')
    const called = model(10, node('Neg'), [2])
    called.irVersion = 8
    const body = { opType: 'Dropout', inputs: ['x'], outputs: ['y', 'm'] }
    const parts = { domain: 'own', inputs: ['x'], nodes: [body] }
    const unused = addFunction(called, { ...parts, name: 'F', outputs: ['y'] })
    convertOpset(called.copy(), 12)
    addFunction(called, { ...parts, name: 'G', outputs: ['y', 'm'] })
    expect(() => convertOpset(called, 12)).toThrow('set 12: Dropout before "y" (its mask is used).')
    expect(unused.nodes[0]!.outputs).toEqual(['y', 'm'])
  })

  it('keeps a mask where no version changes it', () => {
    const made = masked(12, true)
    convertOpset(made, 22)
    expect(made.graph.nodes[0]!.outputs).toEqual(['z', 'mask'])
  })

  it('refuses references to attributes of a function', () => {
    const made = model(12, node('Neg'), [2])
    made.irVersion = 8
    const axes = { type: 'INTS', refName: 'axes' } as const
    const body = { opType: 'Squeeze', name: 's', inputs: ['x'], outputs: ['y'], attributes: { axes } }
    addFunction(made, {
      domain: 'own',
      name: 'F',
      inputs: ['x'],
      outputs: ['y'],
      attributeNames: ['axes'],
      nodes: [body],
    })
    expect(() => convertOpset(made, 13)).toThrow('Squeeze "s" (axes is an attribute of the function)')
  })

  it.each([
    [12, 'cannot be converted down to 12'],
    [29, 'must be an integer from 1 to 28'],
    [13.5, 'must be an integer'],
  ])('refuses %d', (version, message) => {
    expect(() => convertOpset(model(13, node('Neg'), [2]), version)).toThrow(message)
  })

  it.each<readonly [string, NewNode, number, number]>([
    ['an unchanged operator', node('Neg'), 28, 13],
    ['more types', node('Relu'), 21, 13],
    ['an attribute without use', node('Reshape', {}, { inputs: ['a', 'shape'] }), 21, 13],
    [
      'a value that was there',
      node('ScatterND', { reduction: text('add') }, { inputs: ['a', 'i', 'a'] }),
      18,
      16,
    ],
  ])('goes to an earlier set: %s', async (_, each, from, to) => {
    const made = model(from, each, [2])
    made.graph.setInitializer('shape', tensor([2n], { dtype: 'int64' }))
    made.graph.setInitializer('i', tensor([[0n], [1n]], { dtype: 'int64' }))
    made.graph.setType('z', FLOAT(2))
    expect(convertOpset(made, to)).toEqual({ from, adapted: [] })
    expect(made.opsetImports.get('')).toBe(to)
    const found = await check(await serialize(made), { level: 'strict' })
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it.each<readonly [string, NewNode, number, number]>([
    ['version 17 introduced it', node('LayerNormalization', {}, { inputs: ['a', 'a'] }), 17, 16],
    [
      'version 21 changed what it means',
      node('GroupNormalization', { num_groups: int(1) }, { inputs: ['a', 'a', 'a'] }),
      21,
      20,
    ],
    ['its axes are no constant', node('ReduceMax', {}, { inputs: ['a', 'open'] }), 18, 17],
    ['the type of input 0 is younger', node('ReduceMax', {}, { inputs: ['truth'] }), 20, 17],
    [
      'noop_with_empty_axes is a younger attribute',
      node('ReduceL1', { noop_with_empty_axes: int(1) }),
      18,
      17,
    ],
    [
      'allowzero is a younger attribute',
      node('Reshape', { allowzero: int(1) }, { inputs: ['a', 'shape'] }),
      14,
      13,
    ],
    [
      'version 18 introduced reduction max',
      node('ScatterND', { reduction: text('max') }, { inputs: ['a', 'i', 'a'] }),
      18,
      17,
    ],
    [
      'version 19 introduced mode wrap',
      node('Pad', { mode: text('wrap') }, { inputs: ['a', 'shape'] }),
      19,
      18,
    ],
    ['input 3 is younger', node('Pad', {}, { inputs: ['a', 'shape', '', 'shape'] }), 18, 17],
    ['the type of input 0 is younger', node('Add', {}, { inputs: ['bytes', 'bytes'] }), 14, 13],
    ['the type of input 0 is not known', node('Add', {}, { inputs: ['open', 'open'] }), 14, 13],
  ])('stays in its set because %s', (reason, each, from, to) => {
    const made = model(from, each, [2])
    made.graph.setInitializer('shape', tensor([2n], { dtype: 'int64' }))
    made.graph.setInitializer('i', tensor([[0n], [1n]], { dtype: 'int64' }))
    made.graph.setInitializer('bytes', tensor([1], { dtype: 'uint8' }))
    made.graph.setInitializer('truth', tensor([true], { dtype: 'bool' }))
    made.graph.addNode({ opType: 'Own', domain: 'own', inputs: ['a'], outputs: ['open'] })
    expect(() => convertOpset(made, to)).toThrow(`(${reason})`)
    expect(made.opsetImports.get('')).toBe(from)
  })

  it.each<readonly [string, readonly number[] | undefined, NewNode['attributes']]>([
    ['all axes', undefined, {}],
    ['a list', [0, -1], { keepdims: int(0) }],
    ['an empty list', [], { noop_with_empty_axes: int(0) }],
    ['a list beside noop_with_empty_axes', [1], { noop_with_empty_axes: int(1) }],
  ])('gives reductions an attribute for %s', async (_, axes, attributes) => {
    for (const isNode of axes ? [true, false] : [false]) {
      const inputs = axes ? ['a', 'axes'] : ['a']
      const made = model(18, node('ReduceMean', attributes, { inputs }), [2, 3, 4])
      const list = axes && tensor(BigInt64Array.from(axes, BigInt), { shape: [axes.length] })
      const value = { type: 'TENSOR', value: list! } as const
      if (isNode) made.graph.addNode({ opType: 'Constant', outputs: ['axes'], attributes: { value } }, 0)
      else if (list) made.graph.setInitializer('axes', list)
      inferShapes(made)
      const { adapted } = convertOpset(made, 13)
      expect(adapted.map(({ opType }) => opType)).toEqual(['ReduceMean'])
      const [reduction, ...others] = made.graph.nodes.filter(({ opType }) => opType !== 'Identity')
      expect(others).toEqual([])
      expect(reduction!.inputs).toEqual(['a'])
      const expected = axes && axes.length > 0 ? axes : undefined
      expect(reduction!.attribute('axes')?.value).toEqual(expected)
      expect(reduction!.attribute('noop_with_empty_axes')).toBeUndefined()
      expect([...made.graph.initializerNames]).toEqual([])
      const found = await check(await serialize(made), { level: 'strict' })
      expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
      convertOpset(made, 18)
      expect(made.graph.nodes.find(({ opType }) => opType === 'ReduceMean')!.inputs).toHaveLength(
        expected ? 2 : 1,
      )
    }
  })

  it('goes to an earlier set without functions only, and sees nodes of branches', () => {
    const made = model(18, node('Neg'), [2])
    const branch = Graph.create('branch')
    branch.addNode({ opType: 'ReduceMean', name: 'mean', inputs: ['a', 'axes'], outputs: ['m'] })
    branch.addOutput('m', FLOAT(1))
    made.graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    const value: NewAttribute = { type: 'GRAPH', value: branch }
    made.graph.addNode({
      opType: 'If',
      inputs: ['c'],
      outputs: ['r'],
      attributes: { then_branch: value, else_branch: value },
    })
    made.graph.addInput('axes', { kind: 'tensor', dtype: 'int64', shape: [1] })
    expect(() => convertOpset(made, 17)).toThrow('ReduceMean "mean" (its axes are no constant)')
    const called = model(18, node('Neg'), [2])
    called.irVersion = 8
    const body: NewNode = { opType: 'Neg', inputs: ['x'], outputs: ['y'] }
    addFunction(called, { domain: 'own', name: 'F', inputs: ['x'], outputs: ['y'], nodes: [body] })
    expect(() => convertOpset(called, 17)).toThrow('it has functions')
  })

  it('has adapters for all changes', () => {
    const missing = [...CHANGED].flatMap(([version, names]) =>
      [...names].filter((name) => !adapterOf(name, version)).map((name) => `${name} ${version}`),
    )
    expect(missing).toEqual([])
  })

  it('turns the inputs of Tile into one number for each axis', async () => {
    const made = model(5, node('Tile', {}, { inputs: ['a', 'tiles', 'axis'] }), [2, 3])
    made.graph.setInitializer('tiles', tensor(Float32Array.of(4), { shape: [1] }))
    made.graph.setInitializer('axis', tensor(Float32Array.of(1), { shape: [1] }))
    convertOpset(made, 13)
    expect(await nodesOf(made)).toEqual([
      'z_repeats = Constant <value: tensor = int64[2] {1,4}> ()',
      'z = Tile (a, z_repeats)',
    ])
    expect(inferTypes(made).get('z')).toEqual(FLOAT(2, 12))
  })

  it('takes the lengths of Split from a constant', async () => {
    const given = node('Split', { axis: int(0) }, { inputs: ['a', 'lengths'], outputs: ['z', 'y'] })
    const made = model(1, given, [4])
    made.graph.setInitializer('lengths', tensor(Float32Array.of(1, 3), { shape: [2] }))
    convertOpset(made, 2)
    expect(await nodesOf(made)).toEqual(['z, y = Split <axis: int = 0, split: ints = [1, 3]> (a)'])
  })

  it.each<[string, number, NewNode, readonly (readonly (number | string)[])[], string]>([
    [
      'Cast',
      5,
      node('Cast', { to: text('FLOAT99') }),
      [[1]],
      'its attribute to is "FLOAT99", which is no element type',
    ],
    [
      'Tile',
      5,
      node('Tile', {}, { inputs: ['a', 'b', 'b'] }),
      [[1], [1]],
      'its tiles and axis are not constants',
    ],
    ['Split', 1, node('Split'), [[4]], 'it has no attribute axis'],
    ['Split', 1, node('Split', { axis: int(0) }), [[4], [2]], 'its lengths are not constants'],
    ['Pad', 1, node('Pad'), [[4]], 'it has no attribute paddings'],
    ['Pad', 1, node('Pad', { paddings: int(1) }), [[4]], 'its paddings is INT, not INTS'],
    ['Squeeze', 11, node('Squeeze', { axes: int(0) }), [[1, 4]], 'its axes is INT, not INTS'],
    ['Slice', 9, node('Slice', { starts: int(0), ends: ints(1) }), [[4]], 'its starts is INT, not INTS'],
    ['ReduceSum', 11, node('ReduceSum', { axes: float(0) }), [[4]], 'its axes is FLOAT, not INTS'],
    [
      'Upsample',
      8,
      node('Upsample', { scales: float(2) }),
      [[1, 1, 2, 2]],
      'its scales is FLOAT, not FLOATS',
    ],
    ['LpPool', 1, node('LpPool'), [[1, 1, 4]], 'it has no attribute kernel_shape'],
    ['GlobalLpPool', 1, node('GlobalLpPool', { p: float(1.5) }), [[1, 1, 4]], 'its p is not an integer'],
    [
      'Upsample',
      1,
      node('Upsample', { height_scale: float(2) }),
      [[1, 1, 2, 2]],
      'it has no height_scale or width_scale',
    ],
    [
      'GroupNormalization',
      18,
      node('GroupNormalization', { num_groups: int(2) }),
      [[1, 'C', 2], [2], [2]],
      'its channels are not known, or no multiple of its groups',
    ],
    [
      'Scan',
      8,
      node('Scan', { num_scan_inputs: int(1) }, { inputs: ['a', 'b'] }),
      [[2], [2]],
      'it has sequence lengths',
    ],
    ['Scan', 8, node('Scan', { num_scan_inputs: int(1) }, { inputs: ['', 'a'] }), [[2]], 'it has no body'],
  ])('refuses %s of version %d: %o', (opType, from, given, shapes, reason) => {
    const to = from < 2 ? 2 : from < 6 ? 6 : 21
    const made = model(from, { ...given, name: 'n' }, ...shapes)
    const wanted = from === 1 && opType === 'Upsample' ? 7 : to
    expect(() => convertOpset(made, wanted)).toThrow(`${opType} "n" (${reason})`)
  })

  it('runs Scan of each element of a batch in a Scan along the batch', async () => {
    const body = Graph.create('body')
    body.addInput('state', FLOAT(3))
    body.addInput('element', FLOAT(3))
    body.addNode({ opType: 'Add', inputs: ['state', 'element'], outputs: ['sum'] })
    body.addNode({ opType: 'Clip', inputs: ['sum'], outputs: ['next'], attributes: { max: float(9) } })
    body.addNode({ opType: 'Identity', inputs: ['next'], outputs: ['each'] })
    body.addOutput('next', FLOAT(3))
    body.addOutput('each', FLOAT(3))
    const scan = node(
      'Scan',
      { body: { type: 'GRAPH', value: body }, num_scan_inputs: int(1), directions: ints(1) },
      { inputs: ['', 'a', 'b'], outputs: ['z', 'y'] },
    )
    const made = model(8, scan, [2, 3], [2, 5, 3])
    convertOpset(made, 13)
    expect(
      (await printModel(made)).split('\n').filter((line) => /Scan|Clip|num_scan/.test(line)).length,
    ).toBeGreaterThan(2)
    expect([inferTypes(made).get('z'), inferTypes(made).get('y')]).toEqual([FLOAT(2, 3), FLOAT(2, 5, 3)])
    const [outer] = made.graph.nodes
    expect(outer!.inputs).toEqual(['a', 'b'])
    const [element] = outer!.subgraphs
    expect(element!.nodes.map(({ opType }) => opType)).toEqual(['Scan'])
    const [inner] = element!.nodes[0]!.subgraphs
    expect(inner!.nodes.map(({ opType, inputs }) => [opType, inputs.length])).toEqual([
      ['Add', 2],
      ['Constant', 0],
      ['Clip', 3],
      ['Identity', 1],
    ])
    made.irVersion = 8
    inferShapes(made)
    expect(await check(await serialize(made), { level: 'strict' })).toEqual([])
  })
})
