/**
 * Plans a BTF file, byte for byte as TFRT's own writer lays it out: records in the order of the list, the first right
 * behind the offset table, no gaps, zeros in reserved bytes, every record padded to a multiple of 8, the last too.
 * Payloads stay where they are; the plan only refers to them.
 */
import { DTYPES, type Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { parseLayout } from '../../layout/parse_layout.js'
import { sortEntries } from '../../tensor/sort_entries.js'
import type { DenseTensor, SparseTensor, Tensor } from '../../tensor/tensor.js'
import type { WritePlan, WriteSegment } from '../format.js'
import {
  alignUp,
  DTYPE_BY_CODE,
  FORMAT_NAME,
  HEADER_BYTES,
  LAYOUT_COO,
  LAYOUT_COO_OF_DOCUMENT,
  LAYOUT_DENSE,
  MAX_RANK,
  U64_BYTES,
} from './schema.js'

export interface BtfWriteOptions {
  /** Layout code of sparse tensors: 1 (default), which TFRT reads, or 2, the number in its public document. */
  readonly cooLayoutCode?: 1 | 2
}

/** A record to be written: its parts in order. */
type RecordParts = readonly (Uint8Array | DenseTensor)[]

/**
 * Plans a file of `tensors`. A blocked tensor is stored as the dense row-major array that its storage is: under the
 * shape of its digits. Entries of a sparse tensor that are out of order are sorted; of repeated ones the last stays.
 *
 * @throws TileworkError ERR_UNSUPPORTED for what BTF has no code for, ERR_NO_DATA, ERR_ARGUMENT, ERR_COO_INDEX
 */
export async function plan(tensors: readonly Tensor[], options: BtfWriteOptions = {}): Promise<WritePlan> {
  const { cooLayoutCode = LAYOUT_COO } = options
  if (cooLayoutCode !== LAYOUT_COO && cooLayoutCode !== LAYOUT_COO_OF_DOCUMENT) {
    throw new TileworkError('ERR_ARGUMENT', `cooLayoutCode must be 1 or 2; it is ${String(cooLayoutCode)}.`)
  }
  const records: RecordParts[] = []
  for (const [index, tensor] of tensors.entries()) {
    checkWritable(tensor, index)
    records.push(tensor.kind === 'sparse' ? await sparseParts(tensor, cooLayoutCode) : denseParts(tensor))
  }
  return joinRecords(records)
}

function checkWritable(tensor: Tensor, index: number): asserts tensor is DenseTensor | SparseTensor {
  const what = `Tensor ${index} ("${tensor.name}")`
  if (tensor.kind === 'string' || !(DTYPE_BY_CODE as readonly string[]).includes(tensor.dtype)) {
    throw unsupported(
      `${what} is ${tensor.dtype}, which has no code in BTF; it has ${DTYPE_BY_CODE.join(', ')}.`,
    )
  }
  if (!tensor.hasData) {
    throw new TileworkError('ERR_NO_DATA', `${what} has no data in its file.`, { format: FORMAT_NAME })
  }
  const rank = tensor.kind === 'dense' ? storedShape(tensor).length : tensor.shape.length
  if (rank > MAX_RANK) throw unsupported(`${what} has rank ${rank}; BTF ends at ${MAX_RANK}.`)
}

function unsupported(message: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
}

/** The shape under which a dense tensor's storage is a row-major array. */
function storedShape({ shape, dtype, storage }: DenseTensor): readonly number[] {
  const { layout, lower, upper } = storage
  const isPadded = [...lower, ...upper].some((count) => count !== 0)
  if (layout === 'row_major' && !isPadded) return shape
  const padding = isPadded ? { lower, upper } : {}
  return parseLayout(layout)
    .storage(shape, { dtype, ...padding })
    .digits.map((digit) => digit.radix)
}

function denseParts(tensor: DenseTensor): RecordParts {
  const shape = storedShape(tensor)
  const elements = shape.reduce((size, extent) => size * extent, 1)
  const { byteLength } = tensor.storage
  if (elements * (DTYPES[tensor.dtype].bits / 8) !== byteLength) {
    const message = `Tensor "${tensor.name}" has ${byteLength} storage bytes, which its shape [${shape}] does not give.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  return [recordHeader(tensor.dtype, LAYOUT_DENSE, shape), tensor]
}

async function sparseParts(tensor: SparseTensor, layoutCode: number): Promise<RecordParts> {
  const sorted = await sortEntries(tensor)
  const { indices, values } = sorted.storage()
  const { entryCount, shape, dtype } = sorted
  return [
    recordHeader(dtype, layoutCode, shape),
    u64s([entryCount, shape.length]),
    indices,
    u64s([entryCount]),
    values,
  ]
}

function recordHeader(dtype: Dtype, layoutCode: number, shape: readonly number[]): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES + U64_BYTES * shape.length)
  header[0] = shape.length
  header[8] = (DTYPE_BY_CODE as readonly string[]).indexOf(dtype)
  header[9] = layoutCode
  header.set(u64s(shape), HEADER_BYTES)
  return header
}

function u64s(values: ArrayLike<number>): Uint8Array {
  const view = new DataView(new ArrayBuffer(U64_BYTES * values.length))
  for (let i = 0; i < values.length; i++) {
    view.setUint32(U64_BYTES * i, values[i]! % 2 ** 32, true)
    view.setUint32(U64_BYTES * i + 4, Math.floor(values[i]! / 2 ** 32), true)
  }
  return new Uint8Array(view.buffer)
}

function joinRecords(records: readonly RecordParts[]): WritePlan {
  const offsets = new Float64Array(records.length)
  const segments = new SegmentList()
  let position = U64_BYTES + U64_BYTES * records.length
  for (const [index, parts] of records.entries()) {
    offsets[index] = position
    for (const part of parts) position += segments.add(part)
    position += segments.add(new Uint8Array(alignUp(position) - position))
  }
  const table: WriteSegment[] = [
    { kind: 'bytes', bytes: u64s([records.length]) },
    { kind: 'bytes', bytes: u64s(offsets) },
  ]
  return {
    byteLength: position,
    segments: [...table.slice(0, records.length > 0 ? 2 : 1), ...segments.finish()],
  }
}

/** Segments in order; neighbouring pieces of memory become one, so that small tensors cost one write, not four. */
class SegmentList {
  readonly #segments: WriteSegment[] = []
  #pieces: Uint8Array[] = []

  /** Returns the number of bytes added. */
  add(part: Uint8Array | DenseTensor): number {
    if (part instanceof Uint8Array) {
      if (part.byteLength > 0) this.#pieces.push(part)
      return part.byteLength
    }
    const { byteLength } = part.storage
    if (byteLength === 0) return 0
    this.#flush()
    this.#segments.push({ kind: 'tensor', tensor: part })
    return byteLength
  }

  finish(): WriteSegment[] {
    this.#flush()
    return this.#segments
  }

  #flush(): void {
    if (this.#pieces.length === 0) return
    const bytes = new Uint8Array(Buffer.concat(this.#pieces))
    this.#segments.push({ kind: 'bytes', bytes })
    this.#pieces = []
  }
}
