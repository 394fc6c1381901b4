/**
 * What a file holds, struct by struct, with the place of each: the form between the bytes and the model. The model is
 * made from it, a rewrite looks up in it what stood where, and the coverage report lists its ranges.
 */
import type { OperatorSchema } from '../operators.js'
import type { BlockForm } from '../parameter_forms.js'
import type { StructValues } from '../schema.js'

/** A text: its record, its bytes, and what they mean. */
export interface TextRecord {
  readonly at: number
  readonly bytesAt: number
  /** With the NUL at the end where there is one. */
  readonly byteLength: number
  /** What the record says, with bytes at the end that nobody has written. */
  readonly size: number
  readonly text: string
  /** The bytes are UTF-8 without a NUL inside. */
  readonly isClean: boolean
}

/** A vector of indices, offsets or numbers. */
export interface VectorRecord {
  readonly at: number
  /** The count as the file says it; the subgraph vector may count entries that are not stored. */
  readonly count: number
  readonly entries: readonly number[]
}

export interface BlockRecord {
  readonly at: number
  readonly byteLength: number
  /** Undefined for a block whose fields nobody knows. */
  readonly form: BlockForm | undefined
  /** The bytes of a block whose fields nobody knows. */
  readonly opaque?: Uint8Array
  /** Vectors and texts of the block by field. */
  readonly vectors: ReadonlyMap<string, VectorRecord>
  readonly texts: ReadonlyMap<string, TextRecord>
}

export interface OperatorRecord {
  readonly at: number
  readonly values: StructValues<'operator'>
  readonly schema: OperatorSchema | undefined
  /** Undefined where there is no block. */
  readonly block: BlockRecord | undefined
  /** All parameters of the current form, defaults included; empty for an operator that nobody knows. */
  readonly params: Record<string, unknown>
}

export interface AttributeRecord {
  readonly at: number
  readonly type: number
  readonly name: TextRecord | undefined
  readonly value: { readonly at: number; readonly bytesAt: number; readonly bytes: Uint8Array } | undefined
}

export interface NodeRecord {
  readonly at: number
  readonly values: StructValues<'node'>
  readonly name: TextRecord | undefined
  readonly inputs: VectorRecord | undefined
  readonly outputs: VectorRecord | undefined
  readonly attributes:
    | { readonly vector: VectorRecord; readonly list: readonly AttributeRecord[] }
    | undefined
  readonly operator: OperatorRecord
}

/** Quantization parameters, one entry a record: real value = (stored value - zero point) * scale. */
export interface QuantizationRecord {
  /** Offsets of the records. */
  readonly vector: VectorRecord
  readonly scales: Float32Array
  readonly zeroPoints: Int32Array
  readonly widths: Int32Array
}

export interface TensorRecord {
  readonly at: number
  readonly values: StructValues<'tensor'>
  readonly name: TextRecord | undefined
  readonly dims: VectorRecord | undefined
  readonly quantization: QuantizationRecord | undefined
}

export interface BufferRecord {
  readonly at: number
  readonly values: StructValues<'buffer'>
}

export interface DeviceRecord {
  readonly at: number
  readonly values: StructValues<'device'>
  readonly name: TextRecord | undefined
  readonly nodes: VectorRecord | undefined
  readonly inputs: VectorRecord | undefined
  readonly outputs: VectorRecord | undefined
}

/** Things that a vector of offsets lists. An entry that cannot be read is undefined; only a check goes on then. */
export interface ListRecord<T> {
  readonly vector: VectorRecord
  readonly list: readonly (T | undefined)[]
}

export interface SubgraphRecord {
  readonly at: number
  /** 36 or 40. */
  readonly byteLength: number
  readonly values: StructValues<'subgraph'>
  readonly name: TextRecord | undefined
  readonly nodes: ListRecord<NodeRecord>
  readonly tensors: ListRecord<TensorRecord>
  readonly buffers: ListRecord<BufferRecord> | undefined
  readonly inputs: VectorRecord | undefined
  readonly outputs: VectorRecord | undefined
  readonly devices: ListRecord<DeviceRecord> | undefined
}

export interface FileRecords {
  readonly byteLength: number
  readonly header: StructValues<'header'>
  readonly root: StructValues<'root'>
  readonly name: TextRecord | undefined
  readonly subgraphs: VectorRecord
  readonly graph: SubgraphRecord
}
