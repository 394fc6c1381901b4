/**
 * Runs two models on the same inputs in the caller's onnxruntime and compares their outputs: the proof that an edited or compressed
 * model computes what the original does.
 *
 * Inputs that the caller does not give are random numbers from a seed that both models can take: integers stay inside the dimensions
 * that they index, and numbers are exact in the types of both.
 */
import { checkFlag, checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import type { Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import {
  inferTypes,
  type OnnxModel,
  randomValues,
  type ValueType,
  withBodiesOf,
} from '../../models/onnx/index.js'
import type { OnnxRuntimeStrings, TensorLike } from '../../tensor/adapters.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import type { ValueDifferences } from '../../tensor/value_differences.js'
import { valueText } from '../../value_text.js'
import { type RunTensor, RuntimeFailure, runModel } from '../onnxruntime/run_model.js'
import { checkTensorRuntime, type TensorRuntime } from '../onnxruntime/session.js'
import type { OpenOptions } from '../open.js'
import { type Batches, batchAxis, batchesOf, joinedRuns, partsOf, withSamples } from './batches.js'
import { type ComparedModel, openModel, type Side } from './compared_model.js'
import { type End, type Ends, matchEnds, type OutputPair } from './ends.js'
import { type Feeds, inDtypeOf, makeFeeds } from './feeds.js'
import { givenInputs } from './given_inputs.js'
import { DEFAULT_SIZES } from './input_sizes.js'
import { compareOutput } from './output_values.js'

export type { ComparedModel } from './compared_model.js'

export interface CompareOutputsOptions {
  /** The module `onnxruntime-node`. */
  readonly runtime: TensorRuntime
  /**
   * Values of inputs of `a` or `b`: `{ x: tensor }` as for `session.run`, tensors of onnxruntime included, or a list of tensors with
   * these names. Those of the others are generated.
   */
  readonly inputs?:
    | Iterable<AnyTensor>
    | Readonly<Record<string, AnyTensor | TensorLike | OnnxRuntimeStrings>>
  /**
   * Sizes of symbolic dimensions by name. Others are 2 for the first axis of an input and 8 for the rest; where `a` does not run with
   * them, 1 and 8, 32, 64 or 224.
   */
  readonly dims?: Readonly<Record<string, number>>
  /** Seed of generated values: a whole number below 2^32. Default 0. */
  readonly seed?: number
  /** Largest error of an output, see `ComparedOutput.error`. Default 0. */
  readonly tolerance?: number
  /** Inputs, outputs and values of `a` that have another name in `b`. */
  readonly renamed?: Readonly<Record<string, string>>
  /** `b` is a part of `a`: its inputs and outputs may be values inside `a`, and other outputs of `a` are not missed. Default false. */
  readonly isPart?: boolean
  /** How paths and other inputs are opened. */
  readonly open?: OpenOptions
  readonly signal?: AbortSignal
}

/** Element type and shape of a tensor. */
export interface ComparedType {
  readonly dtype: Dtype
  readonly shape: readonly number[]
}

/** How an output of `b` differs from that of `a`. */
export interface ComparedOutput {
  /** In `b`; of an output that `b` lacks, in `a`. */
  readonly name: string
  /** The output or value of `a` with which it was compared. */
  readonly original?: string
  /** `beyond` the tolerance also where `b` lacks the output, does not run, or gives another shape. */
  readonly status: 'within' | 'beyond' | 'not compared'
  /** Why it was not compared, or why it is beyond every tolerance. */
  readonly reason?: string
  readonly a?: ComparedType
  readonly b?: ComparedType
  /**
   * The largest `|b - a|` relative to the largest `|a|` of the output, or to 0.001 where that is smaller. Magnitudes from 2^100 on do
   * not count as largest: they are masks. Infinite for NaN or an infinity beside another number, and for different strings.
   */
  readonly error?: number
  readonly values?: ValueDifferences
}

/** How the outputs of two models differ. */
export interface OutputComparison {
  /** In the order of `b`. */
  readonly outputs: readonly ComparedOutput[]
  /** True where outputs were compared, and none is beyond the tolerance. */
  readonly isWithin: boolean
  readonly tolerance: number
  readonly seed: number
  /** The inputs of `a`, and of `b` where `a` has none, on which both ran. */
  readonly inputs: readonly (ComparedType & { readonly name: string; readonly isGenerated: boolean })[]
}

const OPTION_NAMES = [
  'runtime',
  'inputs',
  'dims',
  'seed',
  'tolerance',
  'renamed',
  'isPart',
  'open',
  'signal',
] as const

/**
 * Compares the outputs of two ONNX models on the same inputs, `a` being the reference. Each runs once, without graph optimization, one
 * after the other. A model that is a path is run as it is; of others a copy in the temporary folder is.
 *
 * Models of other fixed batches get the same samples, in as many runs as each needs; of large batches the first samples are compared.
 *
 * Outputs belong together by name, or else by position. Outputs that depend on operators that draw random numbers, and those that are no
 * tensors, are `not compared`.
 *
 * @param a - anything that `open` takes, an open file, or a model with all its edits
 * @throws TileworkError as `open`; ERR_ARGUMENT; ERR_UNSUPPORTED where no inputs can be made for both, and where `a` does not run;
 * ERR_NO_DATA for weights without values; ERR_LIMIT for generated inputs of more than 2^28 elements; ERR_ABORTED
 */
export async function compareOutputs(
  a: ComparedModel,
  b: ComparedModel,
  options: CompareOutputsOptions,
): Promise<OutputComparison> {
  checkOptions(options, 'compareOutputs', OPTION_NAMES)
  const settings = readInput('The options of compareOutputs', () => checkSettings({ ...options }))
  throwIfAborted(settings.signal)
  const first = await openModel(a, 'a', settings.open)
  try {
    const second = await openModel(b, 'b', settings.open)
    try {
      return await compare(settings.isPart ? withInnerEnds(first, second, settings) : first, second, settings)
    } finally {
      second.close()
    }
  } finally {
    first.close()
  }
}

/** `a` with the values in its main graph that are inputs or outputs of `b`, and inside a branch or a body of `a`. */
function withInnerEnds(a: Side, { model: { graph } }: Side, { renamed }: Settings): Side {
  const back = new Map([...renamed].map(([from, to]) => [to, from]))
  const names = [...graph.inputNames, ...graph.outputNames].map((name) => back.get(name) ?? name)
  const model = withBodiesOf(a.model, names)
  return model === a.model ? a : { ...a, model, path: undefined }
}

interface Settings {
  readonly runtime: TensorRuntime
  readonly given: ReadonlyMap<string, AnyTensor>
  readonly dims: ReadonlyMap<string, number>
  readonly seed: number
  readonly tolerance: number
  readonly renamed: ReadonlyMap<string, string>
  readonly isPart: boolean
  readonly open: OpenOptions | undefined
  readonly signal: AbortSignal | undefined
}

function checkSettings(options: CompareOutputsOptions): Settings {
  const { runtime, inputs = [], dims = {}, seed = 0, tolerance = 0, renamed = {}, isPart = false } = options
  checkTensorRuntime(runtime, 'compareOutputs')
  if (!(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)) {
    refuse(`seed is ${valueText(seed)}; it must be a whole number from 0 to 2^32 - 1.`)
  }
  if (!(Number.isFinite(tolerance) && tolerance >= 0)) {
    refuse(`tolerance is ${valueText(tolerance)}; it must be a number from 0.`)
  }
  const sizes = Object.entries(dims)
  for (const [name, size] of sizes) {
    if (!(Number.isSafeInteger(size) && size >= 0)) {
      refuse(`dims has ${valueText(size)} for ${valueText(name)}; a size is a whole number from 0.`)
    }
  }
  const names = Object.entries(renamed)
  if (!names.every(([, name]) => typeof name === 'string')) refuse('renamed must have names as values.')
  return {
    runtime,
    given: givenInputs(inputs),
    dims: new Map(sizes),
    seed,
    tolerance,
    renamed: new Map(names),
    isPart: checkFlag(isPart, 'isPart'),
    open: options.open,
    signal: options.signal,
  }
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

async function compare(a: Side, b: Side, settings: Settings): Promise<OutputComparison> {
  const { given, tolerance, seed } = settings
  const matched = matchEnds(a.model, b.model, { ...settings, given: new Set(given.keys()) })
  const batches = batchesOf(matched.inputs, given)
  const ends = batches ? { ...matched, inputs: withSamples(matched.inputs, batches) } : matched
  const omitted = omittedOutputs(a, b, ends)
  const wanted = ends.outputs.filter((pair) => pair.a && pair.b && !omitted.has(pair))
  let inputs: OutputComparison['inputs'] = []
  const outputs = new Map<OutputPair, Omit<ComparedOutput, 'name' | 'original'>>(
    Array.from(omitted, ([pair, reason]) => [pair, { status: pair.b ? 'not compared' : 'beyond', reason }]),
  )
  if (wanted.length > 0) {
    const names = wanted.map((pair) => pair.a!.name)
    for (const { inner } of ends.inputs) if (inner) names.push(inner.name)
    const { feeds, results } = await runFirst(a, ends, names, batches, settings)
    inputs = feeds.inputs
    const others = await runSecond(b, ends, { feeds, results, batches }, wanted, settings)
    for (const pair of wanted) {
      const runs = {
        a: results.map((result) => result.get(pair.a!.name)!),
        b: typeof others === 'string' ? others : others.map((result) => result.get(pair.b!.name)!),
      }
      outputs.set(pair, await comparedRuns(runs, batches, settings))
    }
  }
  const compared = ends.outputs.map((pair) => ({ ...namesOf(pair), ...outputs.get(pair)! }))
  const isWithin = wanted.length > 0 && compared.every(({ status }) => status !== 'beyond')
  return { outputs: compared, isWithin, tolerance, seed, inputs }
}

function namesOf({ a, b }: OutputPair): { readonly name: string; readonly original?: string } {
  return { name: (b ?? a)!.name, ...(a && { original: a.name }) }
}

/** Outputs that are not compared, with the reason. */
function omittedOutputs(a: Side, b: Side, { outputs }: Ends): ReadonlyMap<OutputPair, string> {
  const [randomA, randomB] = [randomValues(a.model), randomValues(b.model)]
  const [kindInA, kindInB] = [kindsOf(a.model), kindsOf(b.model)]
  const omitted = new Map<OutputPair, string>()
  for (const pair of outputs) {
    const operator = randomA.get(pair.a?.name ?? '') ?? randomB.get(pair.b?.name ?? '')
    const kinds = [kindInA(pair.a), kindInB(pair.b)]
    const kind = kinds.find((each) => each !== 'tensor' && each !== 'none')
    if (!pair.b) omitted.set(pair, 'b has no such output')
    else if (!pair.a) omitted.set(pair, 'a has no such output')
    else if (operator !== undefined) omitted.set(pair, `it depends on random numbers of ${operator}`)
    else if (kind !== undefined)
      omitted.set(pair, `it is of kind ${kind}; onnxruntime-node returns tensors alone`)
  }
  return omitted
}

/** The kind of type of an output; `none` where neither a declaration nor inference, which runs once at most, says it. */
function kindsOf(model: OnnxModel): (end: End | undefined) => ValueType['kind'] {
  let inferred: ReturnType<typeof inferTypes> | undefined
  return (end) => {
    if (end?.type.kind !== 'none') return end?.type.kind ?? 'none'
    inferred ??= inferTypes(model)
    return inferred.get(end.name)?.kind ?? 'none'
  }
}

/** Outputs by name, of each run. */
type Results = readonly ReadonlyMap<string, RunTensor>[]

interface FirstRun {
  readonly feeds: Feeds
  readonly results: Results
}

/** Runs `a`, with other default sizes until it takes them. */
async function runFirst(
  a: Side,
  ends: Ends,
  names: readonly string[],
  batches: Batches | undefined,
  settings: Settings,
): Promise<FirstRun> {
  let failure: RuntimeFailure | undefined
  for (const defaults of DEFAULT_SIZES) {
    throwIfAborted(settings.signal)
    const feeds = makeFeeds(a.model, ends.inputs, { ...settings, defaults, batches })
    try {
      const parts = batches ? await partsOf(feeds.a, batches.a, batches) : [feeds.a]
      return { feeds, results: await run(a, parts, names, settings) }
    } catch (error) {
      if (!(error instanceof RuntimeFailure)) throw error
      failure ??= error
      if (!error.isOfRun || !feeds.usesDefaults) break
    }
  }
  const advice = failure!.isOfRun ? ' Give sizes by dims, or values by inputs.' : ''
  throw new TileworkError('ERR_UNSUPPORTED', `Model a: ${failure!.message}.${advice}`, { cause: failure })
}

/** @returns why `b` does not run, or its outputs */
async function runSecond(
  b: Side,
  { inputs }: Ends,
  { feeds, results, batches }: FirstRun & { readonly batches: Batches | undefined },
  wanted: readonly OutputPair[],
  settings: Settings,
): Promise<string | Results> {
  throwIfAborted(settings.signal)
  const values = new Map(feeds.b)
  for (const pair of inputs)
    if (pair.inner) values.set(pair.b!.name, inDtypeOf(pair.b!, results[0]!.get(pair.inner.name)!))
  try {
    return await run(
      b,
      batches ? await partsOf(values, batches.b, batches) : [values],
      wanted.map((pair) => pair.b!.name),
      settings,
    )
  } catch (error) {
    if (error instanceof RuntimeFailure) return `b gives no output, ${error.message}`
    throw error
  }
}

async function run(
  { model, path }: Side,
  parts: readonly ReadonlyMap<string, RunTensor>[],
  names: readonly string[],
  { runtime, signal }: Settings,
): Promise<Results> {
  const results: ReadonlyMap<string, RunTensor>[] = []
  for (const values of parts) {
    throwIfAborted(signal)
    results.push(await runModel(model, values, names, { runtime, signal, path, call: 'compareOutputs' }))
  }
  return results
}

/** Outputs of several runs are joined along the batch. */
async function comparedRuns(
  { a, b }: { readonly a: readonly RunTensor[]; readonly b: readonly RunTensor[] | string },
  batches: Batches | undefined,
  settings: Settings,
): Promise<Omit<ComparedOutput, 'name' | 'original'>> {
  const [first] = a as [RunTensor]
  if (!batches || typeof b === 'string')
    return comparedPair(first, typeof b === 'string' ? b : b[0]!, settings)
  const axis = batchAxis(first.shape, b[0]!.shape, batches)
  const count = axis === undefined ? 0 : (first.shape[axis]! / batches.a) * batches.compared
  const wholes =
    axis === undefined ? [] : [await joinedRuns(a, axis, count), await joinedRuns(b, axis, count)]
  const [whole, other] = wholes
  if (whole && other) return comparedPair(whole, other, settings)
  if (first.shape.join() !== b[0]!.shape.join()) return comparedPair(first, b[0]!, settings)
  return { status: 'not compared', reason: 'none of its dimensions is the batch, which differs' }
}

async function comparedPair(
  a: RunTensor,
  other: RunTensor | string,
  settings: Settings,
): Promise<Omit<ComparedOutput, 'name' | 'original'>> {
  const typeOf = ({ dtype, shape }: RunTensor): ComparedType => ({ dtype, shape })
  if (typeof other === 'string') return { status: 'beyond', reason: other, a: typeOf(a) }
  const types = { a: typeOf(a), b: typeOf(other) }
  const found = await compareOutput(a, other, settings)
  if (typeof found === 'string') return { status: 'beyond', reason: found, ...types }
  return { status: found.error <= settings.tolerance ? 'within' : 'beyond', ...types, ...found }
}
