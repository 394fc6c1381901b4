/**
 * Decodes single structs, vectors and texts, synchronously, as parts of a record that `PagedFile.attempt` decodes. Each is checked against the file before a byte of it is used; what cannot be
 * read is reported, and the result is undefined.
 */
import { isUtf8 } from 'node:buffer'
import type { Place, Report } from '../../report.js'
import type { Location } from '../location.js'
import { MAX_TEXT_BYTES, STRUCT_LAYOUTS, type StructName, type StructValues, WORD_BYTES } from '../schema.js'
import { ELEMENT_BYTES, readScalar, type VectorType } from '../struct_layout.js'
import type { PagedFile } from './paged_file.js'
import type { QuantizationRecord, RawTextRecord, TextRecord, VectorRecord } from './records.js'

const NUL = 0

export class RecordReader {
  constructor(
    readonly file: PagedFile,
    readonly report: Report,
  ) {}

  /** The fields of a struct. @param byteLength - of an older, shorter form: fields that it lacks are 0 */
  struct<S extends StructName>(
    name: S,
    offset: number,
    place: Place,
    byteLength = STRUCT_LAYOUTS[name].byteLength,
  ): StructValues<S> | undefined {
    const { file } = this
    if (!file.checkAlignedRange(offset, byteLength, name, place)) return undefined
    return decodeStruct(name, file.view(offset, byteLength))
  }

  /** A vector of offsets or indices. @param storedCount - entries that are stored, where fewer than the count */
  offsetVector(offset: number, place: Place, storedCount?: number): VectorRecord | undefined {
    return this.vector(offset, 'offset', place, { storedCount })
  }

  vector(
    offset: number,
    type: VectorType | 'offset',
    place: Place,
    { storedCount, maxCount }: { readonly storedCount?: number | undefined; readonly maxCount?: number } = {},
  ): VectorRecord | undefined {
    const { file } = this
    if (!file.checkAlignedRange(offset, WORD_BYTES, 'vector', place)) return undefined
    const count = file.view(offset, WORD_BYTES).getUint32(0, true)
    if (maxCount !== undefined && count > maxCount) {
      this.report.broken('ERR_LIMIT', `${place.path} has ${count} entries; the limit is ${maxCount}.`, place)
      return undefined
    }
    const start = offset + WORD_BYTES
    const elementBytes = type === 'offset' ? WORD_BYTES : ELEMENT_BYTES[type]
    const byteLength = Math.min(count, storedCount ?? count) * elementBytes
    if (!file.checkRange(start, byteLength, 'vector', place)) return undefined
    const view = file.view(start, byteLength)
    const entries: number[] = []
    const scalar = type === 'f32[4]' ? 'f32' : type
    for (let position = 0; position < byteLength; position += WORD_BYTES) {
      entries.push(readScalar(view, position, scalar))
    }
    return { offset, count, entries }
  }

  /**
   * A text; undefined for offset 0, which means none.
   *
   * @param unwrittenBytes - trailing bytes that the size includes and the writer never wrote
   */
  text(offset: number, place: Place, unwrittenBytes = 0): TextRecord | undefined {
    if (offset === 0) return undefined
    const values = this.struct('text', offset, place)
    if (!values) return undefined
    const byteLength = Math.max(0, values.size - unwrittenBytes)
    const bytes = this.#textBytes({ size: byteLength, bytes: values.bytes }, place)
    if (!bytes) return undefined
    return { offset, bytesOffset: values.bytes, byteLength, size: values.size, ...decodeText(bytes) }
  }

  /** The raw bytes of a text record. An empty text may have any offset. */
  #textBytes({ size, bytes: offset }: StructValues<'text'>, place: Place): Uint8Array | undefined {
    if (size > MAX_TEXT_BYTES) {
      const message = `The text of ${place.path} has ${size} bytes; the limit is ${MAX_TEXT_BYTES}.`
      this.report.broken('ERR_LIMIT', message, place)
      return undefined
    }
    if (size === 0) return new Uint8Array(0)
    if (!this.file.checkRange(offset, size, 'text', place)) return undefined
    const view = this.file.view(offset, size)
    return new Uint8Array(view.buffer, view.byteOffset, size)
  }

  /** The value of an attribute: a text record without a NUL. */
  rawText(offset: number, place: Place): RawTextRecord | undefined {
    if (offset === 0) return undefined
    const values = this.struct('text', offset, place)
    const bytes = values && this.#textBytes(values, place)
    return bytes && { offset, bytesOffset: values.bytes, bytes: new Uint8Array(bytes) }
  }

  /** Quantization parameters; undefined for offset 0, which means none. */
  quantization(offset: number, location: Location): QuantizationRecord | undefined {
    if (offset === 0) return undefined
    const vector = this.offsetVector(offset, location)
    if (!vector) return undefined
    const count = vector.entries.length
    const scales = new Float32Array(count)
    const zeroPoints = new Int32Array(count)
    const widths = new Int32Array(count)
    for (let index = 0; index < count; index++) {
      const entry = vector.entries[index]!
      const values = this.struct('quantization', entry, location.child(index, entry))
      if (!values) return undefined
      scales[index] = values.scale
      zeroPoints[index] = values.zero_point
      widths[index] = values.width
    }
    return { vector, scales, zeroPoints, widths }
  }
}

/** Fields beyond the end of `view` are 0. */
function decodeStruct<S extends StructName>(name: S, view: DataView): StructValues<S> {
  const values: Record<string, number> = {}
  for (const { name: field, type, offset } of STRUCT_LAYOUTS[name].fields) {
    values[field] = offset < view.byteLength ? readScalar(view, offset, type) : 0
  }
  return values as StructValues<S>
}

/** The size includes one terminating NUL; texts without it are accepted too. */
function decodeText(bytes: Uint8Array): Pick<TextRecord, 'text' | 'isWellFormed'> {
  const length = bytes.at(-1) === NUL ? bytes.length - 1 : bytes.length
  const characters = Buffer.from(bytes.buffer, bytes.byteOffset, length)
  // Buffer's own decoder: a TextDecoder call per name costs more than all other decoding of a model.
  return { text: characters.toString('utf8'), isWellFormed: isUtf8(characters) && !characters.includes(NUL) }
}
