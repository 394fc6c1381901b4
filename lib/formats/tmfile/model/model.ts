/**
 * A model as objects that may be changed: nodes hold their tensors and tensors their buffers, so nothing has a number
 * that an edit would have to renumber. Numbers are made when the model is written.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { castWeights, dequantizeConstant } from '../decode/numbers.js'
import { TENSOR_TYPE, TENSOR_TYPES, type TensorRole } from '../enums.js'
import type { OperatorName, OperatorParams } from '../operators.js'
import { addConstant, createNode, replaceAllUses, type TmfileNodeDescription } from './create_parts.js'
import { fillWeights, mergeConstants, replaceConstant, stripWeights } from './edit_constants.js'
import { cut, insertNode, removeNode, removeUnused, replaceNode, setOutputs } from './edit_graph.js'
import { rename, stripNames } from './edit_names.js'
import { type ShapeChange, setBatch, setInputShape } from './edit_shapes.js'
import { quantizeConstant, type TmfileCodes, type TmfileQuantizeOptions } from './quantize.js'

/** Element types that a tmfile can hold. */
export type TmfileDtype = Extract<Dtype, 'float32' | 'float16' | 'int8' | 'uint8' | 'int32' | 'int16'>

/** Quantization parameters, one entry for the whole tensor or one an entry of axis 0. */
export interface TmfileQuantization {
  /** Real value = (stored value - zero point) * scale. A scale of 0 says that it is unknown. */
  scales: Float32Array
  zeroPoints: Int32Array
  /** Bits of the stored values where the writer set them; most leave them to chance, and nobody reads them. */
  widths: Int32Array
}

/** The numbers of a constant: a range of a source, the storage of a tensor, or nothing but their length. */
export interface TmfileBuffer {
  byteLength: number
  data: { readonly source: ByteSource; readonly start: number } | { readonly tensor: DenseTensor } | null
}

export interface TmfileTensor {
  /** Null in files that were saved without names. */
  name: string | null
  dtype: TmfileDtype
  /** Extents, slowest axis first; -1 for one that is set later; null before shapes were inferred. */
  shape: number[] | null
  role: TensorRole
  /** 0 NCHW, 1 NHWC; in old files of constants whatever memory held. */
  layout: number
  quantization: TmfileQuantization | null
  /** Of constants only. */
  buffer: TmfileBuffer | null
}

/** Old writers copied what the source framework had; the current runtime passes them over. */
export interface TmfileAttribute {
  name: string
  value: Uint8Array
  type: number
}

interface NodeBase {
  name: string | null
  operatorVersion: number
  inputs: TmfileTensor[]
  outputs: TmfileTensor[]
  attributes: TmfileAttribute[]
  dynamicShape: boolean
}

/** A node whose operator the format knows. */
export interface KnownNode<Name extends OperatorName> extends NodeBase {
  operator: Name
  operatorNumber: number
  params: OperatorParams[Name]
  /** A block of parameters where the operator has none: then the file probably means another operator. */
  opaqueParams: Uint8Array | null
}

/** A node with an operator number that nobody knows; its parameters are kept as bytes. */
export interface UnknownNode extends NodeBase {
  operator: `operator ${number}`
  operatorNumber: number
  params: Record<string, never>
  opaqueParams: Uint8Array | null
}

/** `node.params` has the type of `node.operator`. */
export type TmfileNode = { [Name in OperatorName]: KnownNode<Name> }[OperatorName] | UnknownNode

/** A part of the model that was meant for one device. */
export interface TmfileDevice {
  id: number
  /** Inputs that come from another part. */
  inputWaitCount: number
  /** A number of its own: neither a data type nor a mode of the runtime. */
  dataType: number
  nodes: TmfileNode[]
  inputs: TmfileTensor[]
  outputs: TmfileTensor[]
  name: string | null
}

export interface TmfileGraph {
  id: number
  name: string | null
  /** Order in which activations are meant: 0 NCHW, 1 NHWC. */
  graphLayout: number
  /** Order in which the file stores weights and shapes. */
  modelLayout: number
  nodes: TmfileNode[]
  tensors: TmfileTensor[]
  buffers: TmfileBuffer[]
  /** Nodes, usually `InputOp`s. */
  inputs: TmfileNode[]
  /** Nodes whose outputs are the results. */
  outputs: TmfileNode[]
  /** Null where the model is not partitioned. */
  devices: TmfileDevice[] | null
}

/** Who makes a tensor, and who takes it. */
export interface TensorLinks {
  readonly producer: TmfileNode | undefined
  readonly consumers: readonly TmfileNode[]
}

export class TmfileModel {
  readonly kind = 'tmfile'
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number] = [2, 0, 0]
  /** The framework that the model came from, by number; informative only. */
  originalFormat = 0
  subFormat = 0
  name: string | null = null
  graph: TmfileGraph

  constructor(graph: Partial<TmfileGraph> = {}) {
    this.graph = { ...emptyGraph(), ...graph }
  }

  /** Producer and consumers of every tensor, as the graph is now. */
  links(): Map<TmfileTensor, TensorLinks> {
    const links = new Map<TmfileTensor, { producer: TmfileNode | undefined; consumers: TmfileNode[] }>()
    const linksOf = (tensor: TmfileTensor) => {
      const known = links.get(tensor) ?? { producer: undefined, consumers: [] }
      links.set(tensor, known)
      return known
    }
    for (const tensor of this.graph.tensors) linksOf(tensor)
    for (const node of this.graph.nodes) {
      for (const tensor of node.outputs) linksOf(tensor).producer ??= node
      for (const tensor of new Set(node.inputs)) linksOf(tensor).consumers.push(node)
    }
    return links
  }

  /**
   * Renames every tensor and node of a name. Returns how many there were.
   * Errors: ERR_ARGUMENT for an empty name; ERR_GRAPH where nothing has the old one, or another one of its kind the new one.
   */
  rename(from: string, to: string): number {
    return rename(this, from, to)
  }

  /** Leaves all names of tensors and nodes away. The reference runs such a model and aborts when it is to save it. */
  stripNames(): void {
    stripNames(this)
  }

  /**
   * Sets the shape of an input. Shapes that depend on it become unknown until the runtime infers them; where only the
   * batch is another, they follow it, and so do Reshape nodes that have it written down.
   * Errors: ERR_ARGUMENT, also for another number of axes; ERR_RANK, ERR_GRAPH for a tensor that is no input.
   */
  setInputShape(input: TmfileTensor | string, shape: readonly number[]): ShapeChange {
    return setInputShape(this, input, shape)
  }

  /** Sets the first extent of every input. Errors: as `setInputShape`. */
  setBatch(batch: number): ShapeChange {
    return setBatch(this, batch)
  }

  /**
   * Takes a node out; its consumers get its first input that is no constant. Constants that nobody takes any more go
   * with it. Errors: ERR_ARGUMENT, ERR_GRAPH where nothing can take its place.
   */
  removeNode(node: TmfileNode | string): void {
    removeNode(this, node)
  }

  /**
   * A node for `insertNode` and `replaceNode`: its operator, names of tensors, and the parameters that differ from their
   * defaults. Errors: ERR_ARGUMENT.
   */
  createNode(description: TmfileNodeDescription): TmfileNode {
    return createNode(this, description)
  }

  /**
   * Adds a constant and the node that gives it to others. Errors: ERR_GRAPH for a name that a tensor or a node has; as
   * `replaceConstant`.
   */
  addConstant(name: string, numbers: DenseTensor, quantization?: TmfileQuantization | null): TmfileTensor {
    return addConstant(this, name, numbers, quantization)
  }

  /**
   * Lets every node but the maker of `to` take it in place of `from`, as an output of the graph too.
   * Errors: ERR_ARGUMENT, ERR_GRAPH where a node would run before its input is made.
   */
  replaceAllUses(from: TmfileTensor | string, to: TmfileTensor | string): void {
    replaceAllUses(this, from, to)
  }

  /** Puts a node at `index`, behind the makers of its inputs by default, with its tensors. Errors: ERR_GRAPH. */
  insertNode(node: TmfileNode, index?: number): void {
    insertNode(this, node, index)
  }

  /** Puts a node in the place of another one. Errors: ERR_ARGUMENT, ERR_GRAPH where an output is lost that is needed. */
  replaceNode(old: TmfileNode | string, node: TmfileNode): void {
    replaceNode(this, old, node)
  }

  /** Makes the nodes that make these tensors the outputs. Errors: ERR_ARGUMENT, ERR_GRAPH. */
  setOutputs(tensors: readonly (TmfileTensor | string)[]): void {
    setOutputs(this, tensors)
  }

  /** Keeps what leads from some tensors to others. Errors: ERR_ARGUMENT, ERR_GRAPH. */
  cut(inputs: readonly (TmfileTensor | string)[], outputs: readonly (TmfileTensor | string)[]): void {
    cut(this, inputs, outputs)
  }

  /** Removes nodes that no output needs, and tensors and buffers that no node has. */
  removeUnused(): void {
    removeUnused(this)
  }

  /**
   * Gives a constant other numbers with their type and shape, and these quantization parameters, or those that the numbers
   * bring.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_UNSUPPORTED, ERR_RANK, ERR_NO_DATA.
   */
  replaceConstant(
    tensor: TmfileTensor | string,
    numbers: DenseTensor,
    quantization?: TmfileQuantization | null,
  ): void {
    replaceConstant(this, tensor, numbers, quantization)
  }

  /** Leaves the numbers of all constants away and keeps their sizes. */
  stripWeights(): void {
    stripWeights(this)
  }

  /** Gives numbers to constants that have none; null leaves one as it is. Errors: ERR_ARGUMENT for another type or shape. */
  fillWeights(numbersFor: (tensor: TmfileTensor) => DenseTensor | null): void {
    fillWeights(this, numbersFor)
  }

  /** Casts every constant that is a float of the other width, as the file is written. Returns how many there are. */
  castWeights(dtype: 'float32' | 'float16'): number {
    return castWeights(this, dtype)
  }

  /**
   * The real values of a quantized constant, (stored - zero point) * scale, as float32, computed when they are read. With
   * one scale a channel a channel is a run of stored values.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  async dequantize(constant: TmfileTensor | string): Promise<DenseTensor> {
    return dequantizeConstant(this, constant)
  }

  /**
   * Replaces a constant's real numbers by codes of int8 (symmetric, a scale a channel), uint8 (one scale and zero point) or
   * int32 (by given scales), and gives it the parameters, which are returned.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_DTYPE, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  quantize(
    constant: TmfileTensor | string,
    dtype: TmfileCodes,
    options: TmfileQuantizeOptions = {},
  ): Promise<TmfileQuantization> {
    return quantizeConstant(this, constant, dtype, options)
  }

  /** Lets constants with the same bytes share a buffer. Returns the bytes saved. Errors: ERR_GRAPH for NHWC models. */
  mergeConstants(): Promise<number> {
    return mergeConstants(this)
  }
}

function emptyGraph(): TmfileGraph {
  return {
    id: 0,
    name: null,
    graphLayout: 0,
    modelLayout: 0,
    nodes: [],
    tensors: [],
    buffers: [],
    inputs: [],
    outputs: [],
    devices: null,
  }
}

/** Undefined for a number that no role has. */
export function roleOf(type: number): TensorRole | undefined {
  return TENSOR_TYPES[type]
}

export function typeOfRole(role: TensorRole): number {
  return TENSOR_TYPES.indexOf(role)
}

export function isConstant(tensor: TmfileTensor): boolean {
  return typeOfRole(tensor.role) === TENSOR_TYPE.constant
}
