/**
 * tmfile, Tengine's model file: its structs as data, and the limits for reading it.
 *
 *     file   = header · nodes · node vector · tensors · tensor vector · buffers · buffer vector · inputs · outputs
 *              · [device subgraphs] · subgraph · subgraph vector · root
 *
 * All numbers are little-endian, and offsets are 32-bit file offsets; 0 means "not set", because the header is at offset
 * 0. A vector is a count followed by its elements. A text is a record {size, offset of the bytes}; the size includes one
 * terminating NUL. Structs and vectors are 4-byte aligned; texts and buffers are unaligned.
 *
 * The format has no magic number, no checksum and no file length. Old writers left some fields uninitialised: those are
 * never interpreted and never followed (`uninitialised` in the tables).
 *
 * Source: the reference implementation (OAID/Tengine) at its last public commit (c73708ce, 2023-05-18), the history of
 * its format header since 2019, and real files, which take precedence where they differ.
 */
import type { DefaultLimits } from '../budget.js'
import {
  type Fields,
  f32,
  fileOffset,
  i32,
  type ScalarType,
  scalarTypeOf,
  structLayout,
  u8,
  u16,
  u32,
} from './struct_layout.js'

export const FORMAT_NAME = 'tmfile'

/** The only supported main version. Version 1 (2018) has different structs and no public files. */
export const MAIN_VERSION = 2

export const STRUCTS = {
  header: { ver_main: u16(), ver_sub: u16(), ver_compile: u16(), root: fileOffset() },
  root: { orig_format: i32(), sub_format: i32(), subgraphs: fileOffset(), name: fileOffset() },
  subgraph: {
    id: u32(),
    graph_layout: i32(),
    model_layout: i32(),
    inputs: fileOffset(),
    outputs: fileOffset(),
    nodes: fileOffset(),
    tensors: fileOffset(),
    buffers: fileOffset(),
    name: fileOffset(),
    /** Absent in files before April 2021; uninitialised where the file has one subgraph. */
    devices: fileOffset(),
  },
  device: {
    id: u32(),
    input_wait_count: u32(),
    data_type: i32(),
    nodes: fileOffset(),
    inputs: fileOffset(),
    outputs: fileOffset(),
    name: fileOffset(),
  },
  node: {
    id: u32(),
    inputs: fileOffset(),
    outputs: fileOffset(),
    operator: fileOffset(),
    name: fileOffset(),
    attributes: fileOffset(),
    dynamic_shape: u8(),
  },
  attribute: { name: fileOffset(), value: fileOffset(), type: i32() },
  operator: { version: u32(), number: u32(), params: fileOffset() },
  tensor: {
    id: u32(),
    buffer_id: u32(),
    dims: fileOffset(),
    name: fileOffset(),
    quantization: fileOffset(),
    layout: i32(),
    type: i32(),
    data_type: i32(),
  },
  quantization: { zero_point: i32(), scale: f32(), width: i32() },
  buffer: { size: u32(), data: fileOffset() },
  text: { size: u32(), bytes: fileOffset() },
} as const satisfies Record<string, Fields>

export type StructName = keyof typeof STRUCTS

/** Decoded fields of a struct. */
export type StructValues<S extends StructName> = { -readonly [K in keyof (typeof STRUCTS)[S]]: number }

export interface ScalarLayout {
  readonly name: string
  readonly type: ScalarType
  readonly offset: number
}

interface ScalarStructLayout {
  readonly fields: readonly ScalarLayout[]
  readonly byteLength: number
}

function scalarStructLayout(fields: Fields): ScalarStructLayout {
  const layout = structLayout(fields)
  return {
    fields: layout.fields.map(({ name, field, offset }) => ({ name, type: scalarTypeOf(field), offset })),
    byteLength: Math.ceil(layout.byteLength / ALIGNMENT) * ALIGNMENT,
  }
}

/** Alignment of structs and vectors, in bytes. */
export const ALIGNMENT = 4

export const STRUCT_LAYOUTS = Object.fromEntries(
  Object.entries(STRUCTS).map(([name, fields]) => [name, scalarStructLayout(fields)]),
) as Readonly<Record<StructName, ScalarStructLayout>>

/** Size of a subgraph struct before April 2021: without the last field, `devices`. */
export const OLD_SUBGRAPH_BYTES = STRUCT_LAYOUTS.subgraph.byteLength - 4

/** Size of a count, an index and an offset. */
export const WORD_BYTES = 4

/** `buffer_id` of a tensor without a buffer. */
export const NO_BUFFER = 0xffff_ffff

/** Files are smaller than this, because offsets have 32 bits. */
export const FILE_BYTES_LIMIT = 2 ** 32

/** `op_ver` that the current reference writer stores. */
export const OPERATOR_VERSION = 1

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /** Tensors, and as many nodes. The runtime indexes both with 16 bits, so index 65,536 wraps to 0 there. */
  tensors: 65_535,
  /**
   * Structs, vectors and texts; real files have less than 1 MB of them. Structs may share bytes, and without a multiple
   * of the file size a small file could decode to a huge model (CWE-409). No known writer shares structs. A tiny file
   * may read the same few structs several times.
   */
  headerBytes: { perFileByte: 1, atLeast: 4096, atMost: 256 * 1024 * 1024 },
  /** Constants may share buffers. */
  totalBytes: { perFileByte: 4 },
} as const satisfies DefaultLimits

/** Maximum entries of a parameter vector. Anchors and sizes have a few dozen; each entry becomes a JavaScript number. */
export const MAX_PARAMETER_ENTRIES = 65_536

/** Maximum size of a text. Names have a few dozen bytes. */
export const MAX_TEXT_BYTES = 1024 * 1024

/** Maximum size of an unknown operator's parameter block. The largest known block has 72 bytes. */
export const MAX_OPAQUE_BLOCK_BYTES = 256

/** Largest kernel, stride, dilation or pad: the runtime multiplies them in signed 32 bits. Real ones are below 1,000. */
export const MAX_WINDOW = 16_384

/** Maximum device subgraphs: the runtime counts them in 8 bits. */
export const MAX_DEVICES = 255

/** Capacity of the current runtime. A file above these can be read safely here, but loads there as a different model. */
export const RUNTIME_LIMITS = {
  /** Indices have 16 bits. */
  nodes: 65_535,
  tensors: 65_535,
  /** Node indices of graph inputs and outputs are signed 16-bit numbers. */
  graphNodeIndex: 32_767,
  /** A node's inputs and outputs are counted in 8 bits. */
  nodeTensors: 255,
  /** Dimensions are stored in an array of 8. */
  dims: 8,
  /** Elements are counted in a signed 32-bit number. */
  elements: 2 ** 31,
  /** The file size is a signed 32-bit number. */
  fileBytes: 2 ** 31,
  /** Quantization records are counted in 16 bits. */
  quantization: 65_535,
} as const
