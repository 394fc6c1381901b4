/** Puts a prefix before the names of a model, so that two models can be merged. */
import { checkOptions, readInput, refuseOption } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkText } from '../../../formats/onnx/protobuf/field_input.js'
import { append } from '../../../long_lists.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import type { Graph, Node } from '../document/types.js'
import { callOf, keyOf, withInner } from '../edit/function_edits.js'
import { definedNames } from '../edit/graph_passes.js'
import { type Renaming, renameInside, renameText, renameValues } from '../edit/rename_values.js'

/** Which names `addPrefix` changes; default: all. */
export interface PrefixOptions {
  /** Names of nodes, in subgraphs too. */
  readonly nodes?: boolean
  /** Values that nodes compute and that are no outputs of the graph; in subgraphs all values. */
  readonly values?: boolean
  readonly inputs?: boolean
  readonly outputs?: boolean
  readonly initializers?: boolean
  /** Functions of the model. */
  readonly functions?: boolean
}

const OPTIONS = ['nodes', 'values', 'inputs', 'outputs', 'initializers', 'functions'] as const

/**
 * Puts a text before names: of values and nodes, also in subgraphs, and of functions, wherever they are defined and used.
 * Empty names stay empty. Names of attributes and of values inside functions stay.
 *
 * @param options - which names change; default: all
 * @throws TileworkError ERR_ARGUMENT for unknown options, and where a value that keeps its name has one of the new names
 */
export function addPrefix(model: OnnxModel, prefix: string, options: PrefixOptions = {}): void {
  checkModel(model, 'addPrefix')
  checkText('The prefix', prefix)
  const chosen = checkPrefixOptions(options)
  const { graph } = model
  const renamed = renamedNames(graph, chosen)
  const prefixed: Renaming = (name) => (name === '' ? '' : prefix + name)
  const inner: Renaming = chosen.values ? prefixed : (name) => name
  if (prefix === '') return
  refuseTaken(graph, renamed, prefix, chosen.values)
  const rename: Renaming = (name) => (renamed.has(name) ? prefixed(name) : name)
  renameValues(graph, rename, inner)
  if (chosen.nodes) for (const { message } of graph.allNodes()) renameText(message, 'name', prefixed)
  renameTraining(model, rename)
  if (chosen.functions) renameFunctions(model, prefix)
}

function checkPrefixOptions(options: PrefixOptions): Required<PrefixOptions> {
  checkOptions(options, 'addPrefix', OPTIONS)
  const given = readInput('The options of addPrefix', () => ({ ...options }))
  for (const name of OPTIONS) {
    const value = given[name]
    if (value !== undefined && typeof value !== 'boolean') {
      refuseOption('addPrefix', name, valueText(value), 'true or false')
    }
  }
  const { nodes = true, values = true, inputs = true, outputs = true, initializers = true } = given
  return { nodes, values, inputs, outputs, initializers, functions: given.functions ?? true }
}

function renamedNames(graph: Graph, chosen: Required<PrefixOptions>): ReadonlySet<string> {
  const { inputNames, outputNames, initializerNames } = graph
  const computed = graph.nodes.flatMap(({ outputs }) => outputs.filter((name) => !outputNames.has(name)))
  // Quantizers leave types of values that are gone; with prefixes they must not meet those of another model.
  const isEnd = (name: string): boolean =>
    inputNames.has(name) || outputNames.has(name) || graph.hasInitializer(name)
  const declared = graph.message.messages('value_info').map((each) => each.text('name'))
  const renamed = new Set([
    ...(chosen.values ? [...computed, ...declared.filter((name) => !isEnd(name))] : []),
    ...(chosen.inputs ? inputNames : []),
    ...(chosen.outputs ? outputNames : []),
    ...(chosen.initializers ? initializerNames : []),
  ])
  renamed.delete('')
  return renamed
}

/** Refuses a new name that a value has which keeps its name. */
function refuseTaken(graph: Graph, renamed: ReadonlySet<string>, prefix: string, all: boolean): void {
  const kept = new Set([...definedNames(graph), ...graph.outerNames()].filter((name) => !renamed.has(name)))
  if (!all) for (const inside of graph.subgraphs()) for (const name of definedNames(inside)) kept.add(name)
  const taken = [...renamed].find((name) => kept.has(prefix + name))
  if (taken === undefined) return
  const text = `The prefix ${valueText(prefix)} makes ${valueText(taken)} the name of another value, ${valueText(prefix + taken)}.`
  throw new TileworkError('ERR_ARGUMENT', text)
}

/** Training graphs use values of the main graph, and bindings name its initializers. */
function renameTraining(model: OnnxModel, rename: Renaming): void {
  for (const { initialization, algorithm } of model.trainingInfo)
    for (const graph of [initialization, algorithm]) if (graph) renameInside(graph, rename, (name) => name)
  for (const training of model.message.messages('training_info'))
    for (const list of ['initialization_binding', 'update_binding'])
      for (const binding of training.messages(list)) renameText(binding, 'key', rename)
}

function renameFunctions(model: OnnxModel, prefix: string): void {
  const { functions } = model
  if (functions.length === 0) return
  const keys = new Set(functions.map(({ domain, name, overload }) => keyOf(domain, name, overload)))
  const callers: Node[] = [...model.graphs()].flatMap(({ nodes }) => nodes)
  for (const { nodes } of functions) append(callers, withInner(nodes))
  for (const node of callers.filter((each) => keys.has(callOf(each)))) node.opType = prefix + node.opType
  for (const { message } of functions) renameText(message, 'name', (name) => prefix + name)
}
