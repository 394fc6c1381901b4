/**
 * Element types, names and limits of OpenVINO IR. Source: the files that openvino 2026.4.1 writes and reads; each rule was run
 * against it.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'openvino'

/** Versions of the format that OpenVINO reads. Their layers do not differ in what is read here. */
export const VERSIONS: ReadonlySet<string> = new Set(['10', '11'])

/** Root element of the XML file. */
export const ROOT = 'net'

/** Elements of a layer that hold a graph of their own: If, Loop and TensorIterator. */
export const BODIES: ReadonlySet<string> = new Set(['then_body', 'else_body', 'body'])

/** Types of layers that hold values. */
export const CONST_TYPES: ReadonlySet<string> = new Set(['Const', 'Constant'])

/** How elements below 8 bits are stored, where it is not tilework's own order. */
export type PackedType = 'u1' | 'u3' | 'u6' | 'nf4'

/** An element type by its name in the file. */
export interface IrType {
  /** The dtype that holds its values. */
  readonly dtype: Dtype
  /** Bits of an element in the file; 0 for strings. */
  readonly bits: number
  /** `precision` of ports with this type. */
  readonly precision: string
  /** Present where the bytes of the file are not storage of `dtype`, and are recoded. */
  readonly packed?: PackedType
}

const type = (dtype: Dtype, bits: number, precision: string, packed?: PackedType): IrType => ({
  dtype,
  bits,
  precision,
  ...(packed && { packed }),
})

export const TYPES: ReadonlyMap<string, IrType> = new Map([
  ['f64', type('float64', 64, 'FP64')],
  ['f32', type('float32', 32, 'FP32')],
  ['f16', type('float16', 16, 'FP16')],
  ['bf16', type('bfloat16', 16, 'BF16')],
  ['i64', type('int64', 64, 'I64')],
  ['i32', type('int32', 32, 'I32')],
  ['i16', type('int16', 16, 'I16')],
  ['i8', type('int8', 8, 'I8')],
  ['i4', type('int4', 4, 'I4')],
  ['u64', type('uint64', 64, 'U64')],
  ['u32', type('uint32', 32, 'U32')],
  ['u16', type('uint16', 16, 'U16')],
  ['u8', type('uint8', 8, 'U8')],
  ['u6', type('uint8', 6, 'U6', 'u6')],
  ['u4', type('uint4', 4, 'U4')],
  ['u3', type('uint8', 3, 'U3', 'u3')],
  ['u2', type('uint2', 2, 'U2')],
  ['u1', type('uint8', 1, 'BIN', 'u1')],
  ['boolean', type('bool', 8, 'BOOL')],
  ['f8e4m3', type('float8_e4m3fn', 8, 'F8E4M3')],
  ['f8e5m2', type('float8_e5m2', 8, 'F8E5M2')],
  ['f8e8m0', type('float8_e8m0fnu', 8, 'F8E8M0')],
  ['f4e2m1', type('float4_e2m1fn', 4, 'F4E2M1')],
  ['nf4', type('float32', 4, 'NF4', 'nf4')],
  ['string', type('string', 0, 'STRING')],
])

/** Key of tensor metadata that names the element type in the file, where the dtype is another one. */
export const TYPE_KEY = 'openvino.type'

/** Maximum number of axes of a constant: far above those of any operator. */
export const MAX_RANK = 64

/** Maximum number of layers of all graphs: each takes some hundred bytes of memory while it is compared or edited. */
export const MAX_LAYERS = 2 ** 20

/** Maximum number of attributes of an element; layers have up to about 30. Each is compared with the others. */
export const MAX_ATTRIBUTES = 256

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /** Constants of all graphs. Each takes some hundred bytes of memory. */
  tensors: 2 ** 20,
  /**
   * Bytes of the XML file, which is held; and of names, each of which repeats those of the layers around it. A model of 10,000
   * constants has 8 MB.
   */
  headerBytes: { perFileByte: 4, atLeast: 2 ** 24, atMost: 2 ** 28 },
  /** Constants may share bytes, as equal ones do. Recoded types are up to 8 times larger in memory. */
  totalBytes: { perFileByte: 16, atLeast: 2 ** 28 },
  /** Nested elements. Each If or Loop around a layer adds 3. */
  depth: 64,
} as const satisfies DefaultLimits
