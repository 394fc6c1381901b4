/**
 * Which values of dynamically quantized models float16 cannot represent: sums of integer products, which exceed 65504 after a
 * few terms, the floats that they are cast to until their scales are multiplied in, and the scales themselves, whose products
 * are subnormal in float16. Nodes that take such floats stay float32.
 */
import type { ReadNode } from '../onnx/document/read_node.js'

/** Sums of integers; sums as floats; sums of which at least one scale is multiplied in; scales. */
type Kind = 'integers' | 'sum' | 'scaled' | 'scale'

const PRODUCTS: ReadonlySet<string> = new Set(['ConvInteger', 'MatMulInteger'])
const MICROSOFT_PRODUCTS: ReadonlySet<string> = new Set(['MatMulInteger16', 'MulInteger', 'ReduceSumInteger'])

/** Operators whose output has the scale of their inputs. */
const KEEP_SCALE: ReadonlySet<string> = new Set([
  ...['Add', 'Concat', 'Expand', 'Flatten', 'Gather', 'Identity', 'Max', 'Min', 'Neg', 'Pad', 'ReduceSum'],
  ...['Reshape', 'Slice', 'Split', 'Squeeze', 'Sub', 'Sum', 'Tile', 'Transpose', 'Unsqueeze', 'Where'],
])

const FACTORS: ReadonlySet<string> = new Set(['Div', 'Mul', 'Reciprocal'])

export class IntegerProducts {
  readonly #kinds = new Map<string, Kind>()
  readonly #isConstant: (name: string) => boolean
  readonly #outer: IntegerProducts | undefined

  /** @param outer - those of the enclosing graph */
  constructor(isConstant: (name: string) => boolean, outer?: IntegerProducts) {
    this.#isConstant = isConstant
    this.#outer = outer
  }

  #kindOf(name: string): Kind | undefined {
    return this.#kinds.get(name) ?? (this.#outer === undefined ? undefined : this.#outer.#kindOf(name))
  }

  /**
   * Visits the nodes of a graph in topological order.
   *
   * @returns true for a node that takes such floats, and for a Cast that makes them
   */
  visit(node: ReadNode): boolean {
    const { opType, inputs, outputs } = node
    const isStandard = node.domain === ''
    if ((isStandard ? PRODUCTS : MICROSOFT_PRODUCTS).has(opType)) this.#mark(outputs, 'integers')
    if (isStandard && opType === 'DynamicQuantizeLinear') this.#mark(outputs.slice(1, 2), 'scale')
    const kinds = new Set(inputs.map((name) => this.#kindOf(name)))
    const takesFloats = kinds.has('sum') || kinds.has('scale')
    if (!isStandard) return takesFloats
    if (kinds.has('integers')) {
      if (opType === 'Cast') this.#mark(outputs, 'sum')
      else if (KEEP_SCALE.has(opType)) this.#mark(outputs, 'integers')
      return opType === 'Cast'
    }
    if (FACTORS.has(opType)) return this.#multiply(node, kinds)
    if (takesFloats && KEEP_SCALE.has(opType)) this.#mark(outputs, kinds.has('sum') ? 'sum' : 'scale')
    return takesFloats
  }

  #multiply({ inputs, outputs }: ReadNode, kinds: ReadonlySet<Kind | undefined>): boolean {
    const isSum = kinds.has('sum') || (kinds.has('scaled') && inputs.some(this.#isConstant))
    if (isSum || kinds.has('scale')) this.#mark(outputs, isSum || kinds.has('scaled') ? 'scaled' : 'scale')
    return isSum || kinds.has('scale')
  }

  #mark(names: readonly string[], kind: Kind): void {
    for (const name of names) if (name !== '') this.#kinds.set(name, kind)
  }
}
