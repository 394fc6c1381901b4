/** Graphs of ONNX models and tmfiles, by column, and the nodes that findings of a check concern. */

import type { Finding } from '../../errors.js'
import { TileworkError } from '../../errors.js'
import type { GraphDescription, ModelDescription, NodeDescription } from '../../formats/model_description.js'
import type { GraphColumns, GraphEntry, NodeFacts, PlacedFinding } from '../protocol.js'
import { keyAttributes } from './key_attributes.js'
import type { Parameters } from './parameters.js'
import type { KnownFile, KnownFiles } from './viewed_files.js'

async function modelOf(known: KnownFile): Promise<ModelDescription> {
  const description = await known.description()
  if (description) return description
  throw new TileworkError('ERR_UNSUPPORTED', `${known.name} is a ${known.file.format} file; it has no graph.`)
}

export async function listGraphs(known: KnownFile): Promise<GraphEntry[]> {
  const { graphs } = await modelOf(known)
  return graphs.map(({ path, nodes }) => ({ path, nodes: nodes.length }))
}

async function graphOf(
  known: KnownFile,
  parameters: Parameters,
): Promise<{ readonly graph: GraphDescription; readonly number: number; readonly model: ModelDescription }> {
  const model = await modelOf(known)
  const number = parameters.whole('graph', 0, model.graphs.length - 1, 0)
  return { graph: model.graphs[number]!, number, model }
}

export async function graphColumns(files: KnownFiles, parameters: Parameters): Promise<GraphColumns> {
  const known = files.of(parameters)
  const { graph, number, model } = await graphOf(known, parameters)
  const values = new Values(known, graph)
  const numbered = (names: readonly string[]): number[] => names.map((name) => values.numberOf(name))
  const { nodes } = graph
  const columns = {
    path: graph.path,
    names: nodes.map(({ name }) => name),
    operators: nodes.map(({ operator }) => operator),
    inputs: nodes.map(({ inputs }) => numbered(inputs)),
    outputs: nodes.map(({ outputs }) => numbered(outputs)),
    graphInputs: numbered([...graph.inputs.keys()]),
    graphOutputs: numbered([...graph.outputs.keys()]),
    activations: nodes.map(activationOf),
    details: nodes.map(keyAttributes),
    subgraphs: subgraphsOf(number, model),
  }
  return { ...columns, ...values.columns() }
}

/** Numbers for the values of a graph. */
class Values {
  readonly #numbers = new Map<string, number>()
  readonly #known: KnownFile
  readonly #graph: GraphDescription

  constructor(known: KnownFile, graph: GraphDescription) {
    this.#known = known
    this.#graph = graph
  }

  /** -1 for an omitted value. */
  numberOf(name: string): number {
    if (name === '') return -1
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    this.#numbers.set(name, this.#numbers.size)
    return this.#numbers.size - 1
  }

  columns(): Pick<GraphColumns, 'values' | 'types' | 'tensors'> {
    const { inputs, outputs, values: declared } = this.#graph
    const values = [...this.#numbers.keys()]
    const places = new Map<string, number>()
    const types: string[] = []
    let at = 0
    for (const { name } of this.#known.file.tensors) places.set(name, at++)
    const tensors = values.map((name) => places.get(name) ?? -1)
    for (const [number, name] of values.entries()) {
      const type = inputs.get(name) ?? outputs.get(name) ?? declared.get(name)
      types.push(type ?? this.#tensorType(tensors[number]!))
    }
    return { values, types, tensors }
  }

  #tensorType(index: number): string {
    const tensor = index < 0 ? undefined : this.#known.file.tensors.at(index)
    return tensor ? `${tensor.dtype} [${tensor.shape.join(', ')}]` : ''
  }
}

/** Inferred types of an ONNX model's values, by name: the file need not declare them. */
export async function inferredTypes(
  files: KnownFiles,
  parameters: Parameters,
): Promise<Readonly<Record<string, string>>> {
  const known = files.of(parameters)
  return parameters.whole('graph', 0, Number.MAX_SAFE_INTEGER, 0) === 0 ? known.inferredTypes() : {}
}

/** The fused activation: a parameter of tmfile nodes, and an attribute of some ONNX Runtime operators. */
function activationOf({ attributes }: NodeDescription): string {
  const found = attributes.get('activation')
  if (typeof found !== 'string') return ''
  const meaning = /\((.*)\)$/.exec(found)?.[1] ?? found.replaceAll('"', '')
  return meaning === 'none' || meaning === '-1' ? '' : meaning
}

/** Pairs of a node and the number of a subgraph that belongs to it. */
function subgraphsOf(number: number, { graphs }: ModelDescription): [number, number][] {
  const found: [number, number][] = []
  for (const [index, { owner }] of graphs.entries())
    if (owner?.graph === number) found.push([owner.node, index])
  return found
}

export async function nodeFacts(files: KnownFiles, parameters: Parameters): Promise<NodeFacts> {
  const {
    graph: { nodes },
  } = await graphOf(files.of(parameters), parameters)
  const node = nodes[parameters.whole('node', 0, nodes.length - 1)]!
  const attributes = Array.from(node.attributes, ([name, value]): [string, string] => [
    name,
    typeof value === 'string'
      ? value
      : value.map(({ dtype, shape }) => `tensor ${dtype} [${shape.join(', ')}]`).join(', '),
  ])
  return { attributes }
}

/** Findings of a check, each with the node that its path names, if any. */
export async function placedFindings(known: KnownFile): Promise<PlacedFinding[]> {
  const findings = await known.findings()
  return findings.map((finding) => ({ ...finding, ...placeOf(finding) }))
}

/** Parses `graph.node[3]…` and `subgraphs[0].nodes[3]…`, nodes of the main graph. */
function placeOf({ path }: Finding): { node: number; graph: number } {
  const found = /^(?:graph|subgraphs\[0\])?\.?nodes?\[(\d+)\](?!.*node)/.exec(path)
  return found ? { node: Number(found[1]), graph: 0 } : { node: -1, graph: -1 }
}
