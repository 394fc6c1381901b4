/** Measures the ranges of a model's values with the caller's onnxruntime, which runs a copy of the model with additional outputs. */
import { checkFlag, checkOneOf, checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import type { OnnxModel } from '../../models/onnx/index.js'
import {
  type QuantizableOptions,
  quantizableValues,
  type ValueRanges,
} from '../../models/onnx_compress/index.js'
import { tensor } from '../../tensor/from_values.js'
import { valueText } from '../../value_text.js'
import {
  checkRuntime,
  exposeValue,
  type Feeds,
  type OnnxRuntime,
  outputsOf,
  type Results,
  type RuntimeSession,
  withSession,
} from '../onnxruntime/session.js'
import { type Collector, EntropyCollector, ExtremesCollector, PercentileCollector } from './collectors.js'

export interface CalibrateOptions extends QuantizableOptions {
  /** The module `onnxruntime-node`. */
  readonly runtime: OnnxRuntime
  /**
   * `minmax` (default): the extremes of all batches; `percentile`: without outliers; `entropy`: the window that loses the least
   * information.
   */
  readonly method?: 'minmax' | 'percentile' | 'entropy'
  /** Share of the numbers that `percentile` keeps, in percent. Default 99.999. */
  readonly percentile?: number
  /** For `minmax`: use a moving average of the batches' extremes. Default false. */
  readonly movingAverage?: boolean
  /** Make ranges symmetric around 0. Default false. */
  readonly symmetric?: boolean
  readonly signal?: AbortSignal
}

/** Values that are fetched per run, so that memory does not grow with the model. */
const FETCHED_VALUES = 16

const NAMES = [
  'runtime',
  'method',
  'percentile',
  'movingAverage',
  'symmetric',
  'ops',
  'exclude',
  'signal',
] as const

/**
 * Measures the ranges that `quantizeStatic` needs: runs the model on every batch of `feeds`, without graph optimization.
 *
 * @throws TileworkError ERR_ARGUMENT, also for feeds without a batch; ERR_UNSUPPORTED for onnxruntime-node before 1.24; ERR_ABORTED; and
 * errors of the runtime
 */
export async function calibrate(
  model: OnnxModel,
  feeds: AsyncIterable<Feeds> | Iterable<Feeds>,
  options: CalibrateOptions,
): Promise<ValueRanges> {
  checkOptions(options, 'calibrate', NAMES)
  const given = readInput('The options of calibrate', () => ({ ...options }))
  const settings = readInput('The options of calibrate', () => checkSettings(given))
  const { ops, exclude, signal, runtime, symmetric = false } = given
  if (!readInput('The feeds of calibrate', () => isIterable(feeds)))
    refuse('feeds', 'must be an iterable of batches')
  const names = quantizableValues(model, { ...(ops && { ops }), ...(exclude && { exclude }) })
  const copy = model.copy()
  const outputs = settings.isHistogram ? addValues(copy, names) : addExtremes(copy, names)
  const collectors = new Map(names.map((name) => [name, settings.collector()]))
  await withSession(copy, { runtime, call: 'calibrate', signal }, (session) =>
    runAll(session, feeds, outputs, collectors, signal),
  )
  return rangesOf(collectors, symmetric)
}

function isIterable(feeds: unknown): boolean {
  // A typed array is iterable, but its numbers are not batches, and detached memory cannot be iterated.
  if (ArrayBuffer.isView(feeds)) return false
  const given = feeds as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined
  return [given?.[Symbol.asyncIterator], given?.[Symbol.iterator]].some((each) => typeof each === 'function')
}

interface Settings {
  readonly isHistogram: boolean
  collector(): Collector
}

function checkSettings(options: CalibrateOptions): Settings {
  const {
    runtime,
    method = 'minmax',
    percentile = 99.999,
    movingAverage = false,
    symmetric = false,
  } = options
  checkRuntime(runtime, 'calibrate')
  checkOneOf(method, 'method', ['minmax', 'percentile', 'entropy'])
  if (!(typeof percentile === 'number' && percentile > 0 && percentile <= 100))
    refuse('percentile', 'must be above 0 and at most 100')
  checkFlag(movingAverage, 'movingAverage')
  checkFlag(symmetric, 'symmetric')
  return {
    isHistogram: method !== 'minmax',
    collector: () =>
      method === 'minmax'
        ? new ExtremesCollector(movingAverage)
        : method === 'percentile'
          ? new PercentileCollector(percentile)
          : new EntropyCollector(),
  }
}

function refuse(option: string, must: string): never {
  throw new TileworkError('ERR_ARGUMENT', `${option} of calibrate ${must}.`)
}

/** For each value, the names of the outputs that contain its numbers. */
type Outputs = ReadonlyMap<string, readonly string[]>

/** Makes the values outputs, except for existing outputs and for inputs, whose numbers are in the feeds. */
function addValues({ graph }: OnnxModel, names: readonly string[]): Outputs {
  return new Map(
    names.map((name) => [
      name,
      [exposeValue(graph, name, { kind: 'tensor', dtype: 'float32' }, 'calibrated')],
    ]),
  )
}

/**
 * Adds outputs with the minimum and maximum of each value. `keepdims` is 1 because the reduction fails on empty values
 * otherwise.
 */
function addExtremes({ graph }: OnnxModel, names: readonly string[]): Outputs {
  const flat = graph.uniqueName('calibrated_shape')
  graph.setInitializer(flat, tensor([-1], { dtype: 'int64' }))
  const addOne = (name: string, opType: 'ReduceMin' | 'ReduceMax'): string => {
    const reduced = graph.uniqueName(`${name}_${opType}`)
    const output = graph.uniqueName(`${name}_${opType}_flat`)
    const attributes = { keepdims: { type: 'INT', value: 1 } } as const
    graph.addNode({ opType, inputs: [name], outputs: [reduced], attributes })
    graph.addNode({ opType: 'Reshape', inputs: [reduced, flat], outputs: [output] })
    graph.addOutput(output, { kind: 'tensor', dtype: 'float32' })
    return output
  }
  return new Map(names.map((name) => [name, [addOne(name, 'ReduceMin'), addOne(name, 'ReduceMax')]]))
}

async function runAll(
  session: RuntimeSession,
  feeds: AsyncIterable<Feeds> | Iterable<Feeds>,
  outputs: Outputs,
  collectors: ReadonlyMap<string, Collector>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const entries = [...outputs]
  let batches = 0
  for await (const batch of feeds) {
    batches++
    for (let first = 0; first < entries.length; first += FETCHED_VALUES) {
      throwIfAborted(signal)
      const group = entries.slice(first, first + FETCHED_VALUES)
      const results = await outputsOf(
        session,
        batch,
        group.flatMap(([, names]) => names),
      )
      for (const [name, given] of group) collectors.get(name)!.add(numbersOf(name, given, results))
    }
  }
  if (batches === 0) throw new TileworkError('ERR_ARGUMENT', 'the feeds of calibrate contain no batch.')
}

function numbersOf(name: string, outputs: readonly string[], results: Results): Float32Array {
  const parts = outputs.map((output) => results[output]?.data)
  if (parts.length === 1 && parts[0] instanceof Float32Array) return parts[0]
  if (parts.every((part) => part instanceof Float32Array)) {
    const numbers = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      numbers.set(part, at)
      at += part.length
    }
    return numbers
  }
  throw new TileworkError('ERR_ARGUMENT', `the runtime returned no float32 tensor for ${valueText(name)}.`)
}

function rangesOf(collectors: ReadonlyMap<string, Collector>, isSymmetric: boolean): ValueRanges {
  const ranges = [...collectors].map(([name, collector]) => {
    const { min, max } = collector.range() ?? { min: 0, max: 0 }
    const limit = Math.max(-min, max)
    return [name, isSymmetric ? { min: -limit, max: limit } : { min, max }] as const
  })
  return Object.fromEntries(ranges)
}
