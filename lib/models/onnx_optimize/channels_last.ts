/**
 * Gives inputs and outputs of a model the order of axes that has the channels last (NHWC). Operators of ONNX take channels first, so
 * Transposes stand between; those that meet others are merged and cancelled by the rules of `optimize`.
 */
import { checkOptions, readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import type { Graph, ValueType } from '../onnx/document/types.js'
import { refuseTraining } from '../onnx/edit/graph_passes.js'
import { optimize } from './optimize.js'

/** Options of `channelsLast`. */
export interface ChannelsLastOptions {
  /** Names of inputs to change, of rank 3 to 5. Default: all dense tensors of rank 4 that no initializer is the default of. */
  readonly inputs?: readonly string[]
  /** Names of outputs to change, of rank 3 to 5. Default: all dense tensors of rank 4. */
  readonly outputs?: readonly string[]
}

/** What `channelsLast` did. */
export interface ChannelsLast {
  /** Inputs that take the channels last now. */
  readonly inputs: readonly string[]
  /** Outputs that give the channels last now. */
  readonly outputs: readonly string[]
  /** Number of Transposes in the model before, and of those that stay. */
  readonly transposes: { readonly before: number; readonly after: number }
}

type End = 'input' | 'output'

/** Passes that merge the new Transposes with what is around them; none rounds. */
const PASSES = [
  'remove-identity',
  'remove-no-ops',
  'merge-neighbours',
  'merge-equal-nodes',
  'remove-unused',
] as const

/**
 * Changes inputs and outputs from channels first, such as NCHW, to channels last: NHWC. Declared types change, a Transpose stands behind each
 * input and before each output, and Transposes that meet are merged. Operators stay as they are: all numbers are the same, in another order.
 *
 * @throws TileworkError ERR_ARGUMENT for a name that is no input or output, and for one that is no dense tensor of 3 to 5 axes;
 * ERR_UNSUPPORTED for a model with training graphs. Nothing is changed then
 */
export async function channelsLast(
  model: OnnxModel,
  options: ChannelsLastOptions = {},
): Promise<ChannelsLast> {
  checkModel(model, 'channelsLast')
  checkOptions(options, 'channelsLast', ['inputs', 'outputs'])
  const given = readInput('The options of channelsLast', () => ({ ...options }))
  const { graph } = model
  refuseTraining(graph)
  const inputs = chosen(graph, 'input', given.inputs)
  const outputs = chosen(graph, 'output', given.outputs)
  // What goes in and out unchanged has one order.
  for (const name of graph.inputNames)
    if (graph.outputNames.has(name) && inputs.has(name) !== outputs.has(name)) throw bothWays(name)
  const before = transposesOf(model)
  for (const [name, type] of outputs) if (!graph.inputNames.has(name)) changeOutput(graph, name, type)
  for (const [name, type] of inputs) changeInput(graph, name, type)
  await optimize(model, { only: PASSES })
  return {
    inputs: [...inputs.keys()],
    outputs: [...outputs.keys()],
    transposes: { before, after: transposesOf(model) },
  }
}

type TensorType = Extract<ValueType, { kind: 'tensor' | 'sparse' }>

/** The inputs or outputs to change, with their types before. */
function chosen(
  graph: Graph,
  end: End,
  given: readonly string[] | undefined,
): ReadonlyMap<string, TensorType> {
  const all = end === 'input' ? graph.inputs : graph.outputs
  const types = new Map(all.map(({ name, type }) => [name, type]))
  if (given === undefined) {
    const isFree = (name: string): boolean => end === 'output' || !graph.hasInitializer(name)
    const found = [...types].filter(([name, type]) => rankOf(type) === 4 && isFree(name))
    return new Map(found) as Map<string, TensorType>
  }
  const names = readInput(`The ${end}s of channelsLast`, () => [
    ...checkTexts(`${end}s of channelsLast`, given),
  ])
  return new Map(names.map((name) => [name, checkedType(name, types.get(name), end)]))
}

function checkedType(name: string, type: ValueType | undefined, end: End): TensorType {
  if (type === undefined)
    throw new TileworkError('ERR_ARGUMENT', `The graph has no ${end} ${valueText(name)}.`)
  const rank = rankOf(type)
  if (rank !== undefined && rank >= 3 && rank <= 5) return type as TensorType
  const what = rank === undefined ? 'no dense tensor of a known rank' : `a tensor of ${rank} axes`
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The ${end} ${valueText(name)} is ${what}; channelsLast takes 3 to 5 axes.`,
  )
}

function rankOf(type: ValueType): number | undefined {
  return type.kind === 'tensor' ? type.shape?.length : undefined
}

/** From the axes of channels first to those of channels last, and back. */
function permsOf(rank: number): { readonly toLast: readonly number[]; readonly toFirst: readonly number[] } {
  const spatial = Array.from({ length: rank - 2 }, (_, at) => at)
  return {
    toLast: [0, ...spatial.map((at) => at + 2), 1],
    toFirst: [0, rank - 1, ...spatial.map((at) => at + 1)],
  }
}

function changeOutput(graph: Graph, name: string, type: TensorType): void {
  const inner = graph.uniqueName(`${name}_channels_first`)
  graph.rename(name, inner)
  for (const output of graph.message.messages('output')) output.replaceText('name', inner, name)
  graph.addNode(transpose(inner, name, permsOf(type.shape!.length).toLast))
  graph.setType(name, withChannelsLast(type))
}

function changeInput(graph: Graph, name: string, type: TensorType): void {
  const inner = graph.uniqueName(`${name}_channels_first`)
  const isUsed = graph.usersOf(name).length > 0
  graph.replaceAllUses(name, inner)
  for (const output of graph.message.messages('output')) output.replaceText('name', inner, name)
  if (isUsed) graph.addNode(transpose(name, inner, permsOf(type.shape!.length).toFirst), 0)
  graph.setType(name, withChannelsLast(type))
}

function transpose(input: string, output: string, perm: readonly number[]) {
  return {
    opType: 'Transpose',
    inputs: [input],
    outputs: [output],
    attributes: { perm: { type: 'INTS', value: perm } },
  } as const
}

function withChannelsLast(type: TensorType): ValueType {
  const { toLast } = permsOf(type.shape!.length)
  const shape = toLast.map((axis) => type.shape![axis]!)
  const denotations = type.denotations && toLast.map((axis) => type.denotations![axis] ?? '')
  return { ...type, shape, ...(denotations && { denotations }) }
}

function transposesOf(model: OnnxModel): number {
  let count = 0
  for (const graph of model.graphs())
    for (const { opType, domain } of graph.nodes) if (opType === 'Transpose' && domain === '') count++
  return count
}

function bothWays(name: string): TileworkError {
  const text = `${valueText(name)} is an input and an output; channelsLast changes both or none.`
  return new TileworkError('ERR_ARGUMENT', text)
}
