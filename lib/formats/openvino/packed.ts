/**
 * Types whose elements share bytes in an order of OpenVINO's own. `u1`, `u3` and `u6` are read as uint8, `nf4` as the float32
 * values of its 16 codes. Source: bytes chosen one by one, as openvino 2026.4.1 reads them.
 */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { PACKED_GROUPS } from './constant.js'
import { FORMAT_NAME, type PackedType } from './schema.js'

/** The values of the codes 0 to 15: quantiles of the normal distribution, as float32. */
export const NF4_VALUES = Float32Array.of(
  -1,
  -0.6961928,
  -0.52507305,
  -0.3949175,
  -0.28444138,
  -0.18477343,
  -0.091050036,
  0,
  0.0795803,
  0.1609302,
  0.2461123,
  0.33791524,
  0.44070983,
  0.562617,
  0.72295684,
  1,
)

/** Where the bits of an element are: the code is that of each part, shifted to its place. */
interface BitPart {
  readonly byte: number
  /** Of its lowest bit in the byte. */
  readonly shift: number
  readonly bits: number
  /** Of its lowest bit in the code. */
  readonly place: number
}

const part = (byte: number, shift: number, bits: number, place = 0): BitPart => ({ byte, shift, bits, place })
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** The parts of each element of a group. */
const PARTS: Readonly<Record<PackedType, readonly (readonly BitPart[])[]>> = {
  // The first element has the highest bit.
  u1: upTo(8).map((k) => [part(0, 7 - k, 1)]),
  // Two low bits in the first two bytes, the third bits in the last; each from the top.
  u3: upTo(8).map((k) => [part(k >> 2, 6 - 2 * (k % 4), 2), part(2, 7 - k, 1, 2)]),
  // Four low bits in the first two bytes, the upper two in the last; each from the top.
  u6: upTo(4).map((k) => [part(k >> 1, 4 - 4 * (k % 2), 4), part(2, 6 - 2 * k, 2, 4)]),
  // The first element has the low half.
  nf4: upTo(2).map((k) => [part(0, 4 * k, 4)]),
}

/** Codes of the elements of whole groups. */
function unpack(type: PackedType, bytes: Uint8Array): Uint8Array {
  const { elements, bytes: groupBytes } = PACKED_GROUPS[type]
  const parts = PARTS[type]
  const codes = new Uint8Array((bytes.length / groupBytes) * elements)
  for (let from = 0, to = 0; from < bytes.length; from += groupBytes) {
    for (const element of parts) {
      let code = 0
      for (const { byte, shift, bits, place } of element) {
        code |= ((bytes[from + byte]! >> shift) & ((1 << bits) - 1)) << place
      }
      codes[to++] = code
    }
  }
  return codes
}

/** Bytes of whole groups; the places of elements that the last one lacks are 0. */
export function pack(type: PackedType, codes: Uint8Array): Uint8Array {
  const { elements, bytes: groupBytes } = PACKED_GROUPS[type]
  const parts = PARTS[type]
  const packed = new Uint8Array(Math.ceil(codes.length / elements) * groupBytes)
  for (const [index, code] of codes.entries()) {
    const start = Math.floor(index / elements) * groupBytes
    for (const { byte, shift, bits, place } of parts[index % elements]!) {
      packed[start + byte]! |= ((code >> place) & ((1 << bits) - 1)) << shift
    }
  }
  return packed
}

/**
 * The codes of elements as they are read: bytes of uint8, or of float32 for `nf4`.
 *
 * @throws TileworkError ERR_VALUE for a value that the type does not have
 */
export function codesOf(type: PackedType, stored: Uint8Array, name: string): Uint8Array {
  const refuse = (value: number): TileworkError =>
    new TileworkError('ERR_VALUE', `${name} has the value ${value}, which ${type} does not have.`, {
      format: FORMAT_NAME,
    })
  if (type !== 'nf4') {
    const most = 2 ** Number(type.slice(1)) - 1
    const wrong = stored.find((value) => value > most)
    if (wrong !== undefined) throw refuse(wrong)
    return stored
  }
  const values = new Float32Array(new Uint8Array(stored).buffer)
  const codeOf = new Map(Array.from(NF4_VALUES, (value, code) => [value, code]))
  return Uint8Array.from(values, (value) => {
    const code = codeOf.get(value)
    if (code === undefined) throw refuse(value)
    return code
  })
}

/** The elements of a packed constant as storage of the dtype that holds them, a range at a time. */
export class UnpackedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #type: PackedType
  readonly #source: ByteSource
  readonly #start: number
  /** Bytes of an element as it is read. */
  readonly #width: number

  /** @param start - of the constant in `source` */
  constructor(source: ByteSource, start: number, type: PackedType, elements: number) {
    this.#type = type
    this.#source = source
    this.#start = start
    this.#width = type === 'nf4' ? NF4_VALUES.BYTES_PER_ELEMENT : 1
    this.byteLength = elements * this.#width
    this.label = `${type} of ${source.label ?? 'memory'}`
    if (source.readSync) {
      // biome-ignore lint/plugin: a pair
      this.readSync = (from, to) => this.#cut(source.readSync!(...this.#range(from, to)), from, to)
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    // biome-ignore lint/plugin: a pair
    return this.#cut(await this.#source.read(...this.#range(start, end)), start, end)
  }

  /** The bytes of the groups that have a range of the elements. */
  #range(start: number, end: number): [start: number, end: number] {
    checkRange(start, end, this.byteLength, this.label)
    const { elements, bytes } = PACKED_GROUPS[this.#type]
    const perGroup = elements * this.#width
    return [
      this.#start + Math.floor(start / perGroup) * bytes,
      this.#start + Math.ceil(end / perGroup) * bytes,
    ]
  }

  #cut(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const codes = unpack(this.#type, bytes)
    const stored =
      this.#type === 'nf4'
        ? new Uint8Array(Float32Array.from(codes, (code) => NF4_VALUES[code]!).buffer)
        : codes
    const skipped = start % (PACKED_GROUPS[this.#type].elements * this.#width)
    return stored.subarray(skipped, skipped + end - start)
  }
}
