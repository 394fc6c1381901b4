/**
 * Two models with fixed batches of other sizes: both get the same samples, in as many runs as each needs, and the outputs of the runs
 * are joined along the dimension that is the batch.
 */
import { TileworkError } from '../../errors.js'
import type { ValueType } from '../../models/onnx/index.js'
import { concat } from '../../tensor/concat.js'
import { slice } from '../../tensor/slice.js'
import { stringTensor } from '../../tensor/string_list.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { RunTensor } from '../onnxruntime/run_model.js'
import type { End, InputPair } from './ends.js'

export interface Batches {
  readonly a: number
  readonly b: number
  /** Samples of each input: a multiple of both. */
  readonly samples: number
  /** Samples of which outputs are compared. */
  readonly compared: number
  /** Names of the inputs that have the batch; others are fed as they are in every run. */
  readonly inputs: ReadonlySet<string>
}

/** Most runs of a model: each loads it. */
const MAX_RUNS = 8
/** Most samples in all. */
const MAX_SAMPLES = 4096

/** @returns undefined unless all inputs whose first dimensions are other numbers have the same two of them */
export function batchesOf(
  pairs: readonly InputPair[],
  given: ReadonlyMap<string, AnyTensor>,
): Batches | undefined {
  const differing = pairs.flatMap((pair) => {
    const [a, b] = [firstOf(pair.a), firstOf(pair.b)]
    return pair.inner || a === undefined || b === undefined || a === b
      ? []
      : [{ ...pair, sizes: [a, b] as const }]
  })
  const [first] = differing
  if (!first || pairs.some(({ inner }) => inner)) return undefined
  const [a, b] = first.sizes
  if (a < 1 || b < 1 || differing.some(({ sizes }) => sizes[0] !== a || sizes[1] !== b)) return undefined
  const least = (a / greatestDivisor(a, b)) * b
  if (least > MAX_SAMPLES) return undefined
  const names = differing.flatMap((pair) => [pair.a!.name, pair.b!.name])
  const samples = samplesOf(names, given, least, [a, b])
  return { a, b, samples, compared: Math.min(samples, MAX_RUNS * a, MAX_RUNS * b), inputs: new Set(names) }
}

/** Those of the caller's values, or as many as both models need. */
function samplesOf(
  names: readonly string[],
  given: ReadonlyMap<string, AnyTensor>,
  least: number,
  [a, b]: readonly [number, number],
): number {
  const counts = names.flatMap((name) => given.get(name)?.shape[0] ?? [])
  const wrong = counts.find((count) => count === 0 || count % least !== 0 || count !== counts[0])
  if (wrong === undefined) return counts[0] ?? least
  throw new TileworkError(
    'ERR_ARGUMENT',
    `inputs has ${wrong} samples of ${valueText(names[0])}; batches of ${a} and ${b} need a multiple of ${least}, the same for all inputs.`,
  )
}

/** The inputs with the number of samples as first dimension. */
export function withSamples(pairs: readonly InputPair[], { samples, inputs }: Batches): readonly InputPair[] {
  const sized = (end: End | undefined): End | undefined => {
    if (!end || !inputs.has(end.name) || end.type.kind !== 'tensor' || !end.type.shape) return end
    return { ...end, type: { ...end.type, shape: end.type.shape.with(0, samples) } }
  }
  return pairs.map((pair) => {
    const [a, b] = [sized(pair.a), sized(pair.b)]
    return { ...pair, ...(a && { a }), ...(b && { b }) }
  })
}

/** The values of each run of a model with a batch of this size. */
export async function partsOf(
  values: ReadonlyMap<string, RunTensor>,
  size: number,
  { compared, inputs }: Batches,
): Promise<readonly ReadonlyMap<string, RunTensor>[]> {
  const parts: ReadonlyMap<string, RunTensor>[] = []
  for (let start = 0; start < compared; start += size) {
    const part = new Map<string, RunTensor>()
    for (const [name, value] of values)
      part.set(name, inputs.has(name) ? await rowsOf(value, 0, start, start + size) : value)
    parts.push(part)
  }
  return parts
}

/**
 * The axis of an output that is the batch: the only one whose dimensions differ, as the batches do.
 *
 * @param a - the shape in one run of the first model
 * @returns undefined where there is none
 */
export function batchAxis(a: readonly number[], b: readonly number[], batches: Batches): number | undefined {
  if (a.length !== b.length) return undefined
  const axes = a.flatMap((dim, axis) => (dim === b[axis] ? [] : [axis]))
  const [axis] = axes
  const isBatch = axes.length === 1 && a[axis!]! * batches.b === b[axis!]! * batches.a
  return isBatch && a[axis!]! % batches.a === 0 ? axis : undefined
}

/** The outputs of all runs, of the samples that are compared. Strings are joined along the first axis alone: undefined for another. */
export async function joinedRuns(
  runs: readonly RunTensor[],
  axis: number,
  count: number,
): Promise<RunTensor | undefined> {
  const dense = runs.filter((run) => run.kind !== 'string')
  if (dense.length === runs.length) return rowsOf(concat(dense, { axis }), axis, 0, count)
  if (axis !== 0) return undefined
  const lists = await Promise.all(runs.map((run) => (run.kind === 'string' ? run.strings() : [])))
  const shape = runs[0]!.shape.with(
    0,
    runs.reduce((sum, run) => sum + run.shape[0]!, 0),
  )
  return rowsOf(stringTensor(lists.flat(), { shape }), 0, 0, count)
}

/** Strings are cut along the first axis. */
async function rowsOf(value: RunTensor, axis: number, start: number, end: number): Promise<RunTensor> {
  if (value.kind !== 'string') {
    const ranges = value.shape.map((_, at) => (at === axis ? { start, end } : {}))
    return slice(value, ranges)
  }
  const inner = value.shape.slice(1).reduce((product, dim) => product * dim, 1)
  const kept = (await value.strings()).slice(start * inner, end * inner)
  return stringTensor(kept, { shape: value.shape.with(0, end - start) })
}

function firstOf(end: End | undefined): number | undefined {
  const type: ValueType | undefined = end?.type
  const first = type?.kind === 'tensor' ? type.shape?.[0] : undefined
  return typeof first === 'number' || typeof first === 'bigint' ? Number(first) : undefined
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other)
}
