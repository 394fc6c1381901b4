/**
 * Checks the types of the objects that a caller passes in: models, nodes, tensors, buffers. The values of their fields are
 * checked where they are used.
 */
import { isList, readInput } from '../../../caller_input.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { TENSOR_TYPES, type TensorRole, TMFILE_DTYPES } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type {
  TmfileModelFields,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import { isDenseTensor } from '../../../tensor/check_tensor.js'
import { valueText } from '../../../value_text.js'

/** The allowed type of a field. */
interface Rule {
  /** Completes the sentence "it must be …". */
  readonly allowed: string
  readonly accepts: (value: unknown) => boolean
}

type Rules = Readonly<Record<string, Rule>>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
const isNumberList = (value: unknown): value is ArrayLike<number> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

const orNull = ({ allowed, accepts }: Rule): Rule => ({
  allowed: `${allowed} or null`,
  accepts: (value) => value === null || accepts(value),
})

const TEXT: Rule = { allowed: 'a string', accepts: (value) => typeof value === 'string' }
const NUMBER: Rule = { allowed: 'a number', accepts: (value) => typeof value === 'number' }
const FLAG: Rule = { allowed: 'true or false', accepts: (value) => typeof value === 'boolean' }
const BYTES: Rule = { allowed: 'a Uint8Array', accepts: (value) => value instanceof Uint8Array }
const NUMBERS: Rule = { allowed: 'a list of numbers', accepts: isNumberList }
const PARAMETERS: Rule = {
  allowed: 'an object',
  accepts: (value) => isObject(value) && !Array.isArray(value),
}
const OBJECTS: Rule = {
  allowed: 'an array of objects',
  accepts: (value) => Array.isArray(value) && value.every(isObject),
}
const ROLE: Rule = {
  allowed: `one of: ${TENSOR_TYPES.join(', ')}`,
  accepts: (value) => TENSOR_TYPES.includes(value as TensorRole),
}
const DTYPE: Rule = {
  allowed: `one of: ${TMFILE_DTYPES.join(', ')}`,
  accepts: (value) => TMFILE_DTYPES.includes(value as Dtype),
}
const DATA: Rule = {
  allowed: 'a range of a source { source, start }, a dense { tensor },',
  accepts: (value) =>
    isObject(value) &&
    ('tensor' in value ? isDenseTensor(value.tensor) : isObject(value.source) && NUMBER.accepts(value.start)),
}

const ATTRIBUTE: Rules = { name: TEXT, value: BYTES, type: NUMBER }
const NODE: Rules = {
  ...{ name: orNull(TEXT), operator: TEXT, operatorNumber: NUMBER, operatorVersion: NUMBER },
  ...{ params: PARAMETERS, opaqueParams: orNull(BYTES), dynamicShape: FLAG },
  ...{ inputs: OBJECTS, outputs: OBJECTS, attributes: OBJECTS },
}
const BUFFER: Rules = { byteLength: NUMBER, data: orNull(DATA) }
const TENSOR: Rules = {
  ...{ name: orNull(TEXT), dtype: DTYPE, shape: orNull(NUMBERS), role: ROLE, layout: NUMBER },
  ...{ quantization: orNull(PARAMETERS), buffer: orNull(PARAMETERS) },
}
const QUANTIZATION: Rules = { scales: NUMBERS, zeroPoints: NUMBERS, widths: NUMBERS }
const DEVICE: Rules = {
  ...{ id: NUMBER, inputWaitCount: NUMBER, dataType: NUMBER, name: orNull(TEXT) },
  ...{ nodes: OBJECTS, inputs: OBJECTS, outputs: OBJECTS },
}
const GRAPH: Rules = {
  ...{ id: NUMBER, name: orNull(TEXT), graphLayout: NUMBER, modelLayout: NUMBER },
  ...{ nodes: OBJECTS, tensors: OBJECTS, buffers: OBJECTS, inputs: OBJECTS, outputs: OBJECTS },
  devices: orNull(OBJECTS),
}
const MODEL: Rules = {
  version: {
    allowed: 'an array of three numbers',
    accepts: (value) => Array.isArray(value) && value.length === 3,
  },
  ...{ originalFormat: NUMBER, subFormat: NUMBER, name: orNull(TEXT), graph: PARAMETERS },
}

/** @throws TileworkError ERR_ARGUMENT that names the field */
function checkFields(value: unknown, rules: Rules, path: string): void {
  if (!isObject(value)) throw wrongField(path, 'an object', value)
  for (const [name, { allowed, accepts }] of Object.entries(rules)) {
    if (!accepts(value[name])) throw wrongField(path === '' ? name : `${path}.${name}`, allowed, value[name])
  }
}

function wrongField(path: string, allowed: string, value: unknown): TileworkError {
  const message = `${path} is ${valueText(value)}; it must be ${allowed}.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}

/** @throws TileworkError ERR_ARGUMENT for an invalid node, naming the field */
export function checkNode(node: TmfileNode, path: string): void {
  readInput('The node', () => {
    checkFields(node, NODE, path)
    for (const [index, attribute] of node.attributes.entries()) {
      checkFields(attribute, ATTRIBUTE, `${path}.attributes[${index}]`)
    }
  })
}

/** @throws TileworkError ERR_ARGUMENT unless all lists are arrays of the same length */
export function checkQuantization(quantization: TmfileQuantization | null, path: string): void {
  if (quantization === null) return
  readInput('The quantization parameters', () => {
    checkFields(quantization, QUANTIZATION, path)
    const { scales, zeroPoints, widths } = quantization
    if (scales.length === zeroPoints.length && scales.length === widths.length) return
    const message = `${path} has ${scales.length} scales, ${zeroPoints.length} zero points and ${widths.length} widths; their numbers must be equal.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  })
}

/** @throws TileworkError ERR_ARGUMENT for an invalid tensor, naming the field */
export function checkGraphTensor(tensor: TmfileTensor, path: string): void {
  readInput('The tensor', () => {
    checkFields(tensor, TENSOR, path)
    if (tensor.quantization) checkQuantization(tensor.quantization, `${path}.quantization`)
    if (tensor.buffer) checkFields(tensor.buffer, BUFFER, `${path}.buffer`)
  })
}

/** @throws TileworkError ERR_ARGUMENT for an invalid model, naming the field */
export function checkModelFields(model: TmfileModelFields): void {
  readInput('The model', () => {
    checkFields(model, MODEL, '')
    const { graph } = model
    checkFields(graph, GRAPH, 'graph')
    for (const [index, node] of graph.nodes.entries()) checkNode(node, `nodes[${index}]`)
    for (const [index, tensor] of graph.tensors.entries()) checkGraphTensor(tensor, `tensors[${index}]`)
    for (const [index, buffer] of graph.buffers.entries()) checkFields(buffer, BUFFER, `buffers[${index}]`)
    for (const [index, device] of (graph.devices ?? []).entries())
      checkFields(device, DEVICE, `devices[${index}]`)
  })
}

/**
 * Checks an argument that is a list of tensors or their names, and returns a copy.
 *
 * @param name - the name of the argument
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkKeys<T>(keys: readonly T[], name: string): readonly T[] {
  // Array.from turns holes into undefined, which the caller then rejects; map would skip them.
  if (isList(keys)) return readInput(name, () => Array.from(keys))
  const message = `${name} is ${valueText(keys)}; it must be an array of tensors or their names.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}
