/** Codes of bitsandbytes: normal floats (NF4) and 4-bit floats (FP4), relative to the greatest magnitude of a block. */
import type { RoundScale } from './block_rules.js'

export type Bnb4Kind = 'fp4' | 'nf4'

/** `quant_type` of MatMulBnb4. */
export const BNB4_TYPE: Readonly<Record<Bnb4Kind, number>> = { fp4: 0, nf4: 1 }

const NF4_THRESHOLDS = Float32Array.of(
  -0.8480964004993439,
  -0.6106329262256622,
  -0.4599952697753906,
  -0.33967943489551544,
  -0.23460740596055984,
  -0.13791173323988914,
  -0.045525018125772476,
  0.03979014977812767,
  0.1202552504837513,
  0.2035212516784668,
  0.2920137718319893,
  0.3893125355243683,
  0.5016634166240692,
  0.6427869200706482,
  0.8614784181118011,
)

const FP4_THRESHOLDS = Float32Array.of(
  0.00260417,
  0.0859375,
  0.20833333,
  0.29166667,
  0.4166667,
  0.583333,
  0.8333333,
)
const FP4_CODES = [0, 1, 6, 7, 4, 5, 2, 3] as const
const FP4_SIGN = 8

/** Number of thresholds below a value. */
function above(thresholds: Float32Array, value: number): number {
  let [low, high] = [0, thresholds.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (value > thresholds[middle]!) low = middle + 1
    else high = middle
  }
  return low
}

function codeOf(kind: Bnb4Kind, value: number): number {
  if (kind === 'nf4') return above(NF4_THRESHOLDS, value)
  return FP4_CODES[above(FP4_THRESHOLDS, Math.abs(value))]! + (value < 0 ? FP4_SIGN : 0)
}

/** Codes two per byte, and the greatest magnitude of each block. An odd last code is paired with that of 0. */
export function bnb4Codes(
  numbers: Float32Array,
  kind: Bnb4Kind,
  blockSize: number,
  round: RoundScale,
): { readonly codes: Uint8Array; readonly scales: Float32Array } {
  const scales = new Float32Array(Math.ceil(numbers.length / blockSize))
  const codes = new Uint8Array(Math.ceil(numbers.length / 2))
  for (let block = 0; block < scales.length; block++) {
    const start = block * blockSize
    const end = Math.min(start + blockSize, numbers.length)
    let greatest = 0
    for (let at = start; at < end; at++) greatest = Math.max(greatest, Math.abs(numbers[at]!))
    scales[block] = round(greatest)
    const factor = greatest === 0 ? 0 : Math.fround(1 / greatest)
    for (let at = start; at < end; at++) {
      codes[at >> 1]! |= codeOf(kind, Math.fround(numbers[at]! * factor)) << (at % 2 === 0 ? 4 : 0)
    }
  }
  if (numbers.length % 2 === 1) codes[codes.length - 1]! |= codeOf(kind, 0)
  return { codes, scales }
}
