/** The protocol between server and page: the types of the JSON responses. */
import type { Finding } from '../errors.js'
import type { GraphEdit } from '../pipeline/diff/graph_edits.js'
import type { TensorSummary } from '../pipeline/tensor_summary.js'

/** What the elements of a quantized tensor are shown as. */
export const MEANINGS = ['codes', 'real'] as const
export type Meaning = (typeof MEANINGS)[number]

/** A number as JSON holds it: a text for 64-bit integers beyond 2^53, NaN and infinities. */
export type PlainNumber = number | string

export interface FileEntry {
  /** Name without its folder. */
  readonly name: string
  readonly format: string
  readonly byteLength: number
  readonly tensors: number
  readonly hasGraph: boolean
}

export interface FileSummary {
  /** Facts of a model, by name, in order. */
  readonly facts: readonly (readonly [name: string, value: string])[]
  /** Operators with their counts, most frequent first. */
  readonly operators: readonly (readonly [name: string, count: number])[]
  /** Findings of the lenient read. */
  readonly findings: readonly Finding[]
}

/** Consecutive tensors of a file, by column. */
export interface TensorColumns {
  readonly start: number
  readonly total: number
  readonly name: readonly string[]
  readonly kind: readonly string[]
  readonly dtype: readonly string[]
  readonly shape: readonly (readonly number[])[]
  readonly layout: readonly (string | null)[]
  readonly byteLength: readonly (number | null)[]
  /** Number of elements; for a sparse tensor, of entries. */
  readonly elements: readonly number[]
  readonly hasData: readonly boolean[]
}

export interface TensorFacts extends TensorSummary {
  readonly index: number
  readonly doc: string
  readonly metadata: readonly (readonly [string, string])[]
  /** Whether the file has quantization parameters for the tensor. */
  readonly isQuantized: boolean
  readonly lower: readonly number[]
  readonly upper: readonly number[]
}

export interface StatisticsAnswer {
  readonly count: number
  readonly min: PlainNumber | null
  readonly max: PlainNumber | null
  readonly mean: number | null
  readonly zeros: number
  readonly nans: number
  readonly infinities: number
  readonly histogram: {
    readonly start: number
    readonly width: number
    readonly counts: readonly number[]
  } | null
}

/** A rectangle of values of a plane, in row-major order. */
export interface WindowAnswer {
  readonly rows: readonly [start: number, end: number]
  readonly columns: readonly [start: number, end: number]
  readonly values: readonly (PlainNumber | boolean)[]
  /** Raw bits in hexadecimal; absent for strings, blocks and dequantized values. */
  readonly codes?: readonly string[]
  /** Offsets in the tensor's storage, in elements; absent where the tensor is not dense. */
  readonly offsets?: readonly number[]
  /** Bits of a storage element. */
  readonly bits: number
  /** What the values of quantized blocks are made of: `scale × code + minimum`. */
  readonly blocks?: {
    readonly codes: readonly PlainNumber[]
    readonly scales: readonly PlainNumber[]
    readonly minimums: readonly PlainNumber[]
  }
}

/** The response header `x-tile` of a heat map; the body has the values of all cells as float64, then their marks as bytes. */
export interface TileFacts {
  readonly cellRows: number
  readonly cellColumns: number
  readonly rowsPerCell: number
  readonly columnsPerCell: number
  /** Only every n-th row and column of the plane was read; 1 where all were. */
  readonly rowStep: number
  readonly columnStep: number
  /** Range of the finite cells; null without one. */
  readonly low: number | null
  readonly high: number | null
}

/** Marks of a cell. */
export const MARK = { nan: 1, infinity: 2, negativeInfinity: 4, empty: 8 } as const

export const POOLS = ['mean', 'min', 'max', 'extreme'] as const
export type Pool = (typeof POOLS)[number]

export interface LayoutFacts {
  readonly name: string
  readonly kind: string
  readonly axes: string
  readonly order: string
}

export interface BoundLayout extends LayoutFacts {
  readonly onednnTag?: string
  readonly aliases: readonly string[]
  readonly notes: readonly string[]
  readonly shape: readonly number[]
  readonly dtype: string
  readonly elements: number
  readonly logicalElements: number
  readonly byteLength: number
  /** Omitted where no single list describes all elements; a note of the layout names the exceptions. */
  readonly digits?: readonly { readonly text: string; readonly radix: number }[]
  /** Slots in a row of the drawing and in a block: products of innermost digits. */
  readonly rowLength: number
  readonly blockLength: number
  /** First slot of `cells`. */
  readonly start: number
  /** Coordinates of consecutive slots; null for padding. */
  readonly cells: readonly (readonly number[] | null)[]
}

/** Offsets of the elements of a plane, in row-major order. */
export interface PlaneOffsets {
  readonly rows: number
  readonly columns: number
  readonly offsets: readonly number[]
}

export interface GraphEntry {
  readonly path: string
  readonly nodes: number
}

/** A graph by column. Values are numbered; `values` has their names. */
export interface GraphColumns {
  readonly path: string
  readonly names: readonly string[]
  readonly operators: readonly string[]
  readonly inputs: readonly (readonly number[])[]
  readonly outputs: readonly (readonly number[])[]
  readonly values: readonly string[]
  /** Type and shape of each value; empty where they are unknown. */
  readonly types: readonly string[]
  readonly graphInputs: readonly number[]
  readonly graphOutputs: readonly number[]
  /** For each value that is a stored tensor, its index in the file; -1 for other values. */
  readonly tensors: readonly number[]
  /** Fused activation of each node; empty without one. */
  readonly activations: readonly string[]
  /** Attributes of each node that its box shows, as in `stride 2, pad 1`. */
  readonly details: readonly string[]
  /** Subgraphs of nodes, as [node, index of the graph]. */
  readonly subgraphs: readonly (readonly [number, number])[]
}

export interface NodeFacts {
  readonly attributes: readonly (readonly [name: string, value: string])[]
}

export interface PlacedFinding extends Finding {
  /** Indices of the node and graph that the finding concerns; -1 for the whole file. */
  readonly node: number
  readonly graph: number
}

export type GraphEdits = readonly GraphEdit[] | null

export interface ErrorAnswer {
  readonly error: { readonly code: string; readonly message: string }
}
