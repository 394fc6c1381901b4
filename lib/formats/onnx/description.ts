/** An ONNX model as names and texts, for the comparison of models. */
import { valueText } from '../../value_text.js'
import type {
  AttributeDescription,
  GraphDescription,
  ModelDescription,
  NodeDescription,
} from '../model_description.js'
import type { OnnxModel } from './model/model.js'
import type { Attribute, Graph, Node, ValueInfo, ValueType } from './model/types.js'
import { valueTypeText } from './model/value_type.js'

/** Longest text of a list of numbers; a longer one says nothing to a reader. */
const MAX_LIST_TEXT = 2000

const OWN_DOMAIN = 'ai.onnx'

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
  const graphs = [...graphsOf(model.graph, '')]
  put('graph name', model.graph.name)
  for (const { domain, name, overload, nodes, inputs, outputs } of model.functions) {
    const path = `function ${domain}::${name}${overload === '' ? '' : `:${overload}`}`
    const namesOnly = (names: readonly string[]) => new Map(names.map((each) => [each, '']))
    graphs.push({
      path,
      nodes: nodes.map(describeNode),
      inputs: namesOnly(inputs),
      outputs: namesOnly(outputs),
      values: new Map(),
    })
  }
  return { metadata, graphs }
}

function* graphsOf(graph: Graph, path: string): Generator<GraphDescription> {
  yield {
    path,
    nodes: graph.nodes.map(describeNode),
    inputs: typesOf(graph.inputs),
    outputs: typesOf(graph.outputs),
    values: typesOf(graph.valueInfo),
  }
  for (const [at, node] of graph.nodes.entries()) {
    for (const { name, graphs } of node.attributes) {
      for (const [number, inner] of graphs.entries()) {
        const which = graphs.length > 1 ? `[${number}]` : ''
        yield* graphsOf(
          inner,
          `${path}${path === '' ? '' : '/'}${node.name || `${node.opType} ${at}`}.${name}${which}`,
        )
      }
    }
  }
}

function typesOf(values: readonly ValueInfo[]): ReadonlyMap<string, string> {
  return new Map(values.map(({ name, type }) => [name, valueTypeText(type)]))
}

function describeNode(node: Node): NodeDescription {
  const { name, domain, opType, inputs, outputs } = node
  return {
    name,
    operator: domain === '' ? opType : `${domain}::${opType}`,
    inputs,
    outputs,
    attributes: new Map(node.attributes.map((each) => [each.name, describeAttribute(each)])),
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
