/** Builds the graph of a tmfile: tensors with known shapes, nodes in topological order, unique names. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { allowedFor, isStorable } from '../../../formats/tmfile/encode/chunk.js'
import { type OperatorSchema, operatorByName } from '../../../formats/tmfile/operators.js'
import { OPERATOR_VERSION } from '../../../formats/tmfile/schema.js'
import { type Shape, sameShape } from '../../../models/onnx/evaluate/arrays.js'
import { producerNode } from '../../../models/tmfile/document/operator_node.js'
import {
  type KnownNode,
  type OperatorName,
  type OperatorParams,
  type TmfileDtype,
  TmfileModel,
  type TmfileNode,
  type TmfileQuantization,
  type TmfileTensor,
} from '../../../models/tmfile/index.js'
import { cast } from '../../../tensor/cast.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { Constant, MAX_COMPUTED_ELEMENTS } from './constant.js'
import { whyNotShape } from './engine_limits.js'
import { refuse } from './refusal.js'

/** A constant, or a tensor that the engine computes. */
export type Operand = Constant | TmfileTensor

export function shapeOf(operand: Operand): Shape {
  return operand.shape!
}

export function isConstantOperand(operand: Operand): operand is Constant {
  return operand instanceof Constant
}

const FLOATS: ReadonlySet<Dtype> = new Set(['float32', 'float64', 'float16', 'bfloat16'])
const INT32_LIMIT = 2 ** 31

/** `orig_format` of a model that was ONNX. */
const ORIGIN_ONNX = 3

export interface EmitOptions {
  /** The result is right for the present batch size alone. */
  readonly fixesBatch?: boolean
}

export class GraphBuilder {
  #constants: TmfileNode[] = []
  readonly #inputs: TmfileNode[] = []
  #nodes: TmfileNode[] = []
  readonly #producers = new Map<TmfileTensor, TmfileNode>()
  readonly #consumers = new Map<TmfileTensor, TmfileNode[]>()
  readonly #stored = new Map<Constant, Map<string, TmfileTensor>>()
  readonly #tensorNames = new Set<string>()
  readonly #nodeNames = new Set<string>()
  /** Names of the ONNX graph, which helper tensors must not take. */
  readonly #reserved: ReadonlySet<string>
  readonly #usesOf: (name: string) => number
  readonly #fixed = new Set<TmfileNode>()
  /** Elements of constants that are not in the ONNX file. */
  #computedElements = 0
  #label = ''
  #made: TmfileNode[] = []
  readonly #sources = new Map<TmfileTensor, Constant>()

  constructor(reserved: ReadonlySet<string>, usesOf: (name: string) => number) {
    this.#reserved = reserved
    this.#usesOf = usesOf
  }

  /** Begins the nodes of one ONNX node. @param label - name of its first output */
  begin(label: string): void {
    this.#label = label
    this.#made = []
  }

  /** Nodes since `begin`. */
  get made(): readonly TmfileNode[] {
    return this.#made
  }

  producerOf(tensor: TmfileTensor): TmfileNode | undefined {
    return this.#producers.get(tensor)
  }

  consumersOf(tensor: TmfileTensor): readonly TmfileNode[] {
    return this.#consumers.get(tensor) ?? []
  }

  input(name: string, shape: Shape, dtype: TmfileDtype): TmfileTensor {
    const tensor = newTensor(this.#uniqueTensor(name, true), dtype, shape, 'input')
    this.#inputs.push(this.#named(producerNode('InputOp', tensor), name))
    return tensor
  }

  /** Appends a node with one output. */
  emit<Name extends OperatorName>(
    operator: Name,
    inputs: readonly Operand[],
    params: Partial<OperatorParams[Name]>,
    shape: Shape,
    options: EmitOptions = {},
  ): TmfileTensor {
    return this.emitMany(operator, inputs, params, [shape], options)[0]!
  }

  /** Appends a node with an output for each shape. */
  emitMany<Name extends OperatorName>(
    operator: Name,
    inputs: readonly Operand[],
    params: Partial<OperatorParams[Name]>,
    shapes: readonly Shape[],
    { fixesBatch = false }: EmitOptions = {},
  ): TmfileTensor[] {
    const schema = operatorByName(operator)!
    checkParams(schema, params)
    for (const shape of shapes) {
      const reason = whyNotShape(shape)
      if (reason !== undefined) refuse(reason)
    }
    const outputs = shapes.map((shape) =>
      newTensor(this.#uniqueTensor(`${this.#label}__1`), 'float32', shape, 'variable'),
    )
    const node = {
      name: null,
      operator,
      operatorNumber: schema.number,
      operatorVersion: OPERATOR_VERSION,
      params: { ...schema.defaults, ...params },
      opaqueParams: null,
      inputs: inputs.map((each) => (each instanceof Constant ? this.constant(each) : each)),
      outputs,
      attributes: [],
      dynamicShape: false,
    } as unknown as TmfileNode
    this.#add(node)
    if (fixesBatch) this.#fixed.add(node)
    return outputs
  }

  #add(node: TmfileNode): void {
    this.#named(node, node.outputs[0]!.name!)
    this.#nodes.push(node)
    this.#made.push(node)
    for (const tensor of node.outputs) this.#producers.set(tensor, node)
    for (const tensor of node.inputs) this.#consumers.set(tensor, [...this.consumersOf(tensor), node])
  }

  /** Names a tensor of the present ONNX node, and the node that makes it. */
  rename(tensor: TmfileTensor, name: string, nodeName: string): void {
    this.#tensorNames.delete(tensor.name!)
    tensor.name = this.#uniqueTensor(name, true)
    const node = this.#producers.get(tensor)
    if (node?.outputs[0] !== tensor) return
    this.#nodeNames.delete(node.name!)
    node.name = null
    this.#named(node, nodeName === '' ? tensor.name : nodeName)
  }

  isMadeHere(tensor: TmfileTensor): boolean {
    const producer = this.#producers.get(tensor)
    return producer !== undefined && this.#made.includes(producer)
  }

  /**
   * A constant as float32, also of integers and bool; the same tensor each time.
   *
   * @param shape - another shape of as many elements
   */
  constant(constant: Constant, shape: Shape = constant.shape): TmfileTensor {
    return this.#store(constant, extentsOf(shape), 'float32', () => ({
      tensor: storedFloats(constant),
      quantization: null,
    }))
  }

  /** A constant that keeps integers, as int32. */
  integers(constant: Constant): TmfileTensor {
    if (FLOATS.has(constant.dtype)) return this.constant(constant)
    return this.#store(constant, extentsOf(constant.shape), 'int32', () => ({
      tensor: storedIntegers(constant),
      quantization: null,
    }))
  }

  /** The constant that a tensor stores, in its stored shape. */
  sourceOf(tensor: TmfileTensor): Constant | undefined {
    const source = this.#sources.get(tensor)
    return source && sameShape(source.shape, tensor.shape!) ? source : source?.reshaped(tensor.shape!)
  }

  /** The integer codes of a dequantized constant with their records. @param count - number of records */
  codes(constant: Constant, shape: Shape, count: number): TmfileTensor {
    const { values, quantization } = constant.codes!
    return this.#store(constant, shape, 'codes', () => ({
      tensor: values.tensor ?? denseOf(values, values.dtype as 'int8'),
      quantization: recordsOf(quantization, count),
    }))
  }

  #store(
    constant: Constant,
    shape: Shape,
    form: string,
    make: () => { tensor: DenseTensor; quantization: TmfileQuantization | null },
  ): TmfileTensor {
    const forms = this.#stored.get(constant) ?? new Map<string, TmfileTensor>()
    this.#stored.set(constant, forms)
    const key = `${form} ${shape.join()}`
    const known = forms.get(key)
    if (known) return known
    if (!constant.tensor) this.#computedElements += constant.size
    if (this.#computedElements > MAX_COMPUTED_ELEMENTS)
      refuse(`more than ${MAX_COMPUTED_ELEMENTS} elements of constants that are computed`)
    const { tensor, quantization } = make()
    const isOwnName = (constant.isOriginal || this.#usesOf(constant.name) < 2) && constant.name !== ''
    const base = constant.name === '' ? `${this.#label}__constant` : constant.name
    const stored: TmfileTensor = {
      ...newTensor(this.#uniqueTensor(base, isOwnName), tensor.dtype as TmfileDtype, shape, 'constant'),
      quantization,
      buffer: { byteLength: tensor.storage.byteLength, data: { tensor } },
    }
    const node = this.#named(producerNode('Const', stored), stored.name!)
    this.#constants.push(node)
    this.#producers.set(stored, node)
    this.#sources.set(stored, constant)
    forms.set(key, stored)
    return stored
  }

  /** @param isOwn - whether the name is the tensor's own in the ONNX graph */
  #uniqueTensor(base: string, isOwn = false): string {
    const isFree = (name: string): boolean =>
      !this.#tensorNames.has(name) && (isOwn || !this.#reserved.has(name))
    const name = numbered(base, isFree)
    this.#tensorNames.add(name)
    return name
  }

  #named(node: TmfileNode, base: string): TmfileNode {
    node.name = numbered(base, (name) => !this.#nodeNames.has(name))
    this.#nodeNames.add(node.name)
    return node
  }

  /** Replaces the input of a node that was made before. */
  replaceInput(node: TmfileNode, from: TmfileTensor, to: TmfileTensor): void {
    node.inputs = node.inputs.map((tensor) => (tensor === from ? to : tensor))
    this.#consumers.set(
      from,
      this.consumersOf(from).filter((each) => each !== node),
    )
    this.#consumers.set(to, [...this.consumersOf(to), node])
  }

  /** Gives a node that was made before one more input. */
  addInput(node: TmfileNode, tensor: TmfileTensor): void {
    node.inputs = [...node.inputs, tensor]
    this.#consumers.set(tensor, [...this.consumersOf(tensor), node])
  }

  /** Removes nodes that none of the outputs needs. */
  prune(outputs: readonly TmfileNode[]): void {
    const needed = new Set<TmfileNode>()
    const open = [...outputs]
    for (let node = open.pop(); node; node = open.pop()) {
      if (needed.has(node)) continue
      needed.add(node)
      for (const tensor of node.inputs) {
        const producer = this.#producers.get(tensor)
        if (producer) open.push(producer)
      }
    }
    this.#nodes = this.#nodes.filter((node) => needed.has(node))
    const isUsed = (node: TmfileNode): boolean => needed.has(node)
    this.#constants = this.#constants.filter(isUsed)
    this.#consumers.clear()
    for (const node of this.#nodes) {
      for (const tensor of node.inputs) this.#consumers.set(tensor, [...this.consumersOf(tensor), node])
    }
  }

  /** Nodes that compute, in order. */
  get nodes(): readonly TmfileNode[] {
    return this.#nodes
  }

  get inputs(): TmfileTensor[] {
    return this.#inputs.flatMap(({ outputs }) => outputs)
  }

  get fixedNames(): string[] {
    const isFixed = (node: TmfileNode): boolean =>
      this.#fixed.has(node) ||
      (node.operator === 'Reshape' && (node as KnownNode<'Reshape'>).params.re_shape?.[0] !== 0)
    return this.#nodes.filter(isFixed).map(({ name }) => name!)
  }

  model(outputs: readonly TmfileNode[]): TmfileModel {
    const nodes = [...this.#constants, ...this.#inputs, ...this.#nodes]
    const tensors = nodes.flatMap((node) => node.outputs)
    const buffers = tensors.flatMap(({ buffer }) => (buffer ? [buffer] : []))
    const model = new TmfileModel({
      nodes,
      tensors,
      buffers,
      inputs: [...this.#inputs],
      outputs: [...outputs],
    })
    model.originalFormat = ORIGIN_ONNX
    return model
  }
}

function checkParams({ fields }: OperatorSchema, params: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(params)) {
    const field = fields[name]
    if (field?.kind === 'scalar' && !isStorable(field.type, value))
      refuse(`${name} is ${value}; it must be ${allowedFor(field.type)}`)
  }
}

function newTensor(name: string, dtype: TmfileDtype, shape: Shape, role: TmfileTensor['role']): TmfileTensor {
  return { name, dtype, shape: extentsOf(shape), role, layout: 0, quantization: null, buffer: null }
}

/** The engine has no rank 0. */
function extentsOf(shape: Shape): number[] {
  return shape.length === 0 ? [1] : [...shape]
}

/** `name`, or with the next number: `y__1` becomes `y__2`. */
function numbered(base: string, isFree: (name: string) => boolean): string {
  if (isFree(base)) return base
  const [, stem = base, first = '0'] = /^(.*)__(\d+)$/.exec(base) ?? []
  let number = Number(first) + 1
  while (!isFree(`${stem}__${number}`)) number += 1
  return `${stem}__${number}`
}

function storedFloats(constant: Constant): DenseTensor {
  const { dtype, tensor } = constant
  return tensor && FLOATS.has(dtype) ? cast(tensor, 'float32') : denseOf(constant, 'float32')
}

function storedIntegers(constant: Constant): DenseTensor {
  const outside = constant.numbers.find((value) => value >= INT32_LIMIT || value < -INT32_LIMIT)
  if (outside !== undefined)
    refuse(`constant "${constant.name}" has the value ${outside}; the engine has 32-bit integers`)
  return denseOf(constant, 'int32')
}

const ARRAYS = { float32: Float32Array, int32: Int32Array, int8: Int8Array, uint8: Uint8Array } as const

function denseOf({ numbers, shape, name }: Constant, dtype: keyof typeof ARRAYS): DenseTensor {
  return tensorOf(ARRAYS[dtype].from(numbers), { shape: [...shape], name })
}

/** As many records as the engine needs: one repeated where there is one. */
function recordsOf({ scales, zeroPoints, widths }: TmfileQuantization, count: number): TmfileQuantization {
  if (scales.length === count) return { scales, zeroPoints, widths }
  return {
    scales: new Float32Array(count).fill(scales[0]!),
    zeroPoints: new Int32Array(count).fill(zeroPoints[0]!),
    widths: new Int32Array(count),
  }
}
