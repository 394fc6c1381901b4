/** The parts of a model as plain objects, for everything that reads, edits or writes them. */
import type { ByteSource } from '../../../bytes/source.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import type { TensorRole } from '../enums.js'
import type { OperatorName, OperatorParams } from '../operators.js'

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

/** The data of a model, without the edits of `TmfileModel`. */
export interface TmfileModelFields {
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number]
  /** The framework that the model came from, by number; informative only. */
  originalFormat: number
  subFormat: number
  name: string | null
  graph: TmfileGraph
}
