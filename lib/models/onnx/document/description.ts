/** An ONNX model as names and texts, for the comparison of models. */

import type {
  AttributeDescription,
  GraphDescription,
  ModelDescription,
  NodeDescription,
} from '../../../formats/model_description.js'
import { valueText } from '../../../value_text.js'
import type { OnnxModel } from './model.js'
import type { Attribute, Graph, Node, ValueInfo, ValueType } from './types.js'
import { valueTypeText } from './value_type.js'

/** Longest text of a list of numbers; a longer one says nothing to a reader. */
const MAX_LIST_TEXT = 2000

/**
 * Longest name in a path, in characters. Exporters write up to about 150; without a limit, thousands of subgraphs that share a node
 * would each repeat a name of a megabyte.
 */
const MAX_LABEL = 200

/** Longest path that lists every node around a graph: two levels of the longest names, many of usual ones. */
const MAX_PATH = 500

const OWN_DOMAIN = 'ai.onnx'

type Owner = GraphDescription['owner']

/** @throws TileworkError ERR_GRAPH, ERR_HEADER, ERR_TRUNCATED for broken messages */
export function describeOnnx(model: OnnxModel): ModelDescription {
  const metadata = new Map<string, string>()
  const put = (name: string, value: string | number | bigint): void => {
    if (value !== '') metadata.set(name, String(value))
  }
  put('ir version', model.irVersion)
  put('producer', model.producerName)
  put('producer version', model.producerVersion)
  put('domain', model.domain)
  put('model version', model.modelVersion)
  put('doc', model.docString)
  for (const [domain, version] of model.opsetImports) put(`opset ${domain || OWN_DOMAIN}`, version)
  for (const [key, value] of model.metadata) put(`metadata ${key}`, value)
  const graphs: GraphDescription[] = []
  addGraph(graphs, model.graph, '')
  put('graph name', model.graph.name)
  for (const [at, { domain, name, overload, nodes, inputs, outputs }] of model.functions.entries()) {
    const path = `function ${shortened(`${domain}::${name}${overload === '' ? '' : `:${overload}`}`, `function ${at}`)}`
    const namesOnly = (names: readonly string[]) => new Map(names.map((each) => [each, '']))
    graphs.push({
      path,
      nodes: nodes.map((node) => describeNode(node, node.attributes)),
      inputs: namesOnly(inputs),
      outputs: namesOnly(outputs),
      values: new Map(),
    })
  }
  return { metadata, graphs }
}

/** Adds the graph, then those of its nodes, each followed by its own. Messages nest no deeper than `limits.depth`. */
function addGraph(graphs: GraphDescription[], graph: Graph, path: string, owner?: Owner): void {
  const number = graphs.length
  const nodes: NodeDescription[] = []
  const inner: { readonly graph: Graph; readonly label: string; readonly node: number }[] = []
  for (const [at, node] of graph.nodes.entries()) {
    const { attributes } = node
    const described = describeNode(node, attributes)
    nodes.push(described)
    for (const [name, subgraphs] of subgraphsOf(attributes)) {
      const label = `${shortened(described.name || `${node.opType} ${at}`, `node ${at}`)}.${name}`
      for (const [which, each] of subgraphs.entries())
        inner.push({ graph: each, label: subgraphs.length > 1 ? `${label}[${which}]` : label, node: at })
    }
  }
  graphs.push({
    path,
    ...(owner && { owner }),
    nodes,
    inputs: typesOf(graph.inputs),
    outputs: typesOf(graph.outputs),
    values: typesOf(graph.valueInfo),
  })
  for (const { graph: each, label, node } of inner)
    addGraph(graphs, each, pathOf(path, label, graphs.length), { graph: number, node })
}

/** The graphs of the attributes that have some, with their shortened names. */
function* subgraphsOf(attributes: readonly Attribute[]): Generator<[name: string, readonly Graph[]]> {
  for (const [at, attribute] of attributes.entries()) {
    const { graphs } = attribute
    if (graphs.length > 0) yield [shortened(attribute.name, `attribute ${at}`), graphs]
  }
}

/** @param number - that of the graph, which stands for the start of a path that would be too long */
function pathOf(outer: string, label: string, number: number): string {
  if (outer === '') return label
  const path = `${outer}/${label}`
  return path.length <= MAX_PATH ? path : `graph ${number}: …/${label}`
}

/** @param instead - what tells the name from others that start in the same way */
function shortened(name: string, instead: string): string {
  return name.length <= MAX_LABEL ? name : `${name.slice(0, MAX_LABEL)}… (${instead})`
}

/** A file may have a subgraph in every three bytes; three empty maps would take several hundred. */
const NO_TYPES: ReadonlyMap<string, string> = new Map()

function typesOf(values: readonly ValueInfo[]): ReadonlyMap<string, string> {
  return values.length === 0 ? NO_TYPES : new Map(values.map(({ name, type }) => [name, valueTypeText(type)]))
}

function describeNode(node: Node, attributes: readonly Attribute[]): NodeDescription {
  const { name, domain, opType, inputs, outputs } = node
  return {
    name,
    operator: domain === '' ? opType : `${domain}::${opType}`,
    inputs,
    outputs,
    attributes: new Map(attributes.map((each) => [each.name, describeAttribute(each)])),
  }
}

function describeAttribute(attribute: Attribute): AttributeDescription {
  const { type, refName } = attribute
  if (refName !== '') return `the attribute ${refName} of the function`
  if (type.startsWith('GRAPH')) return type.toLowerCase()
  if (type === 'TYPE_PROTO') return valueTypeText(attribute.value as ValueType)
  if (type === 'TYPE_PROTOS') return (attribute.value as readonly ValueType[]).map(valueTypeText).join(', ')
  if (type.includes('TENSOR')) return attribute.tensors
  if (type === 'STRING') return textOf(attribute.value as Uint8Array)
  const text = Array.isArray(attribute.value)
    ? `[${attribute.value.map((each) => (each instanceof Uint8Array ? textOf(each) : String(each))).join(', ')}]`
    : String(attribute.value)
  return text.length <= MAX_LIST_TEXT ? text : `${text.slice(0, MAX_LIST_TEXT)}…`
}

/** Bytes that are not UTF-8 keep a text that tells them apart. */
function textOf(bytes: Uint8Array): string {
  try {
    return valueText(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    if (cause instanceof TypeError) return Buffer.from(bytes).toString('hex')
    throw cause
  }
}
