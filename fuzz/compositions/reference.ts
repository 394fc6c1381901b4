/**
 * Tensor operations by their definitions, on lists of numbers in row-major order, and the bits of element types by theirs. Nothing here
 * comes from the library, except the offsets of layouts (`offsetOf`, which has an oracle of its own).
 */

/** A tensor of whole numbers. */
export interface Plain {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}

export const sizeOf = (shape: readonly number[]): number => shape.reduce((size, dim) => size * dim, 1)

/** The index of an element of a row-major tensor. */
export function indexAt(at: number, shape: readonly number[]): number[] {
  const index: number[] = []
  for (let axis = shape.length - 1, rest = at; axis >= 0; axis--) {
    index[axis] = rest % shape[axis]!
    rest = Math.floor(rest / shape[axis]!)
  }
  return index
}

const offsetIn = (shape: readonly number[], index: readonly number[]): number =>
  index.reduce((offset, each, axis) => offset * shape[axis]! + each, 0)

/** A tensor by the value at each index. */
function plain(shape: readonly number[], valueAt: (index: number[]) => number): Plain {
  return { shape, values: Array.from({ length: sizeOf(shape) }, (_, at) => valueAt(indexAt(at, shape))) }
}

const at = ({ shape, values }: Plain, index: readonly number[]): number => values[offsetIn(shape, index)]!

export const transposed = (from: Plain, axes: readonly number[]): Plain =>
  plain(
    axes.map((axis) => from.shape[axis]!),
    (index) => {
      const source: number[] = []
      for (const [to, axis] of axes.entries()) source[axis] = index[to]!
      return at(from, source)
    },
  )

export const sliced = (from: Plain, ranges: readonly (readonly [number, number, number])[]): Plain =>
  plain(
    ranges.map(([start, stop, step]) => Math.max(0, Math.ceil((stop - start) / step))),
    (index) =>
      at(
        from,
        index.map((each, axis) => ranges[axis]![0] + each * ranges[axis]![2]),
      ),
  )

export const padded = (from: Plain, widths: readonly (readonly [number, number])[], value: number): Plain =>
  plain(
    from.shape.map((dim, axis) => widths[axis]![0] + dim + widths[axis]![1]),
    (index) => {
      const source = index.map((each, axis) => each - widths[axis]![0])
      return source.every((each, axis) => each >= 0 && each < from.shape[axis]!) ? at(from, source) : value
    },
  )

export function concatenated(parts: readonly Plain[], axis: number): Plain {
  const [first] = parts
  const dim = parts.reduce((sum, { shape }) => sum + shape[axis]!, 0)
  return plain(
    first!.shape.map((each, position) => (position === axis ? dim : each)),
    (index) => {
      let start = 0
      for (const part of parts) {
        const inside = index[axis]! - start
        if (inside < part.shape[axis]!) return at(part, index.with(axis, inside))
        start += part.shape[axis]!
      }
      throw new Error('outside')
    },
  )
}

export const stacked = (parts: readonly Plain[], axis: number): Plain =>
  concatenated(
    parts.map(({ shape, values }) => ({ shape: shape.toSpliced(axis, 0, 1), values })),
    axis,
  )

/** An element type: its bits, and the whole numbers that it represents without gaps. */
export interface Bits {
  readonly bits: number
  readonly range: readonly [number, number]
  codeOf(value: number): bigint
}

const integer = (bits: number, isSigned: boolean): Bits => ({
  bits,
  range: isSigned
    ? [-(2 ** Math.min(bits - 1, 7)), 2 ** Math.min(bits - 1, 7) - 1]
    : [0, 2 ** Math.min(bits, 8) - 1],
  codeOf: (value) => BigInt.asUintN(bits, BigInt(value)),
})

/** A float of sign, exponent and mantissa. `zeroIsUnsigned` types have no -0, which no case uses. */
const float = (exponentBits: number, mantissaBits: number, bias = 2 ** (exponentBits - 1) - 1): Bits => {
  const largest = Math.min(2 ** (mantissaBits + 1), 128)
  const top = exponentBits === 2 ? largest : Math.min(largest, 2 ** (2 ** exponentBits - 2 - bias))
  return {
    bits: 1 + exponentBits + mantissaBits,
    range: [-top, top],
    codeOf: (value) => {
      const magnitude = Math.abs(value)
      if (magnitude === 0) return 0n
      const exponent = Math.floor(Math.log2(magnitude))
      const fraction =
        (BigInt(magnitude * 2 ** 20) * (1n << BigInt(mantissaBits))) / BigInt(2 ** (20 + exponent))
      const code =
        (BigInt(exponent + bias) << BigInt(mantissaBits)) | (fraction - (1n << BigInt(mantissaBits)))
      return value < 0 ? code | (1n << BigInt(exponentBits + mantissaBits)) : code
    },
  }
}

export const BITS = {
  bool: { bits: 8, range: [0, 1], codeOf: BigInt },
  int2: integer(2, true),
  uint2: integer(2, false),
  int4: integer(4, true),
  uint4: integer(4, false),
  int8: integer(8, true),
  uint8: integer(8, false),
  int16: integer(16, true),
  uint16: integer(16, false),
  int32: integer(32, true),
  uint32: integer(32, false),
  int64: integer(64, true),
  uint64: integer(64, false),
  float4_e2m1fn: float(2, 1),
  float6_e2m3fn: { ...float(2, 3), range: [-7, 7] },
  float6_e3m2fn: float(3, 2),
  float8_e4m3fn: float(4, 3),
  float8_e4m3fnuz: float(4, 3, 8),
  float8_e5m2: float(5, 2),
  float8_e5m2fnuz: float(5, 2, 16),
  float16: float(5, 10),
  bfloat16: float(8, 7),
  float32: float(8, 23),
  float64: float(11, 52),
} as const satisfies Record<string, Bits>

export type CaseDtype = keyof typeof BITS

/** Storage of `slots` elements, those without a value zero, elements below a byte packed from the lowest bit on. */
export function storageOf(
  dtype: CaseDtype,
  slots: number,
  values: Iterable<readonly [slot: number, value: number]>,
): Uint8Array {
  const { bits, codeOf }: Bits = BITS[dtype]
  const bytes = new Uint8Array(Math.ceil((slots * bits) / 8))
  for (const [slot, value] of values) {
    let code = codeOf(value)
    for (let bit = 0; bit < bits; bit++, code >>= 1n) {
      const place = slot * bits + bit
      if (code & 1n) bytes[place >> 3]! |= 1 << (place & 7)
    }
  }
  return bytes
}
