/**
 * What the runtime makes of operators and their parameters: blocks of older forms, numbers that meant another operator,
 * operators it cannot load, values that nobody knows, and shapes of weights that crash it.
 */
import type { Report } from '../../report.js'
import type { FileRecords, NodeRecord, SubgraphRecord } from '../decode/records.js'
import { ATTRIBUTE_TYPES, isActivation, NHWC, PARAMETER_VALUES } from '../enums.js'
import { Location } from '../location.js'
import { isUninitialised } from '../struct_layout.js'

/**
 * Operators that a number stood for in files of 2020 and early 2021. Which one a file means shows where one of the two has
 * parameters and the other has none.
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

/** Those that changed places while the format was in wide use; a mismatch says nothing else there. */
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
    if (graph.values.graph_layout === NHWC) checkTurnedShape(node, place, report)
  }
}

function title({ operator, name }: NodeRecord, { path }: Location): string {
  const what = operator.schema?.name ?? `operator ${operator.values.number}`
  return name ? `${path} ${JSON.stringify(name.text.slice(0, 80))} (${what})` : `${path} (${what})`
}

function checkSupport(node: NodeRecord, place: Location, report: Report): void {
  const { schema, values } = node.operator
  if (!schema) {
    const message = `${title(node, place)}: nobody knows this operator number; its parameters are kept as bytes, and may hold offsets.`
    report.note('OPERATOR_UNKNOWN', message, place)
  } else if (!schema.canLoad) {
    const message = `${title(node, place)}: the current runtime has no loader for operator ${values.number}.`
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
    const message = `${title(node, place)} ${block ? 'has' : 'has no'} parameters: number ${values.number} was ${older} in older files.`
    report.note('OPERATOR_NUMBERING', message, blockPlace)
  }
  if (isOlder && SWAPPED_OPERATORS.has(values.number)) {
    checkMandatory(node, blockPlace, report)
    return
  }
  if (block && !block.form) {
    report.deviation('ERR_VALUE', `${title(node, place)} has parameters; this operator has none.`, blockPlace)
  } else if (!block && schema.layout.byteLength > 0) {
    reportMissingBlock(node, blockPlace, report)
  } else if (block?.form && !block.form.isCurrent) {
    reportOlderBlock(node, blockPlace, report)
  }
  checkMandatory(node, blockPlace, report)
}

function reportMissingBlock(node: NodeRecord, place: Location, report: Report): void {
  const { needsBlock } = node.operator.schema!
  const message = `${title(node, place)} has no parameters; defaults are taken, and the reference reads at offset 0.`
  if (needsBlock) report.deviation('ERR_OFFSET_RANGE', message, place)
  else report.note('OLDER_PARAMETERS', message, place)
}

function reportOlderBlock(node: NodeRecord, place: Location, report: Report): void {
  const { schema, block } = node.operator
  const { byteLength } = block!
  const current = schema!.layout.byteLength
  const known = new Set(block!.form!.fields.map(({ name }) => name))
  const missing = schema!.layout.fields.map(({ name }) => name).filter((name) => !known.has(name))
  const defaults =
    missing.length === 0 ? '' : `; ${missing.join(', ')} ${missing.length > 1 ? 'have' : 'has'} the default`
  const consequence =
    byteLength < current
      ? 'the current runtime reads on into the operator record'
      : 'the current runtime reads its first bytes'
  const message = `${title(node, place)} has an older block of ${byteLength} bytes (now ${current})${defaults}: ${consequence}.`
  report.note('OLDER_PARAMETERS', message, place)
}

/** Vectors that the reference follows without looking whether they are there. */
function checkMandatory(node: NodeRecord, place: Location, report: Report): void {
  const { block } = node.operator
  for (const { name, field } of block?.form?.fields ?? []) {
    if (field.kind !== 'vector' || field.isOptional || block!.vectors.has(name)) continue
    const message = `${title(node, place)}: ${name} is not set; the reference reads the header as a vector.`
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
    const message = `${title(node, place)}: ${name} is ${value}; known are ${[...known.keys()].join(', ')}.`
    report.deviation('ERR_VALUE', message, place.child('params', block.offset).child(name, block.offset))
  }
  checkPads(node, place, report)
  checkActivation(node, place, report)
}

/** Every negative number is none. */
function checkActivation(node: NodeRecord, place: Location, report: Report): void {
  const { activation } = node.operator.params as Record<string, number>
  if (!CONVOLUTIONS.has(node.operator.values.number) || isActivation(activation!)) return
  const message = `${title(node, place)}: activation is ${activation}; known are 0, 1, 6 and those below 0.`
  report.deviation(
    'ERR_VALUE',
    message,
    place.child('params', place.offset).child('activation', place.offset),
  )
}

/** -1 on all four sides is "same" with the extra cell at the end, -2 at the start; no other negative number means anything. */
function checkPads(node: NodeRecord, place: Location, report: Report): void {
  const { number } = node.operator.values
  if (number !== 5 && number !== 16) return
  const { pad_h0, pad_w0, pad_h1, pad_w1 } = node.operator.params as Record<string, number>
  const pads = [pad_h0!, pad_w0!, pad_h1!, pad_w1!]
  const isSame = pads.every((pad) => pad === -1) || pads.every((pad) => pad === -2)
  if (isSame || pads.every((pad) => pad >= 0)) return
  const message = `${title(node, place)} has the pads ${pads.join(', ')}; they are numbers from 0, or all -1, or all -2.`
  report.deviation('ERR_VALUE', message, place.child('params', place.offset))
}

/** Where the runtime loads something else than the file says. */
function checkRuntimeTraps(node: NodeRecord, place: Location, report: Report): void {
  const { values, params } = node.operator
  const trap = TRAPS.get(values.number)?.(params as Readonly<Record<string, number>>)
  if (trap === undefined) return
  report.note('RUNTIME_DIFFERS', `${title(node, place)}: ${trap}.`, place)
}

type Trap = (params: Readonly<Record<string, number>>) => string | undefined

const TRAPS: ReadonlyMap<number, Trap> = new Map<number, Trap>([
  [54, ({ scale_x, scale_y }) => (scale_x === scale_y ? undefined : swappedScales(scale_x!, scale_y!))],
  [79, () => 'the runtime does not load block_size'],
  [95, () => 'the runtime runs ReLU1 in its place'],
  [32, () => 'the runtime takes the place of the name for the name'],
])

function swappedScales(x: number, y: number): string {
  return `scale_x ${x} is the width for the writer and the height for the loader, so a save swaps it with scale_y ${y}`
}

function checkConvolution(node: NodeRecord, graph: SubgraphRecord, place: Location, report: Report): void {
  if (!CONVOLUTIONS.has(node.operator.values.number)) return
  const params = node.operator.params as Record<string, number>
  const deviate = (message: string): void =>
    report.deviation('ERR_GRAPH', `${title(node, place)} ${message}.`, place)
  const inputs = node.inputs?.entries ?? []
  if (inputs.length < 2) deviate(`has ${inputs.length} inputs; it needs data and weights`)
  const weight = graph.tensors.list[inputs[1] ?? -1]
  const rank = weight?.dims?.entries.length
  if (rank !== undefined && rank < 2)
    deviate(`has weights of ${rank} axes; the runtime reads the second extent`)
  for (const name of ['stride_h', 'stride_w', 'dilation_h', 'dilation_w', 'group'] as const) {
    if (params[name]! < 1) deviate(`has ${name} ${params[name]}; it is at least 1`)
  }
  const outputs = params.output_channel ?? params.num_output!
  if (params.group! > 0 && outputs % params.group! !== 0) {
    deviate(`has ${outputs} output channels in ${params.group} groups, which do not divide them`)
  }
}

/**
 * Operators that may have no inputs: two make something of nothing, a Noop does nothing with it, and a Generic has as many as
 * its own operator takes.
 */
const UNFED: ReadonlySet<string> = new Set(['InputOp', 'Const', 'Noop', 'Generic'])

/** The runtime infers no shapes for nodes without inputs, and then reads the first of every other node as it prepares it. */
function checkInputs(node: NodeRecord, place: Location, report: Report): void {
  const { schema } = node.operator
  const isFed = node.inputs !== undefined && node.inputs.entries.length > 0
  if (!schema || isFed || UNFED.has(schema.name)) return
  report.deviation('ERR_GRAPH', `${title(node, place)} has no inputs; the runtime reads the first.`, place)
}

function checkAttributes(node: NodeRecord, place: Location, report: Report): void {
  for (const [index, { type, offset }] of node.attributes?.list.entries() ?? []) {
    if (ATTRIBUTE_TYPES.has(type)) continue
    const attribute = place.child('attributes', offset).child(index, offset)
    report.deviation('ERR_VALUE', `${attribute.path} has the type ${type}; there are 1 to 5.`, attribute)
  }
}

/** The loader turns the target of a Reshape only where it has 3 or 4 extents. */
function checkTurnedShape(node: NodeRecord, place: Location, report: Report): void {
  if (node.operator.schema?.name !== 'Reshape') return
  const { re_shape } = node.operator.params as { readonly re_shape: readonly number[] | null }
  if (re_shape?.length === 3 || re_shape?.length === 4) return
  const message = `${title(node, place)} has ${re_shape?.length ?? 'no'} extents; the runtime turns 3 or 4 from NHWC and refuses the others.`
  report.deviation('ERR_GRAPH', message, place.child('params', place.offset).child('re_shape', place.offset))
}
