/** The objects of a model. Nodes hold their tensors and tensors their buffers, so an edit never renumbers anything. */
import type { ByteSource } from '../../bytes/source.js'
import type { Dtype } from '../../dtype/dtypes.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import type { TensorRole } from './enums.js'
import type { OperatorName, OperatorParams } from './operators.js'

/** Element types that a tmfile can hold. */
export type TmfileDtype = Extract<Dtype, 'float32' | 'float16' | 'int8' | 'uint8' | 'int32' | 'int16'>

/** Quantization parameters: one entry for the whole tensor, or one per entry of axis 0. */
export interface TmfileQuantization {
  /** Real value = (stored value - zero point) * scale. A scale of 0 means unknown. */
  scales: Float32Array
  zeroPoints: Int32Array
  /** Bit widths of the stored values. Most writers leave them uninitialised, and no reader uses them. */
  widths: Int32Array
}

/** The data of a constant: a range of a source, the storage of a tensor, or null where only the size is known. */
export interface TmfileBuffer {
  byteLength: number
  data: { readonly source: ByteSource; readonly start: number } | { readonly tensor: DenseTensor } | null
}

export interface TmfileTensor {
  /** Null in files saved without names. */
  name: string | null
  dtype: TmfileDtype
  /** Dimensions, outermost first; -1 for one that is known only at run time; null before shape inference. */
  shape: number[] | null
  role: TensorRole
  /** 0 is NCHW, 1 is NHWC; uninitialised for constants in old files. */
  layout: number
  quantization: TmfileQuantization | null
  /** Null except for constants. */
  buffer: TmfileBuffer | null
}

/** An attribute that an old writer copied from the source framework; the current runtime ignores it. */
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

/** A node with an operator of the format. */
export interface KnownNode<Name extends OperatorName> extends NodeBase {
  operator: Name
  operatorNumber: number
  params: OperatorParams[Name]
  /** A parameter block where the operator has none; the file then probably means another operator. */
  opaqueParams: Uint8Array | null
}

/** A node with an unknown operator number; its parameters are kept as bytes. */
export interface UnknownNode extends NodeBase {
  operator: `operator ${number}`
  operatorNumber: number
  params: Record<string, never>
  opaqueParams: Uint8Array | null
}

/** `node.params` has the type of `node.operator`. */
export type TmfileNode = { [Name in OperatorName]: KnownNode<Name> }[OperatorName] | UnknownNode

/** A part of the model assigned to one device. */
export interface TmfileDevice {
  id: number
  /** Number of inputs produced by another part. */
  inputWaitCount: number
  /** A number of unknown meaning: neither a data type nor a mode of the runtime. */
  dataType: number
  nodes: TmfileNode[]
  inputs: TmfileTensor[]
  outputs: TmfileTensor[]
  name: string | null
}

export interface TmfileGraph {
  id: number
  name: string | null
  /** Layout of activations: 0 is NCHW, 1 is NHWC. */
  graphLayout: number
  /** Layout of the stored weights and shapes. */
  modelLayout: number
  nodes: TmfileNode[]
  tensors: TmfileTensor[]
  buffers: TmfileBuffer[]
  /** Nodes, usually `InputOp`s. */
  inputs: TmfileNode[]
  /** Nodes whose outputs are the results of the graph. */
  outputs: TmfileNode[]
  /** Null for a model that is not partitioned. */
  devices: TmfileDevice[] | null
}

/** The nodes that produce and consume a tensor. */
export interface TensorLinks {
  readonly producer: TmfileNode | undefined
  readonly consumers: readonly TmfileNode[]
}

/** The data of a model, without the edits of `TmfileModel`. */
export interface TmfileModelFields {
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number]
  /** The framework that the model was converted from, by number; informative only. */
  originalFormat: number
  subFormat: number
  name: string | null
  graph: TmfileGraph
}
