/**
 * Whether what a caller hands over is a model, or a part of one, at all: each field of the type that it must have. What
 * the numbers are is looked at where they are used.
 */
import { readInput } from '../../../caller_input.js'
import { DTYPES, isDtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { isDenseTensor } from '../../../tensor/check_tensor.js'
import { valueText } from '../../../value_text.js'
import { TENSOR_TYPES, type TensorRole } from '../enums.js'
import { FORMAT_NAME } from '../schema.js'
import type { TmfileModelFields, TmfileNode, TmfileQuantization, TmfileTensor } from './types.js'

/** What a field must be. */
interface Rule {
  /** The end of a sentence: "it must be …". */
  readonly is: string
  readonly accepts: (value: unknown) => boolean
}

type Rules = Readonly<Record<string, Rule>>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
const isNumberList = (value: unknown): value is ArrayLike<number> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

const orNull = ({ is, accepts }: Rule): Rule => ({
  is: `${is}, or null`,
  accepts: (value) => value === null || accepts(value),
})

const TEXT: Rule = { is: 'a string', accepts: (value) => typeof value === 'string' }
const NUMBER: Rule = { is: 'a number', accepts: (value) => typeof value === 'number' }
const FLAG: Rule = { is: 'true or false', accepts: (value) => typeof value === 'boolean' }
const BYTES: Rule = { is: 'a Uint8Array', accepts: (value) => value instanceof Uint8Array }
const NUMBERS: Rule = { is: 'a list of numbers', accepts: isNumberList }
const PARAMETERS: Rule = { is: 'an object', accepts: (value) => isObject(value) && !Array.isArray(value) }
const OBJECTS: Rule = {
  is: 'an array of objects',
  accepts: (value) => Array.isArray(value) && value.every(isObject),
}
const ROLE: Rule = {
  is: TENSOR_TYPES.join(', '),
  accepts: (value) => TENSOR_TYPES.includes(value as TensorRole),
}
const DTYPE: Rule = {
  is: 'an element type of the format',
  accepts: (value) => isDtype(value) && DTYPES[value].tmfile !== undefined,
}
const DATA: Rule = {
  is: 'a range of a source { source, start } or a dense { tensor }',
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
    is: 'an array of three numbers',
    accepts: (value) => Array.isArray(value) && value.length === 3,
  },
  ...{ originalFormat: NUMBER, subFormat: NUMBER, name: orNull(TEXT), graph: PARAMETERS },
}

/** @throws TileworkError ERR_ARGUMENT, naming the field */
function checkFields(value: unknown, rules: Rules, path: string): void {
  if (!isObject(value)) throw wrongField(path, 'an object', value)
  for (const [name, { is, accepts }] of Object.entries(rules)) {
    if (!accepts(value[name])) throw wrongField(path === '' ? name : `${path}.${name}`, is, value[name])
  }
}

function wrongField(path: string, is: string, given: unknown): TileworkError {
  const message = `${path} must be ${is}; it is ${valueText(given)}.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}

/** @throws TileworkError ERR_ARGUMENT for what is no node with its tensors, naming the field */
export function checkNode(node: TmfileNode, path: string): void {
  readInput('The node', () => {
    checkFields(node, NODE, path)
    for (const [at, attribute] of node.attributes.entries()) {
      checkFields(attribute, ATTRIBUTE, `${path}.attributes[${at}]`)
    }
  })
}

/** @throws TileworkError ERR_ARGUMENT for lists that are none or have different lengths */
export function checkQuantization(quantization: TmfileQuantization | null, path: string): void {
  if (quantization === null) return
  readInput('The quantization parameters', () => {
    checkFields(quantization, QUANTIZATION, path)
    const { scales, zeroPoints, widths } = quantization
    if (scales.length === zeroPoints.length && scales.length === widths.length) return
    const message = `${path} has ${scales.length} scales, ${zeroPoints.length} zero points and ${widths.length} widths; there must be as many of each.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  })
}

/** @throws TileworkError ERR_ARGUMENT for what is no tensor of a graph, naming the field */
export function checkGraphTensor(tensor: TmfileTensor, path: string): void {
  readInput('The tensor', () => {
    checkFields(tensor, TENSOR, path)
    if (tensor.quantization) checkQuantization(tensor.quantization, `${path}.quantization`)
    if (tensor.buffer) checkFields(tensor.buffer, BUFFER, `${path}.buffer`)
  })
}

/** @throws TileworkError ERR_ARGUMENT for what is no model, naming the field */
export function checkModelFields(model: TmfileModelFields): void {
  readInput('The model', () => {
    checkFields(model, MODEL, '')
    const { graph } = model
    checkFields(graph, GRAPH, 'graph')
    for (const [at, node] of graph.nodes.entries()) checkNode(node, `nodes[${at}]`)
    for (const [at, tensor] of graph.tensors.entries()) checkGraphTensor(tensor, `tensors[${at}]`)
    for (const [at, buffer] of graph.buffers.entries()) checkFields(buffer, BUFFER, `buffers[${at}]`)
    for (const [at, device] of (graph.devices ?? []).entries()) checkFields(device, DEVICE, `devices[${at}]`)
  })
}

/**
 * A list of tensors or their names, as calls take it.
 *
 * @param name - of the argument
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkKeys<T>(keys: readonly T[], name: string): readonly T[] {
  // A hole of the array is no key, and would be passed over.
  if (Array.isArray(keys)) return Array.from(keys)
  const message = `${name} must be an array of tensors or their names; it is ${valueText(keys)}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}
