/** A tmfile's model as names and texts, for the comparison of models. */
import type {
  GraphDescription,
  ModelDescription,
  NodeDescription,
} from '../../../formats/model_description.js'
import { type DumpedNode, type DumpedTensor, dumpTmfile } from './dump.js'
import type { TmfileModel } from './model.js'

export function describeTmfile(model: TmfileModel): ModelDescription {
  const { version, originalFormat, subFormat, subgraph, nodes, tensors, inputs, outputs, devices } =
    dumpTmfile(model)
  const metadata = new Map([
    ['version', version.join('.')],
    ['original format', String(originalFormat)],
    ['sub format', String(subFormat)],
    ['graph name', subgraph.name ?? ''],
    ['graph layout', String(model.graph.graphLayout)],
    ['model layout', String(model.graph.modelLayout)],
    ['devices', devices === null ? '' : devices.map(({ name }) => name ?? '').join(', ')],
  ])
  const nameOf = (index: number): string => tensors[index]!.name ?? `tensor ${index}`
  const typesOf = (indices: readonly number[]): ReadonlyMap<string, string> =>
    new Map(indices.map((index) => [nameOf(index), typeText(tensors[index]!)]))
  const outputsOf = (indices: readonly number[]): number[] =>
    indices.flatMap((node) => [...nodes[node]!.outputs])
  const ends = new Set([...outputsOf(inputs), ...outputsOf(outputs)])
  const others = tensors.flatMap(({ role }, index) => (role === 'constant' || ends.has(index) ? [] : [index]))
  const graph: GraphDescription = {
    path: '',
    nodes: nodes.map((node) => describeNode(node, nameOf)),
    inputs: typesOf(outputsOf(inputs)),
    outputs: typesOf(outputsOf(outputs)),
    values: typesOf(others),
  }
  return { metadata, graphs: [graph] }
}

function typeText({ dtype, shape, layout }: DumpedTensor): string {
  return `${dtype} [${shape?.join(', ') ?? '?'}] ${layout}`
}

function describeNode(node: DumpedNode, nameOf: (index: number) => string): NodeDescription {
  const { name, operator, inputs, outputs, params, meanings, opaqueParams, attributes } = node
  const texts = new Map<string, string>()
  for (const [field, value] of Object.entries(params)) {
    const meaning = meanings[field]
    texts.set(field, meaning === undefined ? JSON.stringify(value) : `${JSON.stringify(value)} (${meaning})`)
  }
  if (opaqueParams !== null) texts.set('unknown parameters', opaqueParams)
  texts.set('operator version', String(node.operatorVersion))
  texts.set('dynamic shape', String(node.dynamicShape))
  for (const { name: key, type, value } of attributes) texts.set(key, `${value} (type ${type})`)
  return {
    name: name ?? '',
    operator,
    inputs: inputs.map(nameOf),
    outputs: outputs.map(nameOf),
    attributes: texts,
  }
}
