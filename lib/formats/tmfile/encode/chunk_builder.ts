/** Collects the parts of a file in the order in which the reference writes them. */
import { TileworkError } from '../../../errors.js'
import { asStored } from '../../../tensor/dense.js'
import type { AttributeRecord, TextRecord, VectorRecord } from '../decode/records.js'
import type { TmfileBuffer } from '../model/types.js'
import { ALIGNMENT, PLACED, type StructName, type StructValues, WORD_BYTES } from '../schema.js'
import { ELEMENT_BYTES, type ScalarType, type VectorType } from '../struct_layout.js'
import { type Fill, fillField, type Piece, type PieceBase } from './chunk.js'

const encoder = new TextEncoder()

/** A vector of what: numbers, or parts whose offsets it lists. */
type Entries = readonly number[] | readonly Piece[]

export class PieceList {
  readonly pieces: Piece[] = []

  add(piece: Omit<Piece, 'at'>): Piece {
    const placed = { ...piece, at: 0 }
    this.pieces.push(placed)
    return placed
  }

  /**
   * A struct; its values are asked for when every part has its place.
   *
   * @param base - the place of the record that it was, and its length there
   */
  struct<S extends StructName>(
    name: S,
    path: string,
    values: () => StructValues<S>,
    {
      base,
      byteLength = PLACED[name].byteLength,
    }: { base?: PieceBase | undefined; byteLength?: number } = {},
  ): Piece {
    const fill: Fill = (target, old) => {
      const all = values() as Readonly<Record<string, number>>
      for (const { name: field, type, position } of PLACED[name].fields) {
        if (position >= byteLength) continue
        fillField(target, old, { position, type, path: `${path}.${field}` }, all[field])
      }
    }
    return this.add({ path, byteLength, alignment: ALIGNMENT, base, fill })
  }

  /** @param count - where it is not that of the entries: boxes have four numbers each, and the subgraph vector counts more */
  vector(
    entries: Entries,
    type: VectorType | 'offset',
    path: string,
    { record, count = entries.length }: { record?: VectorRecord | undefined; count?: number } = {},
  ): Piece {
    const scalar: ScalarType = type === 'f32[4]' ? 'f32' : type
    const fill: Fill = (target, old) => {
      fillField(target, old, { position: 0, type: 'u32', path }, count)
      for (const [at, entry] of entries.entries()) {
        const place = { position: WORD_BYTES * (1 + at), type: scalar, path: `${path}[${at}]` }
        fillField(target, old, place, typeof entry === 'object' ? entry.at : entry)
      }
    }
    const base = record && {
      at: record.at,
      byteLength: WORD_BYTES + record.entries.length * ELEMENT_BYTES.i32,
    }
    const byteLength = WORD_BYTES * (1 + entries.length)
    return this.add({ path, byteLength, alignment: ALIGNMENT, base, fill })
  }

  /**
   * The bytes of a text and its record. The bytes stay as they were while they mean the same.
   *
   * @param unwritten - bytes at the end that the size counts and that are not written: the NUL of an attribute's name
   */
  text(text: string | null, path: string, record?: TextRecord, unwritten = 0): Piece | undefined {
    if (text === null) return undefined
    const isSame = record?.text === text
    const whole = isSame ? undefined : encodeText(text, path)
    const encoded = whole?.subarray(0, whole.byteLength - unwritten)
    const byteLength = encoded?.byteLength ?? record!.byteLength
    const bytes = this.add({
      path: `${path}.bytes`,
      byteLength,
      alignment: 1,
      base: isSame ? { at: record.bytesAt, byteLength } : undefined,
      fill: (target, old) => bytesOf(target).set(encoded ?? bytesOf(old)),
    })
    const size = isSame ? record.size : byteLength + unwritten
    return this.#textRecord(bytes, path, record?.at, size)
  }

  /** The value of an attribute: bytes without a NUL. */
  rawText(value: Uint8Array, path: string, record: AttributeRecord['value']): Piece {
    const isSame = record !== undefined && Buffer.compare(record.bytes, value) === 0
    const bytes = this.add({
      path: `${path}.bytes`,
      byteLength: value.byteLength,
      alignment: 1,
      base: isSame ? { at: record.bytesAt, byteLength: value.byteLength } : undefined,
      fill: (target) => bytesOf(target).set(value),
    })
    return this.#textRecord(bytes, path, record?.at, value.byteLength)
  }

  #textRecord(bytes: Piece, path: string, at: number | undefined, size: number): Piece {
    const base = at === undefined ? undefined : { at, byteLength: PLACED.text.byteLength }
    return this.struct('text', path, () => ({ size, bytes: bytes.at }), { base })
  }

  /** The numbers of a buffer, which are copied from where they are when the file is written. */
  data({ byteLength, data }: TmfileBuffer, path: string, originAt?: number): Piece | undefined {
    if (!data) return undefined
    const stored = 'tensor' in data ? asStored(data.tensor) : data
    const isTensor = 'tensor' in data
    if (isTensor && data.tensor.storage.byteLength !== byteLength) {
      const message = `${path} has ${data.tensor.storage.byteLength} bytes of data; the buffer says ${byteLength}.`
      throw new TileworkError('ERR_ARGUMENT', message, { path })
    }
    const { source, start } = stored
    return this.add({
      path,
      byteLength,
      alignment: 1,
      base: originAt === undefined ? undefined : { at: originAt, byteLength },
      data: isTensor
        ? { kind: 'tensor', tensor: data.tensor }
        : { kind: 'range', source, start, end: start + byteLength },
    })
  }

  /** A vector of indices, offsets or parts that may be absent: it stays absent, or empty, as it was. */
  optionalVector(
    entries: Entries,
    path: string,
    record: VectorRecord | undefined,
    { keepEmpty = record !== undefined }: { keepEmpty?: boolean } = {},
  ): Piece | undefined {
    if (entries.length === 0 && !keepEmpty) return undefined
    return this.vector(entries, 'offset', path, { record })
  }
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
}

/** With the NUL that the size counts. @throws TileworkError ERR_ARGUMENT for a text with a NUL inside */
function encodeText(text: string, path: string): Uint8Array {
  if (text.includes('\0')) {
    throw new TileworkError('ERR_ARGUMENT', `${path} has a NUL inside; a NUL ends a text of this format.`, {
      path,
    })
  }
  return encoder.encode(`${text}\0`)
}
