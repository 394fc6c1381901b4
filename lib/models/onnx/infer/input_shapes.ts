/**
 * Changes shapes of inputs, and what follows from them: declared types of dependent values, and constant targets of `Reshape`
 * that contain the old first extent.
 */
import { readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkList } from '../../../formats/onnx/protobuf/field_input.js'
import { FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { nearestText } from '../../../nearest_names.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { usedNames } from '../document/node_names.js'
import { sortedNodes } from '../document/node_order.js'
import type { Dimension, Graph, Node, ValueType } from '../document/types.js'
import { declareType } from './declare_types.js'
import { type Dim, type Dims, dimsOf, isKnown, productOfAll, quotientOf } from './dims.js'
import { inferModel, inferTypes } from './infer.js'
import { knownOfTensor } from './node_view.js'

/** What a changed input shape affects beside shapes that follow. */
export interface InputShapeChange {
  /** `Reshape` nodes whose constant target was changed to follow the first extent. */
  readonly reshaped: readonly Node[]
  /** Nodes that do not fit the new shape. */
  readonly blocked: readonly Node[]
  /** Values of the main graph whose shape was known before and no longer is. */
  readonly unknown: readonly string[]
}

/**
 * Sets the shape of an input. Declared types of dependent values follow, and so do constant targets of `Reshape` nodes of
 * the main graph that contain the old first extent.
 *
 * @param shape - extents, names of symbolic dimensions, or null for unknown ones; the rank stays
 * @throws TileworkError ERR_ARGUMENT for an invalid shape and for another rank; ERR_GRAPH for a name that is not an
 * input, for an input that is no dense tensor, and for a cycle of nodes
 */
export function setInputShape(model: OnnxModel, name: string, shape: readonly Dimension[]): InputShapeChange {
  checkModel(model, 'setInputShape')
  const dims = readInput('The shape', () => [...checkList('The shape', shape)]) as Dimension[]
  return setShapes(model, new Map([[name, dims]]))
}

/**
 * Sets the first dimension of every input with a rank above 0, as `setInputShape`.
 *
 * @param batch - an extent or the name of a symbolic dimension
 * @throws TileworkError as `setInputShape`; ERR_GRAPH for an input without a shape
 */
export function setBatch(model: OnnxModel, batch: number | string): InputShapeChange {
  checkModel(model, 'setBatch')
  const { graph } = model
  const shapes = new Map<string, readonly Dimension[]>()
  for (const { name, type } of graph.inputs) {
    if (graph.hasInitializer(name) || type.kind !== 'tensor' || type.shape?.length === 0) continue
    if (!type.shape) {
      const message = `Input ${valueText(name)} has no shape; set all its dimensions first (setInputShape, --set-input).`
      throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME })
    }
    shapes.set(name, type.shape.with(0, batch))
  }
  return setShapes(model, shapes)
}

type Types = ReadonlyMap<string, ValueType>

function setShapes(model: OnnxModel, shapes: ReadonlyMap<string, readonly Dimension[]>): InputShapeChange {
  const { graph } = model
  const inputs = new Map(graph.inputs.map(({ name, type }) => [name, type]))
  const types = new Map([...shapes].map(([name, shape]) => [name, inputType(graph, inputs, name, shape)]))
  const before = inferTypes(model)
  for (const [name, type] of types) graph.setType(name, type)
  const dependent = dependentParts(graph, new Set(types.keys()))
  const infer = (): Types =>
    inferModel(model, (inner, name) => inner !== graph || dependent.names.has(name)).types.get(graph)!
  const reshaped = new Set<Node>()
  let after = infer()
  for (let fixed = followTargets(model, dependent.nodes, before, after); fixed.length > 0; ) {
    for (const node of fixed) reshaped.add(node)
    after = infer()
    fixed = followTargets(model, dependent.nodes, before, after).filter((node) => !reshaped.has(node))
  }
  redeclare(model, dependent, after)
  return {
    reshaped: [...reshaped],
    blocked: dependent.nodes.filter((node) => isBlocked(model, node, before, after)),
    unknown: [...dependent.names].filter(
      (name) => isComplete(before.get(name)) && !isComplete(after.get(name)),
    ),
  }
}

/** The type of an input with another shape. */
function inputType(graph: Graph, inputs: Types, name: string, shape: readonly Dimension[]): ValueType {
  const type = inputs.get(name)
  if (!type || graph.hasInitializer(name)) {
    const names = [...inputs.keys()].filter((each) => !graph.hasInitializer(each))
    throw refused('ERR_GRAPH', `${valueText(name)} is not an input of the graph${nearestText(name, names)}`)
  }
  if (type.kind !== 'tensor') throw refused('ERR_GRAPH', `Input ${valueText(name)} is no dense tensor.`)
  const bad = shape.find((extent) => !isDimension(extent))
  if (bad !== undefined) {
    const message = `The shape has the dimension ${valueText(bad)}; a dimension is an integer from 0, a name or null.`
    throw refused('ERR_ARGUMENT', message)
  }
  if (type.shape && type.shape.length !== shape.length) {
    const message = `The new shape has rank ${shape.length}; input ${valueText(name)} has rank ${type.shape.length}.`
    throw refused('ERR_ARGUMENT', message)
  }
  return { ...type, shape }
}

function isDimension(extent: unknown): boolean {
  if (extent === null || typeof extent === 'bigint') return extent === null || extent >= 0n
  return typeof extent === 'string' ? extent !== '' : Number.isSafeInteger(extent) && Number(extent) >= 0
}

function refused(code: 'ERR_ARGUMENT' | 'ERR_GRAPH', message: string): TileworkError {
  return new TileworkError(code, message, { format: FORMAT_NAME })
}

interface Dependent {
  /** In topological order. */
  readonly nodes: readonly Node[]
  /** Outputs of these nodes. */
  readonly names: ReadonlySet<string>
}

function dependentParts(graph: Graph, names: ReadonlySet<string>): Dependent {
  const all = graph.nodes
  const reached = new Set(names)
  const nodes = sortedNodes(all)
    .map((index) => all[index]!)
    .filter((node) => {
      if (![...usedNames(node)].some((name) => reached.has(name))) return false
      for (const name of node.outputs) if (name !== '') reached.add(name)
      return true
    })
  for (const name of names) reached.delete(name)
  return { nodes, names: reached }
}

/**
 * Changes targets of `Reshape` nodes that no longer fit. Nodes behind a changed one wait for the next call.
 *
 * @returns the changed nodes
 */
function followTargets(model: OnnxModel, nodes: readonly Node[], before: Types, after: Types): Node[] {
  const changed: Node[] = []
  const stale = new Set<string>()
  for (const node of nodes) {
    const isStale = node.inputs.some((name) => stale.has(name))
    const target = isStale ? undefined : followingTarget(model, node, before, after)
    if (target) {
      setTarget(model, node, target)
      changed.push(node)
    }
    if (target || isStale) for (const name of node.outputs) stale.add(name)
  }
  return changed
}

/** The target that follows the first extent; undefined where the present one fits or nothing is certain. */
function followingTarget(model: OnnxModel, node: Node, before: Types, after: Types): number[] | undefined {
  const target = constantTarget(model, node)
  const [old, now] = [before, after].map((types) => shapeOf(types, node.inputs[0]))
  if (!target || target.length === 0 || !old || !now || old.length === 0) return undefined
  const copies = Number(node.attribute('allowzero')?.value ?? 0) === 0
  const [first, ...others] = target as [number, ...number[]]
  if (first > 0 && first === old[0] && now[0] !== old[0]) {
    if (copies) return [0, ...others]
    return isKnown(now[0]) ? [now[0], ...others] : undefined
  }
  if (target.some((extent) => extent < 1) || productOfAll(now) === productOfAll(target)) return undefined
  const lead = quotientOf(productOfAll(now), productOfAll(others))
  return lead === null ? undefined : [-1, ...others]
}

/** The target of a `Reshape` that is a constant. */
function constantTarget(model: OnnxModel, node: Node): readonly number[] | undefined {
  if (node.opType !== 'Reshape' || node.domain !== '') return undefined
  const attribute = node.attribute('shape')?.value
  if (Array.isArray(attribute)) return (attribute as readonly (number | bigint)[]).map(Number)
  const tensor = model.graph.value(node.inputs[1] ?? '')?.constant
  const values = tensor && knownOfTensor(tensor).constant?.values
  return values?.every(isKnown) ? values : undefined
}

function setTarget({ graph }: OnnxModel, node: Node, target: readonly number[]): void {
  if (node.attribute('shape')) {
    node.setAttribute('shape', { type: 'INTS', value: target })
    return
  }
  const name = node.inputs[1]!
  const value = tensorOf(BigInt64Array.from(target, BigInt), { shape: [target.length] })
  const isShared = graph.usesOf(name).length > 1 || graph.outputNames.has(name)
  if (!isShared && graph.hasInitializer(name)) {
    graph.setInitializer(name, value)
    return
  }
  const fresh = graph.uniqueName(name)
  const at = graph.nodes.indexOf(node)
  graph.addNode(
    { opType: 'Constant', outputs: [fresh], attributes: { value: { type: 'TENSOR', value } } },
    at,
  )
  node.inputs = node.inputs.map((each, index) => (index === 1 ? fresh : each))
  const producer = graph.producerOf(name)
  if (!isShared && producer) graph.removeNode(producer)
}

function shapeOf(types: Types, name = ''): Dims | undefined {
  const type = types.get(name)
  return type?.kind === 'tensor' ? dimsOf(type.shape) : undefined
}

function isComplete(type: ValueType | undefined): boolean {
  const dims = type?.kind === 'tensor' ? dimsOf(type.shape) : undefined
  return dims?.includes(null) === false
}

/** Whether a node with a known shape before has none now, or a `Reshape` takes another number of elements. */
function isBlocked(model: OnnxModel, node: Node, before: Types, after: Types): boolean {
  const isLost = node.outputs.some((name) => shapeOf(before, name) && !shapeOf(after, name))
  if (
    isLost &&
    node.inputs.every((name) => name === '' || after.get(name) === undefined || shapeOf(after, name))
  )
    return true
  const target = constantTarget(model, node)
  const data = shapeOf(after, node.inputs[0])
  if (!target || !data || target.includes(0)) return false
  const [count, needed] = [productOfAll(data), productOfAll(target.filter((extent) => extent !== -1))]
  return target.includes(-1) ? !isMultiple(count, needed) : count !== null && count !== needed
}

function isMultiple(count: Dim, needed: Dim): boolean {
  return !isKnown(count) || !isKnown(needed) || needed === 0 || count % needed === 0
}

/** Replaces declared types of dependent values; what does not follow keeps its rank without extents. */
function redeclare(model: OnnxModel, { nodes, names }: Dependent, after: Types): void {
  const { graph } = model
  for (const name of names) redeclareValue(graph, name, after.get(name))
  const inner = nodes.flatMap((node) => node.subgraphs.flatMap((each) => [each, ...each.subgraphs()]))
  if (inner.length === 0) return
  const { types } = inferModel(model, (each, name) => each !== graph || names.has(name))
  for (const each of inner) {
    const declared = [...each.inputs, ...each.valueInfo, ...each.outputs]
    for (const { name } of declared)
      if (each.value(name)) redeclareValue(each, name, types.get(each)?.get(name))
  }
}

function redeclareValue(graph: Graph, name: string, found: ValueType | undefined): void {
  const declared = graph.typeOf(name)
  if (declared.kind !== 'tensor') return
  if (found?.kind === 'tensor' && found.shape) declareType(graph, name, { ...declared, shape: found.shape })
  else if (declared.shape) declareType(graph, name, { ...declared, shape: declared.shape.map(() => null) })
}
