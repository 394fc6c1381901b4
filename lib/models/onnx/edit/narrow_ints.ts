/**
 * Stores int64 indices, sizes and flags of a model as int32, for engines that have no int64.
 *
 * Values that one node or another gives one type form a class (union-find over the type variables of the operators' schemas). A
 * class becomes int32 where every slot that it touches takes int32, and where every number in it is known to be in the range of
 * int32: its constants are read, and its nodes only move numbers. Anything else keeps the class as it is, with a reason: inputs
 * and outputs of graphs, operators that need int64 (`Shape`, `Reshape`, …), and arithmetic, whose results could be larger.
 */
import { checkOptions, readInput } from '../../../caller_input.js'
import { throwIfAborted } from '../../../cancel.js'
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import { cast } from '../../../tensor/cast.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import { stats } from '../../../tensor/stats.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { standardDomain } from '../document/node.js'
import { isStandard, mainScope, type Scope } from '../document/scope.js'
import type { Graph, Node, ValueType } from '../document/types.js'
import { constantOf } from '../document/value.js'
import { inferModel } from '../infer/infer.js'
import { MOVERS } from '../schemas/movers.js'
import { type Parameter, parameterAt, schemaAt, typeKey } from '../schemas/schemas.js'
import { refuseTraining } from './graph_passes.js'

const INT32 = typeKey(DTYPES.int32.onnx!)
const [LEAST, MOST] = [-(2n ** 31n), 2n ** 31n - 1n]

export interface NarrowIntsOptions {
  readonly signal?: AbortSignal
}

/** What `narrowInts` did. */
export interface NarrowedInts {
  /** Names of the values that are int32 now: weights, constants, and what nodes make of them. */
  readonly narrowed: readonly string[]
  /** Constants that stay int64, with the first reason of their class. */
  readonly stays: readonly { readonly name: string; readonly reason: string }[]
}

/** Operators that take numbers and give others: results are the same for int32. */
const READERS: ReadonlySet<string> = new Set([
  'Cast',
  'Equal',
  'Greater',
  'GreaterOrEqual',
  'Less',
  'LessOrEqual',
])

/** Operators that make numbers of an attribute. */
const MAKERS: ReadonlySet<string> = new Set(['Constant', 'ConstantOfShape'])

/** Types from which a Cast makes int64 numbers in the range of int32. */
const SMALL_TYPES: ReadonlySet<unknown> = new Set(['bool', 'int8', 'int16', 'int32', 'uint8', 'uint16'])

/**
 * Changes int64 constants of a model, and the values that nodes make of them, to int32 where all their numbers fit and every
 * operator takes int32; outputs stay the same. Inputs and outputs of the model keep their types, and no Cast is added.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_GRAPH; ERR_UNSUPPORTED for a model with training graphs; ERR_ABORTED and errors of reading, before the first change
 */
export async function narrowInts(model: OnnxModel, options: NarrowIntsOptions = {}): Promise<NarrowedInts> {
  checkModel(model, 'narrowInts')
  checkOptions(options, 'narrowInts', ['signal'])
  const { signal } = readInput('The options of narrowInts', () => ({ ...options }))
  throwIfAborted(signal)
  refuseTraining(model.graph)
  const classes = new IntClasses(model)
  for (const scope of mainScope(model).all()) classes.visitGraph(scope)
  await classes.readConstants(signal)
  return classes.narrow()
}

/** An int64 value, or one of unknown type, in the graph that defines it. */
interface IntValue {
  readonly graph: Graph
  readonly name: string
  /** Of the class; itself for its first value. */
  parent: IntValue
  /** Why the class stays; of its first value. */
  reason?: string
  /** True where each use is an end or a start of a Slice of known dimensions, for which greater numbers mean the same. */
  mayClamp: boolean
}

class IntClasses {
  readonly #types: ReadonlyMap<Graph, ReadonlyMap<string, ValueType>>
  readonly #opset: number
  /** Names of operators of ONNX that the model defines as functions. */
  readonly #own: ReadonlySet<string>
  readonly #values = new Map<Graph, Map<string, IntValue>>()
  /** Constants with their numbers as int32, by value. */
  readonly #constants = new Map<IntValue, DenseTensor>()

  constructor(model: OnnxModel) {
    this.#types = inferModel(model).types
    this.#opset = Number(model.opsetImports.get('') ?? 1)
    this.#own = new Set(
      model.functions.filter(({ domain }) => standardDomain(domain) === '').map(({ name }) => name),
    )
  }

  visitGraph(scope: Scope): void {
    const { graph } = scope
    for (const { name } of graph.inputs) this.#keep(scope, name, 'it is an input of a graph')
    for (const { name } of graph.initializers()) this.#valueOf(scope, name)
    for (const node of graph.nodes) this.#visitNode(scope, node)
    for (const { name } of graph.outputs) this.#keep(scope, name, 'it is an output of a graph')
  }

  #visitNode(scope: Scope, node: Node): void {
    const { opType, inputs, outputs } = node
    const isKnown = MOVERS.has(opType) || READERS.has(opType) || MAKERS.has(opType)
    const isOfOnnx = standardDomain(node.domain) === '' && !this.#own.has(opType)
    const schema = isKnown && isOfOnnx ? schemaAt('', opType, this.#opset) : undefined
    if (!schema || (opType.startsWith('Scatter') && node.attribute('reduction'))) {
      for (const name of [...inputs, ...outputs]) this.#keep(scope, name, `${opType} takes or gives it`)
      return
    }
    const groups = new Map<string, IntValue>()
    for (const [at, name] of inputs.entries()) {
      this.#visitSlot(scope, node, name, parameterAt(schema.inputs, at), groups)
      if (!(opType === 'Slice' && (at === 1 || at === 2) && this.#hasKnownDims(scope, inputs[0] ?? '')))
        this.#refuseClamp(scope, name)
    }
    for (const [at, name] of outputs.entries())
      this.#visitSlot(scope, node, name, parameterAt(schema.outputs, at), groups)
    if (isStandard(node, 'Cast')) this.#visitCast(scope, node)
  }

  #visitSlot(
    scope: Scope,
    { opType }: Node,
    name: string,
    parameter: Parameter | undefined,
    groups: Map<string, IntValue>,
  ): void {
    const value = this.#valueOf(scope, name)
    if (!value) return
    if (!parameter?.types.has(INT32)) keep(value, `${opType} needs int64`)
    if (parameter?.variable === undefined) return
    const first = groups.get(parameter.variable)
    if (first) unite(first, value)
    else groups.set(parameter.variable, value)
  }

  #visitCast(scope: Scope, { inputs, outputs }: Node): void {
    const [from, to] = [this.#valueOf(scope, inputs[0] ?? ''), this.#valueOf(scope, outputs[0] ?? '')]
    if (!to) return
    if (from) unite(from, to)
    else if (!SMALL_TYPES.has(this.#dtypeOf(scope, inputs[0] ?? '')))
      keep(to, 'it is cast from other numbers')
  }

  #keep(scope: Scope, name: string, reason: string): void {
    const value = this.#valueOf(scope, name)
    if (value) keep(value, reason)
  }

  #refuseClamp(scope: Scope, name: string): void {
    const value = this.#valueOf(scope, name)
    if (value) value.mayClamp = false
  }

  /** Undefined for a value of another type than int64. */
  #valueOf(scope: Scope, name: string): IntValue | undefined {
    const graph = scope.ownerOf(name)?.graph
    if (!graph) return undefined
    const dtype = this.#dtypeOf(scope, name)
    if (dtype !== undefined && dtype !== 'int64') return undefined
    const values = this.#values.get(graph) ?? new Map<string, IntValue>()
    this.#values.set(graph, values)
    const known = values.get(name)
    if (known) return known
    const value: Omit<IntValue, 'parent'> & { parent?: IntValue } = { graph, name, mayClamp: true }
    value.parent = value as IntValue
    if (dtype === undefined) value.reason = 'its type is not known'
    values.set(name, value as IntValue)
    return value as IntValue
  }

  /** `other` for values that are no tensors. */
  #dtypeOf(scope: Scope, name: string): Dtype | number | 'other' | undefined {
    const graph = scope.ownerOf(name)?.graph
    const type = graph && this.#types.get(graph)?.get(name)
    if (!type || type.kind === 'none') return undefined
    if (type.kind !== 'tensor') return 'other'
    return type.dtype === 0 ? undefined : type.dtype
  }

  #hasKnownDims(scope: Scope, name: string): boolean {
    const graph = scope.ownerOf(name)?.graph
    const type = graph && this.#types.get(graph)?.get(name)
    const dims = type?.kind === 'tensor' ? type.shape : undefined
    return dims?.every((dim) => typeof dim === 'number' && dim <= Number(MOST)) === true
  }

  /** Reads the constants of classes that may change, and keeps those with other numbers than int32 has. */
  async readConstants(signal: AbortSignal | undefined): Promise<void> {
    for (const [graph, values] of this.#values) {
      for (const value of values.values()) {
        if (rootOf(value).reason !== undefined) continue
        throwIfAborted(signal)
        const producer = graph.producerOf(value.name)
        const tensor = producer ? madeBy(producer) : graph.initializer(value.name)
        if (producer && !isMaker(producer)) continue
        if (tensor?.kind !== 'dense' || !tensor.hasData) keep(value, 'its numbers are not known')
        else await this.#readConstant(value, tensor, signal)
      }
    }
  }

  async #readConstant(value: IntValue, tensor: DenseTensor, signal: AbortSignal | undefined): Promise<void> {
    const { min, max } = await stats(tensor, { ...(signal && { signal }) })
    const fits = BigInt(min ?? 0) >= LEAST && BigInt(max ?? 0) <= MOST
    if (fits) this.#constants.set(value, cast(tensor, 'int32'))
    else if (value.mayClamp) this.#constants.set(value, await clamped(tensor))
    else keep(value, `its numbers are ${min} to ${max}`)
  }

  narrow(): NarrowedInts {
    const narrowed: string[] = []
    const stays: { name: string; reason: string }[] = []
    for (const [graph, values] of this.#values) {
      for (const value of values.values()) {
        const { reason } = rootOf(value)
        if (reason === undefined) {
          this.#narrowValue(graph, value)
          narrowed.push(value.name)
        } else if (isConstant(graph, value.name)) stays.push({ name: value.name, reason })
      }
    }
    return { narrowed, stays }
  }

  #narrowValue(graph: Graph, value: IntValue): void {
    const { name } = value
    const producer = graph.producerOf(name)
    const tensor = this.#constants.get(value)
    if (!producer) graph.setInitializer(name, tensor!)
    else if (tensor) {
      for (const attribute of producer.attributes) producer.removeAttribute(attribute.name)
      producer.setAttribute('value', { type: 'TENSOR', value: tensor })
    } else if (isStandard(producer, 'Cast')) {
      producer.setAttribute('to', { type: 'INT', value: DTYPES.int32.onnx! })
    }
    const declared = graph.typeOf(name)
    if (producer && declared.kind === 'tensor') graph.setType(name, { ...declared, dtype: 'int32' })
  }
}

function isMaker({ domain, opType }: Node): boolean {
  return standardDomain(domain) === '' && MAKERS.has(opType)
}

/** The numbers of a Constant, or the number of a ConstantOfShape. */
function madeBy(node: Node): ReturnType<typeof constantOf> {
  if (isStandard(node, 'Constant')) return constantOf(node)
  return isStandard(node, 'ConstantOfShape') ? node.attribute('value')?.tensors[0] : undefined
}

function isConstant(graph: Graph, name: string): boolean {
  const producer = graph.producerOf(name)
  return producer ? isStandard(producer, 'Constant') : graph.hasInitializer(name)
}

/** Starts and ends of Slice beyond a dimension mean the dimension. There is one number per axis. */
async function clamped(tensor: DenseTensor): Promise<DenseTensor> {
  const values = (await tensor.toTypedArray()) as BigInt64Array
  const numbers = Array.from(values, (each) => Number(each < LEAST ? LEAST : each > MOST ? MOST : each))
  return tensorOf(numbers, { dtype: 'int32', shape: [...tensor.shape], name: tensor.name }) as DenseTensor
}

function rootOf(value: IntValue): IntValue {
  let root = value
  while (root.parent !== root) root = root.parent
  // Shortens the way, so that a chain of a hundred thousand nodes takes linear time.
  for (let each = value; each.parent !== root; ) {
    const next = each.parent
    each.parent = root
    each = next
  }
  return root
}

function unite(one: IntValue, other: IntValue): void {
  const [first, second] = [rootOf(one), rootOf(other)]
  if (first === second) return
  second.parent = first
  if (second.reason !== undefined) keep(first, second.reason)
}

function keep(value: IntValue, reason: string): void {
  rootOf(value).reason ??= reason
}
