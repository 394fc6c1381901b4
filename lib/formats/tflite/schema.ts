/**
 * Field numbers, element types and limits of TFLite. Source: `tensorflow/lite/schema/schema.fbs`, and the generated schema of
 * ai-edge-litert 2.3 for types above 18.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'tflite'

/** Bytes 4 to 7 of a file. */
export const IDENTIFIER = 'TFL3'
export const IDENTIFIER_AT = 4
export const VERSION = 3

/** Fields of each table by their numbers. */
export const MODEL = {
  version: 0,
  subgraphs: 2,
  description: 3,
  buffers: 4,
  metadata: 6,
  signatures: 7,
} as const
export const SUBGRAPH = { tensors: 0, inputs: 1, outputs: 2, operators: 3, name: 4 } as const
export const TENSOR = {
  shape: 0,
  type: 1,
  buffer: 2,
  name: 3,
  quantization: 4,
  isVariable: 5,
  sparsity: 6,
  shapeSignature: 7,
} as const
export const BUFFER = { data: 0, offset: 1, size: 2 } as const
export const QUANTIZATION = { scale: 2, zeroPoint: 3, detailsType: 4, axis: 6 } as const
export const SPARSITY = { traversalOrder: 0, blockMap: 1, dimensions: 2 } as const
export const DIMENSION = {
  format: 0,
  denseSize: 1,
  segmentsType: 2,
  segments: 3,
  indicesType: 4,
  indices: 5,
} as const
export const METADATA = { name: 0, buffer: 1 } as const
export const SIGNATURE = { inputs: 0, outputs: 1, key: 2, subgraph: 4 } as const
export const TENSOR_MAP = { name: 0, tensor: 1 } as const

/** An element type by its number. Those without a dtype have no bytes of a fixed size. */
export interface TfliteType {
  readonly name: string
  readonly dtype?: Dtype
}

const NAMED: readonly (readonly [name: string, dtype?: Dtype])[] = [
  ['FLOAT32', 'float32'],
  ['FLOAT16', 'float16'],
  ['INT32', 'int32'],
  ['UINT8', 'uint8'],
  ['INT64', 'int64'],
  ['STRING', 'string'],
  ['BOOL', 'bool'],
  ['INT16', 'int16'],
  ['COMPLEX64', 'complex64'],
  ['INT8', 'int8'],
  ['FLOAT64', 'float64'],
  ['COMPLEX128', 'complex128'],
  ['UINT64', 'uint64'],
  ['RESOURCE'],
  ['VARIANT'],
  ['UINT32', 'uint32'],
  ['UINT16', 'uint16'],
  ['INT4', 'int4'],
  ['BFLOAT16', 'bfloat16'],
  ['INT2', 'int2'],
  ['UINT4', 'uint4'],
  ['FLOAT8_E4M3FN', 'float8_e4m3fn'],
  ['FLOAT8_E5M2', 'float8_e5m2'],
]

/** By number. */
export const TYPES: readonly TfliteType[] = NAMED.map(([name, dtype]) => ({ name, ...(dtype && { dtype }) }))

/** Maximum number of axes; the interpreter ends there. */
export const MAX_RANK = 64

/** Maximum bytes of a name or a description: far above those of any model. */
export const MAX_TEXT_BYTES = 2 ** 20

/** Maximum subgraphs: each is a function or a branch of the program. */
export const MAX_SUBGRAPHS = 2 ** 16

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /** Tensors of all subgraphs. Each takes some hundred bytes of memory, and several may be one table of the file. */
  tensors: { perFileByte: 1 / 32, atLeast: 2 ** 16, atMost: 2 ** 20 },
  /** Bytes of names, descriptions, scales and indices of sparse tensors. */
  headerBytes: { perFileByte: 2, atLeast: 2 ** 24 },
  /** Tensors may share a buffer, and sparse ones are larger as dense ones. Weights are rarely below a tenth full. */
  totalBytes: { perFileByte: 16, atLeast: 2 ** 28 },
} as const satisfies DefaultLimits
