/**
 * Converts tmfiles to ONNX. Nodes are visited in file order, which is the order in which the runtime runs them; each is converted
 * by its row in the table. A quantized activation is a QuantizeLinear behind the node that makes it, and a DequantizeLinear in front of
 * those that take it.
 */

import { TileworkError } from '../../../errors.js'
import { isStorable } from '../../../formats/tmfile/encode/chunk.js'
import { operatorByNumber } from '../../../formats/tmfile/operators.js'
import type { Field } from '../../../formats/tmfile/struct_layout.js'
import { append } from '../../../long_lists.js'
import type { Shape } from '../../../models/onnx/evaluate/arrays.js'
import type { OnnxModel } from '../../../models/onnx/index.js'
import {
  checkTmfileModel,
  type TmfileModel,
  type TmfileNode,
  type TmfileTensor,
} from '../../../models/tmfile/index.js'
import { valueText } from '../../../value_text.js'
import { type RefusedNode, refusedError } from '../refused_error.js'
import { whyNotShape } from '../to_tmfile/engine_limits.js'
import { Refusal, refuse } from '../to_tmfile/refusal.js'
import type { ReplacedNode } from '../to_tmfile/report.js'
import { Constants } from './constants.js'
import { NodeScope } from './node_scope.js'
import { type GraphEnd, ints, OnnxWriter } from './onnx_writer.js'
import { checkToOnnxOptions, type Settings, type TmfileToOnnxOptions } from './options.js'
import { PreparedGraph } from './prepared_graph.js'
import { dequantize, isQuantized, quantize } from './quantized.js'
import type { TmfileToOnnxReport } from './report.js'
import { refusalOf, rowOf } from './table.js'

export interface ConvertedToOnnx {
  readonly model: OnnxModel
  readonly report: TmfileToOnnxReport
}

/** Batch sizes of the two conversions that show whether a model depends on it. */
const TRIAL_BATCHES = [2, 3] as const

/**
 * Converts a tmfile to an ONNX model that gives the outputs that Tengine gives. The tmfile does not change; its weights are read when
 * the ONNX model is saved, so its file must stay open until then.
 *
 * @throws TileworkError ERR_UNSUPPORTED that names every node that cannot be converted, its operator and the reason; ERR_ARGUMENT for
 * an invalid option and for an input without a shape
 */
export async function tmfileToOnnx(
  model: TmfileModel,
  options: TmfileToOnnxOptions = {},
): Promise<ConvertedToOnnx> {
  checkTmfileModel(model, 'tmfileToOnnx')
  const settings = checkToOnnxOptions(options)
  const { batch } = settings
  if (typeof batch !== 'string') return new Conversion(model, settings, batch).run().finish()
  const [one, other] = TRIAL_BATCHES.map((extent) => new Conversion(model, settings, extent).run())
  return one!.finish({ name: batch, other: other! })
}

/** A batch size that is set later. */
interface OpenBatch {
  readonly name: string
  /** The same conversion with another batch size. */
  readonly other: Conversion
}

/** Names in the ONNX graph of an activation of the tmfile. */
interface Value {
  /** Integers; undefined for a float. */
  readonly codes?: string
  /** Floats; undefined until something takes them. */
  real?: string
}

/** An input or output of the ONNX graph, with the extents that the conversion has. */
interface End extends GraphEnd {
  readonly dtype: 'float32' | 'int8' | 'uint8' | 'int32'
  readonly shape: Shape
}

class Conversion {
  readonly #settings: Settings
  readonly #model: TmfileModel
  readonly #graph: PreparedGraph
  readonly #writer = new OnnxWriter()
  readonly #constants: Constants
  /** Unique names of activations. */
  readonly #names = new Map<TmfileTensor, string>()
  readonly #values = new Map<TmfileTensor, Value>()
  readonly #produced = new Set<TmfileTensor>()
  readonly #outputTensors = new Set<TmfileTensor>()
  readonly #inputs: End[] = []
  readonly #outputs: End[] = []
  readonly #refused: RefusedNode[] = []
  readonly #replaced: ReplacedNode[] = []
  readonly #notes = new Set<string>()
  #converted = 0

  constructor(model: TmfileModel, settings: Settings, batch: number | undefined) {
    this.#model = model
    this.#settings = settings
    this.#graph = new PreparedGraph(model, settings, batch)
    this.#constants = new Constants(this.#writer, {
      keepsFloat16: settings.weights === 'float16',
      fillsZeros: settings.absentWeights === 'zeros',
      isNhwc: this.#graph.isNhwc,
    })
  }

  /** @throws TileworkError ERR_UNSUPPORTED */
  run(): this {
    for (const node of this.#model.graph.outputs) this.#addOutputs(this.#graph.copyOf(node))
    for (const { outputs } of this.#graph.nodes) {
      for (const tensor of outputs) {
        this.#produced.add(tensor)
        if (tensor.role !== 'constant') this.#names.set(tensor, this.#writer.freshValue(tensor.name!))
      }
    }
    for (const tensor of this.#graph.inputs) this.#addInput(tensor)
    const needed = this.#neededNodes()
    for (const node of this.#graph.nodes) if (needed.has(node)) this.#convert(node)
    if (this.#refused.length > 0) throw refusedError(this.#refused, 'ONNX', 'tmfile')
    for (const tensor of this.#outputTensors) this.#addOutput(tensor)
    return this
  }

  finish(openBatch?: OpenBatch): ConvertedToOnnx {
    if (openBatch) this.#refuseFixedBatch(openBatch)
    const [inputs, outputs] = this.#endsWith(openBatch)
    const count = this.#constants.zeros.size
    if (count > 0)
      this.#notes.add(
        `${count === 1 ? '1 constant has' : `${count} constants have`} no data in the file and became zeros; tilework edit --fill-weights gives them values before.`,
      )
    const report: TmfileToOnnxReport = {
      nodes: this.#converted,
      inputs: Object.fromEntries(inputs.map(({ name, shape }) => [name, shape])),
      replaced: this.#replaced,
      zeros: [...this.#constants.zeros].map(({ name }) => name!),
      notes: [...this.#notes],
    }
    return { model: this.#writer.build(this.#model.name || 'graph', inputs, outputs), report }
  }

  /** Inputs and outputs, with a first extent that is open where it follows the batch. */
  #endsWith(batch: OpenBatch | undefined): readonly [readonly GraphEnd[], readonly GraphEnd[]] {
    const ends = (list: readonly End[], others: readonly End[] | undefined) =>
      list.map((end, at) => ({ ...end, shape: openShape(end.shape, others?.[at]?.shape, batch?.name) }))
    if (!batch) return [this.#inputs, this.#outputs]
    return [ends(this.#inputs, batch.other.#inputs), ends(this.#outputs, batch.other.#outputs)]
  }

  /** Refuses to leave the batch open where a node or a constant depends on it. */
  #refuseFixedBatch({ name, other }: OpenBatch): void {
    const others = new Set(other.#writer.outline())
    const fixed = this.#writer.outline().filter((line) => !others.has(line))
    if (fixed.length === 0) return
    const nodes = this.#writer.nodesOf(fixed).map((node) => valueText(node))
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `The batch cannot stay open as ${valueText(name)}: these nodes depend on its size: ${nodes.join(', ')}.`,
      { format: 'tmfile' },
    )
  }

  /** A decoder of boxes behind the network has no counterpart; its inputs become outputs. */
  #addOutputs(node: TmfileNode): void {
    const tensors = node.operator === 'DetectionOutput' ? node.inputs : node.outputs
    for (const tensor of tensors) this.#outputTensors.add(tensor)
  }

  /** Nodes that the outputs depend on; a decoder of boxes at the end is converted to a note. */
  #neededNodes(): ReadonlySet<TmfileNode> {
    const producers = new Map(
      this.#graph.nodes.flatMap((node) => node.outputs.map((tensor) => [tensor, node])),
    )
    const needed = new Set(this.#graph.nodes.filter(({ operator }) => operator === 'DetectionOutput'))
    const open = [...this.#outputTensors].map((tensor) => producers.get(tensor))
    for (let node = open.pop(); open.length > 0 || node; node = open.pop()) {
      if (!node || needed.has(node)) continue
      needed.add(node)
      append(
        open,
        node.inputs.map((tensor) => producers.get(tensor)),
      )
    }
    return needed
  }

  /** Whether the tensor is integers in ONNX. */
  #isQuantized(tensor: TmfileTensor): boolean {
    return this.#settings.quantized === 'keep' && isQuantized(tensor)
  }

  #hasFloatEnds(): boolean {
    return this.#settings.ends === 'float32'
  }

  #dtypeOf(tensor: TmfileTensor): End['dtype'] {
    if (this.#isQuantized(tensor))
      return this.#hasFloatEnds() ? 'float32' : (tensor.dtype as 'int8' | 'uint8')
    return this.#values.get(tensor)?.codes === undefined ? 'float32' : 'int32'
  }

  #addInput(tensor: TmfileTensor): void {
    const name = this.#names.get(tensor)!
    const isTurned = this.#settings.inputLayout === 'NHWC' && this.#graph.isNhwc && tensor.shape!.length === 4
    const [n, c, h, w] = tensor.shape!
    const shape = isTurned ? [n!, h!, w!, c!] : tensor.shape!
    this.#inputs.push({ name, dtype: this.#dtypeOf(tensor), shape })
    const value = isTurned
      ? this.#writer.addNode('Transpose', `${name}__nchw`, [name], { perm: ints([0, 3, 1, 2]) })
      : name
    if (!this.#isQuantized(tensor)) this.#values.set(tensor, { real: value })
    else if (!this.#hasFloatEnds()) this.#values.set(tensor, { codes: value })
    else
      this.#values.set(tensor, {
        codes: quantize(this.#writer, tensor, value, this.#writer.freshValue(`${name}__codes`)),
      })
    this.#noteMissingScales(tensor)
  }

  #addOutput(tensor: TmfileTensor): void {
    const dtype = this.#dtypeOf(tensor)
    const real = dtype === 'float32' ? this.#valueOf(tensor) : undefined
    const value = real ?? this.#madeValue(tensor).codes!
    const isOwn = this.#writer.isMade(value)
    const name = isOwn ? value : this.#writer.addNode('Identity', `${tensor.name}__output`, [value])
    this.#outputs.push({ name, dtype, shape: tensor.shape! })
  }

  /** Integers without scales have no meaning; their file is an older kind, whose weights alone are quantized. */
  #noteMissingScales(tensor: TmfileTensor): void {
    if (!['int8', 'uint8'].includes(tensor.dtype) || isQuantized(tensor)) return
    this.#notes.add('Activations are integers without scales in the file; they are floats here.')
  }

  /** @throws TileworkError ERR_GRAPH for a tensor that no node and no input makes */
  #madeValue(tensor: TmfileTensor) {
    const value = this.#values.get(tensor)
    if (value) return value
    const message = `The tensor ${JSON.stringify(tensor.name)} is used, and no node before makes it.`
    throw new TileworkError('ERR_GRAPH', message, { format: 'tmfile' })
  }

  /** The name of a tensor's real values; a DequantizeLinear is added before its first use. */
  #valueOf(tensor: TmfileTensor): string {
    if (tensor.role === 'constant') {
      if (tensor.shape) return this.#constants.floats(tensor, tensor.shape)
      const message = `The constant ${valueText(tensor.name)} has no shape.`
      throw new TileworkError('ERR_GRAPH', message, { format: 'tmfile' })
    }
    const value = this.#madeValue(tensor)
    value.real ??= dequantize(
      this.#writer,
      tensor,
      value.codes!,
      this.#writer.freshValue(`${value.codes}__real`),
    )
    return value.real
  }

  #convert(node: TmfileNode): void {
    if (node.operator === 'InputOp' || node.operator === 'Const') return
    const before = this.#writer.nodes.length
    try {
      if (this.#isDetection(node)) return
      const { convert } = rowOf(node.operator) ?? refuse(refusalOf(node.operator))
      // Behind a node that was refused nothing is known.
      if (!this.#hasInputs(node)) return
      checkParams(node)
      if (!this.#graph.prepare(node)) refuse(shapeReason(node))
      for (const { shape } of [...node.inputs, ...node.outputs]) {
        const reason = shape ? whyNotShape(shape) : undefined
        if (reason !== undefined) refuse(reason)
      }
      const results = node.outputs.map((tensor) => this.#resultOf(tensor))
      convert(this.#scopeOf(node, results))
      for (const [index, tensor] of node.outputs.entries()) this.#finishResult(node, tensor, results[index]!)
    } catch (error) {
      // Constants whose parameters no tensor can have are refused by the tensors themselves.
      if (!(error instanceof Refusal || error instanceof TileworkError)) throw error
      for (const tensor of node.outputs) tensor.shape = null
      this.#refused.push({ node: node.name!, operator: node.operator, reason: error.message })
      return
    }
    this.#converted += 1
    const by = this.#writer.nodes.slice(before).map(({ opType }) => opType)
    const own = by.filter((opType) => !['QuantizeLinear', 'DequantizeLinear'].includes(opType))
    if (own.length > 1) this.#replaced.push({ node: node.name!, operator: node.operator, by: own })
  }

  /** A decoder of boxes at the end of the graph. */
  #isDetection(node: TmfileNode): boolean {
    if (node.operator !== 'DetectionOutput') return false
    const [boxes] = node.outputs
    if (this.#graph.nodes.some(({ inputs }) => boxes && inputs.includes(boxes)))
      refuse('nodes behind it take its boxes')
    this.#notes.add(`${valueText(node.name)} (DetectionOutput) has no counterpart; its inputs are outputs.`)
    return true
  }

  /** Whether the shapes of all inputs are known. */
  #hasInputs({ inputs }: TmfileNode): boolean {
    const open = inputs.find(({ shape }) => !shape)
    if (!open) return true
    if (!this.#produced.has(open)) refuse(`no node produces its input ${valueText(open.name)}`)
    return false
  }

  #scopeOf(node: TmfileNode, results: readonly string[]): NodeScope {
    return new NodeScope({
      node,
      results,
      outputShapes: node.outputs.map(({ shape }) => shape!),
      hasOpenBatch: typeof this.#settings.batch === 'string',
      isNhwc: this.#graph.isNhwc,
      hasCodes: ['int8', 'uint8'].includes(node.outputs[0]?.dtype ?? ''),
      writer: this.#writer,
      constants: this.#constants,
      valueOf: (tensor) => this.#valueOf(tensor),
      note: (message) => this.#notes.add(`${valueText(node.name)} (${node.operator}): ${message}.`),
    })
  }

  /** The name of the value that a row makes, before it is quantized. */
  #resultOf(tensor: TmfileTensor): string {
    const name = this.#names.get(tensor) ?? refuse(`its output ${valueText(tensor.name)} is a constant`)
    return this.#isQuantized(tensor) ? this.#writer.freshValue(`${name}__float`) : name
  }

  #finishResult(node: TmfileNode, tensor: TmfileTensor, result: string): void {
    this.#noteMissingScales(tensor)
    const name = this.#names.get(tensor)!
    const isIndex = node.operator === 'TopKV2' && tensor === node.outputs[1]
    if (!this.#isQuantized(tensor))
      this.#values.set(tensor, isIndex ? { codes: name, real: name } : { real: name })
    else if (!this.#hasFloatEnds() || !this.#outputTensors.has(tensor)) {
      this.#values.set(tensor, { codes: quantize(this.#writer, tensor, result, name) })
    } else {
      const codes = quantize(this.#writer, tensor, result, this.#writer.freshValue(`${name}__codes`))
      this.#values.set(tensor, { codes, real: dequantize(this.#writer, tensor, codes, name) })
    }
  }
}

/** Refuses parameters that a program has set, and that no file holds. */
function checkParams({ operatorNumber, params }: TmfileNode): void {
  for (const [name, field] of Object.entries(operatorByNumber(operatorNumber)?.fields ?? {})) {
    const value: unknown = (params as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined && !fits(field, value)) refuse(`its parameter ${name} is ${valueText(value)}`)
  }
}

function fits(field: Field, value: unknown): boolean {
  if (field.kind === 'scalar') return isStorable(field.type, value)
  if (value === null) return true
  if (field.kind === 'string') return typeof value === 'string'
  const { type } = field
  const areStorable = (list: unknown): boolean =>
    Array.isArray(list) && list.every((each) => isStorable(type === 'i32' ? 'i32' : 'f32', each))
  return type === 'f32[4]' ? Array.isArray(value) && value.every(areStorable) : areStorable(value)
}

function shapeReason({ inputs }: TmfileNode): string {
  const shapes = inputs.map(({ shape }) => `[${shape}]`).join(', ')
  return `its parameters do not fit its inputs ${shapes}, or the engine refuses them`
}

/** The shape of an end, with an open first extent where it follows the batch. */
function openShape(
  shape: Shape,
  other: Shape | undefined,
  name: string | undefined,
): readonly (number | string | null)[] {
  if (!other || shape[0] === other[0]) return shape
  const follows = shape[0] === TRIAL_BATCHES[0] && other[0] === TRIAL_BATCHES[1]
  return [follows ? name! : null, ...shape.slice(1)]
}
