/** Builds the chunks of a file in the order in which the reference writes them. */
import { TileworkError } from '../../../errors.js'
import { asStored } from '../../../tensor/dense.js'
import { encodeUtf8 } from '../../../utf8.js'
import type { RawTextRecord, TextRecord, VectorRecord } from '../decode/records.js'
import {
  ALIGNMENT,
  FORMAT_NAME,
  STRUCT_LAYOUTS,
  type StructName,
  type StructValues,
  WORD_BYTES,
} from '../schema.js'
import { ELEMENT_BYTES, type ScalarType, type VectorType } from '../struct_layout.js'
import type { TmfileBuffer } from '../types.js'
import { type Chunk, type EncodeChunk, encodeField, type OriginalRange } from './chunk.js'

/** Elements of a vector: numbers, or chunks whose offsets it lists. */
type Entries = readonly number[] | readonly Chunk[]

export class ChunkBuilder {
  readonly chunks: Chunk[] = []

  add(parts: Omit<Chunk, 'offset'>): Chunk {
    const chunk = { ...parts, offset: 0 }
    this.chunks.push(chunk)
    return chunk
  }

  /** A struct. @param values - called once all chunks have offsets */
  struct<S extends StructName>(
    name: S,
    path: string,
    values: () => StructValues<S>,
    {
      original,
      byteLength = STRUCT_LAYOUTS[name].byteLength,
    }: { original?: OriginalRange | undefined; byteLength?: number } = {},
  ): Chunk {
    const encode: EncodeChunk = (target, originalBytes) => {
      const all = values() as Readonly<Record<string, number>>
      for (const { name: field, type, offset } of STRUCT_LAYOUTS[name].fields) {
        if (offset >= byteLength) continue
        encodeField(target, originalBytes, { offset, type, path: `${path}.${field}` }, all[field])
      }
    }
    return this.add({ path, byteLength, alignment: ALIGNMENT, original, encode })
  }

  /**
   * @param count - where it differs from the number of entries: a box is four numbers, and the subgraph vector counts
   * more than it stores
   */
  vector(
    entries: Entries,
    type: VectorType | 'offset',
    path: string,
    { record, count = entries.length }: { record?: VectorRecord | undefined; count?: number } = {},
  ): Chunk {
    const scalar: ScalarType = type === 'f32[4]' ? 'f32' : type
    const encode: EncodeChunk = (target, originalBytes) => {
      encodeField(target, originalBytes, { offset: 0, type: 'u32', path }, count)
      for (const [index, entry] of entries.entries()) {
        const field = { offset: WORD_BYTES * (1 + index), type: scalar, path: `${path}[${index}]` }
        encodeField(target, originalBytes, field, typeof entry === 'object' ? entry.offset : entry)
      }
    }
    const original = record && {
      offset: record.offset,
      byteLength: WORD_BYTES + record.entries.length * ELEMENT_BYTES.i32,
    }
    const byteLength = WORD_BYTES * (1 + entries.length)
    return this.add({ path, byteLength, alignment: ALIGNMENT, original, encode })
  }

  /** An optional vector of indices, offsets or chunks: where it has no entries, it stays absent or empty as it was. */
  optionalVector(
    entries: Entries,
    path: string,
    record: VectorRecord | undefined,
    { keepEmpty = record !== undefined }: { keepEmpty?: boolean } = {},
  ): Chunk | undefined {
    if (entries.length === 0 && !keepEmpty) return undefined
    return this.vector(entries, 'offset', path, { record })
  }

  /**
   * The bytes of a text and its record. The original bytes are kept while they decode to the same text.
   *
   * @param unwrittenBytes - trailing bytes that the size includes and that are not written: the NUL of an attribute's
   * name
   */
  text(text: string | null, path: string, record?: TextRecord, unwrittenBytes = 0): Chunk | undefined {
    if (text === null) return undefined
    const isSame = record?.text === text
    const withNul = isSame ? undefined : encodeText(text, path)
    const encoded = withNul?.subarray(0, withNul.byteLength - unwrittenBytes)
    const byteLength = encoded?.byteLength ?? record!.byteLength
    const bytes = this.add({
      path: `${path}.bytes`,
      byteLength,
      alignment: 1,
      original: isSame ? { offset: record.bytesOffset, byteLength } : undefined,
      encode: (target, originalBytes) => bytesOf(target).set(encoded ?? bytesOf(originalBytes)),
    })
    const size = isSame ? record.size : byteLength + unwrittenBytes
    return this.#textRecord(bytes, path, record?.offset, size)
  }

  /** The value of an attribute: bytes without a NUL. */
  rawText(value: Uint8Array, path: string, record: RawTextRecord | undefined): Chunk {
    const { byteLength } = value
    const isSame = record !== undefined && Buffer.compare(record.bytes, value) === 0
    const bytes = this.add({
      path: `${path}.bytes`,
      byteLength,
      alignment: 1,
      original: isSame ? { offset: record.bytesOffset, byteLength } : undefined,
      encode: (target) => bytesOf(target).set(value),
    })
    return this.#textRecord(bytes, path, record?.offset, byteLength)
  }

  #textRecord(bytes: Chunk, path: string, originalOffset: number | undefined, size: number): Chunk {
    const original =
      originalOffset === undefined
        ? undefined
        : { offset: originalOffset, byteLength: STRUCT_LAYOUTS.text.byteLength }
    return this.struct('text', path, () => ({ size, bytes: bytes.offset }), { original })
  }

  /** The data of a buffer, which is copied from its source when the file is written. */
  data({ byteLength, data }: TmfileBuffer, path: string, originalOffset?: number): Chunk | undefined {
    if (!data) return undefined
    const isTensor = 'tensor' in data
    if (isTensor && data.tensor.storage.byteLength !== byteLength) {
      const message = `${path} has ${data.tensor.storage.byteLength} bytes; byteLength of the buffer is ${byteLength}.`
      throw new TileworkError('ERR_ARGUMENT', message, { path })
    }
    const { source, start } = isTensor ? asStored(data.tensor) : data
    return this.add({
      path,
      byteLength,
      alignment: 1,
      original: originalOffset === undefined ? undefined : { offset: originalOffset, byteLength },
      data: isTensor
        ? { kind: 'tensor', tensor: data.tensor }
        : { kind: 'range', source, start, end: start + byteLength },
    })
  }
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
}

/** The text with the NUL that its size includes. @throws TileworkError ERR_ARGUMENT for a text with an inner NUL */
function encodeText(text: string, path: string): Uint8Array {
  if (text.includes('\0')) {
    const message = `${path} contains a NUL, which ends a text in this format.`
    throw new TileworkError('ERR_ARGUMENT', message, { path })
  }
  return Buffer.concat([encodeUtf8(text, path, FORMAT_NAME), Buffer.alloc(1)])
}
