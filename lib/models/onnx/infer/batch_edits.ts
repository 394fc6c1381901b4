/** Makes the edits that nodes need to follow a batch: other lists of integers, and constants that are expanded along an axis. */
import { DTYPES } from '../../../dtype/dtypes.js'
import { cast } from '../../../tensor/cast.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import type { FreshNames } from '../document/fresh_names.js'
import { isStandard, type Scope } from '../document/scope.js'
import type { Graph, Node } from '../document/types.js'
import type { BatchEdit, EntryEdit, WidenEdit } from './batch_rules.js'
import type { BatchSite } from './batch_view.js'

/** Where a symbolic batch comes from: the first dimension of an input of the main graph. */
export interface BatchSource {
  readonly graph: Graph
  readonly input: string
  /** The number that stands for a symbolic batch; undefined for a batch that is a number. */
  readonly standsFor: number | undefined
}

/** Versions that allow integers in Constant, have Expand, and take integers in Mul, Tile, Concat and the type of Cast. */
const INTEGER_CONSTANTS = 9
const EXPANDS = 8
const INTEGERS = 6

export class BatchEditor {
  readonly #source: BatchSource
  readonly #names: FreshNames
  /** Version of the operator set of ONNX. */
  readonly #opset: number

  constructor(source: BatchSource, names: FreshNames, opset: number) {
    this.#source = source
    this.#names = names
    this.#opset = opset
  }

  /** @returns false where an edit is not possible; the node may be changed in part then */
  apply(site: BatchSite, edits: readonly BatchEdit[]): boolean {
    return edits.every((edit) => (edit.kind === 'list' ? this.#setList(site, edit) : this.#widen(site, edit)))
  }

  #setList({ scope, node }: BatchSite, { input, attribute, values, batchAt }: EntryEdit): boolean {
    if (attribute !== undefined) {
      node.setAttribute(attribute, { type: 'INTS', value: values })
      return true
    }
    const { standsFor } = this.#source
    if (batchAt === undefined || standsFor === undefined) {
      return this.#setStored(scope, node, input, values)
    }
    return this.#setComputed(scope, node, input, values, batchAt, standsFor)
  }

  /** The list with a multiple of the first dimension of an input in it, which is known when the model runs. */
  #setComputed(
    scope: Scope,
    node: Node,
    input: number,
    values: readonly number[],
    at: number,
    standsFor: number,
  ): boolean {
    const { graph, input: given } = this.#source
    const multiple = values[at]! / standsFor
    if (scope.ownerOf(given)?.graph !== graph || !Number.isInteger(multiple)) return false
    if (this.#opset < INTEGERS) return false
    const take = (part: string): string => this.#names.take(`${given}_${part}`)
    const [shape, batch] = [take('shape'), take('batch')]
    const before = (opType: string, inputs: readonly string[], output: string, attributes = {}): string => {
      scope.graph.addNode({ opType, inputs: [...inputs], outputs: [output], attributes }, indexOf(node))
      return output
    }
    before('Shape', [given], shape)
    const zero = this.#constant(scope.graph, node, 'zero', [0])
    before('Gather', [shape, zero], batch)
    let entry = batch
    if (multiple !== 1) {
      const factor = this.#constant(scope.graph, node, 'factor', [multiple])
      entry = before('Mul', [batch, factor], take('multiple'))
    }
    const parts = [values.slice(0, at), undefined, values.slice(at + 1)].flatMap((part) => {
      if (part === undefined) return [entry]
      return part.length === 0 ? [] : [this.#constant(scope.graph, node, 'dims', part)]
    })
    const axis = { axis: { type: 'INT', value: 0 } }
    const list = parts.length === 1 ? entry : before('Concat', parts, take('sizes'), axis)
    setInput(node, input, list)
    return true
  }

  /**
   * Gives a value that lacks the batch more rows: where it is made if it has equal rows, or by an Expand before the node. Tile does the
   * same, as the dimension is 1.
   */
  #widen(site: BatchSite, edit: WidenEdit): boolean {
    if (this.#refill(site, edit)) return true
    const { scope, node, view } = site
    const { input, axis, from, to } = edit
    const name = node.inputs[input]!
    const dims = view.dimsAfter(scope, name)
    if (from !== 1 || !dims || this.#opset < INTEGERS) return false
    const expanded = this.#names.take(`${name}_batch`)
    const rows = dims.map((_, at) => (at === axis ? to : 1))
    const shape = this.#constant(scope.graph, node, `${name}_batch_shape`, rows)
    const opType = this.#opset < EXPANDS ? 'Tile' : 'Expand'
    const added = scope.graph.addNode({ opType, inputs: [name, shape], outputs: [expanded] }, indexOf(node))
    setInput(node, input, expanded)
    const { standsFor } = this.#source
    return standsFor === undefined || this.#setComputed(scope, added, 1, rows, axis, standsFor)
  }

  /** A value of equal rows is made with the new number of rows. */
  #refill({ scope, node, view }: BatchSite, { input, axis, from, to }: WidenEdit): boolean {
    const name = node.inputs[input]!
    const owner = scope.ownerOf(name)
    const producer = owner?.graph.producerOf(name)
    if (!owner || !producer || owner.graph.usesOf(name).length > 1) return false
    const isFill = isStandard(producer, 'ConstantOfShape')
    if (!isFill && !isStandard(producer, 'Expand') && !isStandard(producer, 'Tile')) return false
    const at = isFill ? 0 : 1
    const list = view.fixedList(owner, producer.inputs[at] ?? '')
    const data = isFill ? [] : view.dimsAfter(owner, producer.inputs[0])
    if (list?.[axis] !== from || !data) return false
    // The data of Expand may have fewer dimensions than the result.
    if ((data[axis - list.length + data.length] ?? 1) !== 1) return false
    const values = list.with(axis, to)
    const { standsFor } = this.#source
    if (standsFor !== undefined) return this.#setComputed(owner, producer, at, values, axis, standsFor)
    return this.#setStored(owner, producer, at, values)
  }

  /** A list that replaces an input of a node; an initializer that nothing else uses is changed. */
  #setStored(scope: Scope, node: Node, input: number, values: readonly number[]): boolean {
    const name = node.inputs[input] ?? ''
    const { graph } = scope
    const old = graph.hasInitializer(name) ? graph.initializer(name) : undefined
    const isSole = graph.usesOf(name).length === 1 && !graph.outputNames.has(name)
    if (old?.kind === 'dense' && isSole && DTYPES[old.dtype].kind === 'int') {
      const list = listOf(values)
      graph.setInitializer(name, old.dtype === 'int64' ? list : (cast(list, old.dtype) as DenseTensor))
      return true
    }
    if (this.#opset < INTEGERS) return false
    setInput(node, input, this.#constant(graph, node, name, values))
    return true
  }

  /** A new Constant before a node. */
  #constant(graph: Graph, node: Node, base: string, values: readonly number[]): string {
    const name = this.#names.take(base)
    const add = (output: string, value: DenseTensor): void => {
      const attributes = { value: { type: 'TENSOR', value } } as const
      graph.addNode({ opType: 'Constant', outputs: [output], attributes }, indexOf(node))
    }
    if (this.#opset >= INTEGER_CONSTANTS) {
      add(name, listOf(values))
      return name
    }
    // Doubles hold all numbers that a file may have for a dimension.
    const doubles = this.#names.take(`${name}_double`)
    add(doubles, tensorOf(Float64Array.from(values), { shape: [values.length] }))
    const to = { type: 'INT', value: DTYPES.int64.onnx! } as const
    graph.addNode({ opType: 'Cast', inputs: [doubles], outputs: [name], attributes: { to } }, indexOf(node))
    return name
  }
}

function listOf(values: readonly number[]): DenseTensor {
  return tensorOf(BigInt64Array.from(values, BigInt), { shape: [values.length] })
}

function indexOf(node: Node): number {
  return node.graph!.message.indexOf(node.message)
}

/** Removes what made the old input where nothing else uses it. */
function setInput(node: Node, input: number, name: string): void {
  const old = node.inputs[input] ?? ''
  if (old === name) return
  node.inputs = node.inputs.map((each, at) => (at === input ? name : each))
  const graph = node.graph!
  const producer = graph.producerOf(old)
  const isUnused = graph.usesOf(old).length === 0 && !graph.outputNames.has(old)
  if (producer && isUnused && isStandard(producer, 'Constant')) graph.removeNode(producer)
}
