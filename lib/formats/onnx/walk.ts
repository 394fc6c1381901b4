/**
 * Lists the tensors of a file: initializers of the main graph, or the elements of a bare value. Other messages are skipped.
 *
 * The same walk serves `read` and `check` at every level; the report decides whether a broken rule throws.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { NativePlainTensors } from '../../native/types.js'
import type { DenseTensor, SparseTensor } from '../../tensor/tensor.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { ReadOptions } from '../format.js'
import { NumberList } from '../number_list.js'
import { Report } from '../report.js'
import { ExternalFiles } from './external/files.js'
import type { ExternalRanges } from './external/ranges.js'
import { openFilesOfUnlisted, type SkippedFields } from './external/unlisted_files.js'
import type { FileMessage } from './protobuf/message_kind.js'
import { eachField, LENGTH, type Steps, WireCursor, walkSource } from './protobuf/wire.js'
import { FORMAT_NAME, fieldNumber, MAX_SPARSE_TENSORS } from './schema.js'
import { walkTensor } from './tensor/header.js'
import { PlainTensorRuns } from './tensor/plain_runs.js'
import { type CheckedTensor, checkTensor, type ExternalPlacement } from './tensor/rules.js'
import { type CheckedPart, type CheckedSparse, checkSparse, makeSparse, walkSparse } from './tensor/sparse.js'
import { type TableEntry, TensorTable } from './tensor/table.js'
import { entryOf, type ListedTensors, makeTensor } from './tensor/tensor_list.js'

/** A sparse tensor whose external files are not open yet. */
interface PendingSparse {
  readonly checked: CheckedSparse
  readonly path: string
}

export interface WalkOptions {
  readonly budget: Budget
  readonly report: Report
  readonly sibling: ReadOptions['sibling']
  /** Collects the ranges that tensors occupy in external files. */
  readonly ranges?: ExternalRanges
}

/** All tensors of the file; undefined where a fault ends the walk, which is reported. */
export async function walkFile(
  source: ByteSource,
  message: FileMessage,
  { budget, report, sibling, ranges }: WalkOptions,
): Promise<ListedTensors | undefined> {
  budget.addFile(source.byteLength)
  const collector = new Collector(source, budget, report)
  try {
    await walkSource(collector.walk(message, source.byteLength), collector.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: collector.path(), offset: error.offset })
    return undefined
  }
  const files = new ExternalFiles(source, { budget, report, sibling, ranges })
  const { table, external } = collector
  for (let at = 0; at < external.length; at += PENDING_NUMBERS) {
    const [index, count, offset] = [external.at(at), external.at(at + 1), external.at(at + 2)]
    const path = `${collector.externalList}[${count}]`
    // The header passed its check before; keeping an object per tensor would need many times the memory.
    const silent = new Report(FORMAT_NAME, 'lenient', 'collect')
    const checked = checkTensor(table.header(index), { report: silent, path: () => path, offset })!
    table.set(index, await placeExternal(files, checked, path, offset))
  }
  const sparse: SparseTensor[] = []
  for (const { checked, path } of collector.sparse) {
    const values = await storedPart(files, checked.values, `${path}.values`)
    const indices = checked.indices && (await storedPart(files, checked.indices, `${path}.indices`))
    sparse.push(makeSparse(checked, values, indices, report.level === 'strict'))
  }
  await openFilesOfUnlisted(source, collector.skipped, files, budget)
  // Last, because each opened external file raises the limit.
  const excess = budget.spend('totalBytes', 0)
  if (excess !== undefined) {
    report.broken('ERR_LIMIT', excess, { path: '', offset: 0 })
    return undefined
  }
  return { table: collector.table, files, sparse }
}

/** Numbers kept for a tensor whose file is not open yet: index in the table, index in its list, byte offset. */
const PENDING_NUMBERS = 3

/** @param offset - byte offset of the location in the model, if the placement has none */
async function placeExternal(
  files: ExternalFiles,
  { placement, byteLength }: CheckedTensor,
  path: string,
  offset?: number,
): Promise<TableEntry> {
  if (placement.kind !== 'external') throw new RangeError('the tensor is not external')
  const file = await files.fileFor(
    offset === undefined ? placement : placedAt(placement, offset),
    byteLength,
    path,
  )
  if (file === undefined) return { kind: 'none', file: 0, start: 0, end: 0 }
  return { kind: 'range', file, start: placement.start, end: placement.start + byteLength }
}

/** Adds the byte offset to a placement that was parsed from a copy of the header. */
function placedAt({ checksum, ...placement }: ExternalPlacement, offset: number): ExternalPlacement {
  return { ...placement, offset, ...(checksum && { checksum: { ...checksum, offset } }) }
}

/** Values or indices of a sparse tensor as a dense tensor. */
async function storedPart(files: ExternalFiles, part: CheckedPart, path: string): Promise<DenseTensor> {
  const { header, checked, start, end } = part
  const { placement } = checked
  const entry =
    placement.kind === 'external' ? await placeExternal(files, checked, path) : entryOf(checked, start, end)
  return makeTensor(header, entry, files.sources[entry.file]!) as DenseTensor
}

const MODEL = {
  graph: fieldNumber('ModelProto', 'graph'),
  trainingInfo: fieldNumber('ModelProto', 'training_info'),
  functions: fieldNumber('ModelProto', 'functions'),
}
const GRAPH = {
  node: fieldNumber('GraphProto', 'node'),
  initializer: fieldNumber('GraphProto', 'initializer'),
  sparseInitializer: fieldNumber('GraphProto', 'sparse_initializer'),
}
/** Value fields of SequenceProto and OptionalProto, which have the same numbers in both. */
const VALUE = {
  tensor: fieldNumber('SequenceProto', 'tensor_values'),
  sparse: fieldNumber('SequenceProto', 'sparse_tensor_values'),
  sequence: fieldNumber('SequenceProto', 'sequence_values'),
  map: fieldNumber('SequenceProto', 'map_values'),
  optional: fieldNumber('SequenceProto', 'optional_values'),
}
const MAP_VALUES = fieldNumber('MapProto', 'values')

class Collector {
  readonly cursor: WireCursor
  readonly table = new TensorTable()
  /** `PENDING_NUMBERS` numbers for each external tensor of the table. */
  readonly external = new NumberList(Float64Array)
  /** Path of the list that contains them. */
  externalList = ''
  readonly sparse: PendingSparse[] = []
  /** Ranges of fields that may contain tensors outside of the list. */
  readonly skipped: SkippedFields[] = []
  readonly #budget: Budget
  readonly #report: Report
  readonly #plain: PlainTensorRuns
  /** Path and index of the current tensor, for findings. */
  #list = ''
  #count = 0

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
    this.#plain = new PlainTensorRuns(source, GRAPH.initializer)
  }

  /** Path of the current tensor. */
  path(): string {
    return this.#list === '' ? '' : `${this.#list}[${this.#count}]`
  }

  *walk(message: FileMessage, end: number): Steps<void> {
    if (message === 'ModelProto') yield* this.#model(end)
    else if (message === 'TensorProto') yield* this.#tensor(0, end)
    else if (message === 'SparseTensorProto') yield* this.#sparseTensor(0, end)
    else yield* this.#value(message, 0, end, 1)
  }

  *#model(end: number): Steps<void> {
    yield* this.#inside(0, end, (number, start, fieldEnd) => {
      if (number === MODEL.trainingInfo || number === MODEL.functions) this.#noteSkipped()
      return number === MODEL.graph ? this.#graph(start, fieldEnd) : undefined
    })
  }

  /** Adds the current field of the model to `skipped`. */
  #noteSkipped(): void {
    const { start, position } = this.cursor
    const last = this.skipped.at(-1)
    if (last?.message === 'ModelProto' && last.end === start) last.end = position
    else this.skipped.push({ message: 'ModelProto', start, end: position, depth: 1 })
  }

  *#graph(start: number, end: number): Steps<void> {
    const counts = { initializer: 0, sparse_initializer: 0 }
    // Nodes and all fields between them, except tensors that are listed.
    let nodes: SkippedFields | undefined
    const listed = (list: keyof typeof counts): void => {
      this.#list = `graph.${list}`
      this.#count = counts[list]++
    }
    yield* this.#inside(start, end, (number, from, to) => {
      if (number === GRAPH.node) {
        if (!nodes) {
          nodes = { message: 'GraphProto', start: this.cursor.start, end: to, depth: 2 }
          this.skipped.push(nodes)
        }
        nodes.end = to
        return undefined
      }
      if (number !== GRAPH.initializer && number !== GRAPH.sparseInitializer) return undefined
      nodes = undefined
      if (number === GRAPH.initializer) {
        const run = this.#plain.take(this.cursor.start, end, this.#budget.left('tensors'))
        if (run) {
          counts.initializer += this.#addRun(run)
          return run.position
        }
        listed('initializer')
        return this.#tensor(from, to)
      }
      listed('sparse_initializer')
      return this.#sparseTensor(from, to)
    })
    this.#list = ''
  }

  *#value(
    message: 'SequenceProto' | 'OptionalProto' | 'MapProto',
    start: number,
    end: number,
    depth: number,
  ): Steps<void> {
    this.#budget.require('depth', depth, start)
    const inner = depth + 1
    yield* this.#inside(start, end, (number, from, to) => {
      if (message === 'MapProto') {
        return number === MAP_VALUES ? this.#value('SequenceProto', from, to, inner) : undefined
      }
      switch (number) {
        case VALUE.tensor:
          this.#nameNext()
          return this.#tensor(from, to)
        case VALUE.sparse:
          this.#nameNext()
          return this.#sparseTensor(from, to)
        case VALUE.sequence:
          return this.#value('SequenceProto', from, to, inner)
        case VALUE.map:
          return this.#value('MapProto', from, to, inner)
        case VALUE.optional:
          return this.#value('OptionalProto', from, to, inner)
        default:
          return undefined
      }
    })
  }

  #nameNext(): void {
    this.#list = 'tensors'
    this.#count = this.table.length
  }

  /** Visits the length-delimited fields of a message. */
  *#inside(
    start: number,
    end: number,
    visit: (number: number, start: number, end: number) => Steps<void> | number | undefined,
  ): Steps<void> {
    const { cursor } = this
    cursor.position = start
    yield* eachField(cursor, end, () => {
      this.#budget.require('headerBytes', cursor.bytesRead, cursor.start)
      if (cursor.wireType !== LENGTH) return undefined
      return visit(cursor.number, cursor.valueStart, cursor.position)
    })
  }

  /** Adds the tensors of a run. @returns their number */
  #addRun(run: NativePlainTensors): number {
    const { cursor, table } = this
    const before = table.length
    table.addRun(run)
    const count = table.length - before
    this.#budget.demand('tensors', count, cursor.start)
    this.#budget.spend('totalBytes', run.valueBytes)
    cursor.bytesRead += run.bytesRead
    this.#budget.require('headerBytes', cursor.bytesRead, run.position)
    return count
  }

  *#tensor(start: number, end: number): Steps<void> {
    this.#budget.demand('tensors', 1, start)
    const { cursor, table } = this
    cursor.position = start
    const header = yield* walkTensor(cursor, end, (bytes) => table.keep(bytes))
    const path = (): string => this.path()
    const checked = checkTensor(header, { report: this.#report, path, offset: start })
    if (!checked) {
      table.drop()
      return
    }
    if (checked.placement.kind !== 'none') this.#budget.spend('totalBytes', checked.byteLength)
    if (checked.placement.kind === 'external') {
      this.externalList = this.#list
      for (const number of [table.length, this.#count, checked.placement.offset]) this.external.push(number)
    }
    table.add(entryOf(checked, start, end))
  }

  *#sparseTensor(start: number, end: number): Steps<void> {
    this.#budget.demand('tensors', 1, start)
    if (this.sparse.length === MAX_SPARSE_TENSORS) {
      throw new FileFault('ERR_LIMIT', `The file has more than ${MAX_SPARSE_TENSORS} sparse tensors.`, start)
    }
    this.cursor.position = start
    const header = yield* walkSparse(this.cursor, end)
    const path = (): string => this.path()
    const checked = checkSparse(header, { report: this.#report, path, offset: start })
    if (!checked) return
    const { values, indices } = checked
    this.#budget.spend('totalBytes', values.checked.byteLength + (indices?.checked.byteLength ?? 0))
    const index = this.sparse.length
    this.sparse.push({ checked, path: path() })
    this.table.add({ kind: 'sparse', file: 0, start: index, end: 0 })
  }
}
