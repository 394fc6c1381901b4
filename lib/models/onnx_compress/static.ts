/**
 * Quantizes activations and weights with ranges that are known: QuantizeLinear and DequantizeLinear around the nodes,
 * which engines fuse with them. Names are those of onnxruntime's tool. Graphs inside nodes stay.
 */

import { checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { cast } from '../../tensor/cast.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import { quantize } from '../../tensor/quantize.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { standardDomain } from '../onnx/document/node.js'
import { orderedNodes } from '../onnx/document/node_order.js'
import { dropInitializer, mainScope, type Scope } from '../onnx/document/scope.js'
import type { Graph, NewNode, Node } from '../onnx/document/types.js'
import { freeInitializers } from '../onnx/edit/free_initializers.js'
import { sortNodes } from '../onnx/edit/graph_passes.js'
import { importMissingOpsets } from '../onnx/edit/missing_opsets.js'
import { type CodeType, codeParameters, isSigned, valueRanges } from './code_parameters.js'
import { ElementTypes } from './element_types.js'
import { FiniteWeights } from './finite_weights.js'
import { FloatReader } from './float_window.js'
import { isQuantizedOperator } from './quantized_operators.js'
import { type CompressReport, ReportBuilder, valueBytes } from './report.js'
import { type RaisedOpset, requireOpset } from './require_opset.js'
import { type BiasCodes, biasCodes, raisedScales } from './static_bias.js'
import {
  checkQuantizable,
  checkStaticOptions,
  type QuantizableOptions,
  type QuantizeStaticOptions,
  type StaticSettings,
  type ValueRange,
} from './static_options.js'
import { type BiasMark, type Mark, type Marks, markValues, type StaticView } from './static_rules.js'

/** QuantizeLinear of 8 bits, its axis, and its other integer types. */
const QUANTIZE_OPSET = 10
const AXIS_OPSET = 13
const TYPES_OPSET = 21

/** Has QuantizeLinear and DequantizeLinear of all types for every operator set; onnxruntime's tool takes them below TYPES_OPSET, too. */
const MICROSOFT = 'com.microsoft'

/** The first IR version with tensors of 4 bits. */
const INT4_IR_VERSION = 10

/** Names that a message lists at most. */
const LISTED_NAMES = 10

/**
 * Names of the float32 values that are inputs or outputs of nodes to be quantized: those whose ranges `quantizeStatic` may
 * need. Weights are not among them.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function quantizableValues(model: OnnxModel, options: QuantizableOptions = {}): string[] {
  checkModel(model, 'quantizableValues')
  checkOptions(options, 'quantizableValues', ['ops', 'exclude'])
  const choice = readInput('The options of quantizableValues', () =>
    checkQuantizable('quantizableValues', { ...options }),
  )
  const { graph } = model
  const types = new ElementTypes(model).of(graph)
  const names = new Set<string>()
  for (const node of chosenNodes(graph, choice)) {
    for (const name of [...node.inputs, ...node.outputs]) {
      if (types.get(name)?.dtype === 'float32' && types.get(name)?.isTensor && !graph.hasInitializer(name))
        names.add(name)
    }
  }
  return [...names]
}

/**
 * Quantizes activations and weights in place, with given ranges of the activations: 8 bits by default, 16 for either and 4 for
 * weights. Weights are read once here, for their ranges, and once when the model is saved. With 4 or 16 bits below operator set 21 and
 * without `raiseOpset`, the new nodes are of the domain com.microsoft, as those of onnxruntime's tool are.
 *
 * @throws TileworkError ERR_UNSUPPORTED without `raiseOpset` below operator set 10, with `perChannel` 13, and for a
 * model that is quantized already; ERR_ARGUMENT, also for missing ranges, which it lists; ERR_ABORTED and errors of reading, after which the model may
 * be changed in part
 */
export async function quantizeStatic(
  model: OnnxModel,
  options: QuantizeStaticOptions,
): Promise<CompressReport> {
  checkModel(model, 'quantizeStatic')
  const settings = checkStaticOptions(options)
  const quantized = model.graph.nodes.find(isQuantizedOperator)
  if (quantized) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `the model is quantized already: it has ${quantized.opType} ${valueText(quantized.name)}.`,
    )
  }
  const domain = domainOfCodes(model, settings)
  const raised = domain === '' ? requireQuantizeLinear(model, settings) : {}
  freeInitializers(model)
  const work = new StaticWork(model, settings, domain)
  await work.run()
  if (settings.weightType.endsWith('int4') && Number(model.irVersion) < INT4_IR_VERSION)
    model.irVersion = INT4_IR_VERSION
  return { ...work.report.finish(), ...raised }
}

/** The domain of QuantizeLinear and DequantizeLinear. */
function domainOfCodes(model: OnnxModel, settings: StaticSettings): '' | typeof MICROSOFT {
  const isLate = Number(model.opsetImports.get('') ?? 0) >= TYPES_OPSET
  return isLate || settings.raiseOpset || !laterType(settings) ? '' : MICROSOFT
}

/** A type that QuantizeLinear of ONNX takes from TYPES_OPSET on only. */
function laterType({ activationType, weightType }: StaticSettings): CodeType | undefined {
  return [activationType, weightType].find((type) => type !== 'int8' && type !== 'uint8')
}

function requireQuantizeLinear(model: OnnxModel, settings: StaticSettings): RaisedOpset {
  const other = laterType(settings)
  if (other) return requireOpset(model, TYPES_OPSET, `QuantizeLinear to ${other}`, settings)
  return requireOpset(model, settings.perChannel ? AXIS_OPSET : QUANTIZE_OPSET, 'QuantizeLinear', settings)
}

function chosenNodes(graph: Graph, { ops, excludes }: Pick<StaticSettings, 'ops' | 'excludes'>): Node[] {
  return orderedNodes(graph.nodes).filter(
    (node) => standardDomain(node.domain) === '' && ops.has(node.opType) && !excludes.has(node.name),
  )
}

/** Names of a scale and a zero point, and their numbers: one each, or one per channel. */
interface Parameters {
  readonly type: CodeType
  readonly scale: string
  readonly zeroPoint: string
  readonly scales: Float32Array
  readonly zeros: readonly number[]
  readonly axis: number | undefined
}

class StaticWork implements StaticView {
  readonly report: ReportBuilder
  readonly graph: Graph
  readonly types: StaticView['types']
  readonly opset: number
  readonly #model: OnnxModel
  readonly #settings: StaticSettings
  readonly #domain: '' | typeof MICROSOFT
  readonly #scope: Scope
  readonly #names: FreshNames
  #nodes: readonly Node[]
  /** Nodes that stay because a constant has numbers without codes, and why. */
  readonly #kept = new Map<Node, string>()
  readonly #parameters = new Map<string, Parameters>()
  /** What nodes take instead of a value. */
  readonly #decoded = new Map<string, string>()
  readonly #added: NewNode[] = []
  /** Constant limits of Clip nodes and values of Pad nodes by name. */
  readonly #numbers = new Map<string, number>()

  constructor(model: OnnxModel, settings: StaticSettings, domain: '' | typeof MICROSOFT) {
    this.#model = model
    this.#settings = settings
    this.#domain = domain
    this.opset = Number(model.opsetImports.get(''))
    this.graph = model.graph
    this.report = new ReportBuilder(model)
    this.types = new ElementTypes(model).of(model.graph)
    this.#scope = mainScope(model)
    this.#names = new FreshNames(model)
    this.#nodes = chosenNodes(model.graph, settings)
  }

  get perChannel(): boolean {
    return this.#settings.perChannel
  }

  constant(name: string): DenseTensor | undefined {
    return this.#scope.constant(name)?.tensor
  }

  /** Codes of the output saturate where the node does, as its range lies inside the limits. */
  clampsTo(node: Node): boolean {
    const range = this.#rangeOf(node.outputs[0] ?? '')
    if (!range) return false
    const low = node.opType === 'Relu' ? 0 : this.#limit(node, 'min', 1)
    const high = node.opType === 'Relu' ? Number.POSITIVE_INFINITY : this.#limit(node, 'max', 2)
    if (low === undefined || high === undefined) return false
    return low <= Math.min(0, range.min) && Math.max(0, range.max) <= high
  }

  /** A limit of Clip; undefined where it is not a constant. */
  #limit(node: Node, name: 'min' | 'max', input: number): number | undefined {
    const attribute = node.attribute(name)?.value
    if (attribute !== undefined) return Number(attribute)
    const from = node.inputs[input] ?? ''
    if (from !== '') return this.#numbers.get(from)
    return name === 'min' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }

  /** Before operator set 11 the value is an attribute. */
  padsZeros(node: Node): boolean {
    const [, , value = ''] = node.inputs
    if (value !== '') return this.#numbers.get(value) === 0
    return Number(node.attribute('value')?.value ?? 0) === 0
  }

  async #readNumbers(): Promise<void> {
    for (const { opType, inputs } of this.#nodes) {
      if (opType !== 'Clip' && opType !== 'Pad') continue
      for (const name of inputs.slice(1)) {
        const tensor = this.#scope.constantTensor(name)
        if (tensor?.dtype === 'float32' && tensor.size === 1)
          this.#numbers.set(name, (await floatsOf(tensor))[0]!)
      }
    }
  }

  /** Codes have no NaN and no infinities. */
  async #keepUnboundedNodes(): Promise<void> {
    const weights = new FiniteWeights(this.#settings.signal)
    for (const node of this.#nodes) {
      for (const name of node.inputs) {
        const tensor = this.constant(name)
        const reason = tensor?.dtype === 'float32' ? await weights.whyNot(this.graph, tensor) : undefined
        if (reason !== undefined) this.#kept.set(node, reason)
      }
    }
    this.#nodes = this.#nodes.filter((node) => !this.#kept.has(node))
  }

  async run(): Promise<void> {
    await this.#keepUnboundedNodes()
    await this.#readNumbers()
    const marks = markValues(this.#nodes, this)
    this.#refuseMissing(marks)
    for (const [name, mark] of marks.values) await this.#findParameters(name, mark)
    for (const [name, mark] of marks.values) this.#share(name, mark, marks)
    for (const bias of marks.biases) await this.#raiseScale(bias)
    this.#removeClamps(marks)
    for (const name of marks.values.keys()) this.#quantize(name)
    await this.#quantizeBiases(marks.biases)
    this.#replaceUses()
    this.#note(marks)
    for (const node of this.#added) this.graph.addNode(node, 0)
    if (this.#added.length > 0) importMissingOpsets(this.#model, [[this.#domain, 1]])
    sortNodes(this.graph)
    this.#dropWeights(marks)
  }

  /**
   * Input of Relu and Clip takes the range of the output if that is its only use; Softmax gives 0 to 1. The tool forgets that an output of
   * the graph is used by the caller, who would get it clamped.
   */
  #rangeOf(name: string): ValueRange | undefined {
    const { graph } = this
    const { ranges } = this.#settings
    if (graph.producerOf(name)?.opType === 'Softmax') return { min: 0, max: 1 }
    const uses = graph.usesOf(name)
    const user = uses.length === 1 && !graph.outputNames.has(name) ? uses[0]!.node : undefined
    const isClamped = (user?.opType === 'Relu' || user?.opType === 'Clip') && user.inputs[0] === name
    const output = isClamped && ranges.has(name) ? ranges.get(user.outputs[0] ?? '') : undefined
    return output ?? ranges.get(name)
  }

  #refuseMissing({ values }: Marks): void {
    const missing = [...values].flatMap(([name, { kind }]) =>
      kind !== 'shared' && !this.constant(name) && !this.#rangeOf(name) ? [name] : [],
    )
    if (missing.length === 0) return
    const more = missing.length > LISTED_NAMES ? `, and ${missing.length - LISTED_NAMES} more` : ''
    throw new TileworkError(
      'ERR_ARGUMENT',
      `ranges are missing for ${missing.slice(0, LISTED_NAMES).map(valueText).join(', ')}${more}; calibrate measures them.`,
    )
  }

  async #findParameters(name: string, mark: Mark): Promise<void> {
    if (mark.kind === 'shared') return
    throwIfAborted(this.#settings.signal)
    const { activationType, weightType, reduceRange, signal } = this.#settings
    const weight = this.constant(name)
    const isWeight = mark.kind === 'weight'
    const type = isWeight ? weightType : activationType
    const axis = isWeight ? mark.axis : undefined
    const rule = {
      type,
      symmetric: isWeight && (isSigned(type) || axis !== undefined),
      // Of every initializer, as in onnxruntime's tool: those of Pad and Add, too.
      reduceRange: reduceRange && weight !== undefined,
    }
    const given = weight ? await valueRanges(weight, axis, signal) : this.#rangeOf(name)!
    const [low, high] = 'min' in given ? [[given.min], [given.max]] : [[...given.low], [...given.high]]
    const numbers = low.map((least, at) => codeParameters(Math.fround(least), Math.fround(high[at]!), rule))
    this.#parameters.set(name, {
      type,
      scale: this.#names.take(`${name}_scale`),
      zeroPoint: this.#names.take(`${name}_zero_point`),
      scales: Float32Array.from(numbers, ({ scale }) => scale),
      zeros: numbers.map(({ zeroPoint }) => zeroPoint),
      axis,
    })
  }

  #share(name: string, mark: Mark, marks: Marks): void {
    if (mark.kind !== 'shared') return
    // A value whose source is a bias, or is not quantized after all, stays.
    let source = mark.with
    for (let next = marks.values.get(source); next?.kind === 'shared'; next = marks.values.get(source))
      source = next.with
    const found = this.#parameters.get(source)
    if (found && found.axis === undefined) this.#parameters.set(name, found)
    else marks.values.delete(name)
  }

  /**
   * Where the scale of a bias is too small for codes of 32 bits, the scale of the weight grows. The tool lets biases of unsigned
   * weights saturate; onnxruntime quantizes a float bias, too, so such a bias would saturate as well.
   */
  async #raiseScale({ bias, input, weight, alpha, beta, axis }: BiasMark): Promise<void> {
    const [from, of] = [this.#parameters.get(input), this.#parameters.get(weight)]
    if (!from || !of) return
    if (of.axis !== undefined && of.axis !== axis) return
    const numbers = await floatsOf(this.constant(bias)!)
    // Below 0 the bias stays float, and onnxruntime quantizes it without the factors.
    const [product, own] = alpha > 0 ? [alpha, beta] : [1, 1]
    of.scales.set(raisedScales(numbers, of.scales, product * from.scales[0]!, own))
  }

  /** The producer of a removed node's input makes its output instead. */
  #removeClamps({ removed }: Marks): void {
    for (const node of removed) {
      const [input = ''] = node.inputs
      const [output = ''] = node.outputs
      const producer = this.graph.producerOf(input)!
      this.report.converted(node, 'codes that end there')
      node.outputs = [this.#names.take(`${output}_removed`)]
      producer.outputs = producer.outputs.map((name) => (name === input ? output : name))
      this.graph.removeNode(node)
    }
  }

  #quantize(name: string): void {
    const weight = this.constant(name)
    if (weight) this.#addWeight(name, weight)
    else this.#addPair(name)
  }

  #addWeight(name: string, weight: DenseTensor): void {
    const of = this.#parameters.get(name)!
    const scale = of.axis === undefined ? of.scales[0]! : [...of.scales]
    const zeroPoint = of.axis === undefined ? of.zeros[0]! : of.zeros
    const codes = quantize(weight, of.type, {
      scale,
      zeroPoint,
      ...(of.axis !== undefined && { axis: of.axis }),
    })
    const stored = this.#store(name, codes, of)
    this.#decoded.set(
      name,
      this.#decode(name, stored, of, this.#names.take(`${name}_DequantizeLinear_Output`)),
    )
    this.report.tensors.push({
      name,
      from: weight.dtype,
      to: of.type,
      bytesBefore: valueBytes(weight),
      bytesAfter: valueBytes(codes) + (4 + DTYPES[of.type].bits / 8) * of.scales.length,
    })
  }

  #store(name: string, codes: DenseTensor, of: Parameters): string {
    const stored = this.#names.take(`${name}_quantized`)
    this.#storeParameters(of)
    this.graph.setInitializer(stored, codes)
    return stored
  }

  #storeParameters({ scale, zeroPoint, scales, zeros, axis, type }: Parameters): void {
    if (this.graph.hasInitializer(scale)) return
    const shape = axis === undefined ? [] : [scales.length]
    this.graph.setInitializer(scale, tensorOf(scales, { shape }))
    this.graph.setInitializer(zeroPoint, cast(tensorOf(Int32Array.from(zeros), { shape }), type))
  }

  #decode(
    base: string,
    codes: string,
    of: Pick<Parameters, 'scale' | 'zeroPoint' | 'axis'>,
    output: string,
  ): string {
    this.#added.push({
      opType: 'DequantizeLinear',
      domain: this.#domain,
      name: this.#names.take(`${base}_DequantizeLinear`),
      inputs: [codes, of.scale, of.zeroPoint],
      outputs: [output],
      ...(of.axis !== undefined && { attributes: { axis: { type: 'INT', value: of.axis } as const } }),
    })
    return output
  }

  /** An output of the model keeps its name, so what makes it takes another. */
  #addPair(name: string): void {
    const { graph } = this
    const of = this.#parameters.get(name)!
    const isOutput = graph.outputNames.has(name)
    const producer = graph.producerOf(name)
    // An input that is an output as well keeps its float values.
    if (isOutput && !producer) return
    this.#storeParameters(of)
    const input = isOutput ? this.#names.take(`${name}_QuantizeLinear_Input`) : name
    if (isOutput) producer!.outputs = producer!.outputs.map((each) => (each === name ? input : each))
    const codes = this.#names.take(`${name}_QuantizeLinear_Output`)
    this.#added.push({
      opType: 'QuantizeLinear',
      domain: this.#domain,
      name: this.#names.take(`${name}_QuantizeLinear`),
      inputs: [input, of.scale, of.zeroPoint],
      outputs: [codes],
    })
    if (isOutput) this.#decode(name, codes, of, name)
    else
      this.#decoded.set(
        name,
        this.#decode(name, codes, of, this.#names.take(`${name}_DequantizeLinear_Output`)),
      )
  }

  async #quantizeBiases(biases: readonly BiasMark[]): Promise<void> {
    for (const bias of biases) await this.#quantizeBias(bias)
  }

  /** A bias that another node takes as a value of its own, that is an output, or whose numbers have no codes stays float. */
  async #quantizeBias(mark: BiasMark): Promise<void> {
    const { node, bias, input, weight, alpha, beta, axis } = mark
    const [from, of] = [this.#parameters.get(input), this.#parameters.get(weight)]
    const isTaken = this.#decoded.has(bias) || this.graph.outputNames.has(bias)
    const tensor = this.constant(bias)
    if (!from || !of || isTaken || !tensor) return
    // Fused kernels take the scales of a weight to be those of its output channels.
    if (of.axis !== undefined && of.axis !== axis) return
    const numbers = await floatsOf(tensor)
    const codes = biasCodes(numbers, tensor.shape, of.scales, alpha * from.scales[0]!, beta)
    if (codes) this.#storeBias(node, bias, tensor.shape, codes)
  }

  #storeBias(node: Node, bias: string, shape: readonly number[], { codes, scales, axis }: BiasCodes): void {
    const { graph } = this
    const base = this.#names.take(`${bias}_quantized`)
    const parameters = {
      scale: this.#names.take(`${base}_scale`),
      zeroPoint: this.#names.take(`${base}_zero_point`),
      axis,
    }
    graph.setInitializer(base, tensorOf(codes, { shape }))
    graph.setInitializer(parameters.scale, tensorOf(scales))
    const zeros = new Int32Array(scales.length)
    graph.setInitializer(
      parameters.zeroPoint,
      tensorOf(zeros, { shape: axis === undefined ? [] : [zeros.length] }),
    )
    const { inputs } = node
    const isSole = graph.usesOf(bias).length === 1
    node.inputs = inputs.with(2, '')
    if (isSole) graph.removeInitializer(bias)
    const output = isSole ? bias : this.#names.take(`${bias}_DequantizeLinear_Output`)
    node.inputs = inputs.with(2, output)
    this.#decode(bias, base, parameters, output)
    if (node.attribute('beta')) node.setAttribute('beta', { type: 'FLOAT', value: 1 })
  }

  /** All nodes of the graph take decoded codes; graphs inside them keep the floats. */
  #replaceUses(): void {
    for (const node of this.graph.nodes) {
      const { inputs } = node
      if (inputs.some((name) => this.#decoded.has(name)))
        node.inputs = inputs.map((name) => this.#decoded.get(name) ?? name)
    }
  }

  #note({ quantized, removed }: Marks): void {
    const chosen = new Set(this.#nodes)
    for (const node of this.graph.nodes) {
      if (quantized.has(node)) this.report.converted(node, this.#settings.activationType)
      else if (
        !removed.has(node) &&
        node.inputs.concat(node.outputs).some((name) => this.types.get(name)?.dtype === 'float32')
      ) {
        this.report.stays(node, this.#kept.get(node) ?? this.#whyNot(node, chosen))
      }
    }
  }

  #whyNot(node: Node, chosen: ReadonlySet<Node>): string {
    if (this.#settings.excludes.has(node.name)) return 'the node is excluded'
    return chosen.has(node) ? 'its input is not quantized' : `${node.opType} is not quantized`
  }

  #dropWeights({ values }: Marks): void {
    for (const name of values.keys()) {
      if (!this.graph.hasInitializer(name)) continue
      const user = dropInitializer(this.graph, name)
      if (user)
        this.report.keeps(
          name,
          user === 'output' ? 'it is an output' : `${user.opType} ${valueText(user.name)} uses it`,
        )
    }
  }
}

async function floatsOf(tensor: DenseTensor): Promise<Float32Array> {
  const numbers = new Float32Array(tensor.size)
  await new FloatReader(tensor).fill(0, numbers)
  return numbers
}
