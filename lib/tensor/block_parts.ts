/**
 * What an element of a quantized block is made of: its code, and the scale and minimum of its group. This explains blocks to readers;
 * their numbers are computed by the native core, whose definitions these follow (native/blocks/dequantize_reference.cc).
 *
 * Source of the layouts: the package gguf 0.19.
 */
import type { BlockDtype } from '../dtype/block_types.js'
import { decodeFloatCode } from '../dtype/decode.js'

/** The number of an element is `scale × code + minimum`, in float32. */
export interface BlockParts {
  /** A whole number of the code's range, or the value that it stands for in the type's table. */
  readonly code: number
  readonly scale: number
  /** The number of code 0. */
  readonly minimum: number
}

type PartsOf = (block: Block, i: number) => readonly [code: number, scale: number, minimum?: number]

const { fround } = Math
/** The values of 4-bit codes in iq4_nl and iq4_xs, and those of mxfp4 and nvfp4 doubled, as their scales are halved. */
const IQ4_VALUES = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
const FP4_VALUES = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]

/** The fields of one block. */
class Block {
  readonly #bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  byte(at: number): number {
    return this.#bytes[at]!
  }

  signed(at: number): number {
    return this.#view.getInt8(at)
  }

  u16(at: number): number {
    return this.#view.getUint16(at, true)
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true)
  }

  float(at: number): number {
    return this.#view.getFloat32(at, true)
  }

  half(at: number): number {
    return decodeFloatCode('float16', this.u16(at))
  }

  /** Nibble `i` of 32 in 16 bytes: the lower ones come first. */
  nibble(at: number, i: number): number {
    return (this.byte(at + (i % 16)) >> (4 * Math.floor(i / 16))) & 15
  }

  /** Code `i` of 256 in 64 bytes, 2 bits each: each half has four codes of stride 32 in a byte. */
  pair(at: number, i: number): number {
    return (this.byte(at + 32 * Math.floor(i / 128) + (i % 32)) >> (2 * (Math.floor(i / 32) % 4))) & 3
  }

  bit(at: number, i: number): number {
    return (this.byte(at + Math.floor(i / 8)) >> (i % 8)) & 1
  }

  /** Nibble of 32 elements in 128 bytes, of q4_k and q5_k. */
  nibbleOfGroups(at: number, i: number): number {
    return (this.byte(at + 32 * Math.floor(i / 64) + (i % 32)) >> (4 * (Math.floor(i / 32) % 2))) & 15
  }
}

/** Of q4_k and q5_k: scales and minimums of 6 bits in 12 bytes, both scaled by a float16. */
function scaledK(b: Block, i: number, code: number): readonly [number, number, number] {
  const group = Math.floor(i / 32)
  const at = 4 + group
  const isLow = group < 4
  const scale = isLow ? b.byte(at) & 63 : (b.byte(at + 4) & 15) | ((b.byte(at - 4) >> 6) << 4)
  const minimum = isLow ? b.byte(at + 4) & 63 : (b.byte(at + 4) >> 4) | ((b.byte(at) >> 6) << 4)
  return [code, fround(b.half(0) * scale), -fround(b.half(2) * minimum)]
}

function q3Scale(b: Block, group: number): number {
  const low = (b.byte(96 + (group % 8)) >> (4 * Math.floor(group / 8))) & 15
  const high = (b.byte(104 + (group % 4)) >> (2 * Math.floor(group / 4))) & 3
  return (low | (high << 4)) - 32
}

function iq4Scale(b: Block, group: number): number {
  const low = (b.byte(4 + Math.floor(group / 2)) >> (4 * (group % 2))) & 15
  return (low | (((b.u16(2) >> (2 * group)) & 3) << 4)) - 32
}

function q6Code(b: Block, i: number): number {
  const [half, rest] = [Math.floor(i / 128), i % 128]
  const low = (b.byte(64 * half + (rest % 64)) >> (4 * Math.floor(rest / 64))) & 15
  const high = (b.byte(128 + 32 * half + (rest % 32)) >> (2 * Math.floor(rest / 32))) & 3
  return (low | (high << 4)) - 32
}

const POWERS_OF_3 = [1, 3, 9, 27, 81]

/** A digit in base 3: five of them in a byte that is a fraction of 256, by their power. */
function ternaryDigit(b: Block, i: number): number {
  const [start, first, bytes] = i < 160 ? [0, 0, 32] : i < 240 ? [32, 160, 16] : [48, 240, 4]
  const [byte, power] = [start + ((i - first) % bytes), Math.floor((i - first) / bytes)]
  return (((b.byte(byte) * POWERS_OF_3[power]!) & 255) * 3) >> 8
}

/** 2^(code - 128), also of subnormal numbers. */
function powerOfTwo(code: number): number {
  return 2 ** (code - 128)
}

/** Half of an unsigned float with 4 bits of exponent and 3 of mantissa; 0x7F is 0. */
function nvfp4Scale(code: number): number {
  if (code === 0x7f) return 0
  const [exponent, mantissa] = [(code >> 3) & 15, code & 7]
  return exponent === 0 ? mantissa / 1024 : (8 + mantissa) * 2 ** (exponent - 11)
}

/** The code is a float's `number / scale`: numbers of vectors in a table, which the native core has. */
const BY_VECTOR = Number.NaN

function nibbleScale(b: Block, at: number, i: number): number {
  return (b.byte(at + Math.floor(i / 32)) >> (4 * (Math.floor(i / 16) % 2))) & 15
}

const PARTS: Readonly<Record<BlockDtype, PartsOf>> = {
  q4_0: (b, i) => [b.nibble(2, i) - 8, b.half(0)],
  q4_1: (b, i) => [b.nibble(4, i), b.half(0), b.half(2)],
  q5_0: (b, i) => [(b.nibble(6, i) | (b.bit(2, i) << 4)) - 16, b.half(0)],
  q5_1: (b, i) => [b.nibble(8, i) | (b.bit(4, i) << 4), b.half(0), b.half(2)],
  q8_0: (b, i) => [b.signed(2 + i), b.half(0)],
  q2_k: (b, i) => {
    const group = b.byte(Math.floor(i / 16))
    return [b.pair(16, i), fround(b.half(80) * (group & 15)), -fround(b.half(82) * (group >> 4))]
  },
  q3_k: (b, i) => {
    // A set bit means that nothing is subtracted.
    const code = b.pair(32, i) - ((b.byte(i % 32) >> Math.floor(i / 32)) & 1 ? 0 : 4)
    return [code, fround(b.half(108) * q3Scale(b, Math.floor(i / 16)))]
  },
  q4_k: (b, i) => scaledK(b, i, b.nibbleOfGroups(16, i)),
  q5_k: (b, i) =>
    scaledK(b, i, b.nibbleOfGroups(48, i) | (((b.byte(16 + (i % 32)) >> Math.floor(i / 32)) & 1) << 4)),
  q6_k: (b, i) => [q6Code(b, i), fround(b.half(208) * b.signed(192 + Math.floor(i / 16)))],
  q8_k: (b, i) => [b.signed(4 + i), b.float(0)],
  iq2_xxs: (b, i) => {
    const word = b.u32(6 + 8 * Math.floor(i / 32))
    return [BY_VECTOR, fround(fround(b.half(0) * (0.5 + (word >>> 28))) * 0.25)]
  },
  iq2_xs: (b, i) => [BY_VECTOR, fround(fround(b.half(0) * (0.5 + nibbleScale(b, 66, i))) * 0.25)],
  iq2_s: (b, i) => [BY_VECTOR, fround(fround(b.half(0) * (0.5 + nibbleScale(b, 74, i))) * 0.25)],
  iq3_xxs: (b, i) => {
    const word = b.u32(66 + 4 * Math.floor(i / 32))
    return [BY_VECTOR, fround(fround(b.half(0) * (0.5 + (word >>> 28))) * 0.5)]
  },
  iq3_s: (b, i) => {
    const scale = (b.byte(106 + Math.floor(i / 64)) >> (4 * (Math.floor(i / 32) % 2))) & 15
    return [BY_VECTOR, fround(b.half(0) * (1 + 2 * scale))]
  },
  iq1_s: (b, i) => {
    const word = b.u16(34 + 2 * Math.floor(i / 32))
    return [BY_VECTOR, fround(b.half(0) * (2 * ((word >> 12) & 7) + 1))]
  },
  iq1_m: (b, i) => {
    const scale = (b.u16(48 + 2 * Math.floor(i / 64)) >> (3 * (Math.floor(i / 16) % 4))) & 7
    const half = [0, 1, 2, 3].reduce((bits, part) => bits | ((b.u16(48 + 2 * part) >> 12) << (4 * part)), 0)
    return [BY_VECTOR, fround(decodeFloatCode('float16', half) * (2 * scale + 1))]
  },
  iq4_nl: (b, i) => [IQ4_VALUES[b.nibble(2, i)]!, b.half(0)],
  iq4_xs: (b, i) => {
    const group = Math.floor(i / 32)
    return [IQ4_VALUES[b.nibble(8 + 16 * group, i % 32)]!, fround(b.half(0) * iq4Scale(b, group))]
  },
  tq1_0: (b, i) => [ternaryDigit(b, i) - 1, b.half(52)],
  tq2_0: (b, i) => [b.pair(0, i) - 1, b.half(64)],
  mxfp4: (b, i) => [FP4_VALUES[b.nibble(1, i)]!, powerOfTwo(b.byte(0))],
  nvfp4: (b, i) => {
    const group = Math.floor(i / 16)
    const code = (b.byte(4 + 8 * group + (i % 8)) >> (4 * Math.floor((i % 16) / 8))) & 15
    return [FP4_VALUES[code]!, nvfp4Scale(b.byte(group))]
  },
  q1_0: (b, i) => [2 * b.bit(2, i) - 1, b.half(0)],
  q2_0: (b, i) => [((b.byte(2 + Math.floor(i / 4)) >> (2 * (i % 4))) & 3) - 1, b.half(0)],
}

/**
 * @param bytes - of one block
 * @param element - its place in the block
 * @param number - what the native core computes of it
 */
export function blockPartsOf(
  dtype: BlockDtype,
  bytes: Uint8Array,
  element: number,
  number: number,
): BlockParts {
  const [code, scale, minimum = 0] = PARTS[dtype](new Block(bytes), element)
  return { code: Number.isNaN(code) ? number / scale : code, scale, minimum }
}
