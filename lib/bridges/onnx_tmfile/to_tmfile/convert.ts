/**
 * Converts ONNX models to tmfiles. Nodes are visited in topological order; the inputs of each are constants or tensors of the new
 * graph. Nodes of constants are computed, the others are converted by their row in the table. Shapes are static: they follow
 * from the inputs by the inference of the ONNX folder, with the folded values.
 */

import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { append } from '../../../long_lists.js'
import { checkModel } from '../../../models/onnx/document/check_model.js'
import { usedNames } from '../../../models/onnx/document/node_names.js'
import { sortedNodes } from '../../../models/onnx/document/node_order.js'
import { constantOf } from '../../../models/onnx/document/value.js'
import type { Shape } from '../../../models/onnx/evaluate/arrays.js'
import { type Dims, isKnown } from '../../../models/onnx/evaluate/dims.js'
import { Evaluator } from '../../../models/onnx/evaluate/evaluate.js'
import type { Graph, Node, OnnxModel, ValueType } from '../../../models/onnx/index.js'
import { type Known, type NodeContext, NodeView } from '../../../models/onnx/infer/node_view.js'
import { shapesOf } from '../../../models/onnx/infer/shapes.js'
import { outputTypeOf } from '../../../models/onnx/infer/types.js'
import { castWeights } from '../../../models/tmfile/edit/edits.js'
import type { TmfileModel, TmfileNode, TmfileTensor } from '../../../models/tmfile/index.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { type RefusedNode, refusedError } from '../refused_error.js'
import { Constant, MAX_COMPUTED_ELEMENTS } from './constant.js'
import { whyNotShape } from './engine_limits.js'
import { type GeluMatch, matchGelu } from './gelu.js'
import { GraphBuilder, isConstantOperand, type Operand } from './graph_builder.js'
import { graphInputs, inputShapes, preparedModel } from './inputs.js'
import { checkToTmfileOptions, type OnnxToTmfileOptions, type Settings } from './options.js'
import { chooseOutputs } from './outputs.js'
import { dequantized, floatNodes } from './quantized.js'
import { Refusal, refuse } from './refusal.js'
import { type OnnxToTmfileReport, ReportBuilder } from './report.js'
import { Step } from './step.js'
import { refusalOf, rowOf } from './table.js'

export interface ConvertedToTmfile {
  readonly model: TmfileModel
  readonly report: OnnxToTmfileReport
}

/**
 * Converts an ONNX model to a tmfile that gives the same outputs in Tengine. The ONNX model does not change; its weights are read when
 * the tmfile is saved, so its file must stay open until then.
 *
 * Shapes of a tmfile are static: extents that the model leaves open come from the options. Constants are folded, normalizations and
 * activations fused, and operators that the engine lacks or computes differently are replaced.
 *
 * @throws TileworkError ERR_UNSUPPORTED that names every node that cannot be converted, its operator and the reason; ERR_ARGUMENT
 * for an invalid option and for an input without a shape; ERR_GRAPH for a cycle of nodes
 */
export async function onnxToTmfile(
  model: OnnxModel,
  options: OnnxToTmfileOptions = {},
): Promise<ConvertedToTmfile> {
  checkModel(model, 'onnxToTmfile')
  const settings = checkToTmfileOptions(options)
  return new Conversion(preparedModel(model, settings), settings).run()
}

/** What stands for an ONNX value. */
interface Entry {
  readonly operand: Operand
  /** Element type in the ONNX model. */
  readonly dtype: Dtype
}

class Conversion {
  readonly #graph: Graph
  readonly #settings: Settings
  readonly #report = new ReportBuilder()
  readonly #builder: GraphBuilder
  readonly #entries = new Map<string, Entry>()
  /** Values of nodes that were refused and whose shapes are unknown. */
  readonly #unknown = new Set<string>()
  readonly #uses = new Map<string, number>()
  readonly #refused: RefusedNode[] = []
  readonly #context: NodeContext
  /** The ONNX node that each node came from. */
  readonly #origins = new Map<TmfileNode, Node>()
  readonly #gelus = new Map<Node, GeluMatch>()
  readonly #covered = new Set<Node>()
  readonly #evaluator = new Evaluator({
    maxElements: MAX_COMPUTED_ELEMENTS,
    maxWork: MAX_COMPUTED_ELEMENTS,
    rounding: true,
  })

  constructor(model: OnnxModel, settings: Settings) {
    this.#graph = model.graph
    this.#settings = settings
    const names = new Set(this.#graph.values().map(({ name }) => name))
    this.#builder = new GraphBuilder(names, (name) => this.#uses.get(name) ?? 0)
    const opsets = model.opsetImports
    this.#context = {
      opsetOf: (domain) => Number(opsets.get(domain) ?? 0),
      scope: (name) => this.#known(name),
      inferGraph: () => undefined,
    }
  }

  run(): ConvertedToTmfile {
    const nodes = this.#liveNodes()
    this.#addConstants()
    this.#addInputs()
    if (graphInputs(this.#graph).length === 0) {
      const message = 'The graph has no inputs without values; the engine loads no such file.'
      throw new TileworkError('ERR_UNSUPPORTED', message, { format: 'onnx' })
    }
    for (const node of nodes) this.#visit(node)
    const outputs = this.#outputs()
    if (this.#refused.length > 0) throw refusedError(this.#refused, 'a tmfile', 'onnx')
    const built = this.#builder.model(outputs)
    const bare = tensorsWithoutScale(built)
    if (bare.length > 0) throw refusedError(bare, 'a tmfile', 'onnx')
    built.name = null
    if (this.#settings.weights === 'float16') {
      castWeights(built, 'float16')
      this.#report.notes.add('Weights are float16; builds of the engine for x86 CPUs do not run them.')
    }
    return { model: built, report: this.#finishReport(outputs.flatMap(({ outputs: made }) => made)) }
  }

  /** Nodes that an output depends on, in topological order; counts how often each value is read. */
  #liveNodes(): Node[] {
    const graph = this.#graph
    const count = (name: string): void => {
      this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1)
    }
    for (const { name } of graph.outputs) count(name)
    const { nodes } = graph
    const ordered = sortedNodes(nodes).map((index) => nodes[index]!)
    const live = ordered.reverse().filter((node) => {
      if (!node.outputs.some((name) => (this.#uses.get(name) ?? 0) > 0)) return false
      for (const name of usedNames(node)) count(name)
      return true
    })
    return live.reverse()
  }

  #addConstants(): void {
    for (const name of this.#graph.initializerNames) {
      if (!this.#uses.has(name)) continue
      const tensor = this.#graph.initializer(name)!
      this.#addConstant(name, tensor)
    }
  }

  #addConstant(name: string, tensor: Tensor): void {
    if (tensor.kind !== 'dense') {
      this.#refused.push({
        node: name,
        operator: 'initializer',
        reason: `${tensor.kind} tensors have no counterpart`,
      })
      this.#unknown.add(name)
      return
    }
    this.#entries.set(name, { operand: Constant.ofTensor(name, tensor), dtype: tensor.dtype })
  }

  #addInputs(): void {
    for (const { name, shape, dtype, stored } of inputShapes(this.#graph, this.#settings)) {
      const reason =
        stored === undefined ? `${dtype} inputs; the engine computes in float32` : whyNotShape(shape)
      if (reason !== undefined) this.#refused.push({ node: name, operator: 'input', reason })
      this.#entries.set(name, {
        operand: this.#builder.input(name, shape, stored ?? 'float32'),
        dtype: dtype as Dtype,
      })
    }
  }

  #known(name: string): Known | undefined {
    const entry = this.#entries.get(name)
    if (!entry) return undefined
    const { operand, dtype } = entry
    return {
      type: { kind: 'tensor', dtype, shape: operand.shape! },
      ...(isConstantOperand(operand) && { value: operand }),
    }
  }

  #visit(node: Node): void {
    if (this.#covered.has(node)) return
    const view = new NodeView(node, this.#context)
    const gelu = this.#gelus.get(node)
    const row = view.domain === '' ? rowOf(view.opType) : undefined
    try {
      if (gelu) this.#convertGelu(node, gelu)
      else if (!this.#foldNode(node, view) && !this.#coverGelu(node, view)) {
        if (!row) refuse(refusalOf(view.opType, view.domain))
        // What a refused node lacks is no fault of this one.
        if (node.inputs.some((name) => this.#unknown.has(name))) this.#forget(node)
        else this.#convert(node, view, row.convert)
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.#refuse(node, error.message)
      this.#placeholders(node, view)
    }
  }

  #refuse(node: Node, reason: string): void {
    this.#refused.push({ node: labelOf(node), operator: node.opType, reason })
  }

  #forget(node: Node): void {
    for (const name of node.outputs) if (name !== '' && !this.#entries.has(name)) this.#unknown.add(name)
  }

  /** Tensors in place of the outputs of a refused node, so that the nodes behind it are examined too. */
  #placeholders(node: Node, view: NodeView): void {
    const shapes = shapesOf(view)
    for (const [at, name] of node.outputs.entries()) {
      const shape = shapes[at]
      const dtype = dtypeOf(outputTypeOf(view, at)) ?? 'float32'
      if (name === '') continue
      if (!shape?.every(isKnown)) {
        this.#unknown.add(name)
        continue
      }
      const tensor: TmfileTensor = {
        ...{ name, dtype: 'float32', shape: [...shape], role: 'variable', layout: 0 },
        ...{ quantization: null, buffer: null },
      }
      this.#entries.set(name, { operand: tensor, dtype })
    }
  }

  /** The value of a node whose inputs are constant, and of Shape and Size. */
  #foldNode(node: Node, view: NodeView): boolean {
    const made = this.#foldedValues(node, view)
    if (!made) return false
    for (const [at, constant] of made.entries()) {
      const name = node.outputs[at] ?? ''
      if (name !== '' && constant) this.#entries.set(name, { operand: constant, dtype: constant.dtype })
    }
    if (node.opType !== 'Constant') this.#report.folded.push(labelOf(node))
    return true
  }

  #foldedValues(node: Node, view: NodeView): readonly (Constant | undefined)[] | undefined {
    if (view.domain !== '') return undefined
    const [name = ''] = node.outputs
    if (view.opType === 'Constant') {
      const tensor = constantOf(node)
      if (tensor?.kind !== 'dense') refuse('a constant that is not a dense tensor')
      return [Constant.ofTensor(name, tensor)]
    }
    const inputs = node.inputs.map((input) => this.#constantOf(input))
    const isConstant =
      node.inputs.length > 0 && node.inputs.every((input, at) => input === '' || inputs[at] !== undefined)
    const kept = isConstant ? this.#keptElements(view, inputs) : undefined
    return kept ? [kept] : this.#computed(view, isConstant)
  }

  /** A constant whose elements stay where they are, unread, or move as a whole, with the codes behind them. */
  #keptElements(view: NodeView, inputs: readonly (Constant | undefined)[]): Constant | undefined {
    const [first] = inputs
    const [name = ''] = view.outputs
    if (view.opType === 'DequantizeLinear') return this.#dequantize(view, inputs)
    if (!first || (!STILL.has(view.opType) && view.opType !== 'Transpose')) return undefined
    const shape = staticShapes(view)[0]!
    if (view.opType !== 'Transpose') return first.named(name).reshaped(shape)
    const perm = view.ints('perm') ?? first.shape.map((_, axis) => first.shape.length - 1 - axis)
    return first.named(name).transposed(perm)
  }

  #computed(view: NodeView, isConstant: boolean): readonly (Constant | undefined)[] | undefined {
    const made = this.#evaluator.outputsOf(view)
    if (!made && isConstant) {
      if (this.#evaluator.isExceeded)
        refuse(`more than ${MAX_COMPUTED_ELEMENTS} elements of constants that are computed`)
      refuse(`its inputs are constant; ${view.opType} is not computed`)
    }
    if (made?.some((value) => value?.isPartial)) return undefined
    return made?.map((value, at) => value && Constant.ofValue(view.outputs[at] ?? '', value))
  }

  #dequantize(view: NodeView, inputs: readonly (Constant | undefined)[]): Constant {
    if (view.int('block_size', 0) !== 0) refuse('scales for blocks')
    const [codes, scale] = inputs
    if (!codes || !scale) return refuse('its codes or its scale are missing')
    const axis = view.int('axis', 1)
    const fromFront = axis < 0 ? axis + codes.shape.length : axis
    return dequantized(view.outputs[0]!, codes, scale, inputs[2], fromFront)
  }

  #constantOf(name: string): Constant | undefined {
    const operand = this.#entries.get(name)?.operand
    return operand && isConstantOperand(operand) ? operand : undefined
  }

  #scalarOf(name: string): number | undefined {
    const known = this.#constantOf(name)
    if (known) return known.size === 1 ? known.numbers[0] : undefined
    const tensor = this.#graph.value(name)?.constant
    return tensor?.kind === 'dense' && tensor.size === 1
      ? Constant.ofTensor(name, tensor).numbers[0]
      : undefined
  }

  /** Whether the node is an Erf of a Gelu, whose last node then stands for all. */
  #coverGelu(node: Node, { opType, domain }: NodeView): boolean {
    if (opType !== 'Erf' || domain !== '') return false
    const match = matchGelu(this.#graph, node, (name) => this.#scalarOf(name))
    if (!match) return false
    this.#gelus.set(match.last, match)
    for (const inner of match.inner) this.#covered.add(inner)
    return true
  }

  #convertGelu(node: Node, { input, inner }: GeluMatch): void {
    const x = this.#entries.get(input)?.operand
    if (!x || isConstantOperand(x)) {
      this.#forget(node)
      return
    }
    this.#builder.begin(node.outputs[0]!)
    const made = this.#builder.emit('Gelu', [x], {}, x.shape!)
    this.#finish(node, [made])
    for (const each of inner)
      this.#report.fused.push({ node: labelOf(each), operator: each.opType, into: made.name! })
  }

  #convert(
    node: Node,
    view: NodeView,
    convert: (step: Step) => TmfileTensor | readonly (TmfileTensor | undefined)[],
  ): void {
    this.#builder.begin(node.outputs.find((name) => name !== '') ?? node.opType)
    const fusedBefore = this.#report.fused.length
    const step = new Step({
      view,
      builder: this.#builder,
      report: this.#report,
      operandOf: (name) => this.#entries.get(name)?.operand,
      shapes: staticShapes(view),
      usesOf: (name) => this.#uses.get(name) ?? 0,
      isOutput: (name) => this.#graph.outputNames.has(name),
      keepsQuantized: this.#settings.quantized === 'keep',
    })
    const made = convert(step)
    this.#finish(node, 'length' in made ? made : [made], view)
    this.#describe(node, this.#report.fused.length > fusedBefore)
  }

  /** Names the results as the ONNX values, and records them. */
  #finish(node: Node, made: readonly (TmfileTensor | undefined)[], view?: NodeView): void {
    for (const each of this.#builder.made) this.#origins.set(each, node)
    for (const [at, name] of node.outputs.entries()) {
      const tensor = made[at]
      if (name === '' || !tensor) continue
      const producer = this.#builder.producerOf(tensor)
      const isFused = producer !== undefined && this.#report.fused.at(-1)?.into === producer.name
      if (this.#builder.isMadeHere(tensor)) this.#builder.rename(tensor, name, at === 0 ? node.name : '')
      else if (isFused && tensor.role === 'variable') this.#builder.rename(tensor, name, producer.name!)
      const dtype = (view && dtypeOf(outputTypeOf(view, at))) ?? 'float32'
      this.#entries.set(name, { operand: tensor, dtype })
    }
  }

  #describe(node: Node, isFused: boolean): void {
    const operators = this.#builder.made.map(({ operator }) => operator)
    if (isFused) return
    if (operators.length === 0) this.#report.dropped.push(labelOf(node))
    if (operators.length > 1)
      this.#report.replaced.push({ node: labelOf(node), operator: node.opType, by: operators })
  }

  #outputs(): TmfileNode[] {
    const named = this.#graph.outputs.map(({ name }) => ({ name, entry: this.#entries.get(name) }))
    if (this.#refused.length > 0) return []
    for (const { name, entry } of named) {
      const producer = this.#graph.producerOf(name)
      const operator = producer?.opType ?? 'output'
      const node = producer ? labelOf(producer) : name
      if (!entry) this.#refused.push({ node, operator, reason: `output "${name}" has no producer` })
      else if (entry.dtype === 'bool')
        this.#refused.push({ node, operator, reason: `output "${name}" is bool; the engine has no bool` })
    }
    if (this.#refused.length > 0) return []
    const outputs = named.map(({ name, entry }) => ({ name, operand: entry!.operand }))
    try {
      const nodes = chooseOutputs(this.#builder, outputs, this.#report)
      append(
        this.#refused,
        floatNodes(this.#builder, (node) => this.#originOf(node)),
      )
      return nodes
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.#refused.push({ node: 'graph', operator: 'output', reason: error.message })
      return []
    }
  }

  #originOf(node: TmfileNode): { readonly node: string; readonly operator: string } {
    const origin = this.#origins.get(node)
    return origin
      ? { node: labelOf(origin), operator: origin.opType }
      : { node: node.name!, operator: node.operator }
  }

  #finishReport(outputs: readonly TmfileTensor[]): OnnxToTmfileReport {
    const { folded, dropped, fused, replaced, copied, notes } = this.#report
    const inputs = Object.fromEntries(
      this.#builder.inputs.map(({ name, shape }): [string, readonly number[]] => [name!, [...shape!]]),
    )
    for (const { name, dtype, quantization } of this.#builder.inputs) {
      if (quantization) notes.add(`Input ${name} takes ${dtype} codes: ${recordText(quantization)}.`)
    }
    for (const { name, dtype, quantization } of outputs) {
      if (quantization) notes.add(`Output ${name} gives ${dtype} codes: ${recordText(quantization)}.`)
    }
    return {
      nodes: this.#builder.nodes.length,
      ...{ inputs, folded, dropped, fused, replaced, copied },
      fixedBatch: this.#builder.fixedNames,
      notes: [...notes],
    }
  }
}

const recordText = ({ scales, zeroPoints }: { scales: Float32Array; zeroPoints: Int32Array }): string =>
  `scale ${scales[0]}, zero point ${zeroPoints[0]}`

/** Operators of which constants keep the order of their elements. */
const STILL: ReadonlySet<string> = new Set([
  'Identity',
  'Reshape',
  'Flatten',
  'Squeeze',
  'Unsqueeze',
  'Dropout',
])

function labelOf(node: Node): string {
  return node.name || node.outputs.find((name) => name !== '') || node.opType
}

function dtypeOf(type: ValueType | undefined): Dtype | undefined {
  return type?.kind === 'tensor' && typeof type.dtype === 'string' ? type.dtype : undefined
}

/** Shapes of all outputs as numbers. */
function staticShapes(view: NodeView): Shape[] {
  const shapes = shapesOf(view)
  return view.outputs.map((name, at) => {
    const shape: Dims | undefined = shapes[at]
    if (shape?.every(isKnown)) return shape as Shape
    return name === ''
      ? []
      : refuse(`the shape of its output ${valueText(name)} does not follow from the inputs`)
  })
}

/** The engine takes integers of 8 bits for codes, and without a scale it computes nothing of use. */
function tensorsWithoutScale({ graph }: TmfileModel): RefusedNode[] {
  const isBare = ({ dtype, role, quantization }: TmfileTensor): boolean =>
    (dtype === 'int8' || dtype === 'uint8') && role !== 'constant' && !quantization
  const reason =
    'integers without QuantizeLinear or DequantizeLinear; the option quantized: dequantize (--quantized dequantize) computes them as floats'
  return graph.tensors
    .filter(isBare)
    .map(({ name, dtype }) => ({ node: name ?? '', operator: dtype, reason }))
}
