/**
 * Rules for operators and their parameters: older forms of blocks, numbers that used to mean another operator, operators
 * that the runtime cannot load, unknown values, and weight shapes that crash it.
 */
import type { Report } from '../../report.js'
import type { FileRecords, NodeRecord, SubgraphRecord } from '../decode/records.js'
import { ATTRIBUTE_TYPES, isActivation, NHWC, PARAMETER_VALUES } from '../enums.js'
import { Location } from '../location.js'
import { isUninitialised } from '../struct_layout.js'

/**
 * Meaning of operator numbers in files of 2020 and early 2021. Where only one of the old and the new operator has
 * parameters, the presence of a block shows which one a file means.
 */
const OLDER_OPERATORS: ReadonlyMap<number, string> = new Map([
  [88, 'MatMul'],
  [90, 'Unsqueeze'],
  [91, 'Expand'],
  [92, 'MatMul'],
  [98, 'L2Normalization'],
  [99, 'ReLU1'],
  [101, 'LogSoftmax'],
  [102, 'Scatter'],
  [103, 'L2Pool'],
  [105, 'Where'],
])

/** Numbers that were swapped while the format was in wide use; a mismatch has no other meaning there. */
const SWAPPED_OPERATORS: ReadonlySet<number> = new Set([91, 92])

/** Convolution and Deconvolution. */
const CONVOLUTIONS: ReadonlySet<number> = new Set([5, 6])

const NODES = new Location(0, 'nodes')

export function checkOperators({ graph }: FileRecords, report: Report): void {
  for (const [index, node] of graph.nodes.list.entries()) {
    if (!node) continue
    const place = new Location(node.operator.offset, index, NODES)
    checkSupport(node, place, report)
    checkBlock(node, place, report)
    checkValues(node, place, report)
    checkRuntimeTraps(node, place, report)
    checkConvolution(node, graph, place, report)
    checkInputs(node, place, report)
    checkAttributes(node, place, report)
    if (graph.values.graph_layout === NHWC) checkReshapeTarget(node, place, report)
  }
}

/** Names a node in messages: `nodes[3] "conv1" (Convolution)`. */
export function nodeTitle({ operator, name }: NodeRecord, { path }: Location): string {
  const what = operator.schema?.name ?? `operator ${operator.values.number}`
  return name ? `${path} ${JSON.stringify(name.text.slice(0, 80))} (${what})` : `${path} (${what})`
}

function checkSupport(node: NodeRecord, place: Location, report: Report): void {
  const { schema, values } = node.operator
  if (!schema) {
    const message = `${nodeTitle(node, place)}: the operator number is unknown; its parameters are kept as bytes, and may contain offsets.`
    report.note('OPERATOR_UNKNOWN', message, place)
  } else if (!schema.canLoad) {
    const message = `${nodeTitle(node, place)}: the current runtime cannot load operator ${values.number}.`
    report.note('OPERATOR_NOT_LOADED', message, place)
  }
}

function checkBlock(node: NodeRecord, place: Location, report: Report): void {
  const { schema, block, values } = node.operator
  if (!schema) return
  const blockPlace = place.child('params', block?.offset ?? place.offset)
  const older = OLDER_OPERATORS.get(values.number)
  const isOlder = older !== undefined && schema.layout.byteLength > 0 === (block === undefined)
  if (isOlder) {
    const message = `${nodeTitle(node, place)} ${block ? 'has' : 'has no'} parameters: number ${values.number} was ${older} in older files.`
    report.note('OPERATOR_NUMBERING', message, blockPlace)
  }
  if (isOlder && SWAPPED_OPERATORS.has(values.number)) {
    checkMandatory(node, blockPlace, report)
    return
  }
  if (block && !block.form) {
    report.deviation(
      'ERR_VALUE',
      `${nodeTitle(node, place)} has a parameter block; the operator has no parameters.`,
      blockPlace,
    )
  } else if (!block && schema.layout.byteLength > 0) {
    reportMissingBlock(node, blockPlace, report)
  } else if (block?.form && !block.form.isCurrent) {
    reportOlderBlock(node, blockPlace, report)
  }
  checkMandatory(node, blockPlace, report)
}

function reportMissingBlock(node: NodeRecord, place: Location, report: Report): void {
  const { needsBlock } = node.operator.schema!
  const message = `${nodeTitle(node, place)} has no parameter block; defaults are assumed here, and the reference reads at offset 0.`
  if (needsBlock) report.deviation('ERR_OFFSET_RANGE', message, place)
  else report.note('OLDER_PARAMETERS', message, place)
}

function reportOlderBlock(node: NodeRecord, place: Location, report: Report): void {
  const { schema, block } = node.operator
  const { byteLength } = block!
  const current = schema!.layout.byteLength
  const known = new Set(block!.form!.fields.map(({ name }) => name))
  const missing = schema!.layout.fields.map(({ name }) => name).filter((name) => !known.has(name))
  const defaults = missing.length === 0 ? '' : `; the default is assumed for ${missing.join(', ')}`
  const consequence =
    byteLength < current
      ? 'the current runtime reads past it into the operator record'
      : 'the current runtime reads only its first bytes'
  const message = `${nodeTitle(node, place)} has an older block of ${byteLength} bytes (current: ${current})${defaults}; ${consequence}.`
  report.note('OLDER_PARAMETERS', message, place)
}

/** Vectors that the reference reads without checking that they are set. */
function checkMandatory(node: NodeRecord, place: Location, report: Report): void {
  const { block } = node.operator
  for (const { name, field } of block?.form?.fields ?? []) {
    if (field.kind !== 'vector' || field.isOptional || block!.vectors.has(name)) continue
    const message = `${nodeTitle(node, place)}: ${name} is not set; the reference reads the header as this vector.`
    report.deviation('ERR_OFFSET_RANGE', message, place.child(name, place.offset))
  }
}

function checkValues(node: NodeRecord, place: Location, report: Report): void {
  const { schema, block, params } = node.operator
  if (!schema || !block?.form) return
  for (const { name, field } of schema.layout.fields) {
    const value = params[name]
    const known = field.values === undefined ? undefined : PARAMETER_VALUES[field.values]
    if (!known || typeof value !== 'number' || known.has(value) || isUninitialised(field, value, params))
      continue
    const message = `${nodeTitle(node, place)}: ${name} is ${value}; expected one of: ${[...known.keys()].join(', ')}.`
    report.deviation('ERR_VALUE', message, place.child('params', block.offset).child(name, block.offset))
  }
  checkPads(node, place, report)
  checkActivation(node, place, report)
}

/** Every negative number means no activation. */
function checkActivation(node: NodeRecord, place: Location, report: Report): void {
  const { activation } = node.operator.params as Record<string, number>
  if (!CONVOLUTIONS.has(node.operator.values.number) || isActivation(activation!)) return
  const message = `${nodeTitle(node, place)}: activation is ${activation}; expected 0, 1, 6 or a negative number.`
  report.deviation(
    'ERR_VALUE',
    message,
    place.child('params', place.offset).child('activation', place.offset),
  )
}

/** Four pads of -1 mean SAME_UPPER, and four of -2 SAME_LOWER; no other negative pad has a meaning. */
function checkPads(node: NodeRecord, place: Location, report: Report): void {
  const { number } = node.operator.values
  if (number !== 5 && number !== 16) return
  const { pad_h0, pad_w0, pad_h1, pad_w1 } = node.operator.params as Record<string, number>
  const pads = [pad_h0!, pad_w0!, pad_h1!, pad_w1!]
  const isSame = pads.every((pad) => pad === -1) || pads.every((pad) => pad === -2)
  if (isSame || pads.every((pad) => pad >= 0)) return
  const message = `${nodeTitle(node, place)} has the pads ${pads.join(', ')}; they must all be 0 or more, all -1, or all -2.`
  report.deviation('ERR_VALUE', message, place.child('params', place.offset))
}

/** Operators that the runtime loads with another meaning than the file states. */
function checkRuntimeTraps(node: NodeRecord, place: Location, report: Report): void {
  const { values, params } = node.operator
  const trap = TRAPS.get(values.number)?.(params as Readonly<Record<string, number>>)
  if (trap === undefined) return
  report.note('RUNTIME_DIFFERS', `${nodeTitle(node, place)}: ${trap}.`, place)
}

type Trap = (params: Readonly<Record<string, number>>) => string | undefined

const TRAPS: ReadonlyMap<number, Trap> = new Map<number, Trap>([
  [54, ({ scale_x, scale_y }) => (scale_x === scale_y ? undefined : swappedScales(scale_x!, scale_y!))],
  [79, () => 'the runtime does not load block_size'],
  [95, () => 'the runtime runs ReLU1 instead'],
  [32, () => 'the runtime uses the offset of the name as the name'],
])

function swappedScales(x: number, y: number): string {
  return `the writer stores the width as scale_x ${x}, and the loader reads it as the height, so saving swaps it with scale_y ${y}`
}

function checkConvolution(node: NodeRecord, graph: SubgraphRecord, place: Location, report: Report): void {
  if (!CONVOLUTIONS.has(node.operator.values.number)) return
  const params = node.operator.params as Record<string, number>
  const deviate = (message: string): void =>
    report.deviation('ERR_GRAPH', `${nodeTitle(node, place)} ${message}.`, place)
  const inputs = node.inputs?.entries ?? []
  if (inputs.length < 2) deviate(`has ${inputs.length} inputs; it must have at least 2, data and weights`)
  const weight = graph.tensors.list[inputs[1] ?? -1]
  const rank = weight?.dims?.entries.length
  if (rank !== undefined && rank < 2)
    deviate(
      `has weights of rank ${rank}; it must be at least 2, because the runtime reads the second dimension`,
    )
  for (const name of ['stride_h', 'stride_w', 'dilation_h', 'dilation_w', 'group'] as const) {
    // A Convolution treats a stride of 0 as 1.
    const isOne = params[name] === 0 && name.startsWith('stride') && params.output_channel !== undefined
    if (params[name]! < 1 && !isOne) deviate(`has ${name} ${params[name]}; it must be at least 1`)
  }
  const outputs = params.output_channel ?? params.num_output!
  if (params.group! > 0 && outputs % params.group! !== 0) {
    deviate(`has ${outputs} output channels, which is not a multiple of its ${params.group} groups`)
  }
}

/** Operators that may have no inputs: two sources, Noop, and Generic, whose inputs depend on its own operator. */
const WITHOUT_INPUTS: ReadonlySet<string> = new Set(['InputOp', 'Const', 'Noop', 'Generic'])

/** The runtime skips shape inference for a node without inputs, and then reads the first input when it prepares the node. */
function checkInputs(node: NodeRecord, place: Location, report: Report): void {
  const { schema } = node.operator
  const hasInputs = node.inputs !== undefined && node.inputs.entries.length > 0
  if (!schema || hasInputs || WITHOUT_INPUTS.has(schema.name)) return
  report.deviation(
    'ERR_GRAPH',
    `${nodeTitle(node, place)} has no inputs; the runtime reads the first one.`,
    place,
  )
}

function checkAttributes(node: NodeRecord, place: Location, report: Report): void {
  for (const [index, { type, offset }] of node.attributes?.list.entries() ?? []) {
    if (ATTRIBUTE_TYPES.has(type)) continue
    const attribute = place.child('attributes', offset).child(index, offset)
    report.deviation('ERR_VALUE', `${attribute.path} has the type ${type}; it must be 1 to 5.`, attribute)
  }
}

/** The loader permutes targets of 3 and 4 dimensions, and refuses a file whose Reshape has more or no target. */
function checkReshapeTarget(node: NodeRecord, place: Location, report: Report): void {
  if (node.operator.schema?.name !== 'Reshape') return
  const { re_shape } = node.operator.params as { readonly re_shape: readonly number[] | null }
  if (re_shape && re_shape.length <= MAX_NHWC_TARGET) return
  const message = `${nodeTitle(node, place)} has a target of ${re_shape?.length ?? 'no'} dimensions; the runtime loads NHWC models with 1 to ${MAX_NHWC_TARGET} only.`
  report.deviation('ERR_GRAPH', message, place.child('params', place.offset).child('re_shape', place.offset))
}

/** Longest Reshape target of an NHWC model: the loader refuses longer ones. */
const MAX_NHWC_TARGET = 4
