/** New parts of a graph, from as much as a person would say of them: nodes with defaults, constants with their nodes. */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { isConstant } from '../enums.js'
import { type OperatorName, type OperatorSchema, operatorByName, operatorByNumber } from '../operators.js'
import { FORMAT_NAME, OPERATOR_VERSION } from '../schema.js'
import { checkKeys } from './check_arguments.js'
import { checkNewName } from './edit_names.js'
import { findTensor } from './lookup.js'
import type { TmfileGraph, TmfileNode, TmfileTensor } from './types.js'

/** What makes a node. What is left out has its default. */
export interface TmfileNodeDescription {
  readonly operator: OperatorName
  /** For the operators of one name; default: the one that the current runtime loads. */
  readonly operatorNumber?: number
  readonly operatorVersion?: number
  /** Default: the name of the first output. */
  readonly name?: string
  /** Tensors of the graph, or their names. Default none. */
  readonly inputs?: readonly (TmfileTensor | string)[]
  /**
   * Tensors, or names. A name that the graph does not have becomes a variable of the type of the first input, whose shape
   * the runtime infers. Default: one with the name of the node.
   */
  readonly outputs?: readonly (TmfileTensor | string)[]
  /** Those that differ from the defaults of `docs/tmfile.md`. */
  readonly params?: Readonly<Record<string, unknown>>
}

/** Fields of a description. */
export const NODE_FIELDS = [
  'operator',
  'operatorNumber',
  'operatorVersion',
  'name',
  'inputs',
  'outputs',
  'params',
] as const satisfies readonly (keyof TmfileNodeDescription)[]

function wrongPart(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

/**
 * A node for `insertNode` and `replaceNode`, which do not have it yet.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown operator or parameter, for inputs that the graph does not have, and for
 * a node without name and outputs
 */
export function createNode(graph: TmfileGraph, description: TmfileNodeDescription): TmfileNode {
  checkOptions(description, 'createNode', NODE_FIELDS)
  return readInput('The node', () => {
    const { name, inputs = [], outputs, params = {}, operatorVersion = OPERATOR_VERSION } = description
    const schema = schemaOf(description)
    const taken = checkKeys(inputs, 'inputs').map((key) => findTensor(graph, key))
    if (name !== undefined) checkNewName(name, 'The name of a node')
    const names = outputs ?? (name === undefined ? [] : [name])
    if (names.length === 0) throw wrongPart('A node has a name, or outputs, the first of which names it.')
    const made = checkKeys(names, 'outputs').map((key) => outputOf(graph, key, taken))
    return {
      name: name ?? made[0]!.name,
      operator: schema.name,
      operatorNumber: schema.number,
      operatorVersion,
      params: { ...schema.defaults, ...checkParams(params, schema) },
      opaqueParams: null,
      inputs: taken,
      outputs: made,
      attributes: [],
      dynamicShape: false,
      // The parameters are those of the operator, by its table.
    } as unknown as TmfileNode
  })
}

function schemaOf({ operator, operatorNumber }: TmfileNodeDescription): OperatorSchema {
  if (typeof operator !== 'string') throw wrongPart(`operator is ${valueText(operator)}; it must be a name.`)
  const schema = operatorNumber === undefined ? operatorByName(operator) : operatorByNumber(operatorNumber)
  if (!schema) throw wrongPart(`${valueText(operatorNumber ?? operator)} is no operator of a tmfile.`)
  if (schema.name === operator) return schema
  throw wrongPart(`Operator ${operatorNumber} is ${schema.name}, not ${operator}.`)
}

function outputOf(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  inputs: readonly TmfileTensor[],
): TmfileTensor {
  if (typeof key !== 'string') return key
  const known = graph.tensors.find(({ name }) => name === key)
  if (known) return known
  checkNewName(key, 'The name of an output')
  const dtype = inputs.find((tensor) => !isConstant(tensor))?.dtype ?? 'float32'
  const nothing = { shape: null, quantization: null, buffer: null }
  return { name: key, dtype, role: 'variable', layout: graph.graphLayout, ...nothing }
}

function checkParams(
  params: Readonly<Record<string, unknown>>,
  { name: operator, fields }: OperatorSchema,
): Readonly<Record<string, unknown>> {
  checkObject(params, 'params is an object of parameters by name')
  const unknown = Object.keys(params).find((name) => !Object.hasOwn(fields, name))
  if (unknown === undefined) return params
  const known = Object.keys(fields).join(', ') || 'none'
  throw wrongPart(`${valueText(unknown)} is no parameter of ${operator}; known are: ${known}.`)
}

/** The operator of what is put into a model when it runs, and of what its file holds. */
export type ProducerName = 'InputOp' | 'Const'

/** A node that makes `tensor` and has its name. */
export function producerNode(operator: ProducerName, tensor: TmfileTensor): TmfileNode {
  return {
    name: tensor.name,
    operator,
    operatorNumber: operatorByName(operator)!.number,
    operatorVersion: OPERATOR_VERSION,
    params: {},
    opaqueParams: null,
    inputs: [],
    outputs: [tensor],
    attributes: [],
    dynamicShape: false,
  }
}
