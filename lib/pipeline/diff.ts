/**
 * Compares two files, models or lists of tensors: reports added, removed, renamed and changed tensors, the differences of their
 * values, and the edits of the graph.
 */
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import type { ModelFormat, ModelFormatEntry, TensorList, TensorSequence } from '../formats/format.js'
import { dequantized } from '../tensor/block_tensor.js'
import type { AnyTensor } from '../tensor/tensor.js'
import type { Tolerance } from '../tensor/value_differences.js'
import { valueText } from '../value_text.js'
import {
  compareTensors,
  type PairOptions,
  type TensorChange,
  type TensorDifference,
} from './diff/compare_tensors.js'
import { type GraphEdit, graphEdits } from './diff/graph_edits.js'
import type { TensorByName } from './diff/named_quantization.js'
import { type MatchedTensors, matchTensors } from './diff/tensor_pairs.js'
import { type Input, type OpenFile, type OpenOptions, open, openedFile } from './open.js'
import { ProgressReport, type SaveProgress } from './progress.js'
import { type FormatName, formatByName, formatOfModel } from './registry.js'
import { listTensors, type Saveable } from './save.js'
import { summarizeTensor, type TensorSummary } from './tensor_summary.js'

export interface DiffOptions {
  /** Values within the tolerance count as equal. Default: none. */
  readonly tolerance?: Tolerance
  /** Changes that are reported but do not count as differences. `graph` means all edits of the graph. */
  readonly ignore?: readonly (TensorChange | 'graph')[]
  /** How paths and other inputs are opened. */
  readonly open?: OpenOptions
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SaveProgress) => void
}

/** The result of `diff`. Except for infinite errors and 64-bit integers, every field survives JSON. */
export interface Difference {
  /** True where all differences are ignored or within the tolerance. */
  readonly isSame: boolean
  readonly a: { readonly format: FormatName | null; readonly tensors: number }
  readonly b: { readonly format: FormatName | null; readonly tensors: number }
  /** Number of unchanged tensors; their values are equal within the tolerance. */
  readonly same: number
  /** Number of unchanged tensors with equal bits. */
  readonly sameBits: number
  /** Tensors that differ, in the order of the first file; renamed ones after those that kept their name. */
  readonly changed: readonly TensorDifference[]
  readonly added: readonly TensorSummary[]
  readonly removed: readonly TensorSummary[]
  /** Edits of the graph; null unless both are models of one format. */
  readonly graph: readonly GraphEdit[] | null
}

/** A path or another input of `open`, or what can be saved. */
export type Diffable = Input | Saveable

/**
 * Compares `a`, the reference, with `b`. Tensors are paired by name, and renamed tensors by content. They are compared by their
 * logical values, across formats, dtypes and layouts. Memory is bounded whatever the size of the files; only sparse tensors take
 * the memory of their entries, and string tensors the memory of their strings.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_ABORTED, and what opening and reading throws
 */
export async function diff(a: Diffable, b: Diffable, options: DiffOptions = {}): Promise<Difference> {
  checkOptions(options, 'diff', ['tolerance', 'ignore', 'open', 'signal', 'onProgress'])
  const given = readInput('The options of diff', () => ({ ...options }))
  checkListener(given.onProgress, 'onProgress')
  checkIgnored(given.ignore ?? [])
  const tolerance = checkTolerance(given.tolerance ?? {})
  throwIfAborted(given.signal)
  const opened: OpenFile[] = []
  try {
    const sides: Side[] = []
    for (const content of [a, b]) {
      const side = await sideOf(content, given.open)
      if (side.opened) opened.push(side.opened)
      sides.push(side)
    }
    return await compareSides(sides[0]!, sides[1]!, { ...given, tolerance })
  } finally {
    for (const file of opened) file.close()
  }
}

/** The tensors and the model of one side. */
interface Side {
  readonly format: FormatName | null
  readonly tensors: TensorSequence<AnyTensor>
  readonly model?: object
  /** A file that `diff` opened itself. */
  readonly opened?: OpenFile
}

async function sideOf(content: Diffable, options: OpenOptions | undefined): Promise<Side> {
  const entry = formatOfModel(content)
  if (entry) {
    const format = (await entry.load()) as ModelFormat
    return {
      format: entry.name as FormatName,
      tensors: format.weightsOf(content as object),
      model: content as object,
    }
  }
  if (openedFile(content)) return sideOfFile(content as OpenFile)
  if (isTensors(content))
    return { format: null, tensors: listTensors(content as AnyTensor | Iterable<AnyTensor>, LISTED) }
  const opened = await open(content as Input, options)
  return { ...sideOfFile(opened), opened }
}

function sideOfFile(file: OpenFile): Side {
  const { format, tensors } = file
  const { modelProperty } = formatByName(format)
  const model =
    modelProperty === undefined ? undefined : (file[modelProperty as keyof OpenFile] as object | undefined)
  return { format, tensors, ...(model && { model }) }
}

const LISTED = { call: 'diff', done: 'compared' }

/** Whether `content` is a tensor or an iterable of tensors. Bytes are iterable too, but are an input of `open`. */
function isTensors(content: unknown): boolean {
  if (typeof content !== 'object' || content === null || ArrayBuffer.isView(content)) return false
  return readInput('The tensors', () => Symbol.iterator in content || 'kind' in content)
}

async function compareSides(
  a: Side,
  b: Side,
  options: DiffOptions & { readonly tolerance: Required<Tolerance> },
): Promise<Difference> {
  const { signal, onProgress, tolerance, ignore = [] } = options
  const progress = new ProgressReport(totalBytes(a.tensors), a.tensors.length, onProgress)
  const matched = await matchTensors(a.tensors, b.tensors, signal)
  const comparing = {
    tolerance,
    signal,
    onBytes: (bytes: number) => progress.add(bytes, 0),
    isSameFormat: a.format === b.format,
    find: { a: finderOf(a.tensors), b: finderOf(b.tensors) },
  }
  const ignored = new Set<string>(ignore)
  const tensors = await comparePairs(matched, comparing, progress)
  const graph = await compareGraphs(a, b, comparing)
  const counts = (change: TensorChange): boolean => !ignored.has(change)
  const isSame =
    matched.added.length === 0 &&
    matched.removed.length === 0 &&
    !tensors.changed.some(({ changes }) => changes.some(counts)) &&
    (ignored.has('graph') || (graph ?? []).length === 0)
  return {
    isSame,
    a: { format: a.format, tensors: a.tensors.length },
    b: { format: b.format, tensors: b.tensors.length },
    ...tensors,
    added: matched.added.map(summarizeTensor),
    removed: matched.removed.map(summarizeTensor),
    graph,
  }
}

/** Finds tensors by name: with the index of a file's list, or with an index that is built on demand. */
function finderOf(tensors: TensorSequence<AnyTensor> & Partial<Pick<TensorList, 'get'>>): TensorByName {
  if (tensors.get) return (name) => tensors.get!(name)
  let byName: Map<string, AnyTensor> | undefined
  return (name) => {
    byName ??= new Map(Array.from(tensors, (tensor) => [tensor.name, tensor]))
    return byName.get(name)
  }
}

async function comparePairs(
  { pairs }: MatchedTensors,
  comparing: PairOptions,
  progress: ProgressReport,
): Promise<Pick<Difference, 'same' | 'sameBits' | 'changed'>> {
  const changed: TensorDifference[] = []
  let sameBits = 0
  for (const pair of pairs) {
    const found = await compareTensors(pair, comparing)
    progress.add(0, 1)
    if (found.changes.length > 0) changed.push(found)
    // A tensor without data on both sides counts as equal.
    else if (found.values?.equalBits !== false) sameBits++
  }
  return { same: pairs.length - changed.length, sameBits, changed }
}

async function compareGraphs(a: Side, b: Side, comparing: PairOptions): Promise<readonly GraphEdit[] | null> {
  if (!a.model || !b.model || a.format !== b.format) return null
  const { load } = formatByName(a.format!) as ModelFormatEntry
  const format = await load()
  return graphEdits(format.describe(a.model), format.describe(b.model), async (one, other) => {
    for (const [at, tensor] of one.entries()) {
      const found = await compareTensors(
        { a: tensor, b: other[at]! },
        { ...comparing, onBytes: () => undefined },
      )
      if (found.changes.length > 0) return false
    }
    return true
  })
}

function totalBytes(tensors: TensorSequence<AnyTensor>): number {
  let total = 0
  for (const tensor of tensors)
    if (tensor.kind === 'dense' && tensor.hasData) total += tensor.storage.byteLength
    else if (tensor.kind === 'block') total += dequantized(tensor).storage.byteLength
  return total
}

const IGNORABLE = {
  name: true,
  kind: true,
  dtype: true,
  shape: true,
  layout: true,
  quantization: true,
  metadata: true,
  data: true,
  values: true,
  graph: true,
} as const satisfies Record<TensorChange | 'graph', true>

function checkIgnored(ignored: unknown): void {
  const list = readInput('ignore', () => (Array.isArray(ignored) ? [...(ignored as unknown[])] : undefined))
  const wrong = list?.findIndex((each) => typeof each !== 'string' || !Object.hasOwn(IGNORABLE, each))
  if (list && wrong === -1) return
  const found = list ? `has ${valueText(list[wrong!])}` : `is ${valueText(ignored)}`
  const known = Object.keys(IGNORABLE).join(', ')
  throw new TileworkError('ERR_ARGUMENT', `ignore ${found}; it must be a list of: ${known}.`)
}

function checkTolerance(tolerance: Tolerance): Required<Tolerance> {
  checkOptions(tolerance, 'tolerance', ['absolute', 'relative'])
  const { absolute = 0, relative = 0 } = readInput('The tolerance', () => ({ ...tolerance }))
  for (const [name, value] of Object.entries({ absolute, relative })) {
    if (Number.isFinite(value) && value >= 0) continue
    throw new TileworkError(
      'ERR_ARGUMENT',
      `tolerance.${name} is ${valueText(value)}; it must be a finite number from 0 on.`,
    )
  }
  return { absolute, relative }
}
