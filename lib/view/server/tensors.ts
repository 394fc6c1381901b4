/** Facts about files and tensors, as `inspect` reports them. */
import { MemorySource } from '../../bytes/memory.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { isYieldDue, yieldToEventLoop } from '../../event_loop.js'
import type { ModelDescription } from '../../formats/model_description.js'
import { summarizeTensor, type TensorSummary } from '../../pipeline/tensor_summary.js'
import { dequantized } from '../../tensor/block_tensor.js'
import { StoredTensor } from '../../tensor/dense.js'
import { dequantize } from '../../tensor/quantize.js'
import { sparseAsDense } from '../../tensor/sparse_differences.js'
import { stats } from '../../tensor/stats.js'
import type { AnyTensor, DenseTensor, SparseTensor } from '../../tensor/tensor.js'
import type { FileEntry, FileSummary, StatisticsAnswer, TensorColumns, TensorFacts } from '../protocol.js'
import { MEANINGS, type Meaning } from '../protocol.js'
import { untilRejected } from './kept_promises.js'
import type { Parameters } from './parameters.js'
import type { KnownFile, KnownFiles } from './viewed_files.js'

/** Most tensors in one response. */
const MAX_LISTED = 20_000

export function listFiles({ all }: KnownFiles): FileEntry[] {
  return all.map(({ name, file, model }) => ({
    name,
    format: file.format,
    byteLength: file.byteLength,
    tensors: file.tensors.length,
    hasGraph: model !== undefined,
  }))
}

export async function summaryOf(known: KnownFile): Promise<FileSummary> {
  const { file } = known
  const { findings } = file
  const counts = new Map<string, number>()
  const description = await known.description()
  for (const { nodes } of description?.graphs ?? [])
    for (const { operator } of nodes) counts.set(operator, (counts.get(operator) ?? 0) + 1)
  const operators = [...counts].sort(([, one], [, other]) => other - one)
  return { facts: description ? factsOfModel(description) : [], operators, findings }
}

function factsOfModel({ metadata, graphs }: ModelDescription): [string, string][] {
  const ends = (what: string, values: ReadonlyMap<string, string> = new Map()): [string, string][] =>
    Array.from(values, ([name, type]) => [what, `${name}: ${type}`])
  const [main] = graphs
  return [...metadata, ...ends('input', main?.inputs), ...ends('output', main?.outputs)].filter(
    ([, value]) => value !== '',
  )
}

export async function listTensors(
  { file }: KnownFile,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<TensorColumns> {
  const total = file.tensors.length
  const start = parameters.whole('start', 0, total, 0)
  const count = Math.min(parameters.whole('count', 1, MAX_LISTED, MAX_LISTED), total - start)
  const rows: TensorSummary[] = []
  while (rows.length < count) {
    if (isYieldDue()) await yieldToEventLoop()
    throwIfAborted(signal)
    rows.push(summarizeTensor(file.tensors.at(start + rows.length)!))
  }
  const column = <Key extends keyof TensorSummary>(key: Key): TensorSummary[Key][] =>
    rows.map((row) => row[key])
  return {
    start,
    total,
    name: column('name'),
    kind: column('kind'),
    dtype: column('dtype'),
    shape: column('shape'),
    layout: column('layout'),
    byteLength: column('byteLength'),
    elements: rows.map(
      // Sizes that are known only at run time are -1.
      ({ shape, entryCount }) => entryCount ?? shape.reduce((all, extent) => all * Math.max(0, extent), 1),
    ),
    hasData: column('hasData'),
  }
}

export async function factsOf(files: KnownFiles, parameters: Parameters): Promise<TensorFacts> {
  const { known, tensor, index } = files.tensorOf(parameters)
  const { lower, upper } = tensor.kind === 'dense' ? tensor.storage : { lower: [], upper: [] }
  return {
    ...summarizeTensor(tensor),
    index,
    doc: tensor.doc ?? '',
    metadata: [...tensor.metadata],
    isQuantized: tensor.hasData && (await known.quantizationOf(tensor)) !== undefined,
    ...{ lower, upper },
  }
}

/** Sparse tensors with sorted entries; cached because sorting takes longer than reading them. */
const sorted = new WeakMap<SparseTensor, Promise<DenseTensor>>()

/** The tensor as numbers: dequantized with `as=real`; a sparse tensor as dense, with its zeros. */
export async function numbersOf(
  { known, tensor }: { readonly known: KnownFile; readonly tensor: AnyTensor },
  as: Meaning,
): Promise<DenseTensor> {
  if (tensor.kind === 'sparse') {
    const dense = sorted.get(tensor) ?? untilRejected(sparseAsDense(tensor), () => void sorted.delete(tensor))
    sorted.set(tensor, dense)
    return dense
  }
  if (tensor.kind === 'block') return dequantized(tensor)
  if (tensor.kind === 'string')
    throw new TileworkError('ERR_UNSUPPORTED', `tensor "${tensor.name}" holds strings, not numbers.`)
  const quantization = as === 'real' ? await known.quantizationOf(tensor) : undefined
  return quantization ? dequantize(tensor, quantization) : tensor
}

export async function statisticsOf(
  files: KnownFiles,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<StatisticsAnswer> {
  const found = files.tensorOf(parameters)
  const bins = parameters.whole('bins', 2, 1024, 64)
  const meaning = parameters.oneOf('as', MEANINGS, 'codes')
  // Entries only: the number of implicit zeros has no bound.
  const numbers =
    found.tensor.kind === 'sparse' ? await entriesOf(found.tensor) : await numbersOf(found, meaning)
  return (await stats(numbers, { bins, signal })) as StatisticsAnswer
}

/** The values of a sparse tensor's entries, without their indices. */
async function entriesOf(tensor: SparseTensor): Promise<DenseTensor> {
  const { dtype, name, entryCount } = tensor
  const source = new MemorySource(await tensor.values())
  return new StoredTensor({ source, start: 0, dtype, shape: [entryCount], name })
}
