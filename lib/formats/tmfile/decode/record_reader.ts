/**
 * Reads single structs, vectors and texts, each checked against the file before a byte of it is used. What cannot be
 * read is reported and undefined.
 */
import { isUtf8 } from 'node:buffer'
import type { Place, Report } from '../../report.js'
import type { Spot } from '../location.js'
import { MAX_TEXT_BYTES, PLACED, type StructName, type StructValues, WORD_BYTES } from '../schema.js'
import { ELEMENT_BYTES, readScalar, type VectorType } from '../struct_layout.js'
import type { FileBytes, Reading } from './file_bytes.js'
import type { QuantizationRecord, TextRecord, VectorRecord } from './records.js'

const NUL = 0

export class RecordReader {
  constructor(
    readonly file: FileBytes,
    readonly report: Report,
  ) {}

  /** The numbers of a struct. @param byteLength - of an older, shorter form: fields that it lacks are 0 */
  *struct<S extends StructName>(
    name: S,
    at: number,
    place: Place,
    byteLength = PLACED[name].byteLength,
  ): Reading<StructValues<S> | undefined> {
    const { file } = this
    if (!file.admitsAligned(at, byteLength, name, place)) return undefined
    const need = file.need(at, byteLength)
    if (need) yield need
    return decodeStruct(name, file.view(at, byteLength))
  }

  /** A vector of offsets or indices. @param stored - entries that are stored, where it is not the count */
  *words(at: number, place: Place, stored?: number): Reading<VectorRecord | undefined> {
    return yield* this.vector(at, 'offset', place, { stored })
  }

  *vector(
    at: number,
    type: VectorType | 'offset',
    place: Place,
    { stored, most }: { readonly stored?: number | undefined; readonly most?: number } = {},
  ): Reading<VectorRecord | undefined> {
    const { file } = this
    if (!file.admitsAligned(at, WORD_BYTES, 'vector', place)) return undefined
    const headNeed = file.need(at, WORD_BYTES)
    if (headNeed) yield headNeed
    const count = file.view(at, WORD_BYTES).getUint32(0, true)
    if (most !== undefined && count > most) {
      this.report.broken('ERR_LIMIT', `${place.path} has ${count} entries; the limit is ${most}.`, place)
      return undefined
    }
    const elementBytes = type === 'offset' ? WORD_BYTES : ELEMENT_BYTES[type]
    const byteLength = Math.min(count, stored ?? count) * elementBytes
    if (!file.admits(at + WORD_BYTES, byteLength, 'vector', place)) return undefined
    const need = file.need(at + WORD_BYTES, byteLength)
    if (need) yield need
    const view = file.view(at + WORD_BYTES, byteLength)
    const entries: number[] = []
    const scalar = type === 'f32[4]' ? 'f32' : type
    for (let position = 0; position < byteLength; position += WORD_BYTES) {
      entries.push(readScalar(view, position, scalar))
    }
    return { at, count, entries }
  }

  /**
   * The text behind an offset; undefined for offset 0, which is no text.
   *
   * @param unwritten - bytes at the end that the size counts and nobody has written
   */
  *text(at: number, place: Place, unwritten = 0): Reading<TextRecord | undefined> {
    if (at === 0) return undefined
    const values = yield* this.struct('text', at, place)
    if (!values) return undefined
    const byteLength = Math.max(0, values.size - unwritten)
    const bytes = yield* this.#textBytes({ size: byteLength, bytes: values.bytes }, place)
    if (!bytes) return undefined
    const [text, isClean] = decodeText(bytes)
    return { at, bytesAt: values.bytes, byteLength, size: values.size, text, isClean }
  }

  /** The raw bytes of a text record. An empty one needs no place. */
  *#textBytes({ size, bytes: at }: StructValues<'text'>, place: Place): Reading<Uint8Array | undefined> {
    if (size > MAX_TEXT_BYTES) {
      const message = `The text of ${place.path} has ${size} bytes; the limit is ${MAX_TEXT_BYTES}.`
      this.report.broken('ERR_LIMIT', message, place)
      return undefined
    }
    if (size === 0) return new Uint8Array(0)
    if (!this.file.admits(at, size, 'text', place)) return undefined
    const view = yield* this.file.read(at, size)
    return new Uint8Array(view.buffer, view.byteOffset, size)
  }

  /** The bytes of an attribute's value, which is a text record without a NUL. */
  *rawText(
    at: number,
    place: Place,
  ): Reading<{ at: number; bytesAt: number; bytes: Uint8Array } | undefined> {
    if (at === 0) return undefined
    const values = yield* this.struct('text', at, place)
    const bytes = values && (yield* this.#textBytes(values, place))
    return bytes && { at, bytesAt: values.bytes, bytes: new Uint8Array(bytes) }
  }

  /** Quantization parameters; undefined for offset 0, which is none. */
  *quantization(at: number, place: Spot): Reading<QuantizationRecord | undefined> {
    if (at === 0) return undefined
    const vector = yield* this.words(at, place)
    if (!vector) return undefined
    const count = vector.entries.length
    const scales = new Float32Array(count)
    const zeroPoints = new Int32Array(count)
    const widths = new Int32Array(count)
    for (let index = 0; index < count; index++) {
      const offset = vector.entries[index]!
      const values = yield* this.struct('quantization', offset, place.at(index, offset))
      if (!values) return undefined
      scales[index] = values.scale
      zeroPoints[index] = values.zero_point
      widths[index] = values.width
    }
    return { vector, scales, zeroPoints, widths }
  }
}

/** Fields behind the end of `view` are 0. */
function decodeStruct<S extends StructName>(name: S, view: DataView): StructValues<S> {
  const values: Record<string, number> = {}
  for (const { name: field, type, position } of PLACED[name].fields) {
    values[field] = position < view.byteLength ? readScalar(view, position, type) : 0
  }
  return values as StructValues<S>
}

/** The size counts one NUL at the end; a tolerant reader takes texts without it too. */
export function decodeText(bytes: Uint8Array): readonly [text: string, isClean: boolean] {
  const length = bytes.at(-1) === NUL ? bytes.length - 1 : bytes.length
  const characters = Buffer.from(bytes.buffer, bytes.byteOffset, length)
  // Buffer's own decoding: a TextDecoder costs more than all names of a model together.
  return [characters.toString('utf8'), isUtf8(characters) && !characters.includes(NUL)]
}
