/**
 * Replaces shape arithmetic by its result: Shape of a value with a fixed shape, and what is computed from it. Extents follow from
 * the inputs of the model and the operators, not from declared types of intermediate values, which may be out of date.
 */

import type { Dtype } from '../../../dtype/dtypes.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import { sizeOf } from '../../../tensor/shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import type { OnnxModel } from '../document/model.js'
import { usedNames } from '../document/node_names.js'
import type { Graph, Node } from '../document/types.js'
import { namesToKeep } from '../edit/graph_passes.js'
import { isKnown } from '../infer/dims.js'
import { inferModel } from '../infer/infer.js'
import type { Known } from '../infer/node_view.js'
import { initializerBytes, nodeBytes } from './encoded_bytes.js'
import { removeNodes, removeValueInfo } from './rewrite.js'

export async function foldShapes(model: OnnxModel): Promise<number> {
  if (Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS) return 0
  const graphs = [model.graph, ...model.graph.subgraphs()].filter(hasShapeArithmetic)
  if (graphs.length === 0) return 0
  const { known } = inferModel(model, { isOpen: () => true })
  let count = 0
  for (const graph of graphs) count += await foldIn(graph, known.get(graph))
  return count
}

/** Inference takes longer than all other passes, so graphs without these are left out. */
function hasShapeArithmetic(graph: Graph): boolean {
  const initializers = new Set(['', ...graph.initializerNames])
  return graph.nodes.some(({ message }) => {
    const [[opType = ''], inputs] = message.textLists('op_type', 'input')
    if (STARTS.has(opType)) return true
    const isOfWeights = inputs.length > 0 && inputs.every((name) => initializers.has(name))
    return isOfWeights && !message.has('attribute')
  })
}

/** Operators at the start of shape arithmetic. */
const STARTS: ReadonlySet<string> = new Set(['Shape', 'Size', 'Range', 'ConstantOfShape'])

async function foldIn(graph: Graph, known: ReadonlyMap<string, Known> | undefined): Promise<number> {
  const fixed = namesToKeep(graph)
  const values = new Map<Node, DenseTensor>()
  let removed = 0
  for (const node of graph.nodes) {
    const [output = '', ...others] = node.outputs
    if (output === '' || fixed.has(output) || others.some((name) => name !== '')) continue
    const value = node.opType === 'Constant' ? undefined : knownTensor(known?.get(output))
    if (!value) continue
    const bytes = await nodeBytes(node)
    // Long results stay with their nodes, which are shorter: Range, ConstantOfShape, Expand.
    if (value.storage.byteLength > Math.max(LONG_BYTES, bytes)) continue
    values.set(node, value)
    removed += bytes
  }
  const used = namesUsedByOthers(graph, values)
  const made = [...values].filter(([{ outputs }]) => used.has(outputs[0]!))
  const added = made.reduce((sum, [{ outputs }, value]) => sum + initializerBytes(value, outputs[0]!), 0)
  if (values.size === 0 || added > removed) return 0
  removeNodes(graph, new Set(values.keys()))
  removeValueInfo(graph, new Set([...values.keys()].map(({ outputs }) => outputs[0]!)))
  graph.message.putTensors(
    'initializer',
    made.map(([{ outputs }, value]) => ({ tensor: value, name: outputs[0]! })),
  )
  return values.size
}

/** The shape of a tensor with eight axes. */
const LONG_BYTES = 64

function namesUsedByOthers(graph: Graph, folded: ReadonlyMap<Node, unknown>): ReadonlySet<string> {
  const used = new Set<string>()
  for (const node of graph.nodes) if (!folded.has(node)) for (const name of usedNames(node)) used.add(name)
  return used
}

/** Elements that are all known, as a tensor of the inferred type. */
function knownTensor(known: Known | undefined): DenseTensor | undefined {
  if (!known?.values?.every(isKnown) || known.type.kind !== 'tensor') return undefined
  const { dtype, shape } = known.type
  const values = known.values as readonly number[]
  const isComplete = shape?.every((extent) => typeof extent === 'number') && sizeOf(shape) === values.length
  const make = isComplete ? ARRAYS.get(dtype) : undefined
  return make && values.every((value) => make.holds(value))
    ? tensorOf(make.from(values), { shape: shape as readonly number[], dtype: dtype as Dtype })
    : undefined
}

interface ArrayKind {
  readonly holds: (value: number) => boolean
  readonly from: (values: readonly number[]) => ArrayBufferView
}

const ARRAYS: ReadonlyMap<Dtype | number, ArrayKind> = new Map<Dtype, ArrayKind>([
  ['int64', { holds: Number.isSafeInteger, from: (values) => BigInt64Array.from(values, BigInt) }],
  ['int32', { holds: (value) => value === (value | 0), from: (values) => Int32Array.from(values) }],
  ['bool', { holds: (value) => value === 0 || value === 1, from: (values) => Uint8Array.from(values) }],
  ['float32', { holds: Number.isFinite, from: (values) => Float32Array.from(values) }],
  ['float64', { holds: Number.isFinite, from: (values) => Float64Array.from(values) }],
])
