/**
 * Common subexpression elimination: of nodes with the same operator, inputs and attributes one is kept, and its outputs serve
 * all. Nodes whose results may differ from each other stay: random ones, those with subgraphs, calls of functions, and operators
 * that are not known.
 */
import type { Tensor } from '../../../tensor/tensor.js'
import { hasSubgraphs } from '../document/node_names.js'
import { orderedNodes } from '../document/node_order.js'
import type { Attribute, Graph, Node } from '../document/types.js'
import { signatureOf } from '../infer/slots.js'
import type { Body } from './functions.js'
import { Rewrite } from './rewrite.js'

/** Operators whose results differ from run to run, or from node to node. */
const RANDOM: ReadonlySet<string> = new Set([
  'BeamSearch',
  'Bernoulli',
  'BiasDropout',
  'BitmaskBiasDropout',
  'BitmaskDropout',
  'Dropout',
  'GreedySearch',
  'Multinomial',
  'RandomNormal',
  'RandomNormalLike',
  'RandomUniform',
  'RandomUniformLike',
  'Sampling',
  'WhisperBeamSearch',
])

/** Tensors in attributes that are compared. */
const MAX_COMPARED_BYTES = 1024

export async function mergeEqualNodes(model: Body): Promise<number> {
  const opsets = model.opsetImports
  const functions = new Set(model.functions.map(({ name }) => name))
  const mayMerge = (node: Node): boolean =>
    !RANDOM.has(node.opType) &&
    !functions.has(node.opType) &&
    !hasSubgraphs(node) &&
    signatureOf(node, opsets) !== undefined
  let count = 0
  for (const graph of [model.graph, ...model.graph.subgraphs()]) count += await mergeIn(graph, mayMerge)
  return count
}

/** Nodes with equal operator and inputs; by their attributes where there are several. */
interface Twins {
  readonly first: Node
  byAttributes?: Map<string | undefined, Node>
}

/** Nodes by what they have in common. */
class Nodes {
  /** By the first input. Most values have one user, which needs no key. */
  readonly #byInput = new Map<string, Node | Map<string, Twins>>()
  readonly #keyOf: (node: Node) => string

  constructor(keyOf: (node: Node) => string) {
    this.#keyOf = keyOf
  }

  /** @returns earlier nodes with the same key; undefined where there is none, and the node is noted */
  add(node: Node, input: string): Twins | undefined {
    const found = this.#byInput.get(input)
    if (!found) {
      this.#byInput.set(input, node)
      return undefined
    }
    const byKey = found instanceof Map ? found : new Map([[this.#keyOf(found), { first: found }]])
    this.#byInput.set(input, byKey)
    const key = this.#keyOf(node)
    const twins = byKey.get(key)
    if (!twins) byKey.set(key, { first: node })
    return twins
  }
}

async function mergeIn(graph: Graph, mayMerge: (node: Node) => boolean): Promise<number> {
  const rewrite = new Rewrite(graph)
  const seen = new Nodes((node) => keyOf(node, (name) => rewrite.resolve(name)))
  for (const node of orderedNodes(graph.nodes)) {
    const twins = seen.add(node, rewrite.resolve(node.inputs[0] ?? ''))
    if (!twins || !mayMerge(node)) continue
    const byAttributes = twins.byAttributes ?? new Map([[await attributesOf(twins.first), twins.first]])
    twins.byAttributes = byAttributes
    const attributes = await attributesOf(node)
    if (attributes === undefined) continue
    const twin = byAttributes.get(attributes)
    if (!twin) byAttributes.set(attributes, node)
    else if (isReplaced(node, twin, rewrite)) rewrite.remove(node)
  }
  return rewrite.apply()
}

/** Which outputs a node has is part of what it does: Dropout without a mask may be another kernel. */
function keyOf({ message, opType }: Node, resolve: (name: string) => string): string {
  const [inputs, outputs] = message.textLists('input', 'output')
  return [opType, ...inputs.map(resolve), '', ...outputs.map((name) => (name === '' ? '' : '*'))].join(
    '\u0000',
  )
}

/** Makes users of all outputs take those of the twin; all or none. */
function isReplaced(node: Node, twin: Node, rewrite: Rewrite): boolean {
  const pairs = node.outputs.flatMap((name, at) => (name === '' ? [] : [[name, twin.outputs[at]!] as const]))
  if (!pairs.every(([name, other]) => rewrite.mayReplace(name, other))) return false
  for (const [name, other] of pairs) rewrite.replace(name, other)
  return true
}

/** A text that is equal for equal attributes only; undefined where one is not compared. */
async function attributesOf(node: Node): Promise<string | undefined> {
  const texts: [string, string][] = [['', node.domain]]
  for (const attribute of node.attributes) {
    const value = await attributeText(attribute)
    if (value === undefined) return undefined
    texts.push([attribute.name, value])
  }
  return JSON.stringify(texts.sort(([one], [other]) => (one < other ? -1 : 1)))
}

async function attributeText({ type, value, tensors, refName }: Attribute): Promise<string | undefined> {
  if (refName !== '') return `${type} of ${refName}`
  if (/^(INT|FLOAT|STRING)S?$/.test(type)) return `${type} ${[value].flat().map(textOf)}`
  const [tensor] = tensors
  return type === 'TENSOR' && tensor ? bytesOf(tensor) : undefined
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return Object.is(value, -0) ? '-0' : String(value)
}

async function bytesOf(tensor: Tensor): Promise<string | undefined> {
  if (tensor.kind !== 'dense' || !tensor.hasData || tensor.storage.byteLength > MAX_COMPARED_BYTES)
    return undefined
  return `${tensor.dtype} [${tensor.shape}] ${Buffer.from(await tensor.bytes()).toString('hex')}`
}
