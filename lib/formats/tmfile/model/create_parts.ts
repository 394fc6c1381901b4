/** New parts of a graph, from as much as a person would say of them: nodes with defaults, constants with their nodes. */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { defaultParams } from '../decode/read_operator.js'
import { type OperatorName, type OperatorSchema, operatorByName, operatorByNumber } from '../operators.js'
import { FORMAT_NAME, OPERATOR_VERSION } from '../schema.js'
import { checkKeys } from './caller_model.js'
import { replaceConstant } from './edit_constants.js'
import { insertNode } from './edit_graph.js'
import { checkNewName, refuseTakenName } from './edit_names.js'
import { findTensor, refuseEdit } from './find.js'
import {
  isConstant,
  type TmfileModel,
  type TmfileNode,
  type TmfileQuantization,
  type TmfileTensor,
} from './model.js'
import { producerNode } from './producer_node.js'

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
export function createNode(model: TmfileModel, description: TmfileNodeDescription): TmfileNode {
  checkOptions(description, 'createNode', NODE_FIELDS)
  return readInput('The node', () => {
    const { name, inputs = [], outputs, params = {}, operatorVersion = OPERATOR_VERSION } = description
    const schema = schemaOf(description)
    const taken = checkKeys(inputs, 'inputs').map((key) => findTensor(model, key))
    if (name !== undefined) checkNewName(name, 'The name of a node')
    const names = outputs ?? (name === undefined ? [] : [name])
    if (names.length === 0) throw wrongPart('A node has a name, or outputs, the first of which names it.')
    const made = checkKeys(names, 'outputs').map((key) => outputOf(model, key, taken))
    return {
      name: name ?? made[0]!.name,
      operator: schema.name,
      operatorNumber: schema.number,
      operatorVersion,
      params: { ...defaultParams(schema), ...checkParams(params, schema) },
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
  { graph }: TmfileModel,
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

/**
 * Adds a constant with these numbers, and the node that gives it to others, in front of all nodes.
 *
 * @throws TileworkError ERR_ARGUMENT for what is no name, ERR_GRAPH for one that a tensor or a node has already; and as
 * `replaceConstant`
 */
export function addConstant(
  model: TmfileModel,
  name: string,
  numbers: DenseTensor,
  quantization?: TmfileQuantization | null,
): TmfileTensor {
  const { graph } = model
  const named = { name: checkNewName(name, 'The name of a constant') }
  refuseTakenName('tensor', named, graph.tensors)
  // Before anything is added: the node that gives the constant has its name.
  refuseTakenName('node', named, graph.nodes)
  const constant: TmfileTensor = {
    ...{ name, dtype: 'float32', shape: null, role: 'constant', layout: graph.graphLayout },
    ...{ quantization: null, buffer: null },
  }
  // Only what a graph has can be replaced; a refusal takes it out again.
  graph.tensors.push(constant)
  try {
    replaceConstant(model, constant, numbers, quantization)
  } catch (error) {
    graph.tensors.pop()
    throw error
  }
  insertNode(model, producerNode('Const', constant), 0)
  return constant
}

/**
 * Lets every node but the maker of `to` take one tensor in place of another; where the maker of `from` is an output of the
 * graph, the maker of `to` becomes one in its place.
 *
 * @throws TileworkError ERR_ARGUMENT for tensors that the graph does not have, ERR_GRAPH where a node would run before its
 * input is made
 */
export function replaceAllUses(
  model: TmfileModel,
  from: TmfileTensor | string,
  to: TmfileTensor | string,
): void {
  const { graph } = model
  const [old, put] = [findTensor(model, from), findTensor(model, to)]
  const links = model.links()
  const maker = links.get(put)?.producer
  const users = (links.get(old)?.consumers ?? []).filter((node) => node !== maker)
  const early = maker && users.find((node) => graph.nodes.indexOf(node) < graph.nodes.indexOf(maker))
  if (early) {
    refuseEdit(`Node ${JSON.stringify(early.name)} runs before tensor ${JSON.stringify(put.name)} is made.`)
  }
  const replaced = (tensors: readonly TmfileTensor[]) => tensors.map((each) => (each === old ? put : each))
  for (const node of users) node.inputs = replaced(node.inputs)
  for (const device of graph.devices ?? []) {
    Object.assign(device, { inputs: replaced(device.inputs), outputs: replaced(device.outputs) })
  }
  const end = links.get(old)?.producer
  if (maker && end && end.operator !== 'InputOp') {
    graph.outputs = [...new Set(graph.outputs.map((node) => (node === end ? maker : node)))]
  }
}
