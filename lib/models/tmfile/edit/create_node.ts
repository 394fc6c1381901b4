/** Creates nodes from short descriptions: names of tensors, and the parameters that differ from their defaults. */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { isConstant } from '../../../formats/tmfile/enums.js'
import {
  OPERATORS,
  type OperatorName,
  type OperatorSchema,
  operatorByName,
  operatorByNumber,
} from '../../../formats/tmfile/operators.js'
import { FORMAT_NAME, OPERATOR_VERSION } from '../../../formats/tmfile/schema.js'
import type { TmfileGraph, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkKeys } from '../document/check_arguments.js'
import { findTensor } from '../document/lookup.js'
import { checkNewName } from './edit_names.js'

/** Describes a new node; omitted fields have defaults. */
export interface TmfileNodeDescription {
  readonly operator: OperatorName
  /** Selects one of several operators with the same name. Default: the one that the current runtime loads. */
  readonly operatorNumber?: number
  readonly operatorVersion?: number
  /** Default: the name of the first output. */
  readonly name?: string
  /** Tensors of the graph, or their names. Default none. */
  readonly inputs?: readonly (TmfileTensor | string)[]
  /**
   * Tensors, or names. A name that is not in the graph becomes a new variable with the dtype of the first input; the
   * runtime infers its shape. Default: one output with the name of the node.
   */
  readonly outputs?: readonly (TmfileTensor | string)[]
  /** Parameters that differ from the defaults in `docs/tmfile.md`. */
  readonly params?: Readonly<Record<string, unknown>>
}

/** Field names of a description. */
export const NODE_FIELDS = [
  'operator',
  'operatorNumber',
  'operatorVersion',
  'name',
  'inputs',
  'outputs',
  'params',
] as const satisfies readonly (keyof TmfileNodeDescription)[]

function invalidDescription(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

/**
 * A node for `insertNode` and `replaceNode`; the graph does not contain it yet.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown operator or parameter, for inputs that are not in the graph, and for a
 * node without a name and outputs
 */
export function createNode(graph: TmfileGraph, description: TmfileNodeDescription): TmfileNode {
  checkOptions(description, 'createNode', NODE_FIELDS)
  return readInput('The node', () => {
    const { name, inputs = [], outputs, params = {}, operatorVersion = OPERATOR_VERSION } = description
    const schema = schemaOf(description)
    const inputTensors = checkKeys(inputs, 'inputs').map((key) => findTensor(graph, key))
    if (name !== undefined) checkNewName(name, 'The name of a node')
    const names = outputs ?? (name === undefined ? [] : [name])
    if (names.length === 0)
      throw invalidDescription('The node has neither a name nor outputs; give at least one of them.')
    const made = checkKeys(names, 'outputs').map((key) => outputOf(graph, key, inputTensors))
    return {
      name: name ?? made[0]!.name,
      operator: schema.name,
      operatorNumber: schema.number,
      operatorVersion,
      params: { ...schema.defaults, ...checkParams(params, schema) },
      opaqueParams: null,
      inputs: inputTensors,
      outputs: made,
      attributes: [],
      dynamicShape: false,
      // `params` has the type of `operator`: both come from the schema.
    } as unknown as TmfileNode
  })
}

function schemaOf({ operator, operatorNumber }: TmfileNodeDescription): OperatorSchema {
  if (typeof operator !== 'string')
    throw invalidDescription(`operator is ${valueText(operator)}; it must be the name of an operator.`)
  const schema = operatorNumber === undefined ? operatorByName(operator) : operatorByNumber(operatorNumber)
  if (!schema) {
    const known = operatorNumber === undefined ? OPERATORS.map(({ name }) => name) : []
    const end = nearestText(operator, new Set(known), '; docs/tmfile.md lists the operators')
    throw invalidDescription(`The operator ${valueText(operatorNumber ?? operator)} is unknown${end}`)
  }
  if (schema.name === operator) return schema
  throw invalidDescription(`operatorNumber ${operatorNumber} is ${schema.name}; operator is ${operator}.`)
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
  throw invalidDescription(`unknown parameter ${valueText(unknown)}; ${operator} has: ${known}.`)
}
