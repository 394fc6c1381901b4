/**
 * What makes a node of one version of the operator set a node of the next one: a row an operator and version. An adapter returns
 * the reason where it cannot, before it changes anything. Source: the change notes and schemas of the operators of ONNX.
 */
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import { cast } from '../../../tensor/cast.js'
import { tensor } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { integersOf } from '../document/attribute.js'
import { Graph } from '../document/graph.js'
import type { AttributeValue, Dimension, NewAttribute, Node, ValueType } from '../document/types.js'
import type { NodePlace } from './node_place.js'
import type { OperatorName } from './versions.js'

/** @returns the reason of a refusal; undefined after the node was changed, or needs no change */
export type Adapter = (place: NodePlace) => string | undefined

/** Removes attributes that have no meaning any more. */
function drops(...names: readonly string[]): Adapter {
  return ({ node }) => {
    for (const name of names) node.removeAttribute(name)
    return undefined
  }
}

function steps(...adapters: readonly Adapter[]): Adapter {
  return (place) => {
    for (const adapt of adapters) {
      const reason = adapt(place)
      if (reason !== undefined) return reason
    }
    return undefined
  }
}

/** A list of integers becomes an input. */
function integersToInput(name: string, input: number): Adapter {
  return (place) => {
    const attribute = place.node.attribute(name)
    if (attribute === undefined) return undefined
    const values = integersOf(attribute)
    if (values === undefined) return `its ${name} is ${attribute.type}, not INTS`
    const list = BigInt64Array.from(values, BigInt)
    return toInput(place, name, input, tensor(list, { shape: [list.length] }))
  }
}

/** The attribute `name` becomes the input at an index, as a constant. */
function toInput(place: NodePlace, name: string, input: number, value: DenseTensor): undefined {
  const { node } = place
  const inputs = [...node.inputs]
  while (inputs.length < input) inputs.push('')
  inputs[input] = place.constant(`${node.outputs.find((each) => each !== '') ?? node.opType}_${name}`, value)
  node.inputs = inputs
  node.removeAttribute(name)
  return undefined
}

function scalar(value: number | bigint, dtype: Dtype): DenseTensor {
  if (dtype === 'int64') return tensor(BigInt64Array.of(BigInt(value)), { shape: [] })
  const number = tensor(Float32Array.of(Number(value)), { shape: [] })
  return dtype === 'float32' ? number : (cast(number, dtype) as DenseTensor)
}

/** Types of the operators whose attributes of float32 became inputs of the type of the data. */
const FLOATS: ReadonlySet<string> = new Set(['float16', 'float32', 'float64'])

/** A float attribute becomes an input of the type of the data. */
function floatToInput(name: string, input: number): Adapter {
  return (place) => {
    const value = place.node.attribute(name)?.value
    if (typeof value !== 'number') return undefined
    const dtype = place.dtypeOf(0)
    if (dtype === undefined || !FLOATS.has(dtype)) return 'the type of its input is not known'
    return toInput(place, name, input, scalar(value, dtype as Dtype))
  }
}

/** Only the first output has a counterpart. */
const oneOutput: Adapter = ({ node }) =>
  node.outputs.slice(1).some((name) => name !== '') ? 'it has more than one output' : undefined

/** The mask of inference changed its type and its elements. One that nothing uses is left out. */
const noMask: Adapter = ({ node, isUsed }) => {
  const [output = '', mask = ''] = node.outputs
  if (mask !== '' && isUsed(mask)) return 'its mask is used'
  if (node.outputs.length > 1) node.outputs = [output]
  return undefined
}

/** Broadcasting along `axis` became that of numpy, which aligns the last dimensions. */
const broadcast: Adapter = (place) => {
  const { node } = place
  const axis = numberOf(node.attribute('axis')?.value)
  const isBroadcast = numberOf(node.attribute('broadcast')?.value) === 1
  if (axis !== undefined && isBroadcast) {
    const [rank, other] = [place.rankOf(0), place.rankOf(1)]
    if (rank === undefined || other === undefined) return 'the ranks of its inputs are not known'
    const behind = rank - (axis < 0 ? axis + rank : axis) - other
    if (behind < 0) return 'its axis does not fit the ranks of its inputs'
    if (behind > 0) addDimensions(place, other, behind)
  }
  node.removeAttribute('axis')
  node.removeAttribute('broadcast')
  return undefined
}

/** A slope of one dimension was one number a channel, and became one a last index. */
const channelSlope: Adapter = (place) => {
  const [rank, slope] = [place.rankOf(0), place.rankOf(1)]
  if (rank === undefined || slope === undefined) return 'the ranks of its inputs are not known'
  if (slope === 1 && rank > 2) addDimensions(place, 1, rank - 2)
  return undefined
}

/** Appends dimensions of extent 1 to the second input. */
function addDimensions(place: NodePlace, rank: number, count: number): void {
  const [first = '', second = ''] = place.node.inputs
  const expanded = place.name(`${second}_expanded`)
  const axes = Array.from({ length: count }, (_, index) => rank + index)
  const attributes = { axes: { type: 'INTS', value: axes } } as const
  place.before({ opType: 'Unsqueeze', inputs: [second], outputs: [expanded], attributes })
  place.node.inputs = [first, expanded]
}

function numberOf(value: AttributeValue): number | undefined {
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
}

/** The version of Reshape that can take an extent of 0 literally. */
const FIRST_WITH_ALLOWZERO = 14

/**
 * Softmax of version 1 takes all dimensions from `axis` on as one, and that of version 13 one dimension. The old shape comes
 * back by a Reshape, which before version 14 takes an extent of 0 as that of its input.
 */
const softmax: Adapter = (place) => {
  const { node } = place
  const axis = numberOf(node.attribute('axis')?.value) ?? 1
  const rank = place.rankOf(0)
  const last = { type: 'INT', value: -1 } as const
  if (axis === -1 || (rank !== undefined && axis === rank - 1)) {
    node.setAttribute('axis', last)
    return undefined
  }
  const allowsZero = place.target >= FIRST_WITH_ALLOWZERO
  if (!allowsZero && mayCopyExtents(place.shapeOf(0), axis))
    return 'an extent of its input may be 0; convert to version 14 or later'
  const [input = ''] = node.inputs
  const [output = ''] = node.outputs
  const [shape, flat, made] = ['shape', 'flat', 'flat_result'].map((part) =>
    place.name(`${output}_${part}`),
  ) as [string, string, string]
  place.before({ opType: 'Shape', inputs: [input], outputs: [shape] })
  place.before({
    opType: 'Flatten',
    inputs: [input],
    outputs: [flat],
    attributes: { axis: { type: 'INT', value: axis } },
  })
  node.inputs = [flat]
  node.outputs = [made]
  node.setAttribute('axis', last)
  place.after({
    opType: 'Reshape',
    inputs: [made, shape],
    outputs: [output],
    attributes: allowsZero ? { allowzero: { type: 'INT', value: 1 } } : {},
  })
  return undefined
}

/** Whether a 0 of the shape may copy another extent of the flattened input. With axis 1 both have the same first extent. */
function mayCopyExtents(shape: readonly Dimension[] | undefined, axis: number): boolean {
  if (!shape) return true
  const first = axis === 1 || axis + shape.length === 1 ? 1 : 0
  return shape.slice(first).some((extent) => typeof extent !== 'number' || extent === 0)
}

/** Before this version Resize needs its region, though only one mode reads it. */
const FIRST_WITHOUT_REGION = 13

/** Resize of version 10 samples as Upsample, by the corner of an element. */
const resize: Adapter = (place) => {
  const { node } = place
  const [input = '', scales = ''] = node.inputs
  const isNearest = textOf(node, 'mode') !== 'linear'
  const values = isNearest ? place.constantFloats(1) : undefined
  if (isNearest && !values?.every((scale) => scale >= 1)) {
    return 'its scales are not constants of 1 and more, and version 10 does not define how it rounds'
  }
  const isNeeded = place.target < FIRST_WITHOUT_REGION
  const region = isNeeded ? place.constant(`${node.outputs[0]}_region`, tensor(Float32Array.of())) : ''
  node.inputs = [input, region, scales]
  node.setAttribute('coordinate_transformation_mode', { type: 'STRING', value: 'asymmetric' })
  if (isNearest) node.setAttribute('nearest_mode', { type: 'STRING', value: 'floor' })
  return undefined
}

function textOf(node: Node, name: string): string {
  const value = node.attribute(name)?.value
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : ''
}

function renamed(opType: OperatorName): Adapter {
  return ({ node }) => {
    node.opType = opType
    return undefined
  }
}

/** Modes of GridSample took the names of Resize. */
const gridMode: Adapter = ({ node }) => {
  const mode = textOf(node, 'mode').replace(/^bi(?=linear$|cubic$)/, '')
  if (mode !== '') node.setAttribute('mode', { type: 'STRING', value: mode })
  return undefined
}

/** Sets an attribute whose default changed. */
function setsDefault(name: string, attribute: NewAttribute): Adapter {
  return ({ node }) => {
    if (!node.attribute(name)) node.setAttribute(name, attribute)
    return undefined
  }
}

const spatial: Adapter = ({ node }) =>
  numberOf(node.attribute('spatial')?.value) === 0 ? 'it has spatial = 0' : undefined

const sequence: Adapter = ({ node }) => {
  const isOmitted = numberOf(node.attribute('output_sequence')?.value) !== 1
  return isOmitted && node.outputs[0]
    ? 'it has an output of the sequence without output_sequence = 1'
    : undefined
}

/** Types that a later version does not take. */
const onlyFloats: Adapter = (place) => {
  const dtype = place.dtypeOf(0)
  return dtype !== undefined && (FLOATS.has(dtype) || dtype === 'bfloat16')
    ? undefined
    : 'its input must be of floats'
}

const splitCount: Adapter = ({ node }) => {
  if (!node.inputs[1]) node.setAttribute('num_outputs', { type: 'INT', value: node.outputs.length })
  return undefined
}

const dftAxis: Adapter = (place) => {
  const axis = numberOf(place.node.attribute('axis')?.value) ?? 1
  return toInput(place, 'axis', 2, scalar(axis, 'int64'))
}

const topCount: Adapter = (place) => {
  const count = numberOf(place.node.attribute('k')?.value)
  if (count === undefined) return 'it has no attribute k'
  return toInput(place, 'k', 1, tensor(BigInt64Array.of(BigInt(count)), { shape: [1] }))
}

const ratio: Adapter = (place) => {
  const value = numberOf(place.node.attribute('ratio')?.value)
  return value === undefined ? undefined : toInput(place, 'ratio', 1, scalar(value, 'float32'))
}

const scales: Adapter = (place) => {
  const attribute = place.node.attribute('scales')
  if (attribute === undefined) return 'it has no attribute scales'
  if (attribute.type !== 'FLOATS') return `its scales is ${attribute.type}, not FLOATS`
  const values = attribute.value as readonly number[]
  return toInput(place, 'scales', 1, tensor(Float32Array.from(values), { shape: [values.length] }))
}

/** The names of TensorProto.DataType by number, as far as Cast of version 1 has them. */
const DATA_TYPES = [
  ...['UNDEFINED', 'FLOAT', 'UINT8', 'INT8', 'UINT16', 'INT16', 'INT32', 'INT64', 'STRING', 'BOOL'],
  ...['FLOAT16', 'DOUBLE', 'UINT32', 'UINT64', 'COMPLEX64', 'COMPLEX128'],
]

/** The name of an element type became its number. */
const castTarget: Adapter = ({ node }) => {
  const name = textOf(node, 'to').toUpperCase()
  const value = DATA_TYPES.indexOf(name)
  if (value <= 0) return `its attribute to is ${JSON.stringify(name)}, which is no element type`
  node.setAttribute('to', { type: 'INT', value })
  return undefined
}

/** A number of copies along one axis became a number for each. */
const repeats: Adapter = (place) => {
  const { node } = place
  const rank = place.rankOf(0)
  if (rank === undefined) return 'the rank of its input is not known'
  const [count, axis] = [place.constantFloats(1)?.[0], place.constantFloats(2)?.[0]]
  if (count === undefined || axis === undefined) return 'its tiles and axis are not constants'
  if (!Number.isInteger(axis) || axis < 0 || axis >= rank)
    return 'its axis does not fit the rank of its input'
  const list = BigInt64Array.from({ length: rank }, (_, each) => (each === axis ? BigInt(count) : 1n))
  node.inputs = node.inputs.slice(0, 1)
  return toInput(place, 'repeats', 1, tensor(list, { shape: [rank] }))
}

/** The lengths of the parts were an attribute or an input of floats, and the axis had no default. */
const splitLengths: Adapter = (place) => {
  const { node } = place
  if (!node.attribute('axis')) return 'it has no attribute axis'
  if (!node.inputs[1]) return undefined
  const lengths = place.constantFloats(1)
  if (!lengths) return 'its lengths are not constants'
  node.setAttribute('split', { type: 'INTS', value: lengths })
  node.inputs = node.inputs.slice(0, 1)
  return undefined
}

const paddings: Adapter = ({ node }) => {
  const attribute = node.attribute('paddings')
  if (attribute === undefined) return 'it has no attribute paddings'
  const value = integersOf(attribute)
  if (value === undefined) return `its paddings is ${attribute.type}, not INTS`
  node.setAttribute('pads', { type: 'INTS', value })
  node.removeAttribute('paddings')
  return undefined
}

/** The norm was any number, and became an integer. */
const integerNorm: Adapter = ({ node }) => {
  const value = numberOf(node.attribute('p')?.value)
  if (value === undefined) return undefined
  if (!Number.isInteger(value)) return 'its p is not an integer'
  node.setAttribute('p', { type: 'INT', value })
  return undefined
}

const hasKernel: Adapter = ({ node }) =>
  node.attribute('kernel_shape') ? undefined : 'it has no attribute kernel_shape'

/** Scales of the last two of four dimensions became scales of all. */
const twoScales: Adapter = ({ node }) => {
  const [height, width] = ['height_scale', 'width_scale'].map((name) => numberOf(node.attribute(name)?.value))
  if (height === undefined || width === undefined) return 'it has no height_scale or width_scale'
  node.setAttribute('scales', { type: 'FLOATS', value: [1, 1, height, width] })
  node.removeAttribute('height_scale')
  node.removeAttribute('width_scale')
  if (textOf(node, 'mode') === 'bilinear') node.setAttribute('mode', { type: 'STRING', value: 'linear' })
  return undefined
}

/**
 * Scale and bias were one number a group, and became one a channel. The mean was computed in the type of the input, and became that
 * of an attribute.
 */
const channelGroups: Adapter = (place) => {
  const { node } = place
  const groups = numberOf(node.attribute('num_groups')?.value)
  const dtype = place.dtypeOf(0)
  const channels = place.shapeOf(0)?.[1]
  if (groups === undefined) return 'it has no attribute num_groups'
  if (dtype === undefined) return 'the type of its input is not known'
  if (typeof channels !== 'number' || channels % groups !== 0)
    return 'its channels are not known, or no multiple of its groups'
  const [input = '', ...parameters] = node.inputs
  node.inputs = [input, ...parameters.map((name) => perChannel(place, name, groups, channels))]
  const stash = { type: 'INT', value: DTYPES[dtype as Dtype].onnx } as const
  if (dtype !== 'float32') node.setAttribute('stash_type', stash)
  return undefined
}

/** Repeats each of `groups` numbers for the channels of its group. @returns the new value */
function perChannel(place: NodePlace, name: string, groups: number, channels: number): string {
  const shapeOf = (part: string, ...extents: readonly number[]): string =>
    place.constant(
      `${name}_${part}`,
      tensor(BigInt64Array.from(extents, BigInt), { shape: [extents.length] }),
    )
  const [column, rows, flat] = ['column', 'rows', 'channels'].map((part) =>
    place.name(`${name}_${part}`),
  ) as [string, string, string]
  const columnShape = shapeOf('column_shape', groups, 1)
  place.before({ opType: 'Reshape', inputs: [name, columnShape], outputs: [column] })
  const rowsShape = shapeOf('rows_shape', groups, channels / groups)
  place.before({ opType: 'Expand', inputs: [column, rowsShape], outputs: [rows] })
  const flatShape = shapeOf('channels_shape', channels)
  place.before({ opType: 'Reshape', inputs: [rows, flatShape], outputs: [flat] })
  return flat
}

/**
 * Scan of version 8 runs for each element of a batch, along the second axis. That is a Scan of version 9 along the batch, without
 * state, whose body is the Scan of one element.
 */
const batchedScan: Adapter = (place) => {
  const { node } = place
  const [lengths = '', ...values] = node.inputs
  if (lengths !== '') return 'it has sequence lengths'
  const body = node.attribute('body')?.value
  if (!(body instanceof Graph)) return 'it has no body'
  const [inputs, outputs] = [typesOf(body.inputs), typesOf(body.outputs)]
  if (!inputs || !outputs || inputs.length !== values.length)
    return 'its body does not declare the types of its inputs and outputs'
  const element = Graph.create('element_of_batch')
  const made = (types: readonly ValueType[], part: string): string[] => types.map(() => place.name(part))
  const [given, found] = [made(inputs, 'scan_input'), made(outputs, 'scan_output')]
  for (const [at, name] of given.entries()) element.addInput(name, inputs[at]!)
  const attribute = node.attribute('directions')
  const directions = attribute && integersOf(attribute)
  if (attribute && !directions) return `its directions is ${attribute.type}, not INTS`
  element.addNode({
    opType: 'Scan',
    inputs: given,
    outputs: found,
    attributes: {
      body: { type: 'GRAPH', value: body },
      num_scan_inputs: { type: 'INT', value: numberOf(node.attribute('num_scan_inputs')?.value) ?? 0 },
      ...(directions && { scan_input_directions: { type: 'INTS', value: directions } }),
    },
  })
  for (const [at, name] of found.entries()) element.addOutput(name, outputs[at]!)
  node.inputs = values
  node.removeAttribute('directions')
  node.setAttribute('num_scan_inputs', { type: 'INT', value: values.length })
  place.wrapBody(element)
  return undefined
}

/** Element types without shapes; undefined where one is not declared. */
function typesOf(values: Iterable<{ readonly type: ValueType | undefined }>): ValueType[] | undefined {
  const types = Array.from(values, ({ type }): ValueType | undefined =>
    type?.kind === 'tensor' ? { kind: 'tensor', dtype: type.dtype } : undefined,
  )
  return types.every((type) => type !== undefined) ? types : undefined
}

const consumed = drops('consumed_inputs')
const axesInput = integersToInput('axes', 1)

const CONSUMING = [
  ...[
    'Abs',
    'Add',
    'BatchNormalization',
    'Ceil',
    'Clip',
    'Div',
    'Dropout',
    'Elu',
    'Exp',
    'Floor',
    'HardSigmoid',
  ],
  ...[
    'InstanceNormalization',
    'LeakyRelu',
    'Log',
    'Max',
    'Mean',
    'Min',
    'Mul',
    'Neg',
    'PRelu',
    'Reciprocal',
    'Relu',
  ],
  ...['Sigmoid', 'Sqrt', 'Sub', 'Sum', 'Tanh'],
] as readonly OperatorName[]
const BROADCASTING = [
  'Add',
  'And',
  'Div',
  'Equal',
  'Greater',
  'Less',
  'Mul',
  'Or',
  'Pow',
  'Sub',
  'Xor',
] as const
const REDUCTIONS = [
  ...['ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin'],
  ...['ReduceProd', 'ReduceSumSquare'],
] as readonly OperatorName[]

/** A version of the operator set, the operators, and what makes their nodes nodes of that version. */
const ROWS: readonly (readonly [version: number, operators: readonly OperatorName[], adapt: Adapter])[] = [
  [2, ['GlobalLpPool'], integerNorm],
  [2, ['LpPool'], steps(hasKernel, integerNorm)],
  [2, ['Pad'], paddings],
  [2, ['Split'], splitLengths],
  [4, ['Concat'], setsDefault('axis', { type: 'INT', value: 1 })],
  [5, ['Reshape'], steps(integersToInput('shape', 1), consumed)],
  [6, ['Cast'], castTarget],
  [6, CONSUMING, consumed],
  [
    6,
    ['Selu'],
    steps(
      setsDefault('alpha', { type: 'FLOAT', value: 1.6732 }),
      setsDefault('gamma', { type: 'FLOAT', value: 1.0507 }),
      consumed,
    ),
  ],
  [6, ['Tile'], repeats],
  [7, BROADCASTING, broadcast],
  [7, ['BatchNormalization'], steps(oneOutput, drops('is_test'))],
  [7, ['Dropout'], steps(noMask, drops('is_test'))],
  [7, ['Gemm'], drops('broadcast')],
  [7, ['PRelu'], channelSlope],
  [7, ['GRU', 'LSTM', 'RNN'], steps(sequence, drops('output_sequence'))],
  [7, ['Upsample'], twoScales],
  [9, ['Scan'], batchedScan],
  [9, ['BatchNormalization'], steps(spatial, drops('spatial'))],
  [9, ['Upsample'], scales],
  [10, ['Dropout'], noMask],
  [
    10,
    ['Slice'],
    steps(integersToInput('starts', 1), integersToInput('ends', 2), integersToInput('axes', 3)),
  ],
  [10, ['TopK'], topCount],
  [10, ['Upsample'], renamed('Resize')],
  [11, ['Clip'], steps(floatToInput('min', 1), floatToInput('max', 2))],
  [11, ['Pad'], steps(floatToInput('value', 2), integersToInput('pads', 1))],
  [11, ['Resize'], resize],
  [11, ['Scatter'], renamed('ScatterElements')],
  [12, ['Dropout'], steps(noMask, ratio)],
  [13, ['Erf'], onlyFloats],
  [13, ['Hardmax', 'LogSoftmax', 'Softmax'], softmax],
  [13, ['ReduceSum', 'Squeeze', 'Unsqueeze'], axesInput],
  [13, ['Split'], integersToInput('split', 1)],
  [14, ['BatchNormalization'], oneOutput],
  [
    16,
    ['RoiAlign'],
    setsDefault('coordinate_transformation_mode', { type: 'STRING', value: 'output_half_pixel' }),
  ],
  [18, REDUCTIONS, axesInput],
  [18, ['Split'], splitCount],
  [20, ['DFT'], dftAxis],
  [20, ['GridSample'], gridMode],
  [21, ['GroupNormalization'], channelGroups],
  [28, ['ReduceLogSum', 'ReduceLogSumExp'], onlyFloats],
]

const ADAPTERS: ReadonlyMap<string, Adapter> = new Map(
  ROWS.flatMap(([version, operators, adapt]) =>
    operators.map((name) => [`${name} ${version}`, adapt] as const),
  ),
)

/** The adapter of an operator to a version; undefined where there is none. */
export function adapterOf(operator: string, version: number): Adapter | undefined {
  return ADAPTERS.get(`${operator} ${version}`)
}
