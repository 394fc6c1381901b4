/** Nodes whose outputs are known: constants take their place, where the file does not grow. */
import type { DenseTensor } from '../../../tensor/tensor.js'
import { MAX_VALUE_ELEMENTS, QUANTIZATION } from '../../onnx/infer/infer.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'

/** Bytes that a constant may take for each node that goes. */
const BYTES_PER_NODE = 64

/** Longest constant that is made where its inputs do not go with it. */
const MAX_MADE_BYTES = 64 * 1024

/** Nodes before a folded one that are counted as gone with it. */
const MAX_COUNTED = 256

/** Operators whose outputs follow from shapes. */
const STARTS: ReadonlySet<string> = new Set(['Shape', 'Size', 'ConstantOfShape', 'Range', 'EyeLike'])

/** Bytes that constants may add to the file, counted over a whole run. */
export interface Growth {
  left: number
}

/** Nodes of which all outputs may be known: others are not asked, because the first question infers the whole model. */
class Candidates {
  readonly #nodes = new Set<RewriteNode>()

  has(node: RewriteNode): boolean {
    if (this.#nodes.has(node)) return true
    const is =
      node.domain === '' &&
      !QUANTIZATION.has(node.opType) &&
      (STARTS.has(node.opType) ||
        (node.inputs.length > 0 && node.inputs.every((value) => this.#isKnown(value))))
    if (is) this.#nodes.add(node)
    return is
  }

  #isKnown(value: RewriteValue | undefined): boolean {
    if (!value) return true
    if (value.producer) return value.producer.is('Constant') || this.#nodes.has(value.producer)
    return value.isInitializer && (value.constant?.sizeExact ?? 0n) <= MAX_VALUE_ELEMENTS
  }
}

/** Replaces a node by its values, as far as they follow from shapes and small constants. */
export function foldRule(growth: Growth): NodeRule {
  const candidates = new Candidates()
  return {
    name: 'fold-constants',
    operators: 'all',
    apply(node, maker) {
      if (node.opType === 'Constant' || !candidates.has(node)) return undefined
      const values = node.outputs.map((output) =>
        output && !output.isUnused ? output.elements?.toTensor() : undefined,
      )
      const used = node.outputs.filter((output) => output && !output.isUnused)
      const made = values.filter((value) => value !== undefined)
      if (made.length === 0 || made.length < used.length || !pays(node, made, growth)) return undefined
      return values.map((value) => value && maker.constant(value))
    },
  }
}

/** Whether constants take no more bytes than what goes, with an allowance for each node. */
export function pays(node: RewriteNode, made: readonly DenseTensor[], growth: Growth): boolean {
  const bytes = made.reduce((sum, { storage }) => sum + storage.byteLength, 0)
  const { nodes, freed } = freedBy(node)
  const allowed = freed + BYTES_PER_NODE * nodes
  if (bytes > MAX_MADE_BYTES && bytes > freed + growth.left) return false
  if (bytes <= allowed) return true
  if (bytes - allowed > growth.left) return false
  growth.left -= bytes - allowed
  return true
}

/** What goes when a node does: nodes that nothing else uses, and bytes of their constants. */
function freedBy(first: RewriteNode): { readonly nodes: number; readonly freed: number } {
  const gone = new Set([first])
  const waiting = [first]
  const constants = new Set<RewriteValue>()
  let freed = 0
  const isLeft = (value: RewriteValue): boolean =>
    value.isOutput || value.isPinned || [...value.users].some((user) => !gone.has(user))
  for (let node = waiting.pop(); node && gone.size < MAX_COUNTED; node = waiting.pop()) {
    for (const value of node.inputs) {
      // A value with many users is not looked through: one of them stays.
      if (!value || value.users.size > MAX_COUNTED || isLeft(value)) continue
      const { producer } = value
      if (!producer || producer.is('Constant')) {
        if (constants.has(value)) continue
        constants.add(value)
        freed += value.weight?.storage.byteLength ?? 0
      } else if (!gone.has(producer) && producer.outputs.every((output) => !output || !isLeft(output))) {
        gone.add(producer)
        waiting.push(producer)
      }
    }
  }
  return { nodes: gone.size, freed }
}
