/** Runs a model before and after a change in onnxruntime-node, on seeded inputs, with and without its graph optimizations. */

import { serialize } from '../../../lib/index.js'
import type { OnnxModel } from '../../../lib/onnx.js'
import { randomNumbers } from '../../attacks/random_numbers.js'
import { runtime } from './onnxruntime.js'

/** Inputs by name: typed arrays with their shape. */
export type Feeds = Readonly<
  Record<
    string,
    {
      readonly data: Float32Array | BigInt64Array | Int32Array | Uint8Array
      readonly shape: readonly number[]
    }
  >
>

const TYPE_NAMES = new Map<unknown, string>([
  [Float32Array, 'float32'],
  [BigInt64Array, 'int64'],
  [Int32Array, 'int32'],
  [Uint8Array, 'bool'],
])

/** Numbers of a normal distribution, nearly: sums of four numbers between -1 and 1. */
export function randomFloats(shape: readonly number[], seed = 1): Float32Array {
  const random = randomNumbers(seed * 7919 + 1)
  const next = (): number => random(2 ** 24) / 2 ** 24
  const size = shape.reduce((product, dim) => product * dim, 1)
  return Float32Array.from({ length: size }, () => next() + next() + next() + next() - 2)
}

export type Outputs = Readonly<
  Record<
    string,
    { readonly type: string; readonly dims: readonly number[]; readonly data: ArrayLike<number> }
  >
>

/** Inputs as tensors of the runtime. */
export function tensorsOf(feeds: Feeds): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(feeds).map(([name, { data, shape }]) => [
      name,
      new runtime!.Tensor(TYPE_NAMES.get(data.constructor)!, data, shape),
    ]),
  )
}

export async function outputsOf(
  model: OnnxModel | Uint8Array,
  feeds: Feeds,
  graphOptimizationLevel: 'disabled' | 'all' = 'disabled',
): Promise<Outputs> {
  const bytes = model instanceof Uint8Array ? model : await serialize(model)
  const options = { graphOptimizationLevel, logSeverityLevel: 4, intraOpNumThreads: 1 }
  const session = await runtime!.InferenceSession.create(bytes, options)
  return (await session.run(tensorsOf(feeds))) as unknown as Outputs
}

/**
 * The greatest difference of any output, at the levels of optimization of the changed model, relative to the greatest magnitude of that output; 0 where both are equal. Infinity
 * where an output has another type or shape, or NaN in another place.
 */
export async function lossOf(
  before: OnnxModel | Uint8Array,
  after: OnnxModel | Uint8Array,
  feeds: Feeds,
  levels: readonly ('disabled' | 'all')[] = ['disabled', 'all'],
): Promise<number> {
  const wanted = await outputsOf(before, feeds)
  const losses: number[] = []
  for (const level of levels) losses.push(lossBetween(wanted, await outputsOf(after, feeds, level)))
  return Math.max(...losses)
}

export function lossBetween(wanted: Outputs, found: Outputs): number {
  let loss = 0
  for (const [name, { type, dims, data }] of Object.entries(wanted)) {
    const other = found[name]
    if (!other || other.type !== type || `${other.dims}` !== `${dims}`) return Number.POSITIVE_INFINITY
    let [greatest, difference] = [0, 0]
    for (let at = 0; at < data.length; at++) {
      const [one, two] = [Number(data[at]), Number(other.data[at])]
      if (Object.is(one, two) || one === two)
        greatest = Math.max(greatest, Number.isFinite(one) ? Math.abs(one) : 0)
      else if (!Number.isFinite(one) || !Number.isFinite(two)) return Number.POSITIVE_INFINITY
      else {
        greatest = Math.max(greatest, Math.abs(one))
        difference = Math.max(difference, Math.abs(one - two))
      }
    }
    if (difference > 0) loss = Math.max(loss, difference / greatest)
  }
  return loss
}
