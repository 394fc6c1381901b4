/**
 * Quantizes the weights of MatMul, Gemm and Conv nodes, and tables of Gather nodes, in blocks. Activations stay as they are, so no
 * calibration is needed. Weights become lazy tensors that are computed while a save writes them.
 */

import { throwIfAborted } from '../../cancel.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../formats/onnx/schema.js'
import { withShape } from '../../formats/onnx/tensor/rearranged.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import type { BlockBits } from '../../tensor/number_blocks.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { integersOf } from '../onnx/document/attribute.js'
import { checkModel } from '../onnx/document/check_model.js'
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { dropInitializer, isStandard, mainScope, replaceNode, type Scope } from '../onnx/document/scope.js'
import type { Graph, NewAttribute, NewNode, Node } from '../onnx/document/types.js'
import { freeInitializers } from '../onnx/edit/free_initializers.js'
import { type Inference, inferModel } from '../onnx/infer/infer.js'
import {
  type BlockNames,
  type BlockOptions,
  type BlockTensors,
  type Bnb4Kind,
  blockDequantizeLinear,
  bnb4,
  gatherBlocks,
  matMulNBits,
  matrixOf,
} from './block_weights.js'
import { FiniteWeights } from './finite_weights.js'
import { PanelCache } from './panels.js'
import { type CompressReport, ReportBuilder, valueBytes } from './report.js'
import { type RaisedOpset, requireOpset } from './require_opset.js'
import { checkWeightOptions, type QuantizeWeightsOptions, type WeightSettings } from './weight_options.js'
import {
  channelsLast,
  type ProductStep,
  productOf,
  stepsBehind,
  type WeightProduct,
} from './weight_products.js'

const MICROSOFT = 'com.microsoft'

/** `quant_type` of MatMulBnb4. */
const BNB4_TYPE: Readonly<Record<Bnb4Kind, number>> = { fp4: 0, nf4: 1 }

/** First versions that have what the formats need. */
const INT4_IR = 10
const INT2_IR = 13
const BLOCKED_OPSET = 21
const INT2_OPSET = 25

/**
 * Quantizes weights of a model in blocks, in place. Weights are read once here, as a node whose weight has NaN or infinities stays,
 * and once when the model is saved.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for `qdq` below operator set 21, and for 2 bits of it below 25, without `raiseOpset`;
 * ERR_ABORTED and errors of reading, after which the model may be changed in part
 */
export async function quantizeWeights(
  model: OnnxModel,
  options: QuantizeWeightsOptions = {},
): Promise<CompressReport> {
  checkModel(model, 'quantizeWeights')
  const settings = checkWeightOptions(options)
  throwIfAborted(settings.signal)
  const raised = requireFormat(model, settings)
  freeInitializers(model)
  const work = new WeightWork(model, settings)
  for (const scope of [...mainScope(model).all()]) await work.run(scope)
  work.finish()
  return { ...work.report.finish(), ...raised }
}

/** The format matmulnbits needs no operator set. */
function requireFormat(model: OnnxModel, settings: WeightSettings): RaisedOpset {
  const { format, bits } = settings
  if (format !== 'qdq') return {}
  const needed = bits === 2 ? INT2_OPSET : BLOCKED_OPSET
  return requireOpset(model, needed, `DequantizeLinear with blocks of ${bits} bits`, settings)
}

/** A weight that a node uses: of the graph that owns it, as [K, N] or [N, K]. */
interface Weight {
  readonly scope: Scope
  readonly tensor: DenseTensor
  readonly isTransposed: boolean
  /** The node that uses it. */
  readonly product: WeightProduct
  /** The Transpose between the weight and the node. */
  readonly transpose?: Node
  /** Rank that leading extents of 1 give the product at least; undefined where the first input gives it. */
  readonly leastRank?: number
}

/** Names of tensors that replace a weight, as nodes use them. */
interface Replaced {
  readonly inputs: readonly string[]
}

class WeightWork {
  readonly report: ReportBuilder
  readonly #model: OnnxModel
  readonly #settings: WeightSettings
  readonly #names: FreshNames
  readonly #finite: FiniteWeights
  readonly #cache = new PanelCache()
  /** Types of values, where a weight needs the rank of what it is multiplied with. */
  readonly #types: Inference['types']
  /** Quantized weights by graph, name and form. */
  readonly #done = new Map<Graph, Map<string, Replaced>>()
  readonly #originals = new Map<Graph, Set<string>>()
  #usesMicrosoft = false
  #irVersion = FIRST_IR_WITH_FREE_INITIALIZERS

  constructor(model: OnnxModel, settings: WeightSettings) {
    this.#model = model
    this.#settings = settings
    this.report = new ReportBuilder(model)
    this.#names = new FreshNames(model)
    this.#finite = new FiniteWeights(settings.signal)
    this.#types = initializersOf(model).some(isMatrixInMoreAxes) ? inferModel(model).types : new Map()
  }

  async run(scope: Scope): Promise<void> {
    for (const node of scope.graph.nodes) {
      if (this.#isProduct(node)) await this.#quantizeProduct(scope, node)
      else if (this.#settings.gather && isStandard(node, 'Gather')) await this.#gather(scope, node)
      else this.#reportOption(scope, node)
    }
  }

  /** Removes weights that nothing uses, and imports what the new nodes need. */
  finish(): void {
    for (const [graph, names] of this.#originals) {
      for (const name of names) {
        const user = dropInitializer(graph, name)
        if (user === undefined) continue
        const who = user === 'output' ? 'it is an output' : `${user.opType} ${valueText(user.name)} uses it`
        this.report.keeps(name, who)
      }
    }
    const model = this.#model
    if (this.#originals.size === 0) return
    if (Number(model.irVersion) < this.#irVersion) model.irVersion = this.#irVersion
    if (this.#usesMicrosoft && !model.opsetImports.has(MICROSOFT)) model.setOpsetImport(MICROSOFT, 1)
  }

  #whyNot(node: Node): string | undefined {
    const { excludes, includes } = this.#settings
    if (excludes.has(node.name)) return 'the node is excluded'
    return includes && !includes.has(node.name) ? 'the node is not included' : undefined
  }

  #isProduct(node: Node): boolean {
    const { gemm, conv } = this.#settings
    return (
      isStandard(node, 'MatMul') || (gemm && isStandard(node, 'Gemm')) || (conv && isStandard(node, 'Conv'))
    )
  }

  /** Says which option a product wants that is not chosen: a net of convolutions would stay as it is without a word. */
  #reportOption(scope: Scope, node: Node): void {
    const option = isStandard(node, 'Gemm') ? 'gemm' : isStandard(node, 'Conv') ? 'conv' : undefined
    if (option === undefined || typeof this.#weightOf(scope, node) === 'string') return
    this.report.stays(node, `only the option ${option} quantizes it`)
  }

  async #quantizeProduct(scope: Scope, node: Node): Promise<void> {
    const found = this.#whyNot(node) ?? this.#weightOf(scope, node)
    const weight =
      typeof found === 'string'
        ? found
        : ((await this.#finite.whyNot(found.scope.graph, found.tensor)) ?? found)
    if (typeof weight === 'string') this.report.stays(node, weight)
    else if (this.#settings.format === 'qdq') this.#toDequantizeLinear(scope.graph, node, weight)
    else this.#toMatMulBlocks(scope.graph, node, weight)
  }

  /** The weight of a node, or why it has none that can be quantized. */
  #weightOf(scope: Scope, node: Node): Weight | string {
    const product = productOf(node, (name) => scope.constant(name)?.tensor.shape)
    if (typeof product === 'string') return product
    const transpose = scope.producer(product.weight)
    const isBehind = transpose !== undefined && isTransposeOfMatrix(transpose)
    const found = scope.constant(isBehind ? transpose.inputs[0]! : product.weight)
    if (!found) return 'its second input is not a weight'
    const isTransposed = isBehind !== product.isTransposed
    const { tensor: own } = found
    const tensor = product.channelsFirst === undefined ? own : withShape(own, [own.shape[0]!, own.shape[1]!])
    const reason = this.#whyNoMatrix({ ...found, tensor }, isTransposed)
    if (reason !== undefined) return reason
    const weight = { ...found, tensor, isTransposed, product, ...(isBehind && { transpose }) }
    const axes = tensor.shape.length
    if (axes === 2) return weight
    const rank = this.#rankOf(scope, product.data)
    if (rank === undefined)
      return 'its weight has leading extents of 1, and the rank of its first input is not known'
    return rank < axes ? { ...weight, leastRank: rank === 1 ? axes - 1 : axes } : weight
  }

  #whyNoMatrix(
    { scope, tensor }: Pick<Weight, 'scope' | 'tensor'>,
    isTransposed: boolean,
  ): string | undefined {
    const { dtype, shape, size, name } = tensor
    if (!['float32', 'float16', 'bfloat16'].includes(dtype)) return `its weight is ${dtype}`
    const isMatrix = shape.length === 2 || (!isTransposed && isMatrixInMoreAxes(tensor))
    if (!isMatrix || size === 0) return `its weight has the shape [${shape}], which is not a matrix`
    if (this.#settings.format === 'bnb4' && shape.length > 2) return 'its weight has more than two axes'
    const isShared = isTransposed && scope.graph.usersOf(name).some((user) => isStandard(user, 'Gather'))
    return isShared && !this.#sharesTable(tensor) ? 'its weight is a table of Gather, which stays' : undefined
  }

  #rankOf(scope: Scope, name: string): number | undefined {
    const owner = scope.ownerOf(name)
    const type = owner && this.#types.get(owner.graph)?.get(name)
    return type?.kind === 'tensor' ? type.shape?.length : undefined
  }

  /** A table and the transposed weight of a MatMul are stored once where rows are whole blocks. */
  #sharesTable(tensor: DenseTensor): boolean {
    const { gather, format, blockSize } = this.#settings
    return (
      gather && format === 'matmulnbits' && tensor.shape.length === 2 && tensor.shape[1]! % blockSize === 0
    )
  }

  #toMatMulBlocks(graph: Graph, node: Node, weight: Weight): void {
    const { format } = this.#settings
    const bits = this.#bitsOf(node)
    const replaced = format === 'bnb4' ? this.#bnb4(weight) : this.#nBits(weight, bits)
    const { data, before } = channelsLast(weight.product, (each) => this.#names.take(each))
    const { product, after } = this.#product(graph, node, weight)
    const name =
      node.name === '' ? '' : this.#names.take(`${node.name}_${format === 'bnb4' ? 'Bnb4' : `Q${bits}`}`)
    const matMul = this.#matMulNode(weight, bits, { ...replaced, name, data, output: product })
    this.#replace(graph, node, weight, [...before, matMul, ...after], matMul.opType)
  }

  #bitsOf(node: Node): BlockBits {
    return this.#settings.bitsOf.get(node.name) ?? this.#settings.bits
  }

  #matMulNode(
    { tensor, isTransposed }: Weight,
    bits: BlockBits,
    {
      inputs,
      name,
      data,
      output,
    }: Replaced & { readonly name: string; readonly data: string; readonly output: string },
  ): NewNode {
    const { format, blockSize, accuracyLevel, bnb4: kind } = this.#settings
    const { k, n } = matrixOf(tensor, isTransposed)
    this.#usesMicrosoft = true
    return {
      opType: format === 'bnb4' ? 'MatMulBnb4' : 'MatMulNBits',
      domain: MICROSOFT,
      ...(name !== '' && { name }),
      inputs: [data, ...inputs],
      outputs: [output],
      attributes: {
        K: int(k),
        N: int(n),
        ...(format === 'bnb4' ? { quant_type: int(BNB4_TYPE[kind]) } : { bits: int(bits) }),
        block_size: int(blockSize),
        ...(accuracyLevel > 0 && format !== 'bnb4' && { accuracy_level: int(accuracyLevel) }),
      },
    }
  }

  /** The name of the product with a weight as a matrix, and what makes the output of the node of it. */
  #product(
    graph: Graph,
    node: Node,
    { leastRank, product }: Weight,
  ): { readonly product: string; readonly after: readonly NewNode[] } {
    const [output = ''] = node.outputs
    const steps = stepsBehind(product)
    if (leastRank !== undefined) steps.push(this.#expansion(graph, output, leastRank))
    const names = steps.map(({ suffix }) => this.#names.take(`${output}_${suffix}`))
    const after = steps.map(({ nodeOf }, at) => nodeOf(names[at]!, names[at + 1] ?? output))
    return { product: names[0] ?? output, after }
  }

  #expansion(graph: Graph, output: string, rank: number): ProductStep {
    const ones = this.#names.take(`${output}_ones`)
    graph.setInitializer(ones, tensorOf(Array(rank).fill(1), { dtype: 'int64' }))
    const nodeOf = (from: string, to: string): NewNode => ({
      opType: 'Expand',
      inputs: [from, ones],
      outputs: [to],
    })
    return { suffix: 'matrix', nodeOf }
  }

  #toDequantizeLinear(graph: Graph, node: Node, weight: Weight): void {
    if (weight.isTransposed) {
      this.report.stays(node, 'its weight is transposed; use the format matmulnbits')
      return
    }
    const bits = this.#bitsOf(node)
    const { inputs } = this.#dequantizedBlocks(graph, weight.tensor, bits)
    this.#irVersion = Math.max(this.#irVersion, bits === 2 ? INT2_IR : INT4_IR)
    const decoded = this.#names.take(`${weight.tensor.name}_DQ_Q${bits}_output`)
    const { product, after } = this.#product(graph, node, weight)
    const nodes: NewNode[] = [
      {
        opType: 'DequantizeLinear',
        ...(node.name !== '' && { name: this.#names.take(`${node.name}_DQ_Q${bits}`) }),
        inputs,
        outputs: [decoded],
        attributes: { axis: int(0), block_size: int(this.#settings.blockSize) },
      },
      {
        opType: 'MatMul',
        ...(node.name !== '' && { name: this.#names.take(`${node.name}_matmul_Q${bits}`) }),
        inputs: [weight.product.data, decoded],
        outputs: [product],
      },
      ...after,
    ]
    this.#replace(graph, node, weight, nodes, 'DequantizeLinear')
  }

  /** onnxruntime takes the tensors of DequantizeLinear from the graph of the node only. */
  #dequantizedBlocks(graph: Graph, tensor: DenseTensor, bits: BlockBits): Replaced {
    const base = `${tensor.name}_DQ_Q${bits}`
    return this.#once(graph, tensor, base, () =>
      blockDequantizeLinear(
        matrixOf(tensor, false),
        this.#blocks(bits),
        this.#take({
          codes: base,
          scales: `${tensor.name}_DQ_scales`,
          zeroPoints: `${tensor.name}_DQ_zero_points`,
        }),
      ),
    )
  }

  #replace(graph: Graph, node: Node, weight: Weight, nodes: readonly NewNode[], to: string): void {
    this.report.converted(node, to)
    replaceNode(graph, node, nodes)
    const { transpose, scope, tensor } = weight
    const owner = transpose?.graph
    if (
      transpose &&
      owner &&
      !owner.outputNames.has(transpose.outputs[0]!) &&
      owner.usersOf(transpose.outputs[0]!).length === 0
    ) {
      owner.removeNode(transpose)
    }
    this.#note(scope.graph, tensor.name)
  }

  #note(graph: Graph, name: string): void {
    const names = this.#originals.get(graph) ?? new Set()
    this.#originals.set(graph, names.add(name))
  }

  #blocks(bits: BlockBits): BlockOptions {
    const { blockSize, symmetric } = this.#settings
    return { bits, blockSize, symmetric, cache: this.#cache }
  }

  #nBits(weight: Weight, bits: BlockBits): Replaced {
    const { tensor, isTransposed } = weight
    if (isTransposed && this.#sharesTable(tensor)) return this.#tied(weight, bits)
    return this.#once(weight.scope.graph, tensor, `Q${bits} ${isTransposed}`, () =>
      matMulNBits(matrixOf(tensor, isTransposed), this.#blocks(bits), this.#takeFor(tensor, bits)),
    )
  }

  #bnb4(weight: Weight): Replaced {
    const { tensor, isTransposed } = weight
    const { bnb4: kind, blockSize } = this.#settings
    return this.#once(weight.scope.graph, tensor, `bnb4 ${isTransposed}`, () =>
      bnb4(
        matrixOf(tensor, isTransposed),
        { kind, blockSize, cache: this.#cache },
        this.#take({
          codes: `${tensor.name}_Bnb4`,
          scales: `${tensor.name}_absmax`,
          zeroPoints: '',
        }),
      ),
    )
  }

  /** The bytes of MatMulNBits as a table [V, bytes of a row]; a Reshape gives the MatMul its three axes. */
  #tied(weight: Weight, bits: BlockBits): Replaced {
    const { scope, tensor } = weight
    const table = this.#table(scope, tensor, bits)
    const known = this.#done.get(scope.graph)?.get(`reshaped ${tensor.name} ${bits}`)
    if (known) return known
    const { blockSize } = this.#settings
    const [rows = 1, k = 1] = tensor.shape
    const shape = this.#names.take(`${tensor.name}_blocks_shape`)
    const blocks = this.#names.take(`${tensor.name}_Q${bits}_blocks`)
    scope.graph.setInitializer(
      shape,
      tensorOf([rows, k / blockSize, (blockSize * bits) / 8], { dtype: 'int64' }),
    )
    scope.graph.addNode({ opType: 'Reshape', inputs: [table.inputs[0]!, shape], outputs: [blocks] }, 0)
    return this.#remember(scope.graph, `reshaped ${tensor.name} ${bits}`, {
      inputs: [blocks, ...table.inputs.slice(1)],
    })
  }

  #table(scope: Scope, tensor: DenseTensor, bits: BlockBits): Replaced {
    return this.#once(scope.graph, tensor, `table ${bits}`, () => {
      const names = this.#takeFor(tensor, bits)
      const { codes, ...others } = matMulNBits(matrixOf(tensor, true), this.#blocks(bits), names)
      return { codes: withShape(codes, [codes.shape[0]!, codes.size / codes.shape[0]!]), ...others }
    })
  }

  async #gather(scope: Scope, node: Node): Promise<void> {
    const found = scope.constant(node.inputs[0] ?? '')
    const reason =
      this.#whyNot(node) ??
      this.#whyNoTable(node, found?.tensor) ??
      (found && (await this.#finite.whyNot(found.scope.graph, found.tensor)))
    if (reason !== undefined || !found) {
      this.report.stays(node, reason ?? 'its table is not a weight')
      return
    }
    const { tensor } = found
    const bits = this.#bitsOf(node)
    const isBytes = bits !== 4 || this.#isTied(found.scope, tensor)
    const table = isBytes ? this.#table(found.scope, tensor, bits) : this.#int4Table(found.scope, tensor)
    if (!isBytes) this.#irVersion = Math.max(this.#irVersion, INT4_IR)
    this.report.converted(node, 'GatherBlockQuantized')
    replaceNode(scope.graph, node, [this.#gatherNode(node, table, bits, isBytes)])
    this.#note(found.scope.graph, tensor.name)
  }

  #int4Table({ graph }: Scope, tensor: DenseTensor): Replaced {
    return this.#once(graph, tensor, 'gather', () =>
      gatherBlocks(tensor, this.#blocks(4), this.#takeFor(tensor, 4)),
    )
  }

  #gatherNode(node: Node, table: Replaced, bits: BlockBits, isBytes: boolean): NewNode {
    const [codes = '', ...parameters] = table.inputs
    this.#usesMicrosoft = true
    return {
      opType: 'GatherBlockQuantized',
      domain: MICROSOFT,
      ...(node.name !== '' && { name: this.#names.take(`${node.name}_Q${bits}`) }),
      inputs: [codes, node.inputs[1]!, ...parameters],
      outputs: node.outputs,
      attributes: {
        gather_axis: int(0),
        quantize_axis: int(1),
        block_size: int(this.#settings.blockSize),
        ...(isBytes && { bits: int(bits) }),
      },
    }
  }

  #whyNoTable(node: Node, tensor: DenseTensor | undefined): string | undefined {
    if (!tensor) return 'its table is not a weight'
    if (!['float32', 'float16', 'bfloat16'].includes(tensor.dtype)) return `its table is ${tensor.dtype}`
    if (tensor.shape.length !== 2 || tensor.size === 0) return `its table has the shape [${tensor.shape}]`
    if (Number(node.attribute('axis')?.value ?? 0) !== 0) return 'it gathers along another axis than 0'
    const bits = this.#bitsOf(node)
    const isWhole = tensor.shape[1]! % this.#settings.blockSize === 0
    return bits !== 4 && !isWhole ? 'its rows are no whole blocks' : undefined
  }

  #isTied({ graph }: Scope, tensor: DenseTensor): boolean {
    if (!this.#sharesTable(tensor)) return false
    const isTable = this.#done.get(graph)?.has(`${tensor.name} table 4`)
    return (
      isTable ||
      graph.usersOf(tensor.name).some((user) => isTransposeOfMatrix(user) && this.#feedsMatMul(user))
    )
  }

  #feedsMatMul(transpose: Node): boolean {
    return transpose.successors.some(
      (user) =>
        isStandard(user, 'MatMul') &&
        user.inputs[1] === transpose.outputs[0] &&
        this.#whyNot(user) === undefined,
    )
  }

  /** Quantizes a weight the first time that it is asked for in a form, and names its tensors. */
  #once(graph: Graph, tensor: DenseTensor, form: string, quantize: () => BlockTensors): Replaced {
    const key = `${tensor.name} ${form}`
    const known = this.#done.get(graph)?.get(key)
    if (known) return known
    const { codes, scales, zeroPoints } = quantize()
    const added = [codes, scales, ...(zeroPoints ? [zeroPoints] : [])]
    for (const each of added) graph.setInitializer(each.name, each)
    this.report.tensors.push({
      name: tensor.name,
      from: tensor.dtype,
      to: form.startsWith('bnb4')
        ? this.#settings.bnb4
        : `${this.#settings.symmetric ? 'symmetric' : 'asymmetric'} blocks of ${this.#settings.blockSize}`,
      bytesBefore: valueBytes(tensor),
      bytesAfter: added.reduce((sum, each) => sum + valueBytes(each), 0),
    })
    return this.#remember(graph, key, { inputs: added.map(({ name }) => name) })
  }

  #remember(graph: Graph, key: string, replaced: Replaced): Replaced {
    const known = this.#done.get(graph) ?? new Map<string, Replaced>()
    this.#done.set(graph, known.set(key, replaced))
    return replaced
  }

  #takeFor({ name }: DenseTensor, bits: BlockBits): BlockNames {
    return this.#take({
      codes: `${name}_Q${bits}`,
      scales: `${name}_scales`,
      zeroPoints: `${name}_zero_points`,
    })
  }

  #take(names: BlockNames): BlockNames {
    return {
      codes: this.#names.take(names.codes),
      scales: this.#names.take(names.scales),
      zeroPoints: names.zeroPoints === '' ? '' : this.#names.take(names.zeroPoints),
    }
  }
}

function int(value: number): NewAttribute {
  return { type: 'INT', value }
}

function initializersOf(model: OnnxModel): Tensor[] {
  return [...model.graphs()].flatMap((graph) => [...graph.initializers()])
}

/** A matrix behind leading extents of 1. */
function isMatrixInMoreAxes({ shape }: Tensor): boolean {
  return shape.length > 2 && shape.slice(0, -2).every((extent) => extent === 1)
}

function isTransposeOfMatrix(node: Node): boolean {
  if (!isStandard(node, 'Transpose')) return false
  const perm = node.attribute('perm')
  return perm === undefined || integersOf(perm)?.join() === '1,0'
}
