/**
 * Changes the float type of the values of a model (float32 to float16 or bfloat16, or back), and keeps what must not change.
 *
 * One walk per graph, in topological order. Each value has a home, its element type in the result; each input of a node
 * wants a type. Where they differ, one Cast per value and wanted type is added in the graph that owns the value, behind its
 * producer. So blocked nodes in a row exchange values of the old type, and no pair of Casts ever has to be removed.
 */
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { DTYPE_OF_CODE } from '../../formats/onnx/schema.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import type { ReadNode } from '../onnx/document/read_node.js'
import { isStandard } from '../onnx/document/scope.js'
import type { Graph, Node, ValueType } from '../onnx/document/types.js'
import { constantOf } from '../onnx/document/value.js'
import { freeInitializers } from '../onnx/edit/free_initializers.js'
import { type Opsets, type Signature, signatureOf } from '../onnx/infer/slots.js'
import { type ElementType, ElementTypes } from './element_types.js'
import { type AttributeChange, convertAttributes } from './float_attributes.js'
import { MISSING_KERNELS } from './float16_kernels.js'
import type { ConvertedWeight, HalfDtype } from './half_values.js'
import { IntegerProducts } from './integer_products.js'
import { type ReportBuilder, valueBytes } from './report.js'

export type FloatDtype = 'float32' | HalfDtype

/** The type of a value in the result. */
type Home = FloatDtype

/** Bytes up to which an initializer with users of both types is stored in both. */
const KEEP_BOTH_BYTES = 1024

/** Letters of the table of operators. */
const LETTER: Readonly<Record<FloatDtype, string>> = { float32: 'f', float16: 'h', bfloat16: 'b' }
const SUFFIX: Readonly<Record<FloatDtype, string>> = { float32: '_fp32', float16: '_fp16', bfloat16: '_bf16' }

/** A change of the float type of a model. */
export interface FloatChange {
  readonly from: FloatDtype
  readonly to: FloatDtype
  /** Inputs and outputs of the model that keep their type. */
  readonly keeps: (name: string) => boolean
  readonly blockedOps: ReadonlySet<string>
  readonly blockedNodes: ReadonlySet<string>
  /** A weight in the new type; lazy. */
  readonly convert: (tensor: DenseTensor) => DenseTensor
  /** As `convert` for a weight with data, and counts the values that are clipped; absent where the new type represents all values. */
  readonly convertWeight?: (tensor: DenseTensor) => Promise<ConvertedWeight>
  /** Nodes that stay because of their constant parameters, with the reason of each. */
  readonly unfit: ReadonlyMap<Node, string>
  readonly report: ReportBuilder
  readonly signal: AbortSignal | undefined
}

/**
 * Changes the model in place; weights become lazy tensors.
 *
 * @throws TileworkError before the first change ERR_UNSUPPORTED for an operator that is not known and whose output has no
 * declared type, and ERR_GRAPH; ERR_ABORTED and errors of reading, after which the model may be changed in part
 */
export async function changeFloats(model: OnnxModel, change: FloatChange): Promise<void> {
  const walk = new GraphWalk(new Context(model, change), model.graph, undefined)
  freeInitializers(model)
  await walk.run()
}

const INTEGER_REASON = 'its input is a sum of integer products, or a scale of one'

/** What all graphs of the model share. */
class Context {
  readonly change: FloatChange
  readonly opsets: Opsets
  readonly types: ElementTypes
  readonly names: FreshNames
  readonly attributes: AttributeChange
  /** Sequences cannot be cast, so they stay where a caller gives or takes one, and where the type has none. */
  readonly sequencesStay: boolean

  constructor(model: OnnxModel, change: FloatChange) {
    const { from, to, keeps, convert } = change
    this.change = change
    this.opsets = model.opsetImports
    this.types = new ElementTypes(model)
    this.names = new FreshNames(model)
    this.attributes = { from, to, fromCode: codeOf(from), toCode: codeOf(to), convert }
    const ends = [...model.graph.inputs, ...model.graph.outputs]
    const keepsSequence = ends.some(
      ({ name, type }) => (type.kind === 'sequence' || type.kind === 'optional') && keeps(name),
    )
    this.sequencesStay = to === 'bfloat16' || keepsSequence
  }

  /** True for float32 to a half type, which represents fewer values. */
  get isNarrowing(): boolean {
    return this.change.from === 'float32'
  }

  /** Why a node keeps its types; undefined for one that is converted. */
  whyBlocked(node: ReadNode, walk: GraphWalk): string | undefined {
    const { types, opsets } = this
    const { from, to, blockedOps, blockedNodes } = this.change
    if (blockedOps.has(node.opType)) return `${node.opType} is blocked`
    if (node.name !== '' && blockedNodes.has(node.name)) return 'the node is blocked by name'
    if (types.functionOf(node)) return 'it calls a function of the model'
    const signature = signatureOf(node, opsets)
    if (!signature) return this.#unknown(node, walk)
    const ends = [...node.inputs, ...node.outputs].map((name) => walk.floatType(name))
    if (this.sequencesStay && ends.some((type) => type && !type.isTensor)) return `sequences stay ${from}`
    if (isStandard(node, 'BitCast')) return `it takes or gives the bits of ${from}`
    if (isStandard(node, 'Constant') && node.node.attribute('sparse_value')) return 'its value is sparse'
    // Tensors of its attributes have the type of the input, and thresholds may not be rounded.
    if (node.opType === 'TreeEnsemble') return `its thresholds are ${from}`
    const half = this.isNarrowing ? this.#whyNoHalf(node, walk) : undefined
    if (half !== undefined) return half
    const lacks =
      (node.inputs[0] && walk.floatType(node.inputs[0]) && this.lacksTarget(signature.inputs, 0)) ||
      (node.outputs[0] && walk.floatType(node.outputs[0]) && this.lacksTarget(signature.outputs, 0))
    return lacks ? `${node.opType} has no version for ${to} in this operator set` : undefined
  }

  #whyNoHalf(node: ReadNode, walk: GraphWalk): string | undefined {
    const { to, unfit } = this.change
    if (this.#lacksKernel(node, walk)) return `onnxruntime has no ${to} kernel of it for CPUs`
    const reason = unfit.get(node.node)
    if (reason !== undefined) return reason
    const isInt32 = isStandard(node, 'DequantizeLinear') && walk.dtypeOf(node.inputs[0] ?? '') === 'int32'
    return isInt32 ? 'its input is int32' : undefined
  }

  #lacksKernel({ domain, opType, inputs }: ReadNode, walk: GraphWalk): boolean {
    if (domain !== '') return false
    const { generators, expanded } = MISSING_KERNELS['onnxruntime CPU']
    return expanded.has(opType) || (generators.has(opType) && !inputs.some((name) => walk.floatType(name)))
  }

  #unknown(node: ReadNode, walk: GraphWalk): string {
    const open = node.outputs.find((name) => name !== '' && walk.dtypeOf(name) === undefined)
    const takesFloats = node.inputs.some((name) => walk.floatType(name))
    if (open !== undefined && takesFloats) {
      throw new TileworkError(
        'ERR_UNSUPPORTED',
        `node ${valueText(node.name)} is ${valueText(node.opType)} of domain ${valueText(node.domain)}, which is not known; ` +
          `declare the type of its output ${valueText(open)} with graph.setType, or block the operator`,
      )
    }
    return `${node.opType} is not known`
  }

  /** True for a slot that takes the old type and not the new one. */
  lacksTarget(slots: Signature['inputs'], index: number): boolean {
    const { from, to } = this.change
    const letters = slots.at(index)?.letters ?? ''
    return letters.includes(LETTER[from]) && !letters.includes(LETTER[to])
  }
}

function codeOf(dtype: Home): number {
  for (const [code, name] of DTYPE_OF_CODE) if (name === dtype) return code
  throw new Error(`no code of ${dtype}`)
}

/** An input of a node that reads an initializer, or an output of the graph that is one (without node). */
interface InitializerUse {
  readonly node?: ReadNode
  readonly index: number
  readonly want: Home
}

/** How a node is converted. */
interface NodePlan {
  /** Why it keeps its types. */
  readonly reason: string | undefined
  /** Of the graphs inside a node that is converted. */
  readonly inner: readonly GraphWalk[]
}

/** The constructor refuses what cannot be converted, in inner graphs, too; nothing is changed before `run`. */
class GraphWalk {
  readonly graph: Graph
  readonly #context: Context
  readonly #outer: GraphWalk | undefined
  readonly types: ReadonlyMap<string, ElementType>
  readonly #defined: ReadonlySet<string>
  /** Nodes in topological order; Casts have no plan. */
  readonly #plans: ReadonlyMap<ReadNode, NodePlan | undefined>
  readonly #homes = new Map<string, Home>()
  /** New names of values whose old name is the output of a Cast. */
  readonly #renamed = new Map<string, string>()
  /** Names of values in another type, by name and type. */
  readonly #casts = new Map<string, string>()
  readonly #producers = new Map<string, ReadNode>()
  readonly #uses = new Map<string, InitializerUse[]>()
  /** Small values of Constant nodes as they were. */
  readonly #constants = new Map<string, DenseTensor>()
  /** Casts by the node that they follow; those of inputs and initializers by undefined. */
  readonly #added = new Map<ReadNode | undefined, [from: string, to: string, dtype: Home][]>()
  readonly #products: IntegerProducts
  /** Casts whose result float16 does not represent. */
  readonly #wideCasts = new Set<ReadNode>()
  /** Inputs that nodes get all at once: a node may have a hundred thousand. */
  readonly #newInputs = new Map<ReadNode, string[]>()

  constructor(context: Context, graph: Graph, outer: GraphWalk | undefined) {
    this.#context = context
    this.graph = graph
    this.#outer = outer
    this.types = context.types.of(graph)
    const nodes = context.types.nodesOf(graph)
    const produced = nodes.flatMap(({ outputs }) => outputs)
    this.#defined = new Set([...graph.inputNames, ...graph.initializerNames, ...produced])
    this.#products = new IntegerProducts(
      (name) => this.#isConstant(name),
      outer === undefined ? undefined : outer.#products,
    )
    this.#plans = new Map(nodes.map((node) => [node, this.#planOf(node)]))
  }

  #planOf(node: ReadNode): NodePlan | undefined {
    const isInteger = this.#products.visit(node) && this.#context.isNarrowing
    if (isStandard(node, 'Cast')) {
      if (isInteger) this.#wideCasts.add(node)
      return undefined
    }
    const reason = isInteger ? INTEGER_REASON : this.#context.whyBlocked(node, this)
    if (reason !== undefined) return { reason, inner: [] }
    return { reason, inner: node.subgraphs.map((graph) => new GraphWalk(this.#context, graph, this)) }
  }

  get #from(): FloatDtype {
    return this.#context.change.from
  }

  get #target(): FloatDtype {
    return this.#context.change.to
  }

  async run(): Promise<void> {
    const { graph } = this
    for (const name of graph.inputNames) {
      if (this.isFloat(name) && !this.#isConstant(name)) this.#homes.set(name, this.#homeOfInput(name))
    }
    for (const [node, plan] of this.#plans) {
      throwIfAborted(this.#context.change.signal)
      if (plan) await this.#visit(node, plan)
      else this.#visitCast(node)
    }
    for (const name of graph.outputNames) {
      if (this.isFloat(name) && this.#isConstant(name))
        this.#useOf(name).push({ index: 0, want: this.#wantOfOutput(name) })
    }
    for (const [name, uses] of this.#uses) await this.#convertInitializer(name, uses)
    await this.#convertDefaults()
    this.#addCasts()
    this.#removeNeedless()
    this.#setTypes()
  }

  /** The type of a value of the old type that this graph or one around it defines. */
  floatType(name: string): ElementType | undefined {
    const owner = this.ownerOf(name)
    return owner?.isFloat(name) ? owner.types.get(name) : undefined
  }

  dtypeOf(name: string): ElementType['dtype'] | undefined {
    return this.ownerOf(name)?.types.get(name)?.dtype
  }

  ownerOf(name: string): GraphWalk | undefined {
    if (name === '') return undefined
    return this.#defined.has(name) ? this : this.#outer?.ownerOf(name)
  }

  isFloat(name: string): boolean {
    return this.types.get(name)?.dtype === this.#from
  }

  /** True for an initializer that nothing can override. */
  #isConstant(name: string): boolean {
    const { graph } = this
    if (!graph.hasInitializer(name)) return false
    if (graph.inputNames.has(name)) return false
    return graph.initializer(name)?.kind === 'dense'
  }

  #homeOfInput(name: string): Home {
    const isKept = this.#outer === undefined && this.#context.change.keeps(name)
    const staysSequence = this.#context.sequencesStay && this.types.get(name)?.isTensor === false
    return isKept || staysSequence ? this.#from : this.#target
  }

  #wantOfOutput(name: string): Home {
    return this.#homeOfInput(name)
  }

  async #visit(node: ReadNode, { reason, inner }: NodePlan): Promise<void> {
    const context = this.#context
    const want = reason === undefined ? this.#target : this.#from
    for (const walk of inner) await walk.run()
    if (reason !== undefined) for (const graph of node.subgraphs) this.#keepType(graph, new Set())
    const signature = reason === undefined ? signatureOf(node, context.opsets) : undefined
    const typeOfSlot = (slots: Signature['inputs'] | undefined, index: number): Home =>
      slots && context.lacksTarget(slots, index) ? this.#from : want
    const inputs = node.inputs
    for (const [index, name] of inputs.entries())
      this.#use(node, index, name, typeOfSlot(signature?.inputs, index))
    this.#setInputs()
    if (reason === undefined && node.domain === '') {
      this.#keepConstant(node)
      convertAttributes(node, context.attributes)
    }
    if (inputs.length > 0 || node.outputs.some((name) => this.isFloat(name))) this.#note(node, inputs, reason)
    for (const [index, name] of node.outputs.entries()) {
      this.#define(node, index, name, typeOfSlot(signature?.outputs, index))
    }
  }

  #keepConstant(node: ReadNode): void {
    const value = node.opType === 'Constant' ? constantOf(node.node) : undefined
    if (value?.kind === 'dense' && value.dtype === this.#from && valueBytes(value) <= KEEP_BOTH_BYTES)
      this.#constants.set(node.outputs[0]!, value)
  }

  /** @param inputs - as they were before Casts */
  #note(node: ReadNode, inputs: readonly string[], reason: string | undefined): void {
    const touchesFloat = [...inputs, ...node.outputs].some((name) => this.floatType(name))
    if (reason !== undefined && touchesFloat) this.#context.change.report.stays(node, reason)
    else if (touchesFloat) this.#context.change.report.converted(node, this.#target)
  }

  /** A Cast takes its input as it is. Where the model asks for more precision than a half type has, the result stays float32. */
  #visitCast(node: ReadNode): void {
    const { change, attributes, isNarrowing } = this.#context
    const [input = ''] = node.inputs
    const [output = ''] = node.outputs
    const owner = this.ownerOf(input)
    const to = DTYPE_OF_CODE.get(Number(node.node.attribute('to')?.value ?? 0))
    const from = owner?.types.get(input)?.dtype
    const isHalf = isNarrowing && (from === 'float16' || from === 'bfloat16')
    const isNamed = change.blockedNodes.has(node.name) || change.blockedOps.has('Cast')
    const stays = to !== this.#from || isHalf || isNamed || this.#wideCasts.has(node)
    if (owner?.isFloat(input)) {
      // A half constant that the model casts to float32 is float32 now, and its Cast is needless.
      const isWidened = to === this.#target && !isNarrowing
      if (owner.#isConstant(input)) this.#use(node, 0, input, stays && !isWidened ? this.#from : this.#target)
      else this.#replace(node, 0, owner.#renamed.get(input) ?? input)
      this.#setInputs()
    }
    if (!stays) node.node.setAttribute('to', { type: 'INT', value: attributes.toCode })
    this.#define(node, 0, output, stays ? this.#from : this.#target)
  }

  /** In a graph inside a blocked node, values from outside keep their type. */
  #keepType(graph: Graph, hidden: ReadonlySet<string>): void {
    const nodes = this.#context.types.nodesOf(graph)
    const produced = nodes.flatMap(({ outputs }) => outputs)
    const own = new Set([...hidden, ...graph.inputNames, ...graph.initializerNames, ...produced])
    for (const node of nodes) {
      for (const [index, name] of node.inputs.entries()) {
        if (!own.has(name)) this.#use(node, index, name, this.#from)
      }
      for (const inner of node.subgraphs) this.#keepType(inner, own)
    }
  }

  /** Makes an input of a node take a value of the old type in the wanted one. */
  #use(node: ReadNode, index: number, name: string, want: Home): void {
    const owner = this.ownerOf(name)
    if (!owner?.isFloat(name)) return
    if (owner.#isConstant(name)) owner.#useOf(name).push({ node, index, want })
    else this.#replace(node, index, owner.#nameAs(name, want))
  }

  #useOf(name: string): InitializerUse[] {
    const uses = this.#uses.get(name) ?? []
    this.#uses.set(name, uses)
    return uses
  }

  #replace(node: ReadNode, index: number, name: string): void {
    const inputs = this.#newInputs.get(node) ?? [...node.inputs]
    inputs[index] = name
    this.#newInputs.set(node, inputs)
  }

  #setInputs(): void {
    for (const [node, inputs] of this.#newInputs)
      if (node.inputs.some((name, index) => name !== inputs[index])) node.inputs = inputs
    this.#newInputs.clear()
  }

  /**
   * The name of a value of this graph in the wanted type; adds a Cast where there is none yet. A small Constant is stored in its old
   * type as well: a Cast of it gives rounded numbers, and hides from runtimes that scales of a Resize are constant, or empty.
   */
  #nameAs(name: string, want: Home): string {
    const current = this.#renamed.get(name) ?? name
    if ((this.#homes.get(name) ?? this.#from) === want) return current
    const key = `${want} ${name}`
    const known = this.#casts.get(key)
    if (known !== undefined) return known
    const fresh = this.#context.names.take(name + SUFFIX[want])
    this.#homes.set(fresh, want)
    this.#casts.set(key, fresh)
    const constant = want === this.#from ? this.#constants.get(name) : undefined
    if (constant) this.graph.setInitializer(fresh, constant)
    else this.#addCast(this.#producers.get(name), current, fresh, want)
    return fresh
  }

  #addCast(after: ReadNode | undefined, from: string, to: string, dtype: Home): void {
    const list = this.#added.get(after) ?? []
    this.#added.set(after, list)
    list.push([from, to, dtype])
  }

  /** Records an output of a node; an output of the graph in another type gets a Cast that keeps the name. */
  #define(node: ReadNode, index: number, name: string, home: Home): void {
    if (name === '' || !this.isFloat(name)) return
    this.#homes.set(name, home)
    this.#producers.set(name, node)
    if (!this.graph.outputNames.has(name)) return
    const want = this.#wantOfOutput(name)
    if (want === home || !this.types.get(name)!.isTensor) return
    const fresh = this.#context.names.take(name + SUFFIX[home])
    this.#homes.set(fresh, home)
    node.outputs = node.outputs.with(index, fresh)
    this.#renamed.set(name, fresh)
    this.#casts.set(`${want} ${name}`, name)
    this.#addCast(node, fresh, name, want)
  }

  /** Chooses the type of an initializer by its users; for users of both types it is stored in both, or cast. */
  async #convertInitializer(name: string, uses: readonly InitializerUse[]): Promise<void> {
    const tensor = this.graph.initializer(name) as DenseTensor
    const wanted = new Set(uses.map(({ want }) => want))
    if (!wanted.has(this.#target)) return
    const asOutput = uses.find(({ node }) => node === undefined)?.want
    const isBoth = wanted.size > 1
    const isCopied = isBoth && valueBytes(tensor) <= KEEP_BOTH_BYTES
    const home = asOutput ?? (isCopied ? this.#from : this.#target)
    const changed = await this.#convert(tensor)
    if (home === this.#target) this.graph.setInitializer(name, changed)
    this.#homes.set(name, home)
    if (!isBoth) return
    const other = home === this.#from ? this.#target : this.#from
    const fresh = this.#context.names.take(name + SUFFIX[other])
    this.#homes.set(fresh, other)
    if (isCopied) this.graph.setInitializer(fresh, other === this.#from ? tensor : changed)
    else this.#addCast(undefined, name, fresh, other)
    for (const { node, index, want } of uses) if (node && want === other) this.#replace(node, index, fresh)
    this.#setInputs()
  }

  /** Initializers that are the default of an input have the type of the input. */
  async #convertDefaults(): Promise<void> {
    for (const name of this.graph.inputNames) {
      const isConverted = this.#homes.get(name) === this.#target && !this.#uses.has(name)
      const tensor = isConverted ? this.graph.initializer(name) : undefined
      if (tensor?.kind === 'dense' && tensor.dtype === this.#from) {
        this.graph.setInitializer(name, await this.#convert(tensor))
      }
    }
  }

  async #convert(tensor: DenseTensor): Promise<DenseTensor> {
    const { to, convert, convertWeight, report } = this.#context.change
    const isCounted = convertWeight !== undefined && tensor.hasData
    const { changed, ...counts } = isCounted ? await convertWeight(tensor) : { changed: convert(tensor) }
    report.tensors.push({
      name: tensor.name,
      from: tensor.dtype,
      to,
      bytesBefore: valueBytes(tensor),
      bytesAfter: valueBytes(changed),
      ...(convertWeight && !isCounted && { clipped: 0, lifted: 0 }),
      ...counts,
    })
    return changed
  }

  /**
   * Casts of the model may have an input of their type now. onnxruntime misreads a Cast of float16 to float16, so the Cast goes,
   * or becomes a copy where it gives an output of the graph.
   */
  #removeNeedless(): void {
    for (const [read] of this.#plans) {
      if (!isStandard(read, 'Cast') && !isStandard(read, 'CastLike')) continue
      // As it is now: its input may be the output of a Cast that is gone.
      const { node } = read
      const [output = ''] = node.outputs
      const type = this.#homes.get(output) ?? this.types.get(output)?.dtype
      if (type === undefined || this.#homeOf(node.inputs[0] ?? '') !== type) continue
      if (this.graph.outputNames.has(output)) {
        node.opType = 'Identity'
        for (const { name } of node.attributes) node.removeAttribute(name)
        node.inputs = node.inputs.slice(0, 1)
      } else {
        this.graph.replaceAllUses(output, node.inputs[0]!)
        this.graph.removeNode(node)
      }
    }
  }

  /** Of a float value of the model, or of a new one. */
  #homeOf(name: string): Home | undefined {
    return this.#homes.get(name) ?? (this.#outer === undefined ? undefined : this.#outer.#homeOf(name))
  }

  #addCasts(): void {
    if (this.#added.size === 0) return
    const { graph } = this
    const positions = new Map<Node | undefined, number>(graph.nodes.map((node, index) => [node, index + 1]))
    positions.set(undefined, 0)
    const places = [...this.#added].sort(
      ([one], [other]) => positions.get(other?.node)! - positions.get(one?.node)!,
    )
    for (const [after, casts] of places) {
      for (const [from, to, dtype] of casts.toReversed()) {
        graph.addNode(castNode(from, to, codeOf(dtype), this.#context.names), positions.get(after?.node)!)
      }
    }
  }

  #setTypes(): void {
    const { graph } = this
    const declared = [...graph.inputs, ...graph.outputs, ...graph.valueInfo]
    for (const name of new Set(declared.map((each) => each.name))) {
      const home = graph.outputNames.has(name) ? this.#wantOfOutput(name) : this.#homes.get(name)
      // The output of a Cast that was removed may still be declared.
      if (home !== undefined && home !== this.#from && this.isFloat(name) && graph.value(name))
        graph.setType(name, withDtype(graph.typeOf(name), home))
    }
  }
}

function castNode(
  from: string,
  to: string,
  code: number,
  names: FreshNames,
): Parameters<Graph['addNode']>[0] {
  return {
    opType: 'Cast',
    name: names.take(`Cast_${to}`),
    inputs: [from],
    outputs: [to],
    attributes: { to: { type: 'INT', value: code } },
  }
}

function withDtype(type: ValueType, dtype: Home): ValueType {
  if (type.kind === 'tensor' || type.kind === 'sparse') return { ...type, dtype }
  if (type.kind === 'sequence' || type.kind === 'optional') return { ...type, of: withDtype(type.of, dtype) }
  return type
}
