/**
 * Small models from texts: `a = Transpose<perm=[1,0]>(x); y, z = Split<axis=1>(a, k)`. Attributes are integers, numbers with a point,
 * words, and lists of integers; inputs are `float32 N ? 4`: extents with a name, unknown ones and numbers.
 */
import type { Dtype } from '../../../lib/dtype/dtypes.js'
import type { Tensor } from '../../../lib/index.js'
import type { Graph, OnnxModel as Model, NewAttribute, NewNode, ValueType } from '../../../lib/onnx.js'
import { OnnxModel } from '../../../lib/onnx.js'

export interface ModelText {
  readonly inputs: Readonly<Record<string, string>>
  readonly weights?: Readonly<Record<string, Tensor>>
  readonly nodes: string
  /** Names of the outputs, separated by spaces; default `y`. */
  readonly outputs?: string
  readonly opset?: number
  /** Graphs of attributes by name, as in `If<then_branch=@left>(c)`. */
  readonly graphs?: Readonly<Record<string, Graph>>
}

export function modelOf({
  inputs,
  weights = {},
  nodes,
  outputs = 'y',
  opset = 17,
  graphs = {},
}: ModelText): Model {
  const model = OnnxModel.create({ opset })
  for (const [name, text] of Object.entries(inputs)) model.graph.addInput(name, typeOf(text))
  for (const [name, tensor] of Object.entries(weights)) model.graph.setInitializer(name, tensor)
  for (const node of nodesOf(nodes, graphs)) model.graph.addNode(node)
  for (const name of outputs.split(' ')) model.graph.addOutput(name, { kind: 'none' })
  return model
}

export function typeOf(text: string): ValueType {
  const [dtype, ...dims] = text.split(' ')
  const shape = dims.map((dim) => (dim === '?' ? null : /^\d+$/.test(dim) ? Number(dim) : dim))
  return { kind: 'tensor', dtype: dtype as Dtype, shape }
}

const NODE = /^\s*([\w, ]+?) = (\w+)(?:<(.*)>)?\((.*)\)\s*$/

export function nodesOf(text: string, graphs: Readonly<Record<string, Graph>> = {}): NewNode[] {
  return text
    .split(';')
    .filter((each) => each.trim() !== '')
    .map((each) => {
      const [, outputs = '', opType = '', attributes = '', inputs = ''] = NODE.exec(each) ?? []
      if (opType === '') throw new Error(`"${each}" is no node.`)
      return {
        opType,
        inputs: inputs.trim() === '' ? [] : inputs.split(',').map((name) => name.trim()),
        outputs: outputs.split(',').map((name) => name.trim()),
        attributes: attributesOf(attributes, graphs),
      }
    })
}

function attributesOf(text: string, graphs: Readonly<Record<string, Graph>>): Record<string, NewAttribute> {
  const found = [...text.matchAll(/(\w+)=(\[[^\]]*\]|[^,]+)/g)]
  return Object.fromEntries(found.map(([, name, value]) => [name!, attributeOf(value!.trim(), graphs)]))
}

function attributeOf(text: string, graphs: Readonly<Record<string, Graph>>): NewAttribute {
  if (text.startsWith('@')) return { type: 'GRAPH', value: graphs[text.slice(1)]! }
  if (text.startsWith('[')) {
    const value = text.slice(1, -1).split(',').filter(Boolean).map(Number)
    return { type: 'INTS', value }
  }
  if (/^-?\d+$/.test(text)) return { type: 'INT', value: Number(text) }
  return /^-?\d/.test(text) ? { type: 'FLOAT', value: Number(text) } : { type: 'STRING', value: text }
}

/** Nodes as `y = Relu(x)`, with attributes that are lists of integers or integers, and constants by their values. */
export function textsOf(graph: Graph): string[] {
  return graph.nodes.map((node) => {
    const attributes = node.attributes.flatMap(({ name, type, value }) =>
      type === 'INTS' ? [`${name}=[${value}]`] : type === 'INT' ? [`${name}=${value}`] : [],
    )
    const list = attributes.length > 0 ? `<${attributes}>` : ''
    return `${node.outputs.join(', ')} = ${node.opType}${list}(${node.inputs.join(', ')})`
  })
}
