/**
 * Quantizes weights to 8 bits, and activations while the model runs: MatMulInteger and ConvInteger on codes that
 * DynamicQuantizeLinear computes. The names of new values are those of onnxruntime's tool.
 */
import { throwIfAborted } from '../../cancel.js'
import { transposed } from '../../formats/onnx/tensor/rearranged.js'
import { append } from '../../long_lists.js'
import { cast } from '../../tensor/cast.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import { quantize } from '../../tensor/quantize.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { standardDomain } from '../onnx/document/node.js'
import { dropInitializer, mainScope, replaceNode, type Scope } from '../onnx/document/scope.js'
import type { Attribute, Graph, NewAttribute, NewNode, Node } from '../onnx/document/types.js'
import { freeInitializers } from '../onnx/edit/free_initializers.js'
import { type ByteType, codeParameters, valueRanges } from './code_parameters.js'
import { checkDynamicOptions, type DynamicSettings, type QuantizeDynamicOptions } from './dynamic_options.js'
import { FiniteWeights } from './finite_weights.js'
import { lstmWeight } from './lstm_weights.js'
import { type CompressReport, ReportBuilder, valueBytes } from './report.js'
import { requireOpset } from './require_opset.js'

/** DynamicQuantizeLinear, and the axis of DequantizeLinear. */
const DYNAMIC_OPSET = 11
const AXIS_OPSET = 13

/** Operators whose models transformers.js gives uint8 weights. */
const UINT8_OPERATORS: readonly string[] = ['Conv', 'GroupQueryAttention', 'MultiHeadAttention']

/** `data_type` of float32. */
const FLOAT = 1

const MICROSOFT = 'com.microsoft'

/**
 * Quantizes the weights of MatMul, Gemm, Conv and LSTM, and tables of Gather, to 8 bits in place. Weights are read once here, for
 * their ranges, and once when the model is saved.
 *
 * @throws TileworkError ERR_UNSUPPORTED below operator set 11 without `raiseOpset`; ERR_ARGUMENT; ERR_ABORTED and errors of reading, after which
 * the model may be changed in part
 */
export async function quantizeDynamic(
  model: OnnxModel,
  options: QuantizeDynamicOptions = {},
): Promise<CompressReport> {
  checkModel(model, 'quantizeDynamic')
  const settings = checkDynamicOptions(options)
  const raised = requireOpset(model, DYNAMIC_OPSET, 'DynamicQuantizeLinear', settings)
  freeInitializers(model)
  const work = new DynamicWork(model, settings)
  const main = mainScope(model)
  for (const scope of settings.subgraphs ? [...main.all()] : [main]) await work.run(scope)
  work.finish()
  return { ...work.report.finish(), ...raised }
}

/** Names of codes with their scale and zero point. */
interface Codes {
  readonly codes: string
  readonly scale: string
  readonly zeroPoint: string
}

interface QuantizedWeight extends Codes {
  readonly graph: Graph
  readonly name: string
  readonly axis: number | undefined
}

interface WeightForm {
  readonly type: ByteType
  readonly symmetric: boolean
  readonly reduceRange: boolean
  readonly perColumn: boolean
  readonly isTransposed: boolean
}

/** Codes of a weight with their scales and zero points, along an axis or one of each. */
interface WeightCodes {
  readonly axis: number | undefined
  readonly codes: DenseTensor
  readonly scale: DenseTensor
  readonly zeroPoint: DenseTensor
}

/** A weight of the graph that owns it. */
interface FoundWeight {
  readonly scope: Scope
  readonly tensor: DenseTensor
}

/** What replaces a node. */
interface Product {
  readonly opType: 'MatMulInteger' | 'ConvInteger'
  readonly weight: QuantizedWeight
  readonly before?: readonly NewNode[]
  readonly attributes?: readonly Attribute[]
  readonly bias?: string
  /** Part of the names where the node becomes a product and an addition. */
  readonly part?: string
}

/** Names of the values of a product, and what those of its nodes begin with. */
interface ProductNames {
  readonly base: string
  readonly scales: string
  readonly sums: string
  readonly scaled: string
}

class DynamicWork {
  readonly report: ReportBuilder
  readonly #settings: DynamicSettings
  readonly #names: FreshNames
  readonly #finite: FiniteWeights
  readonly #type: ByteType
  readonly #opset: number
  readonly #weights = new Map<Graph, Map<string, QuantizedWeight>>()
  /** Weights of LSTM, whose codes only DynamicQuantizeLSTM can take. */
  readonly #lstmWeights = new Map<Graph, Map<string, Codes>>()
  readonly #model: OnnxModel
  #usesMicrosoft = false
  /** DequantizeLinear nodes that go if nothing uses their output. */
  readonly #decoders: Node[] = []

  constructor(model: OnnxModel, settings: DynamicSettings) {
    this.#model = model
    this.#settings = settings
    this.report = new ReportBuilder(model)
    this.#opset = Number(model.opsetImports.get(''))
    this.#names = new FreshNames(model)
    this.#finite = new FiniteWeights(settings.signal)
    const isUint8 = [...model.graph.allNodes()].some(({ opType }) => UINT8_OPERATORS.includes(opType))
    this.#type = settings.weightType === 'auto' ? (isUint8 ? 'uint8' : 'int8') : settings.weightType
  }

  async run(scope: Scope): Promise<void> {
    const values = new Map<string, Codes>()
    for (const node of scope.graph.nodes) {
      throwIfAborted(this.#settings.signal)
      const quantizeNode = standardDomain(node.domain) === '' ? this.#rules[node.opType] : undefined
      if (!quantizeNode || !this.#settings.ops.has(node.opType)) continue
      const reason = this.#settings.excludes.has(node.name)
        ? 'the node is excluded'
        : await quantizeNode(scope, node, values)
      if (reason !== undefined) this.report.stays(node, reason)
    }
  }

  /** What is done to a node; a rule returns why the node stays. */
  readonly #rules: Readonly<
    Record<string, (scope: Scope, node: Node, values: Map<string, Codes>) => Promise<string | undefined>>
  > = {
    MatMul: (scope, node, values) => this.#matMul(scope, node, values),
    Gemm: (scope, node, values) => this.#gemm(scope, node, values),
    Conv: (scope, node, values) => this.#conv(scope, node, values),
    Gather: (scope, node, values) => this.#gather(scope, node, values),
    LSTM: (scope, node) => this.#lstm(scope, node),
  }

  async #matMul(scope: Scope, node: Node, values: Map<string, Codes>): Promise<string | undefined> {
    const weight = await this.#weightOf(scope, node)
    if (typeof weight === 'string') return weight
    const codes = await this.#quantized(weight.scope.graph, weight.tensor, {
      ...this.#form(),
      perColumn: this.#settings.perChannel,
    })
    this.#replaceByProduct(scope.graph, node, values, { opType: 'MatMulInteger', weight: codes })
    return undefined
  }

  async #gemm(scope: Scope, node: Node, values: Map<string, Codes>): Promise<string | undefined> {
    const weight = await this.#weightOf(scope, node)
    if (typeof weight === 'string') return weight
    const number = (name: string, absent: number): number => Number(node.attribute(name)?.value ?? absent)
    const isPlain = number('transA', 0) === 0 && number('alpha', 1) === 1 && number('beta', 1) === 1
    if (!isPlain) return 'it transposes or scales, which MatMulInteger cannot'
    if (weight.tensor.shape.length !== 2) return 'its weight is not a matrix'
    const codes = await this.#quantized(weight.scope.graph, weight.tensor, {
      ...this.#form(),
      perColumn: this.#settings.perChannel,
      isTransposed: number('transB', 0) === 1,
    })
    const [, , bias = ''] = node.inputs
    this.#replaceByProduct(scope.graph, node, values, {
      opType: 'MatMulInteger',
      weight: codes,
      part: 'MatMul',
      ...(bias !== '' && { bias }),
    })
    return undefined
  }

  async #conv(scope: Scope, node: Node, values: Map<string, Codes>): Promise<string | undefined> {
    const weight = await this.#weightOf(scope, node)
    if (typeof weight === 'string') return weight
    const codes = await this.#quantized(weight.scope.graph, weight.tensor, this.#form())
    const { graph } = scope
    const [output = ''] = node.outputs
    let [, , bias = ''] = node.inputs
    const before: NewNode[] = []
    if (bias !== '') {
      const shape = this.#names.take(`${output}_bias_reshape_shape`)
      const axes = weight.tensor.shape.length
      graph.setInitializer(shape, tensorOf([1, -1, ...Array(axes - 2).fill(1)], { dtype: 'int64' }))
      const reshaped = this.#names.take(`${output}_bias_reshape_output`)
      before.push({ opType: 'Reshape', inputs: [bias, shape], outputs: [reshaped] })
      bias = reshaped
    }
    this.#replaceByProduct(graph, node, values, {
      opType: 'ConvInteger',
      weight: codes,
      before,
      attributes: node.attributes,
      ...(bias !== '' && { bias }),
    })
    return undefined
  }

  async #gather(scope: Scope, node: Node, values: Map<string, Codes>): Promise<string | undefined> {
    const found = scope.constant(node.inputs[0] ?? '')
    const reason = found ? await this.#whyNot(found, whyNoWeight) : 'its table is not a weight'
    if (!found || reason !== undefined) return reason
    const form = { ...this.#form(), type: 'uint8', symmetric: false, reduceRange: false } as const
    const table = await this.#quantized(found.scope.graph, found.tensor, form)
    const [output = ''] = node.outputs
    const codes = this.#names.take(`${output}_quantized`)
    const { graph } = scope
    this.report.converted(node, 'Gather of codes')
    replaceNode(graph, node, [
      {
        opType: 'Gather',
        ...named(node.name),
        inputs: [table.codes, node.inputs[1]!],
        outputs: [codes],
        attributes: attributesOf(node.attributes),
      },
      this.#decoder({ ...table, codes }, output),
    ])
    this.#decoders.push(graph.producerOf(output)!)
    values.set(output, { ...table, codes })
    return undefined
  }

  /** Both weights of an LSTM, always as int8. */
  async #lstm(scope: Scope, node: Node): Promise<string | undefined> {
    const [input = '', ...others] = node.inputs
    if (Number(node.attribute('layout')?.value ?? 0) !== 0)
      return 'its batches come first, which DynamicQuantizeLSTM cannot'
    const found = others.slice(0, 2).map((name) => scope.constant(name))
    const [weight, recurrent] = found
    if (!weight || !recurrent) return 'its weights are not constants'
    const reason =
      (await this.#whyNot(weight, whyNoLstmWeight)) ?? (await this.#whyNot(recurrent, whyNoLstmWeight))
    if (reason !== undefined) return reason
    const first = await this.#lstmCodes(weight.scope.graph, weight.tensor)
    const second = await this.#lstmCodes(recurrent.scope.graph, recurrent.tensor)
    const rest = Array.from({ length: 5 }, (_, at) => others[2 + at] ?? '')
    this.report.converted(node, 'DynamicQuantizeLSTM')
    this.#usesMicrosoft = true
    replaceNode(scope.graph, node, [
      {
        opType: 'DynamicQuantizeLSTM',
        domain: MICROSOFT,
        ...named(node.name === '' ? '' : this.#names.take(`${node.name}_quant`)),
        inputs: [
          input,
          ...[first.codes, second.codes, ...rest],
          ...[first.scale, first.zeroPoint, second.scale, second.zeroPoint],
        ],
        outputs: node.outputs,
        attributes: attributesOf(node.attributes.filter(({ name }) => name !== 'layout')),
      },
    ])
    return undefined
  }

  async #lstmCodes(graph: Graph, tensor: DenseTensor): Promise<Codes> {
    const own = this.#lstmWeights.get(graph) ?? new Map<string, Codes>()
    const known = own.get(tensor.name)
    if (known) return known
    const { signal } = this.#settings
    const values = await lstmWeight(tensor, this.#settings, signal)
    const { name } = tensor
    const names: Codes = {
      codes: this.#names.take(`${name}_quantized`),
      scale: this.#names.take(`${name}_scale`),
      zeroPoint: this.#names.take(`${name}_zero_point`),
    }
    for (const part of ['scale', 'zeroPoint', 'codes'] as const)
      graph.setInitializer(names[part], values[part])
    this.#lstmWeights.set(graph, own.set(name, names))
    const bytesAfter = [values.codes, values.scale, values.zeroPoint].reduce(
      (sum, each) => sum + valueBytes(each),
      0,
    )
    this.report.tensors.push({
      name,
      from: tensor.dtype,
      to: 'int8',
      bytesBefore: valueBytes(tensor),
      bytesAfter,
    })
    return names
  }

  #decoder({ codes, scale, zeroPoint }: Codes, output: string, axis?: number): NewNode {
    return {
      opType: 'DequantizeLinear',
      name: this.#names.take(`${output}_DequantizeLinear`),
      inputs: [codes, scale, zeroPoint],
      outputs: [output],
      ...(axis !== undefined && { attributes: { axis: { type: 'INT', value: axis } } }),
    }
  }

  #form(): WeightForm {
    const { reduceRange } = this.#settings
    const type = this.#type
    return { type, symmetric: type === 'int8', reduceRange, perColumn: false, isTransposed: false }
  }

  async #weightOf(scope: Scope, node: Node): Promise<FoundWeight | string> {
    const found = scope.constant(node.inputs[1] ?? '')
    if (!found) return 'its second input is not a weight'
    return (await this.#whyNot(found, whyNoWeight)) ?? found
  }

  /** Why a weight stays, by its type and shape first, which need no reading. */
  async #whyNot(
    { scope, tensor }: FoundWeight,
    whyNo: (tensor: DenseTensor) => string | undefined,
  ): Promise<string | undefined> {
    return whyNo(tensor) ?? (await this.#finite.whyNot(scope.graph, tensor))
  }

  /** Replaces a product by one of integers, a Cast and two multiplications, and an addition for a bias. */
  #replaceByProduct(graph: Graph, node: Node, values: Map<string, Codes>, product: Product): void {
    const { opType, before = [], bias, part } = product
    const [input = ''] = node.inputs
    const [result = ''] = node.outputs
    const nodes = [...before]
    const activation = values.get(input) ?? this.#activation(input, nodes)
    values.set(input, activation)
    const base = `${node.name === '' ? result : node.name}${part ? `_${part}` : ''}`
    const stem = part ? `${result}_${part}` : result
    const names: ProductNames = {
      base,
      scales: this.#names.take(`${base}_quant_scales_mul:0`),
      sums: this.#names.take(`${stem}_output_quantized`),
      scaled: bias === undefined ? result : this.#names.take(part ? stem : `${result}quant_scaled_output`),
    }
    append(nodes, this.#productNodes(product, activation, names))
    if (bias !== undefined) {
      nodes.push({
        opType: 'Add',
        name: this.#names.take(part ? `${node.name || result}_Add` : `${result}_bias_add`),
        inputs: [names.scaled, bias],
        outputs: [result],
      })
    }
    this.report.converted(node, opType)
    replaceNode(graph, node, nodes)
  }

  /** The product of codes as floats: times the product of the scales. */
  #productNodes(
    { opType, weight, attributes = [] }: Product,
    activation: Codes,
    { base, scales, sums, scaled }: ProductNames,
  ): NewNode[] {
    const take = (name: string): string => this.#names.take(name)
    const floats = take(`${sums}_cast_output`)
    return [
      {
        opType: 'Mul',
        name: take(`${base}_quant_scales_mul`),
        inputs: [activation.scale, weight.scale],
        outputs: [scales],
      },
      {
        opType,
        name: take(`${base}_quant`),
        inputs: [activation.codes, weight.codes, activation.zeroPoint, weight.zeroPoint],
        outputs: [sums],
        attributes: attributesOf(attributes),
      },
      {
        opType: 'Cast',
        name: take(`${sums}_cast`),
        inputs: [sums],
        outputs: [floats],
        attributes: { to: { type: 'INT', value: FLOAT } },
      },
      {
        opType: 'Mul',
        name: take(`${base}_quant_output_scale_mul`),
        inputs: [floats, scales],
        outputs: [scaled],
      },
    ]
  }

  /** Codes of a value that are computed when the model runs. */
  #activation(name: string, nodes: NewNode[]): Codes {
    const codes = this.#names.take(`${name}_quantized`)
    const scale = this.#names.take(`${name}_scale`)
    const zeroPoint = this.#names.take(`${name}_zero_point`)
    nodes.push({
      opType: 'DynamicQuantizeLinear',
      name: this.#names.take(`${name}_QuantizeLinear`),
      inputs: [name],
      outputs: [codes, scale, zeroPoint],
    })
    return { codes, scale, zeroPoint }
  }

  /** Quantizes a weight; a later user takes the type of the first. */
  async #quantized(graph: Graph, tensor: DenseTensor, form: WeightForm): Promise<QuantizedWeight> {
    const base = form.isTransposed ? `${tensor.name}_Transposed` : tensor.name
    const own = this.#weights.get(graph) ?? new Map<string, QuantizedWeight>()
    const known = own.get(base)
    if (known) return known
    const values = await this.#codesOf(tensor, form)
    const weight: QuantizedWeight = {
      graph,
      name: tensor.name,
      axis: values.axis,
      codes: this.#names.take(`${base}_quantized`),
      scale: this.#names.take(`${base}_scale`),
      zeroPoint: this.#names.take(`${base}_zero_point`),
    }
    for (const part of ['scale', 'zeroPoint', 'codes'] as const)
      graph.setInitializer(weight[part], values[part])
    this.#weights.set(graph, own.set(base, weight))
    this.report.tensors.push({
      name: tensor.name,
      from: tensor.dtype,
      to: form.type,
      bytesBefore: valueBytes(tensor),
      bytesAfter: [values.codes, values.scale, values.zeroPoint].reduce(
        (sum, each) => sum + valueBytes(each),
        0,
      ),
    })
    return weight
  }

  /** Reads a weight for its ranges; the codes are lazy. */
  async #codesOf(tensor: DenseTensor, form: WeightForm): Promise<WeightCodes> {
    const [rows = 1, columns = 1] = tensor.shape
    const source = form.isTransposed ? transposed({ tensor, k: rows, n: columns }) : tensor
    const axis = form.perColumn && source.shape.length >= 2 ? source.shape.length - 1 : undefined
    const { low, high } = await valueRanges(source, axis, this.#settings.signal)
    const parameters = Array.from(low, (least, at) => codeParameters(least, high[at]!, form))
    const scales = parameters.map(({ scale }) => scale)
    const zeros = parameters.map(({ zeroPoint }) => zeroPoint)
    const shape = axis === undefined ? [] : [scales.length]
    // MatMulInteger takes zero points of weights with more than two axes for each matrix.
    const matrices = axis === undefined ? [] : source.shape.slice(0, -2)
    const zeroShape = matrices.length > 0 ? [...matrices, 1, zeros.length] : shape
    const matrixCount = matrices.reduce((count, extent) => count * extent, 1)
    const allZeros = Array.from({ length: matrixCount }, () => zeros).flat()
    return {
      axis,
      codes: quantize(
        source,
        form.type,
        axis === undefined
          ? { scale: scales[0]!, zeroPoint: zeros[0]! }
          : { scale: scales, zeroPoint: zeros, axis },
      ),
      scale: tensorOf(Float32Array.from(scales), { shape }),
      zeroPoint: cast(tensorOf(Int32Array.from(allZeros), { shape: zeroShape }), form.type),
    }
  }

  /** Removes floats that nothing uses; other users of a quantized weight take its decoded codes, so that it is stored once. */
  finish(): void {
    for (const node of this.#decoders) {
      const [output = ''] = node.outputs
      const graph = node.graph!
      if (graph.usersOf(output).length === 0 && !graph.outputNames.has(output)) graph.removeNode(node)
    }
    for (const [graph, weights] of this.#weights) {
      for (const weight of weights.values()) this.#dropOriginal(graph, weight)
    }
    for (const [graph, weights] of this.#lstmWeights) {
      for (const name of weights.keys()) {
        const user = graph.hasInitializer(name) ? dropInitializer(graph, name) : undefined
        if (user)
          this.report.keeps(
            name,
            user === 'output' ? 'it is an output' : `used by ${user.opType} ${valueText(user.name)}`,
          )
      }
    }
    const model = this.#model
    if (this.#usesMicrosoft && !model.opsetImports.has(MICROSOFT)) model.setOpsetImport(MICROSOFT, 1)
  }

  #dropOriginal(graph: Graph, weight: QuantizedWeight): void {
    const { name, axis } = weight
    if (!graph.hasInitializer(name)) return
    const users = graph.usersOf(name)
    const isTransposed = weight.codes.startsWith(`${name}_Transposed`)
    const stays =
      isTransposed || graph.inputNames.has(name) || (axis !== undefined && this.#opset < AXIS_OPSET)
    if (users.length === 0 && !graph.outputNames.has(name)) {
      graph.removeInitializer(name)
      return
    }
    if (stays || users.length === 0) {
      if (users[0]) this.#noteKept(name, users[0])
      return
    }
    const decoded = this.#names.take(`${name}_decoded`)
    graph.addNode({ ...this.#decoder(weight, name, axis), outputs: [decoded] }, 0)
    graph.replaceAllUses(name, decoded)
    graph.removeInitializer(name)
    this.#noteKept(name, users[0]!, 'decoded for')
  }

  #noteKept(name: string, user: Node, how = 'used by'): void {
    this.report.keeps(name, `${how} ${user.opType} ${valueText(user.name)}`)
  }
}

function whyNoWeight({ dtype, shape, size }: DenseTensor): string | undefined {
  if (dtype !== 'float32') return `its weight is ${dtype}`
  return size === 0 || shape.length < 2 ? `its weight has the shape [${shape}]` : undefined
}

function whyNoLstmWeight({ dtype, shape, size }: DenseTensor): string | undefined {
  if (dtype !== 'float32') return `its weight is ${dtype}`
  return size === 0 || shape.length !== 3 ? `its weight has the shape [${shape}]` : undefined
}

function named(name: string): { readonly name?: string } {
  return name === '' ? {} : { name }
}

function attributesOf(attributes: readonly Attribute[]): Record<string, NewAttribute> {
  return Object.fromEntries(
    attributes.map(({ name, type, value }) => [name, { type, value } as NewAttribute]),
  )
}
