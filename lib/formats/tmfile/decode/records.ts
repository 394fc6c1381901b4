/**
 * The decoded records of a file, struct by struct, with their offsets: the intermediate form between bytes and model. The model is
 * built from them, a rewrite finds the original bytes through them, and the coverage report lists their ranges.
 */
import type { OperatorSchema } from '../operators.js'
import type { BlockForm } from '../parameter_forms.js'
import type { StructValues } from '../schema.js'

/** A text record {size, offset} and the bytes it refers to. */
export interface TextRecord {
  readonly offset: number
  readonly bytesOffset: number
  /** Size of the bytes, including the terminating NUL where there is one. */
  readonly byteLength: number
  /** Size that the record states, including trailing bytes that the writer never wrote. */
  readonly size: number
  readonly text: string
  /** The bytes are UTF-8 without an inner NUL. */
  readonly isWellFormed: boolean
}

/** A vector of indices, offsets or numbers. */
export interface VectorRecord {
  readonly offset: number
  /** The count that the file states; the subgraph vector may count entries that are not stored. */
  readonly count: number
  readonly entries: readonly number[]
}

export interface BlockRecord {
  readonly offset: number
  readonly byteLength: number
  /** Undefined for a block with unknown fields. */
  readonly form: BlockForm | undefined
  /** The bytes of a block with unknown fields. */
  readonly opaque?: Uint8Array
  /** Vectors and texts of the block, by field name. */
  readonly vectors: ReadonlyMap<string, VectorRecord>
  readonly texts: ReadonlyMap<string, TextRecord>
}

export interface OperatorRecord {
  readonly offset: number
  readonly values: StructValues<'operator'>
  readonly schema: OperatorSchema | undefined
  /** Undefined where the operator has no block. */
  readonly block: BlockRecord | undefined
  /** All parameters of the current form, defaults included; empty for an unknown operator. */
  readonly params: Record<string, unknown>
}

/** The raw bytes of an attribute's value. */
export interface RawTextRecord {
  readonly offset: number
  readonly bytesOffset: number
  readonly bytes: Uint8Array
}

export interface AttributeRecord {
  readonly offset: number
  readonly type: number
  readonly name: TextRecord | undefined
  readonly value: RawTextRecord | undefined
}

export interface NodeRecord {
  readonly offset: number
  readonly values: StructValues<'node'>
  readonly name: TextRecord | undefined
  readonly inputs: VectorRecord | undefined
  readonly outputs: VectorRecord | undefined
  readonly attributes:
    | { readonly vector: VectorRecord; readonly list: readonly AttributeRecord[] }
    | undefined
  readonly operator: OperatorRecord
}

/** Quantization parameters, one entry per record: real value = (stored value - zero point) * scale. */
export interface QuantizationRecord {
  /** Offsets of the quantization structs. */
  readonly vector: VectorRecord
  readonly scales: Float32Array
  readonly zeroPoints: Int32Array
  readonly widths: Int32Array
}

export interface TensorRecord {
  readonly offset: number
  readonly values: StructValues<'tensor'>
  readonly name: TextRecord | undefined
  readonly dims: VectorRecord | undefined
  readonly quantization: QuantizationRecord | undefined
}

export interface BufferRecord {
  readonly offset: number
  readonly values: StructValues<'buffer'>
}

export interface DeviceRecord {
  readonly offset: number
  readonly values: StructValues<'device'>
  readonly name: TextRecord | undefined
  readonly nodes: VectorRecord | undefined
  readonly inputs: VectorRecord | undefined
  readonly outputs: VectorRecord | undefined
}

/** Records listed by a vector of offsets. An unreadable entry is undefined; only a check continues after one. */
export interface ListRecord<T> {
  readonly vector: VectorRecord
  readonly list: readonly (T | undefined)[]
}

export interface SubgraphRecord {
  readonly offset: number
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
