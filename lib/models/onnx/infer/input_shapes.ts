/** Changes shapes of inputs, and what follows from them: declared types of dependent values, and constants that hold the old batch. */
import { checkFlag, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkList } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import { FreshNames } from '../document/fresh_names.js'
import type { OnnxModel } from '../document/model.js'
import { usedNames } from '../document/node_names.js'
import { sortedNodes } from '../document/node_order.js'
import { isStandard } from '../document/scope.js'
import type { Dimension, Graph, Node, ValueType } from '../document/types.js'
import { inlineFunctions } from '../edit/inline_functions.js'
import { type Dim, isKnown, productOfAll } from '../evaluate/dims.js'
import { BatchEditor, type BatchSource } from './batch_edits.js'
import { needsOf } from './batch_rules.js'
import { type BatchChange, BatchSite, BatchView, shapeOf } from './batch_view.js'
import { declareType } from './declare_types.js'
import { inferModel, inferTypes } from './infer.js'

/** What a changed input shape affects beside shapes that follow. */
export interface InputShapeChange {
  /** Nodes whose constants were changed, or expanded, to follow the first dimension of the inputs. */
  readonly reshaped: readonly Node[]
  /** Nodes that do not fit the new shape; empty without `allowPartial`. */
  readonly blocked: readonly Node[]
  /** Values of the main graph whose shape was known before and no longer is. */
  readonly unknown: readonly string[]
}

export interface InputShapeOptions {
  /** True: nodes that do not fit the new shape stay as they are, and are listed. Default false: they are an error. */
  readonly allowPartial?: boolean
}

/**
 * Sets the shape of an input. Declared types of dependent values follow, in inner graphs, too. Where the first dimension
 * changes, constants follow that contain the old one: targets of `Reshape` and `Expand`, sizes of `Resize`, ends of `Slice`,
 * fills and copies. Constants that are joined with a batch, and initial states of recurrent nodes, are expanded. Where such a constant is
 * in the body of a function, calls of functions are replaced by nodes first (`inline-functions` of `optimize`).
 *
 * @param shape - dimensions, names of symbolic dimensions, or null for unknown ones; the rank stays
 * @throws TileworkError ERR_ARGUMENT for an invalid shape and for another rank; ERR_GRAPH for a name that is not an
 * input, for an input that is no dense tensor, and for a cycle of nodes; ERR_UNSUPPORTED for nodes that do not fit the new
 * shape, which it names; ERR_LIMIT for functions with too many nodes. Nothing is changed then
 */
export function setInputShape(
  model: OnnxModel,
  name: string,
  shape: readonly Dimension[],
  options?: InputShapeOptions,
): InputShapeChange
/** Sets the shapes of several inputs at once. */
export function setInputShape(
  model: OnnxModel,
  shapes: Readonly<Record<string, readonly Dimension[]>>,
  options?: InputShapeOptions,
): InputShapeChange
export function setInputShape(
  model: OnnxModel,
  name: string | Readonly<Record<string, readonly Dimension[]>>,
  given?: readonly Dimension[] | InputShapeOptions,
  options: InputShapeOptions = {},
): InputShapeChange {
  checkModel(model, 'setInputShape')
  if (typeof name !== 'string') return setInputShapes(model, name, (given ?? {}) as InputShapeOptions)
  return setInputShapes(model, { [name]: given as readonly Dimension[] }, options)
}

function setInputShapes(
  model: OnnxModel,
  given: Readonly<Record<string, readonly Dimension[]>>,
  options: InputShapeOptions,
): InputShapeChange {
  const shapes = readInput('The shapes', () =>
    Object.entries(given).map(
      ([name, shape]) => [name, [...checkList(`The shape`, shape)] as Dimension[]] as const,
    ),
  )
  return setShapes(model, new Map(shapes), options)
}

/**
 * Sets the first dimension of every input with a rank above 0, as `setInputShape`.
 *
 * @param batch - a dimension, the name of a symbolic one, or null for an unknown one
 * @throws TileworkError as `setInputShape`; ERR_GRAPH for an input without a shape
 */
export function setBatch(
  model: OnnxModel,
  batch: Dimension,
  options: InputShapeOptions = {},
): InputShapeChange {
  checkModel(model, 'setBatch')
  if (batch === 0) throw new TileworkError('ERR_ARGUMENT', 'batch is 0; a batch has a sample or more.')
  const { graph } = model
  const shapes = new Map<string, readonly Dimension[]>()
  for (const { name, type } of graph.inputs) {
    if (graph.hasInitializer(name) || type.kind !== 'tensor' || type.shape?.length === 0) continue
    if (!type.shape) {
      const message = `Input ${valueText(name)} has no shape; set all its dimensions first (setInputShape, --set-input).`
      throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME })
    }
    // Exporters of Paddle write -1 for an extent that is open, which onnxruntime takes for that.
    const known = type.shape.map((extent) => (isDimension(extent) ? extent : null))
    shapes.set(name, known.with(0, batch))
  }
  return setShapes(model, shapes, options)
}

type Types = ReadonlyMap<string, ValueType>
type Shapes = ReadonlyMap<string, readonly Dimension[]>

/** On a copy first: an error leaves the model as it is. */
function setShapes(model: OnnxModel, shapes: Shapes, options: InputShapeOptions): InputShapeChange {
  checkOptions(options, 'setInputShape', ['allowPartial'])
  const { allowPartial = false } = readInput('The options of setInputShape', () => ({ ...options }))
  checkFlag(allowPartial, 'allowPartial')
  const { inlines, blockedBodies } = functionsToFollow(model, shapes)
  if (!allowPartial) {
    const trial = model.copy()
    if (inlines) inlineFunctions(trial)
    const blocked = [...changeShapes(trial, shapes).blocked, ...blockedBodies]
    if (blocked.length > 0) throw misfit(blocked)
  }
  if (inlines) inlineFunctions(model)
  return changeShapes(model, shapes)
}

interface FunctionsToFollow {
  /** Whether a node of a body has to change: a body serves every call, so calls get nodes of their own. */
  readonly inlines: boolean
  /** Nodes that would have to change in bodies which cannot be inlined. */
  readonly blockedBodies: readonly Node[]
}

/** Tried on copies: calls inlined, and then those that have other operator sets as well. */
function functionsToFollow(model: OnnxModel, shapes: Shapes): FunctionsToFollow {
  if (model.functions.length === 0) return { inlines: false, blockedBodies: [] }
  const [inlined, all] = [model.copy(), model.copy()]
  const own = messagesOf(inlined)
  const inlines = inlineFunctions(inlined) > 0 && changedBeside(own, inlined, shapes).length > 0
  inlineFunctions(all)
  const compatible = messagesOf(all)
  const hasOthers = inlineFunctions(all, { anyOpsets: true }) > 0
  return { inlines, blockedBodies: hasOthers ? changedBeside(compatible, all, shapes) : [] }
}

function messagesOf({ graph }: OnnxModel): ReadonlySet<Message> {
  return new Set(Array.from(graph.allNodes(), ({ message }) => message))
}

/** Nodes that follow new shapes or block them, and were not there before. */
function changedBeside(known: ReadonlySet<Message>, model: OnnxModel, shapes: Shapes): readonly Node[] {
  const { reshaped, blocked } = changeShapes(model, shapes)
  return [...reshaped, ...blocked].filter(({ message }) => !known.has(message))
}

/** Nodes that an error names. */
const MAX_NAMED = 10

function misfit(blocked: readonly Node[]): TileworkError {
  const named = blocked.slice(0, MAX_NAMED).map(({ opType, name, outputs }) => {
    const title = name === '' ? `that makes ${valueText(outputs[0] ?? '')}` : valueText(name)
    return `${opType} ${title}`
  })
  const more = blocked.length > MAX_NAMED ? `, and ${blocked.length - MAX_NAMED} more` : ''
  const message = `Nodes do not fit the new shape: ${named.join(', ')}${more}. edit --allow-partial (allowPartial of setInputShape and setBatch) changes the shape all the same.`
  return new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
}

function changeShapes(model: OnnxModel, shapes: Shapes): InputShapeChange {
  const { graph } = model
  const inputs = new Map(graph.inputs.map(({ name, type }) => [name, type]))
  const types = new Map([...shapes].map(([name, shape]) => [name, inputType(graph, inputs, name, shape)]))
  const declared = inferTypes(model)
  const reached = dependentParts(graph, new Set(types.keys()))
  const { reshaped, misfits } = followBatch(model, types, reached.names)
  for (const [name, type] of types) graph.setType(name, type)
  const dependent = dependentParts(graph, new Set(types.keys()))
  const { types: after } = inferModel(model, {
    isOpen: (inner, name) => inner !== graph || dependent.names.has(name),
  })
  redeclare(model, dependent, after.get(graph)!)
  return {
    reshaped: [...reshaped],
    blocked: misfits,
    unknown: [...dependent.names].filter(
      (name) => isComplete(declared.get(name)) && !isComplete(after.get(graph)!.get(name)),
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

/** Stands for a symbolic batch while edits are chosen: a prime, so that it is no product or quotient of other dimensions. */
const SYMBOLIC_BATCH = 10_007

interface Followed {
  readonly reshaped: ReadonlySet<Node>
  /** Nodes that fit the old shapes and not the new ones. */
  readonly misfits: readonly Node[]
}

/**
 * Changes what has to follow the first dimensions of inputs, and finds what fits the old shapes only. First dimensions change
 * first, and alone: what follows them does not follow from the others.
 */
function followBatch(model: OnnxModel, types: Types, dependent: ReadonlySet<string>): Followed {
  const { graph } = model
  const old = new Map([...types.keys()].map((name) => [name, graph.typeOf(name)]))
  const opset = Number(model.opsetImports.get('') ?? 1)
  const editor = new BatchEditor(sourceOf(graph, types, old), new FreshNames(model), opset)
  // Declared types of what depends on the inputs, and of inner graphs, hold for the old shapes alone.
  const isOpen = (inner: Graph, name: string): boolean => inner !== graph || dependent.has(name)
  const before = inferModel(model, { isOpen, keepsStates: true })
  for (const [name, type] of types) graph.setType(name, withFirst(old.get(name)!, firstOf(type)))
  const reshaped = new Set<Node>()
  const refused = new Set<Node>()
  const change = changeOf(types, old)
  const viewNow = (): BatchView =>
    new BatchView(model, change, before, inferModel(model, { isOpen, keepsStates: true }))
  let edited: number
  do edited = followOnce(viewNow(), editor, reshaped, refused)
  while (edited > 0)
  for (const [name, type] of types) graph.setType(name, withFirst(type, firstOf(type)))
  return { reshaped, misfits: misfitsOf(viewNow(), refused) }
}

/** Nodes behind a changed one wait for the next call. @returns the number of changed nodes */
function followOnce(view: BatchView, editor: BatchEditor, reshaped: Set<Node>, refused: Set<Node>): number {
  let count = 0
  const stale = new Set<string>()
  for (const { scope, nodes } of view.places) {
    for (const node of nodes) {
      const isStale = [...usedNames(node)].some((name) => stale.has(name))
      const site = new BatchSite(view, scope, node)
      const needs = isStale || refused.has(node) || reshaped.has(node) ? [] : needsOf(site)
      if (needs !== 'misfit' && needs.length === 0 && !isStale) continue
      if (needs === 'misfit') refused.add(node)
      else if (needs.length > 0) {
        if (editor.apply(site, needs)) reshaped.add(node)
        else refused.add(node)
        count += 1
      }
      if (needs !== 'misfit') for (const name of node.outputs) if (name !== '') stale.add(name)
    }
  }
  return count
}

function misfitsOf(view: BatchView, refused: ReadonlySet<Node>): Node[] {
  const misfits: Node[] = []
  for (const { scope, nodes } of view.places) {
    for (const node of nodes) {
      const site = new BatchSite(view, scope, node)
      if (refused.has(node) || isLost(site) || isWrongTarget(site) || isWrongProduct(site)) misfits.push(node)
    }
  }
  return misfits
}

/** The shape of an output followed from the old shapes, and does not from the new ones, or has another rank. */
function isLost({ view, scope, node }: BatchSite): boolean {
  const areKnown = node.inputs.every(
    (name) => name === '' || !view.dimsBefore(scope, name) || view.dimsAfter(scope, name),
  )
  return (
    areKnown &&
    node.outputs.some((name) => {
      const before = view.dimsBefore(scope, name)
      return before && before.length !== view.dimsAfter(scope, name)?.length
    })
  )
}

/** Whether a Reshape takes another number of elements. */
function isWrongTarget(site: BatchSite): boolean {
  if (!isStandard(site.node, 'Reshape')) return false
  const target = site.list(1, 'shape')
  const data = site.after(0)
  if (!target || !data || target.includes(0)) return false
  const [count, needed] = [productOfAll(data), productOfAll(target.filter((dim) => dim !== -1))]
  return target.includes(-1) ? !isMultiple(count, needed) : isKnown(count) && count !== needed
}

/** Whether the inner dimensions of a product, or the channels of a convolution, are others than those of its weight. */
function isWrongProduct(site: BatchSite): boolean {
  const { node } = site
  const [data, weight] = [site.after(0), site.after(1)]
  if (!data || !weight) return false
  const differ = (one: Dim | undefined, other: Dim | undefined): boolean =>
    isKnown(one) && isKnown(other) && one !== other
  if (isStandard(node, 'Gemm'))
    return differ(
      data.at(site.int('transA', 0) === 1 ? 0 : 1),
      weight.at(site.int('transB', 0) === 1 ? 1 : 0),
    )
  if (isStandard(node, 'Conv')) {
    const channels = weight[1]
    return differ(data[1], isKnown(channels) ? channels * site.int('group', 1) : undefined)
  }
  return isStandard(node, 'ConvTranspose') && differ(data[1], weight[0])
}

/** The first dimension of a type as a number. */
function firstOf(type: ValueType): Dimension | undefined {
  const first = type.kind === 'tensor' ? type.shape?.[0] : undefined
  return typeof first === 'string' || first === null ? SYMBOLIC_BATCH : first
}

function withFirst(type: ValueType, first: Dimension | undefined): ValueType {
  if (type.kind !== 'tensor' || !type.shape || first === undefined) return type
  return { ...type, shape: type.shape.with(0, first) }
}

/** The first input whose first dimension changes, which an edit of a symbolic batch reads. */
function sourceOf(graph: Graph, types: Types, old: Types): BatchSource {
  const changed =
    [...types].find(([name, type]) => firstOf(old.get(name)!) !== firstOf(type)) ?? [...types][0]
  const [input = '', type] = changed ?? []
  const isSymbolic = type !== undefined && firstOf(type) === SYMBOLIC_BATCH
  return { graph, input, standsFor: isSymbolic ? SYMBOLIC_BATCH : undefined }
}

/** Of the first input whose batch is a number that changes; equal numbers where there is none. */
function changeOf(types: Types, old: Types): BatchChange {
  for (const [name, type] of types) {
    const [from, to] = [numberOf(old.get(name)), firstOf(type)]
    if (from !== undefined && typeof to === 'number' && from !== to) return { from, to }
  }
  return { from: 1, to: 1 }
}

function numberOf(type: ValueType | undefined): number | undefined {
  const first = type?.kind === 'tensor' ? type.shape?.[0] : undefined
  return typeof first === 'number' ? first : undefined
}

function isComplete(type: ValueType | undefined): boolean {
  return shapeOf(type)?.includes(null) === false
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
  const { types } = inferModel(model, { isOpen: (each, name) => each !== graph || names.has(name) })
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
