/**
 * The arithmetic of onnxruntime's block quantizers, bit for bit: float32, rounded after each operation, never fused.
 *
 * A block has one scale and one zero point, from its least and greatest value. `halves away` rounds as C's roundf, `halves even`
 * as numpy.
 */

export type BlockBits = 2 | 4 | 8

export interface BlockRule {
  /** First and last code. */
  readonly least: number
  readonly most: number
  /** Sets `scale` and `zero` of `result` from the extremes of a block. */
  parameters(lo: number, hi: number, result: BlockParameters): void
  /** What `code` takes instead of the scale. */
  factor(scale: number): number
  /** The code of a value. */
  code(value: number, factor: number, zero: number): number
}

export interface BlockParameters {
  scale: number
  zero: number
}

/** Rounds a scale to the element type of the weight. */
export type RoundScale = (scale: number) => number

const { fround } = Math

/** What is negative becomes 0, so that halves up equals halves away from zero. */
function clampRounded(value: number, most: number): number {
  if (!(value > 0)) return 0
  return value >= most ? most : (value + 0.5) | 0
}

function roundAway(value: number): number {
  return value < 0 ? -Math.floor(0.5 - value) : Math.floor(value + 0.5)
}

/** To nearest, halves to even. */
export function roundEven(value: number): number {
  const rounded = Math.round(value)
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded
}

function clamp(value: number, least: number, most: number): number {
  return value < least ? least : value > most ? most : value
}

function reciprocal(scale: number): number {
  return scale === 0 ? 0 : fround(1 / scale)
}

/** Scale of a symmetric block: the value of greatest magnitude becomes the first code. */
function symmetricScale(lo: number, hi: number, half: number): number {
  return fround(-(Math.abs(hi) > Math.abs(lo) ? hi : lo) / half)
}

function asymmetricParameters(
  lo: number,
  hi: number,
  most: number,
  round: RoundScale,
  result: BlockParameters,
): void {
  const [low, high] = [lo < 0 ? lo : 0, hi > 0 ? hi : 0]
  const scale = fround(fround(high - low) / most)
  const zero = scale === 0 ? low : fround(-fround(low / scale))
  result.scale = round(scale)
  result.zero = clamp(roundAway(zero), 0, most)
}

/** MatMulNBits: unsigned codes `round(x / scale + zero)`. */
export function matMulNBitsRule(bits: BlockBits, symmetric: boolean, round: RoundScale): BlockRule {
  const [half, most] = [2 ** (bits - 1), 2 ** bits - 1]
  return {
    least: 0,
    most,
    parameters: (lo, hi, result) => {
      if (!symmetric) return asymmetricParameters(lo, hi, most, round, result)
      result.scale = round(symmetricScale(lo, hi, half))
      result.zero = half
    },
    factor: reciprocal,
    code: (value, factor, zero) => clampRounded(fround(fround(value * factor) + zero), most),
  }
}

/** DequantizeLinear with blocks: `round(x / scale) + zero`, signed codes where symmetric. */
export function dequantizeLinearRule(bits: BlockBits, symmetric: boolean, round: RoundScale): BlockRule {
  const [half, most] = [2 ** (bits - 1), 2 ** bits - 1]
  const [least, last] = symmetric ? [-half, half - 1] : [0, most]
  return {
    least,
    most: last,
    parameters: (lo, hi, result) => {
      if (!symmetric) return asymmetricParameters(lo, hi, most, round, result)
      result.scale = round(symmetricScale(lo, hi, half))
      result.zero = 0
    },
    factor: reciprocal,
    code: (value, factor, zero) => clamp(roundAway(fround(value * factor)) + zero, least, last),
  }
}

/** GatherBlockQuantized of int4 and uint4, as the tool's numpy code: quotients, halves to even. */
export function gatherRule(symmetric: boolean, round: RoundScale): BlockRule {
  const [least, most] = symmetric ? [-8, 7] : [0, 15]
  return {
    least,
    most,
    parameters: (lo, hi, result) => {
      if (symmetric) {
        result.scale = round(fround((Math.abs(hi) > Math.abs(lo) ? hi : lo) / -8))
        result.zero = 0
        return
      }
      const [low, high] = [Math.min(lo, 0), Math.max(hi, 0)]
      result.scale = round(fround(fround(high - low) / 15))
      result.zero = result.scale === 0 ? 8 : clamp(roundEven(fround(-low / result.scale)), 0, 15)
    },
    factor: (scale) => scale,
    code: (value, scale, zero) => {
      if (scale === 0) return symmetric ? 0 : 8
      return clamp(roundEven(fround(fround(value / scale) + zero)), least, most)
    },
  }
}

/** Blocks of numbers: `rows` along the quantized axis, one block per column. Strides are in elements. */
export interface BlockRegion {
  readonly start: number
  readonly rows: number
  readonly columns: number
  readonly rowStride: number
  readonly columnStride: number
}

/** Where results of a region are stored: codes by two strides, scales and zero points by one. */
export interface BlockTarget {
  readonly codes: Uint8Array
  readonly codeStart: number
  readonly codeRowStride: number
  readonly codeColumnStride: number
  readonly scales: Float32Array
  readonly zeros: Uint8Array
  readonly scaleStart: number
  readonly scaleStride: number
}

/** Columns that are quantized at a time, so that their values stay in the first cache. */
const STRIP = 64
const LOW = new Float32Array(STRIP)
const HIGH = new Float32Array(STRIP)
const FACTORS = new Float32Array(STRIP)
const ZEROS = new Float32Array(STRIP)
const PARAMETERS: BlockParameters = { scale: 0, zero: 0 }

/** Quantizes one block per column. Codes are stored one per byte. */
export function quantizeBlocks(
  numbers: Float32Array,
  region: BlockRegion,
  rule: BlockRule,
  target: BlockTarget,
): void {
  for (let first = 0; first < region.columns; first += STRIP) {
    const count = Math.min(STRIP, region.columns - first)
    const start = region.start + first * region.columnStride
    findExtremes(numbers, start, count, region)
    for (let column = 0; column < count; column++) {
      rule.parameters(LOW[column]!, HIGH[column]!, PARAMETERS)
      const place = target.scaleStart + (first + column) * target.scaleStride
      target.scales[place] = PARAMETERS.scale
      target.zeros[place] = PARAMETERS.zero
      FACTORS[column] = rule.factor(PARAMETERS.scale)
      ZEROS[column] = PARAMETERS.zero
    }
    storeCodes(
      numbers,
      start,
      count,
      region,
      rule,
      target,
      target.codeStart + first * target.codeColumnStride,
    )
  }
}

function findExtremes(numbers: Float32Array, start: number, count: number, region: BlockRegion): void {
  const { rows, rowStride, columnStride } = region
  for (let column = 0; column < count; column++)
    LOW[column] = HIGH[column] = numbers[start + column * columnStride]!
  for (let row = 1; row < rows; row++) {
    let at = start + row * rowStride
    for (let column = 0; column < count; column++, at += columnStride) {
      const value = numbers[at]!
      if (value < LOW[column]!) LOW[column] = value
      if (value > HIGH[column]!) HIGH[column] = value
    }
  }
}

function storeCodes(
  numbers: Float32Array,
  start: number,
  count: number,
  { rows, rowStride, columnStride }: BlockRegion,
  { code }: BlockRule,
  { codes, codeRowStride, codeColumnStride }: BlockTarget,
  codeStart: number,
): void {
  for (let row = 0; row < rows; row++) {
    let from = start + row * rowStride
    let to = codeStart + row * codeRowStride
    for (let column = 0; column < count; column++) {
      codes[to] = code(numbers[from]!, FACTORS[column]!, ZEROS[column]!)
      from += columnStride
      to += codeColumnStride
    }
  }
}

/** Packs codes of `bits` bits, the first in the lowest bits; what is beyond the last code is `fill`. */
export function packCodes(codes: Uint8Array, bits: BlockBits, fill = 0): Uint8Array {
  if (bits === 8) return codes
  const perByte = 8 / bits
  const mask = 2 ** bits - 1
  const packed = new Uint8Array(Math.ceil(codes.length / perByte))
  const whole = Math.floor(codes.length / perByte)
  if (bits === 4) {
    for (let at = 0, from = 0; at < whole; at++, from += 2) {
      packed[at] = (codes[from]! & 15) | (codes[from + 1]! << 4)
    }
  } else {
    for (let at = 0, from = 0; at < whole; at++, from += 4) {
      packed[at] =
        (codes[from]! & 3) |
        ((codes[from + 1]! & 3) << 2) |
        ((codes[from + 2]! & 3) << 4) |
        (codes[from + 3]! << 6)
    }
  }
  for (let slot = 0, from = whole * perByte; whole < packed.length && slot < perByte; slot++, from++) {
    packed[whole]! |= ((from < codes.length ? codes[from]! : fill) & mask) << (slot * bits)
  }
  return packed
}
