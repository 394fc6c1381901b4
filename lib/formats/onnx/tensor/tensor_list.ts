/** The tensors of an open file, made on access from the table of headers. */
import type { ByteSource } from '../../../bytes/source.js'
import { AbsentTensor } from '../../../tensor/absent.js'
import { NO_METADATA } from '../../../tensor/base_tensor.js'
import { StoredTensor } from '../../../tensor/dense.js'
import { sizeOf } from '../../../tensor/shape.js'
import type { SparseTensor, Tensor } from '../../../tensor/tensor.js'
import { LazyTensorList } from '../../tensor_list.js'
import type { ExternalFiles } from '../external/files.js'
import { FieldSource } from '../protobuf/field_source.js'
import { quote } from '../schema.js'
import type { TensorHeader } from './header.js'
import type { CheckedTensor } from './rules.js'
import { StringFieldTensor } from './strings.js'
import type { TableEntry, TensorTable } from './table.js'

/** The result of the walk that lists the tensors. */
export interface ListedTensors {
  readonly table: TensorTable
  /** The model file and its external data files. */
  readonly files: ExternalFiles
  readonly sparse: readonly SparseTensor[]
}

/** Look-ups by name that search the header bytes; the next one builds an index of all names. */
const MAX_SEARCHES = 4

/** Tensors in file order; `get` returns the first of equal names. */
export class FileTensors extends LazyTensorList {
  readonly #listed: ListedTensors
  #searches = 0
  #byName: ReadonlyMap<string, number> | undefined

  constructor(listed: ListedTensors) {
    super()
    this.#listed = listed
  }

  get length(): number {
    return this.#listed.table.length
  }

  protected tensorAt(position: number): Tensor {
    return tensorOf(this.#listed, position)
  }

  get(name: string): Tensor | undefined {
    const index = this.#indexOf(name)
    return index === undefined ? undefined : tensorOf(this.#listed, index)
  }

  #indexOf(name: string): number | undefined {
    const { table, sparse } = this.#listed
    // Names of sparse tensors are not in the table.
    const isSearched = !this.#byName && sparse.length === 0 && this.#searches < MAX_SEARCHES
    if (isSearched && typeof name === 'string') {
      this.#searches += 1
      const found = table.search(name)
      if (found !== 'unsure') return found
    }
    this.#byName ??= this.#indexNames()
    return this.#byName.get(name)
  }

  #indexNames(): ReadonlyMap<string, number> {
    const { table, sparse } = this.#listed
    if (sparse.length === 0) return table.names()
    const byName = new Map<string, number>()
    for (let index = table.length - 1; index >= 0; index--) {
      const { kind, start } = table.at(index)
      byName.set(kind === 'sparse' ? sparse[start]!.name : table.name(index), index)
    }
    return byName
  }
}

function tensorOf({ table, files, sparse }: ListedTensors, index: number): Tensor {
  const entry = table.at(index)
  if (entry.kind === 'sparse') return sparse[entry.start]!
  const header = table.header(index)
  const source = files.sources[entry.file]!
  return makeTensor(header, entry, source)
}

/** The table entry of a checked tensor; an external one gets its range when its file is open. */
export function entryOf({ placement }: CheckedTensor, start: number, end: number): TableEntry {
  switch (placement.kind) {
    case 'range':
      return { kind: 'range', file: 0, start: placement.start, end }
    case 'fields':
    case 'strings':
      return { kind: placement.kind, file: 0, start, end }
    default:
      return { kind: 'none', file: 0, start: 0, end: 0 }
  }
}

/** Makes the tensor of a checked header. */
export function makeTensor(
  header: TensorHeader,
  { kind, start, end }: { readonly kind: string; readonly start: number; readonly end: number },
  source: ByteSource,
): Exclude<Tensor, SparseTensor> {
  const { name, dtype, doc } = header
  const shape = header.dims as readonly number[]
  const { metadata: entries } = header
  const metadata = entries.length === 0 ? NO_METADATA : new Map(entries.map(({ key, value }) => [key, value]))
  // Without spreads, which take ten times as long in Node 20: a model may have a million tensors.
  if (kind === 'range') return new StoredTensor({ name, shape, metadata, doc, dtype: dtype!, source, start })
  const about = { name, shape, metadata, ...(doc !== undefined && { doc }) }
  const message = { source, start, end }
  if (dtype === 'string') return new StringFieldTensor({ ...about, message, hasData: kind === 'strings' })
  if (kind === 'none') return new AbsentTensor({ ...about, dtype: dtype!, reason: reasonOf(header) })
  const decoded = new FieldSource(message, dtype!, sizeOf(shape), name)
  return new StoredTensor({ ...about, dtype: dtype!, source: decoded, start: 0 })
}

function reasonOf(header: TensorHeader): string {
  if (header.hasSegment) return 'it is a segment of a larger tensor'
  if (header.isExternal) return `${quote(header.externalValue('location')?.value ?? '')} could not be opened`
  return 'the file has none'
}
