/**
 * Applies operators that only move or convert the elements of a weight: the result replaces the weight, as a lazy tensor, so that
 * quantizers find it. A weight that others use as well stays as it is, because a second copy would make the file larger.
 */
import { DTYPES } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE, FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import { transposed, withShape } from '../../../formats/onnx/tensor/rearranged.js'
import { cast } from '../../../tensor/cast.js'
import { sizeOf } from '../../../tensor/shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { integersOf } from '../document/attribute.js'
import type { OnnxModel } from '../document/model.js'
import { orderedNodes } from '../document/node_order.js'
import { mainScope, type Scope } from '../document/scope.js'
import type { Graph, Node, ValueType } from '../document/types.js'
import { namesToKeep, removeInitializers } from '../edit/graph_passes.js'
import { inferModel } from '../infer/infer.js'
import { initializerBytes, nodeBytes } from './encoded_bytes.js'
import { removeNodes, removeValueInfo } from './rewrite.js'

export async function foldWeights(model: OnnxModel): Promise<number> {
  if (Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS) return 0
  const scopes = [...mainScope(model).all()]
  if (!scopes.some((scope) => scope.graph.nodes.some((node) => isOfWeight(node, scope)))) return 0
  const { types } = inferModel(model, { isOpen: () => true })
  let count = 0
  for (const scope of scopes) count += await new GraphFold(scope, types.get(scope.graph)).run()
  return count
}

/** Gives the result for a weight and the inferred type of the output; undefined where it cannot. */
type Rule = (node: Node, weight: DenseTensor, type: ValueType | undefined) => DenseTensor | undefined

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['Reshape', reshaped],
  ['Flatten', reshaped],
  ['Squeeze', reshaped],
  ['Unsqueeze', reshaped],
  ['Transpose', moved],
  ['Cast', converted],
])

function ruleOf({ opType, domain }: Node): Rule | undefined {
  return domain === '' ? RULES.get(opType) : undefined
}

function isOfWeight(node: Node, scope: Scope): boolean {
  return ruleOf(node) !== undefined && scope.constant(node.inputs[0] ?? '') !== undefined
}

class GraphFold {
  readonly #scope: Scope
  readonly #types: ReadonlyMap<string, ValueType> | undefined
  /** Names that stay, of this graph and of those around it. */
  readonly #kept = new Map<Graph, ReadonlySet<string>>()
  readonly #made = new Map<string, DenseTensor>()
  /** Weights that nothing uses any more, by the graph that has them. */
  readonly #unused = new Map<Graph, Set<string>>()
  readonly #gone = new Set<Node>()

  constructor(scope: Scope, types: ReadonlyMap<string, ValueType> | undefined) {
    this.#scope = scope
    this.#types = types
    this.#kept.set(scope.graph, namesToKeep(scope.graph))
  }

  /** @returns number of folded nodes */
  async run(): Promise<number> {
    const { graph } = this.#scope
    for (const node of orderedNodes(graph.nodes)) await this.#fold(node)
    if (this.#gone.size === 0) return 0
    removeNodes(graph, this.#gone)
    removeValueInfo(graph, new Set([...this.#gone].flatMap(({ outputs }) => outputs)))
    for (const [owner, names] of this.#unused) removeInitializers(owner, (name) => names.has(name))
    const made = [...this.#made].map(([name, tensor]) => ({ tensor, name }))
    graph.message.putTensors('initializer', made)
    return this.#gone.size
  }

  async #fold(node: Node): Promise<void> {
    const rule = ruleOf(node)
    const [input = ''] = node.inputs
    const [output = ''] = node.outputs
    const weight = rule && this.#weight(input)
    if (!rule || !weight || output === '' || this.#kept.get(this.#scope.graph)!.has(output)) return
    const result = rule(node, weight.tensor, this.#types?.get(output))
    if (!result) return
    const isLast = this.#isOnlyUse(weight.graph, input)
    const freed = isLast ? initializerBytes(weight.tensor, input) : 0
    if (initializerBytes(result, output) > freed + (await nodeBytes(node))) return
    if (isLast) this.#drop(weight.graph, input)
    this.#made.set(output, result)
    this.#gone.add(node)
  }

  #weight(name: string): { readonly graph: Graph; readonly tensor: DenseTensor } | undefined {
    const made = this.#made.get(name)
    if (made) return { graph: this.#scope.graph, tensor: made }
    const found = this.#scope.constant(name)
    return found && { graph: found.scope.graph, tensor: found.tensor }
  }

  #isOnlyUse(graph: Graph, name: string): boolean {
    const kept = this.#kept.get(graph) ?? namesToKeep(graph)
    this.#kept.set(graph, kept)
    return graph.usersOf(name).length === 1 && !kept.has(name)
  }

  #drop(graph: Graph, name: string): void {
    if (this.#made.delete(name)) return
    const names = this.#unused.get(graph) ?? new Set()
    this.#unused.set(graph, names.add(name))
  }
}

function reshaped(_: Node, weight: DenseTensor, type: ValueType | undefined): DenseTensor | undefined {
  const shape = type?.kind === 'tensor' ? type.shape : undefined
  if (!shape?.every((extent) => typeof extent === 'number')) return undefined
  return sizeOf(shape) === weight.size ? withShape(weight, shape) : undefined
}

/** Transposes that exchange two groups of neighbouring axes, or move axes of extent 1 only. */
function moved(node: Node, weight: DenseTensor): DenseTensor | undefined {
  const { shape, dtype, size } = weight
  const given = node.attribute('perm')
  const perm = given ? integersOf(given) : shape.map((_, axis) => shape.length - 1 - axis)
  if (!perm) return undefined
  const target = perm.map((axis) => shape[axis])
  if (new Set(perm).size !== shape.length || !target.every((extent) => extent !== undefined)) return undefined
  const long = perm.filter((axis) => shape[axis] !== 1)
  const turn = long.findIndex((axis, at) => at > 0 && axis < long[at - 1]!)
  if (turn < 0 || size === 0) return withShape(weight, target)
  const turned = [...long.slice(turn), ...long.slice(0, turn)]
  if (DTYPES[dtype].bits < 8 || turned.some((axis, at) => at > 0 && axis < turned[at - 1]!)) return undefined
  const k = sizeOf(long.slice(turn).map((axis) => shape[axis]!))
  return withShape(transposed({ tensor: weight, k, n: size / k }), target)
}

const FLOATS: ReadonlySet<unknown> = new Set(['float16', 'bfloat16', 'float32', 'float64'])

/** Engines round floats alike; other conversions differ where numbers are out of range. */
function converted(node: Node, weight: DenseTensor): DenseTensor | undefined {
  const to = DTYPE_OF_CODE.get(Number(node.attribute('to')?.value))
  if (to === weight.dtype) return weight
  return to !== undefined && FLOATS.has(to) && FLOATS.has(weight.dtype) ? cast(weight, to) : undefined
}
