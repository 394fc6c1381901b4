/** Numbers for the inputs of models, from a seed: any run can be repeated. */
import { DTYPES, type Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import type { IntegerInput } from '../../models/onnx/index.js'
import { cast } from '../../tensor/cast.js'
import { tensor } from '../../tensor/from_values.js'
import { valueText } from '../../value_text.js'
import type { RunTensor } from '../onnxruntime/run_model.js'

export interface ValueRequest {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  /** What integers mean. */
  readonly meaning: IntegerInput | undefined
  readonly seed: number
}

/** Steps of floats in [-1, 1): float16 holds each of them exactly. */
const FLOAT_STEPS = 2 ** 10

/** Integers of at least 16 bits of which nothing is known are 1 to this: as sizes and counts they give small results. */
const MAX_COUNT = 8

/** Share of ones in masks. */
const MASK_SHARE = 0.75

const WORDS = ['', 'a', 'the', 'Word', 'a b', '1', '2.5', 'ß', '日本']

/**
 * A tensor of random numbers: floats in [-1, 1), indices inside the dimension that they index, masks of 0 and 1 that begin with 1,
 * all numbers of 8 bits and less, small integers otherwise.
 *
 * @throws TileworkError ERR_UNSUPPORTED for complex numbers
 */
export function inputValue({ name, dtype, shape, meaning, seed }: ValueRequest): RunTensor {
  const random = generator(seed, name)
  const size = shape.reduce((product, dim) => product * dim, 1)
  if (dtype === 'string') {
    const strings = Array.from({ length: size }, () => WORDS[Math.floor(random() * WORDS.length)]!)
    return tensor(strings, { dtype, shape, name })
  }
  const { kind, bits } = DTYPES[dtype]
  if (kind === 'complex') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `Input ${valueText(name)} is ${dtype}; onnxruntime takes no complex numbers.`,
    )
  }
  const isInteger = kind === 'int' || kind === 'uint'
  if (!isInteger && kind !== 'bool') {
    const numbers = Float32Array.from(
      { length: size },
      () => Math.floor((2 * random() - 1) * FLOAT_STEPS) / FLOAT_STEPS,
    )
    return cast(tensor(numbers, { shape, name }), dtype)
  }
  const next =
    kind === 'bool'
      ? () => Math.round(random())
      : integers(random, { bits, isSigned: kind === 'int', meaning, row: shape.at(-1) ?? 1 })
  return cast(
    tensor(
      Int32Array.from({ length: size }, (_, at) => next(at)),
      { shape, name },
    ),
    dtype,
  )
}

interface IntegerRequest {
  readonly bits: number
  readonly isSigned: boolean
  readonly meaning: IntegerInput | undefined
  /** Elements of the last axis. */
  readonly row: number
}

function integers(
  random: () => number,
  { bits, isSigned, meaning, row }: IntegerRequest,
): (at: number) => number {
  // A mask of zeros alone would make NaN of scores.
  if (meaning?.isFlag) return (at) => Number(at % row === 0 || random() < MASK_SHARE)
  const below = meaning?.below
  if (below !== undefined) {
    const end = Math.max(1, Math.min(below, 2 ** (isSigned ? Math.min(bits, 32) - 1 : Math.min(bits, 31))))
    return () => Math.floor(random() * end)
  }
  if (bits > 8) return () => 1 + Math.floor(random() * MAX_COUNT)
  const least = isSigned ? -(2 ** (bits - 1)) : 0
  return () => least + Math.floor(random() * 2 ** bits)
}

/**
 * Numbers in [0, 1): xorshift of 32 bits (Marsaglia 2003). The name of the input is part of the seed, so that the numbers of an
 * input do not depend on the other inputs.
 */
function generator(seed: number, name: string): () => number {
  let state = seed ^ 0x9e3779b9
  for (const byte of new TextEncoder().encode(name)) state = Math.imul(state ^ byte, 0x01000193)
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  // A state of 0 would stay 0.
  if (state === 0) state = 1
  // The first numbers of seeds that differ in few bits are similar.
  for (let skipped = 0; skipped < 8; skipped++) next()
  return next
}
