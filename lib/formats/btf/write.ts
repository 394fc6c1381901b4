/**
 * Plans a BTF file with the same bytes as TFRT's own writer: records in list order right after the offset table, no gaps, zeros
 * in reserved bytes, every record (also the last) padded to a multiple of 8. The plan refers to payloads and does not copy them.
 */

import { readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { copyExtents } from '../../layout/extents.js'
import { checkTensor } from '../../tensor/check_tensor.js'
import { sortEntries } from '../../tensor/sort_entries.js'
import type { CooTensor } from '../../tensor/sparse.js'
import { storedShape } from '../../tensor/stored_shape.js'
import type { DenseTensor, SparseTensor, Tensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { exactSizeOf } from '../exact_size.js'
import type { TensorSequence, WritePlan, WriteSegment } from '../format.js'
import { checkHasData, checkStorageBytes } from '../write_checks.js'
import {
  alignUp,
  DIM_LIMIT,
  DTYPE_BY_CODE,
  FORMAT_NAME,
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

/** A record to be written, with the shape for its header. */
type PlannedRecord =
  | { readonly kind: 'dense'; readonly tensor: DenseTensor; readonly shape: readonly number[] }
  | { readonly kind: 'sparse'; readonly tensor: CooTensor; readonly shape: readonly number[] }

/**
 * Plans a file of `tensors`. The storage of a blocked tensor is written as a row-major array. The entries of a sparse tensor are
 * sorted; of several entries at one index the last is kept.
 *
 * @throws TileworkError ERR_UNSUPPORTED for a dtype without a BTF code, ERR_NO_DATA, ERR_ARGUMENT, ERR_COO_INDEX
 */
export async function plan(tensors: TensorSequence, options: BtfWriteOptions = {}): Promise<WritePlan> {
  const { cooLayoutCode = LAYOUT_COO } = options
  if (cooLayoutCode !== LAYOUT_COO && cooLayoutCode !== LAYOUT_COO_OF_DOCUMENT) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `cooLayoutCode is ${valueText(cooLayoutCode)}; it must be 1 or 2.`,
    )
  }
  const head = new DataView(new ArrayBuffer(U64_BYTES + U64_BYTES * tensors.length))
  setU64(head, 0, tensors.length)
  const sparse = new Map<number, CooTensor>()
  const end = new EndOfFile(head.byteLength)
  let index = 0
  for (const tensor of tensors) {
    setU64(head, U64_BYTES + U64_BYTES * index, end.position)
    const record = await planRecord(tensor, index)
    if (record.kind === 'sparse') sparse.set(index, record.tensor)
    addRecord(end, record, cooLayoutCode)
    index++
  }
  const segments = {
    *[Symbol.iterator](): Generator<WriteSegment> {
      yield { kind: 'bytes', bytes: new Uint8Array(head.buffer) }
      yield* recordSegments(tensors, sparse, head.byteLength, cooLayoutCode)
    },
  }
  return { byteLength: end.position, segments }
}

/** The segments of the records. Sparse tensors were sorted when the file was planned, and are reused. */
function* recordSegments(
  tensors: TensorSequence,
  sparse: ReadonlyMap<number, CooTensor>,
  position: number,
  cooLayoutCode: number,
): Generator<WriteSegment> {
  const out = new SegmentList(position)
  let index = 0
  for (const tensor of tensors) {
    const sorted = sparse.get(index)
    const record: PlannedRecord = sorted
      ? { kind: 'sparse', tensor: sorted, shape: sorted.shape }
      : planDense(tensor as DenseTensor, index)
    addRecord(out, record, cooLayoutCode)
    yield* out.take()
    index++
  }
  yield* out.finish()
}

async function planRecord(tensor: Tensor, index: number): Promise<PlannedRecord> {
  const what = `Tensor ${index}`
  readInput(what, () => checkWritable(tensor, index))
  return tensor.kind === 'sparse'
    ? planSparse(tensor)
    : readInput(what, () => planDense(tensor as DenseTensor, index))
}

function checkWritable(tensor: Tensor, index: number): void {
  checkTensor(tensor, 'A BTF file')
  const what = `Tensor ${index} ("${tensor.name}")`
  if (tensor.kind === 'string' || !(DTYPE_BY_CODE as readonly string[]).includes(tensor.dtype)) {
    throw unsupported(`${what} is ${tensor.dtype}; BTF takes ${DTYPE_BY_CODE.join(', ')}.`)
  }
  checkHasData(tensor, what, FORMAT_NAME)
  // Blocked storage never reaches this rank, so checking the axes is enough.
  const rank = tensor.shape.length
  if (rank > MAX_RANK) throw unsupported(`${what} has rank ${rank}; BTF takes up to ${MAX_RANK}.`)
  // The product without zeros is checked: a reader that multiplies in order overflows even where a later dimension is 0.
  const { nonZero } = exactSizeOf(copyExtents('shape', tensor.shape))
  if (nonZero >= DIM_LIMIT) {
    throw unsupported(`${what} has dimensions with the product ${nonZero}; BTF takes products below 2^63.`)
  }
}

function unsupported(message: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
}

function planDense(tensor: DenseTensor, index: number): PlannedRecord {
  const shape = storedShape(tensor)
  checkStorageBytes(tensor, shape, `Tensor ${index} ("${tensor.name}")`, FORMAT_NAME)
  return { kind: 'dense', tensor, shape }
}

async function planSparse(tensor: SparseTensor): Promise<PlannedRecord> {
  const sorted = await sortEntries(tensor)
  return { kind: 'sparse', tensor: sorted, shape: sorted.shape }
}

function addRecord(out: RecordOutput, { kind, tensor, shape }: PlannedRecord, cooLayoutCode: number): void {
  out.u64(shape.length)
  const dtypeCode = (DTYPE_BY_CODE as readonly string[]).indexOf(tensor.dtype)
  out.u64(dtypeCode + 256 * (kind === 'sparse' ? cooLayoutCode : LAYOUT_DENSE))
  for (const extent of shape) out.u64(extent)
  if (kind === 'dense') {
    out.tensor(tensor)
  } else {
    const { indices, values } = tensor.storage()
    out.u64(tensor.entryCount)
    out.u64(shape.length)
    out.tensor(indices)
    out.u64(tensor.entryCount)
    out.tensor(values)
  }
  out.pad()
}

/** Receives the parts of records in file order. */
interface RecordOutput {
  u64(value: number): void
  tensor(tensor: DenseTensor): void
  /** Zeros up to the next multiple of 8. */
  pad(): void
}

/** Computes the end offset of the records. */
class EndOfFile implements RecordOutput {
  constructor(public position: number) {}

  u64(): void {
    this.position += U64_BYTES
  }

  tensor({ storage }: DenseTensor): void {
    this.position += storage.byteLength
  }

  pad(): void {
    this.position = alignUp(this.position)
  }
}

function setU64(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value % 2 ** 32, true)
  view.setUint32(offset + 4, Math.floor(value / 2 ** 32), true)
}

/** Headers are collected in buffers of this size: a buffer per header would dominate the cost of a plan. */
const BLOCK_BYTES = 64 * 1024

/** Segments in order. Adjacent headers and padding merge, so that a small tensor costs two writes. */
class SegmentList implements RecordOutput {
  /** File offset of the next byte. */
  position: number
  #segments: WriteSegment[] = []
  #block = new DataView(new ArrayBuffer(BLOCK_BYTES))
  /** Range of the block that is not in a segment yet. */
  #start = 0
  #end = 0

  constructor(position: number) {
    this.position = position
  }

  u64(value: number): void {
    this.#reserve(U64_BYTES)
    setU64(this.#block, this.#end, value)
    this.#advance(U64_BYTES)
  }

  pad(): void {
    const padding = alignUp(this.position) - this.position
    this.#reserve(padding)
    this.#advance(padding)
  }

  tensor(tensor: DenseTensor): void {
    const { byteLength } = tensor.storage
    if (byteLength === 0) return
    this.#flush()
    this.#segments.push({ kind: 'tensor', tensor })
    this.position += byteLength
  }

  /** The complete segments since the last call; headers are collected until a tensor has data. */
  take(): WriteSegment[] {
    const segments = this.#segments
    if (segments.length > 0) this.#segments = []
    return segments
  }

  finish(): WriteSegment[] {
    this.#flush()
    return this.take()
  }

  #advance(bytes: number): void {
    this.#end += bytes
    this.position += bytes
  }

  #reserve(bytes: number): void {
    if (this.#end + bytes <= BLOCK_BYTES) return
    this.#flush()
    this.#block = new DataView(new ArrayBuffer(BLOCK_BYTES))
    this.#start = 0
    this.#end = 0
  }

  #flush(): void {
    if (this.#end === this.#start) return
    const bytes = new Uint8Array(this.#block.buffer, this.#start, this.#end - this.#start)
    this.#segments.push({ kind: 'bytes', bytes })
    this.#start = this.#end
  }
}
