/**
 * tmfile, the model file of Tengine: its structs as data, and the limits of reading it.
 *
 *     file   = header · nodes · node vector · tensors · tensor vector · buffers · buffer vector · inputs · outputs
 *              · [device subgraphs] · subgraph · subgraph vector · root
 *
 * Little-endian, 32 bits throughout. Everything is reached by offsets from byte 0; offset 0 is "not set", because the
 * header lies there. A vector is a count and its elements; a text is a record {size, offset of the bytes}, whose size
 * counts one NUL at the end. Structs and vectors lie at multiples of 4; texts and buffers follow where the cursor is.
 *
 * There is no magic number, no checksum and no length of the file. Old writers left fields to whatever memory held:
 * those are never interpreted and never followed (`uninitialised` in the tables).
 *
 * Source: the reference implementation (OAID/Tengine) at its last public commit (c73708ce, 2023-05-18), the history of
 * its format header since 2019, and real files, which win where they differ.
 */
import { type Fields, f32, i32, layoutOf, offset, type ScalarType, u8, u16, u32 } from './struct_layout.js'

export const FORMAT_NAME = 'tmfile'

/** The one main version there is; version 1 of 2018 has other structs and no public files. */
export const MAIN_VERSION = 2

export const STRUCTS = {
  header: { ver_main: u16(), ver_sub: u16(), ver_compile: u16(), root: offset() },
  root: { orig_format: i32(), sub_format: i32(), subgraphs: offset(), name: offset() },
  subgraph: {
    id: u32(),
    graph_layout: i32(),
    model_layout: i32(),
    inputs: offset(),
    outputs: offset(),
    nodes: offset(),
    tensors: offset(),
    buffers: offset(),
    name: offset(),
    /** Absent in files before April 2021, and what memory held where there is one subgraph. */
    devices: offset(),
  },
  device: {
    id: u32(),
    input_wait_count: u32(),
    data_type: i32(),
    nodes: offset(),
    inputs: offset(),
    outputs: offset(),
    name: offset(),
  },
  node: {
    id: u32(),
    inputs: offset(),
    outputs: offset(),
    operator: offset(),
    name: offset(),
    attributes: offset(),
    dynamic_shape: u8(),
  },
  attribute: { name: offset(), value: offset(), type: i32() },
  operator: { version: u32(), number: u32(), params: offset() },
  tensor: {
    id: u32(),
    buffer_id: u32(),
    dims: offset(),
    name: offset(),
    quantization: offset(),
    layout: i32(),
    type: i32(),
    data_type: i32(),
  },
  quantization: { zero_point: i32(), scale: f32(), width: i32() },
  buffer: { size: u32(), data: offset() },
  text: { size: u32(), bytes: offset() },
} as const satisfies Record<string, Fields>

export type StructName = keyof typeof STRUCTS

/** Numbers of a struct by field. */
export type StructValues<S extends StructName> = { -readonly [K in keyof (typeof STRUCTS)[S]]: number }

export interface PlacedScalar {
  readonly name: string
  readonly type: ScalarType
  readonly position: number
}

interface PlacedStruct {
  readonly fields: readonly PlacedScalar[]
  readonly byteLength: number
}

function placeStruct(fields: Fields): PlacedStruct {
  const { fields: placed, byteLength } = layoutOf(fields)
  const scalars = placed.map(({ name, field, position }) => {
    return { name, type: field.kind === 'scalar' ? field.type : ('offset' as const), position }
  })
  return { fields: scalars, byteLength: Math.ceil(byteLength / ALIGNMENT) * ALIGNMENT }
}

/** Structs and vectors lie at multiples of this. */
export const ALIGNMENT = 4

/** Where each field of each struct lies, and the struct's size. */
export const PLACED = Object.fromEntries(
  Object.entries(STRUCTS).map(([name, fields]) => [name, placeStruct(fields)]),
) as Readonly<Record<StructName, PlacedStruct>>

/** Subgraphs before April 2021: all but the last field. */
export const OLD_SUBGRAPH_BYTES = PLACED.subgraph.byteLength - 4

/** Bytes of a count, an index and an offset. */
export const WORD_BYTES = 4

/** buffer_id where there is none. */
export const NO_BUFFER = 0xffff_ffff

/** Offsets have 32 bits. */
export const FILE_BYTES_LIMIT = 2 ** 32

/** op_ver of the current writer. */
export const OPERATOR_VERSION = 1

/**
 * Most nodes, and most tensors, unless the caller says otherwise: the runtime has 16 bits for their indices and takes
 * the 65,537th for the first.
 */
export const DEFAULT_TENSORS_LIMIT = 65_535

/** Most bytes of structs, vectors and texts. Real files have less than 1 MB of them; beside that there are weights. */
export const DEFAULT_HEADER_BYTES_LIMIT = 256 * 1024 * 1024

/**
 * Structs may be shared, but not so that a small file becomes a large model: all that is read may have at most so many
 * times the bytes of the file. No writer shares any, so every known file stays below one.
 */
export const HEADER_BYTES_LIMIT_IN_FILES = 1

/** Most bytes that all constants together may have, in file sizes: they may share buffers. */
export const TOTAL_BYTES_LIMIT_IN_FILES = 4

/** Most entries of a vector of parameters: anchors and sizes have some dozens; each entry becomes a number object. */
export const MAX_PARAMETER_ENTRIES = 65_536

/** Most bytes of a text: names have some dozens. */
export const MAX_TEXT_BYTES = 1024 * 1024

/** Most bytes of a parameter block of an operator that nobody knows. The largest known one has 72. */
export const MAX_OPAQUE_BLOCK_BYTES = 256

/** Most device subgraphs: the runtime counts them in 8 bits. */
export const MAX_DEVICES = 255

/** What the current runtime can hold, beyond what can be read safely. A file above these loads there as another model. */
export const RUNTIME_LIMITS = {
  /** Indices have 16 bits. */
  nodes: 65_535,
  tensors: 65_535,
  /** Node indices of graph inputs and outputs are signed. */
  graphNodeIndex: 32_767,
  /** Inputs and outputs of a node are counted in 8 bits. */
  nodeTensors: 255,
  /** Extents stand in an array of 8. */
  dims: 8,
  /** Elements are counted in 32 signed bits. */
  elements: 2 ** 31,
  /** So is the file's length. */
  fileBytes: 2 ** 31,
  /** Quantization records are counted in 16 bits. */
  quantization: 65_535,
} as const
