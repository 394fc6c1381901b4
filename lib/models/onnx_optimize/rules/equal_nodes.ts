/**
 * Common subexpression elimination: of nodes with the same operator, inputs and attributes one is kept, and its outputs serve
 * all. Nodes whose results may differ from each other stay: random ones, those with subgraphs, calls of functions, and operators
 * that are not known.
 */
import { TileworkError } from '../../../errors.js'
import type { Tensor } from '../../../tensor/tensor.js'
import type { Attribute } from '../../onnx/document/types.js'
import { signatureOf } from '../../onnx/infer/slots.js'
import type { Body } from '../rewrite/functions.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'

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

/** Operators of two operands that give the same bits in either order; a NaN counts as a NaN. */
const COMMUTATIVE: ReadonlySet<string> = new Set([
  ...['Add', 'And', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Equal', 'Max', 'Min', 'Mul', 'Or', 'Xor'],
])

/** Tensors in attributes that are compared. */
const MAX_COMPARED_BYTES = 1024

/** Users of a value that are compared one by one; above, nodes are found by a key. */
const MAX_SCANNED = 16

export function equalNodesRule({ functions, opsetImports }: Body): NodeRule {
  const called = new Set(functions.map(({ name }) => name))
  const table = new NodesByKey()
  return {
    name: 'equal-nodes',
    operators: 'all',
    apply(node, { revisit }) {
      if (node.inputs.length === 0 || RANDOM.has(node.opType) || called.has(node.opType)) return undefined
      if (node.subgraphs.length > 0) return undefined
      const twin = twinOf(node, table)
      if (!twin || signatureOf(node.source, opsetImports) === undefined) return undefined
      if (twin.position <= node.position) return twin.outputs
      // The first one stays.
      revisit(twin)
      return undefined
    },
  }
}

function twinOf(node: RewriteNode, table: NodesByKey): RewriteNode | undefined {
  const fewest = node.inputs.reduce<RewriteValue | undefined>(
    (least, value) => (value && (!least || value.users.size < least.users.size) ? value : least),
    undefined,
  )
  if (!fewest || fewest.users.size === 1) return undefined
  if (fewest.users.size > MAX_SCANNED) return table.twinOf(node)
  for (const user of fewest.users) if (user !== node && isTwin(user, node)) return user
  return undefined
}

/** Nodes by what they compute. */
class NodesByKey {
  readonly #nodes = new Map<string, RewriteNode>()
  readonly #numbers = new Map<RewriteValue, number>()

  twinOf(node: RewriteNode): RewriteNode | undefined {
    const attributes = attributesTextOf(node)
    if (attributes === undefined) return undefined
    const numbers = node.inputs.map((value) => this.#numberOf(value))
    if (isCommutative(node)) numbers.sort((one, other) => one - other)
    const key = [node.opType, ...numbers, attributes].join(' ')
    const found = this.#nodes.get(key)
    // The inputs of a node may have changed since.
    if (found && found !== node && !found.isRemoved && isTwin(found, node)) return found
    this.#nodes.set(key, node)
    return undefined
  }

  #numberOf(value: RewriteValue | undefined): number {
    if (!value) return -1
    const number = this.#numbers.get(value) ?? this.#numbers.size
    this.#numbers.set(value, number)
    return number
  }
}

/** Whether two nodes of one operator have the same operands, of a commutative one in any order. */
function hasSameOperands(one: RewriteNode, other: RewriteNode): boolean {
  const [left, right] = [one.inputs, other.inputs]
  if (left.length !== right.length) return false
  if (left.every((value, at) => value === right[at])) return true
  return isCommutative(one) && left[0] === right[1] && left[1] === right[0]
}

function isCommutative(node: RewriteNode): boolean {
  return node.inputs.length === 2 && node.is(COMMUTATIVE)
}

/** Which outputs a node has is part of what it does: Dropout without a mask may be another kernel. */
function isTwin(one: RewriteNode, other: RewriteNode): boolean {
  if (one.opType !== other.opType || one.domain !== other.domain || one.graph !== other.graph) return false
  if (one.outputs.length !== other.outputs.length || !hasSameOperands(one, other)) return false
  if (one.outputs.some((value, at) => (value === undefined) !== (other.outputs[at] === undefined)))
    return false
  const attributes = attributesTextOf(one)
  return attributes !== undefined && attributes === attributesTextOf(other)
}

const TEXTS = new WeakMap<RewriteNode, string | undefined>()

/** A text that is equal for equal attributes only; undefined where one is not compared. */
function attributesTextOf(node: RewriteNode): string | undefined {
  if (!TEXTS.has(node)) TEXTS.set(node, attributesText(node))
  return TEXTS.get(node)
}

function attributesText({ source }: RewriteNode): string | undefined {
  const texts: [string, string][] = []
  for (const attribute of source.attributes) {
    const value = attributeText(attribute)
    if (value === undefined) return undefined
    texts.push([attribute.name, value])
  }
  return JSON.stringify(texts.sort(([one], [other]) => (one < other ? -1 : 1)))
}

function attributeText({ type, value, tensors, refName }: Attribute): string | undefined {
  if (refName !== '') return `${type} of ${refName}`
  if (/^(INT|FLOAT|STRING)S?$/.test(type)) return `${type} ${[value].flat().map(textOf)}`
  const [tensor] = tensors
  return type === 'TENSOR' && tensor ? bytesOf(tensor) : undefined
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return Object.is(value, -0) ? '-0' : String(value)
}

function bytesOf(tensor: Tensor): string | undefined {
  if (tensor.kind !== 'dense' || !tensor.hasData || tensor.storage.byteLength > MAX_COMPARED_BYTES)
    return undefined
  try {
    return `${tensor.dtype} [${tensor.shape}] ${Buffer.from(tensor.bytesSync()).toString('hex')}`
  } catch (error) {
    if (error instanceof TileworkError && error.code === 'ERR_ASYNC_ONLY') return undefined
    throw error
  }
}
