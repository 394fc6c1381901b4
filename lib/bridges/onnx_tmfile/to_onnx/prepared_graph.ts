/**
 * The nodes of a tmfile as the runtime sees them once it has loaded and prepared the graph: shapes and parameters in NCHW, and every
 * shape inferred from the shapes of the inputs.
 */
import { TileworkError } from '../../../errors.js'
import {
  inferShapes,
  nchwParams,
  type TmfileGraph,
  type TmfileModel,
  type TmfileNode,
  type TmfileTensor,
  toNchw,
} from '../../../models/tmfile/index.js'
import { valueText } from '../../../value_text.js'
import type { Settings } from './options.js'

const NHWC = 1

/** Copies of the tensors and nodes of a model; the model does not change. */
export class PreparedGraph {
  readonly isNhwc: boolean
  readonly nodes: readonly TmfileNode[]
  readonly inputs: readonly TmfileTensor[]
  readonly #copies = new Map<TmfileTensor, TmfileTensor>()
  readonly #nodes = new Map<TmfileNode, TmfileNode>()
  /** First extents of the inputs in the file, which targets of Reshape repeat. */
  readonly #oldBatches: ReadonlySet<number>
  /** First extent of the inputs; undefined for those of the file. */
  readonly #batch: number | undefined

  constructor({ graph }: TmfileModel, settings: Settings, batch: number | undefined) {
    this.isNhwc = isNhwc(graph)
    this.#batch = batch
    for (const [index, tensor] of graph.tensors.entries()) this.#copies.set(tensor, this.#copy(tensor, index))
    this.nodes = graph.nodes.map((node, index) => this.#copyNode(node, index))
    const inputs = graph.inputs.flatMap(({ outputs }) => outputs)
    this.inputs = inputs.map((tensor) => this.#copies.get(tensor)!)
    this.#oldBatches = new Set(inputs.map(({ shape }) => Math.max(1, shape?.[0] ?? 1)))
    const shapes = inputShapes(inputs, settings, batch)
    for (const [index, shape] of shapes.entries()) {
      this.inputs[index]!.shape = [...(this.isNhwc ? toNchw(shape) : shape)]
    }
  }

  copyOf(node: TmfileNode): TmfileNode {
    return this.#nodes.get(node)!
  }

  /** Brings the parameters of a node to NCHW, and infers the shapes of its outputs. False where the rule does not hold. */
  prepare(node: TmfileNode): boolean {
    const rank = node.inputs[0]?.shape?.length ?? 0
    const params = this.isNhwc ? nchwParams(node, rank) : node.params
    if (!params) return false
    Object.assign(node, { params })
    this.#followBatch(node)
    const shapes = inferShapes(node, false)
    for (const [index, tensor] of node.outputs.entries()) tensor.shape = shapes ? [...shapes[index]!] : null
    return shapes !== undefined
  }

  /** A target that begins with the batch size of the file gets the new one. */
  #followBatch(node: TmfileNode): void {
    if (this.#batch === undefined || node.operator !== 'Reshape') return
    const target = node.params.re_shape
    if (!target || !this.#oldBatches.has(target[0]!)) return
    node.params = { ...node.params, re_shape: [this.#batch, ...target.slice(1)] }
  }

  #copy(tensor: TmfileTensor, index: number): TmfileTensor {
    const isConstant = tensor.role === 'constant'
    const shape = isConstant && tensor.shape && this.isNhwc ? toNchw(tensor.shape) : tensor.shape
    return {
      ...tensor,
      name: tensor.name ?? `tensor_${index}`,
      shape: isConstant && shape ? [...shape] : null,
    }
  }

  #copyNode(node: TmfileNode, index: number): TmfileNode {
    const copies = (tensors: readonly TmfileTensor[]) => tensors.map((tensor) => this.#copies.get(tensor)!)
    const name = node.name ?? `node_${index}`
    const copy = { ...node, name, inputs: copies(node.inputs), outputs: copies(node.outputs) }
    this.#nodes.set(node, copy)
    return copy
  }
}

function isNhwc({ graphLayout, modelLayout }: TmfileGraph): boolean {
  if ((graphLayout === NHWC) === (modelLayout === NHWC)) return graphLayout === NHWC
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    'One of the two layouts of the model is NHWC and the other is not: the engine converts the shapes of such a file twice.',
    { format: 'tmfile' },
  )
}

/** Static shapes of the inputs, in the order of axes of the file. @throws TileworkError ERR_ARGUMENT that names those without */
function inputShapes(
  inputs: readonly TmfileTensor[],
  { inputShapes: given }: Settings,
  batch: number | undefined,
): readonly (readonly number[])[] {
  const names = inputs.map(({ name }) => name)
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    const known = names.map((name) => valueText(name)).join(', ')
    throw new TileworkError('ERR_ARGUMENT', `inputShapes has ${valueText(unknown)}; the inputs are ${known}.`)
  }
  const shapes = inputs.map(({ name, shape }) => {
    const own = given[name ?? ''] ?? shape ?? []
    return own.map((extent, axis) => (axis > 0 ? extent : (batch ?? (extent === -1 ? 1 : extent))))
  })
  const open = inputs.filter(
    (_, index) => shapes[index]!.length === 0 || shapes[index]!.some((extent) => extent < 1),
  )
  if (open.length === 0) return shapes
  const list = open.map(({ name, shape }) => `${valueText(name)} [${shape ?? '?'}]`).join(', ')
  const message = `The file has no complete shape of ${list}; set it by inputShapes.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: 'tmfile' })
}
