/** Tensors of quantized blocks, and their numbers as dense tensors that are computed when they are read. */
import { asyncOnlyError, checkRange, checkReturned } from '../bytes/check_range.js'
import { readInto } from '../bytes/fill_memory.js'
import type { ByteRange, ByteSource } from '../bytes/source.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { BLOCK_DTYPES, type BlockDtype, type BlockDtypeInfo } from '../dtype/block_types.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { BaseTensor, NO_METADATA } from './base_tensor.js'
import { StoredTensor } from './dense.js'
import { checkShape, sizeOf } from './shape.js'
import type { AnyTensor, BlockTensor, Tensor } from './tensor.js'

/** Where the blocks of a tensor are. */
export interface StoredBlocksInit {
  readonly source: ByteSource
  /** Byte offset of the first block in `source`. */
  readonly start: number
  readonly dtype: BlockDtype
  /** Logical extents, slowest axis first; the last is a multiple of the elements of a block. */
  readonly shape: readonly number[]
  readonly name: string
  readonly metadata?: ReadonlyMap<string, string>
}

/** Bytes of the blocks of a shape. @throws TileworkError ERR_LAYOUT_SHAPE where rows are no whole blocks */
export function blockBytesOf(dtype: BlockDtype, shape: readonly number[]): number {
  const { elements, bytes } = BLOCK_DTYPES[dtype]
  if (shape.length > 0 && shape.at(-1)! % elements === 0) return (sizeOf(shape) / elements) * bytes
  throw new TileworkError(
    'ERR_LAYOUT_SHAPE',
    `${dtype} has blocks of ${elements} elements; the last axis of the shape [${shape}] is no multiple of them.`,
  )
}

export class StoredBlocks extends BaseTensor implements BlockTensor {
  readonly kind = 'block'
  readonly hasData = true
  readonly name: string
  readonly dtype: BlockDtype
  readonly shape: readonly number[]
  readonly metadata: ReadonlyMap<string, string>
  readonly byteLength: number
  /** The source that holds the blocks, and the byte offset of the first. */
  readonly source: ByteSource
  readonly start: number

  /** @throws TileworkError ERR_LAYOUT_SHAPE, ERR_ARGUMENT; ERR_RANGE when the blocks do not lie inside the source */
  constructor({ source, start, dtype, shape, name, metadata = NO_METADATA }: StoredBlocksInit) {
    super()
    this.dtype = dtype
    this.shape = checkShape(shape)
    this.name = name
    this.metadata = metadata
    this.source = source
    this.start = start
    this.byteLength = blockBytesOf(dtype, this.shape)
    checkRange(start, start, source.byteLength, source.label ?? 'the source')
    if (this.byteLength > source.byteLength - start) {
      const message = `the blocks need ${this.byteLength} bytes at offset ${start}; the source has ${source.byteLength}.`
      throw new TileworkError('ERR_RANGE', message)
    }
  }

  async bytes(range?: ByteRange): Promise<Uint8Array> {
    const { start, end } = this.#locate(range)
    return this.source.view?.(start, end) ?? this.source.read(start, end)
  }

  bytesSync(range?: ByteRange): Uint8Array {
    const { start, end } = this.#locate(range)
    const viewed = this.source.view?.(start, end)
    if (viewed) return viewed
    if (!this.source.readSync) throw asyncOnlyError(this.source.label)
    return this.source.readSync(start, end)
  }

  async toTypedArray(): Promise<Float32Array> {
    return (await dequantized(this).toTypedArray()) as Float32Array
  }

  #locate({ start, end }: ByteRange = { start: 0, end: this.byteLength }): ByteRange {
    checkRange(start, end, this.byteLength, `tensor "${this.name}"`)
    return { start: this.start + start, end: this.start + end }
  }
}

/** What blocks are dequantized to. */
export type BlockNumbers = 'float32' | 'float16' | 'bfloat16'

/** True for an element type that blocks are dequantized to in one step. */
export function isBlockNumbers(dtype: Dtype): dtype is BlockNumbers {
  return dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16'
}

/**
 * The numbers of a tensor of blocks as a dense row-major tensor of the same name and shape. Lazy: a range computes the blocks
 * that it touches. float16 and bfloat16 are the float32 numbers, rounded once.
 */
export function dequantized(tensor: BlockTensor, dtype: BlockNumbers = 'float32'): StoredTensor {
  const { name, shape, metadata } = tensor
  return new StoredTensor({
    source: new DequantizedSource(tensor, dtype),
    start: 0,
    dtype,
    shape,
    name,
    metadata,
  })
}

/** The tensor itself, or the float32 numbers of blocks. */
export function withoutBlocks(tensor: AnyTensor): Tensor {
  return tensor.kind === 'block' ? dequantized(tensor) : tensor
}

/** Bytes of numbers that are computed at a time: waiting for the blocks of a window costs little beside them. */
const WINDOW_BYTES = 2 * 1024 * 1024

/** Whole blocks: bytes `[from, to)` of the numbers, and the bytes of their blocks. */
interface Window {
  readonly from: number
  readonly to: number
  readonly blocks: ByteRange
}

class DequantizedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** `readInto` writes to the target on the calling thread alone. */
  readonly fillsOnThread = true
  readonly #blocks: BlockTensor
  readonly #type: BlockDtypeInfo
  readonly #dtype: BlockNumbers
  /** Bytes of the numbers of one block. */
  readonly #numberBytes: number

  constructor(blocks: BlockTensor, dtype: BlockNumbers) {
    this.#blocks = blocks
    this.#type = BLOCK_DTYPES[blocks.dtype]
    this.#dtype = dtype
    this.#numberBytes = (this.#type.elements * DTYPES[dtype].bits) / 8
    this.byteLength = (blocks.byteLength / this.#type.bytes) * this.#numberBytes
    this.label = `tensor "${blocks.name}"`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const { from, to } = this.#widen(start, end)
    const numbers = unfilledBytes(to - from)
    await this.#fill(from, numbers)
    return numbers.subarray(start - from, end - from)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    const { from, to } = this.#widen(start, end)
    const numbers = unfilledBytes(to - from)
    for (const window of this.#windows(from, to)) {
      this.#decode(
        this.#blocks.bytesSync(window.blocks),
        numbers.subarray(window.from - from, window.to - from),
        numbers.byteLength,
      )
    }
    return numbers.subarray(start - from, end - from)
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    const end = start + target.byteLength
    checkRange(start, end, this.byteLength, this.label)
    const { from, to } = this.#widen(start, end)
    if (from === start && to === end) await this.#fill(start, target)
    else target.set(await this.read(start, end))
  }

  async #fill(start: number, target: Uint8Array): Promise<void> {
    let scratch: Uint8Array | undefined
    for (const { from, to, blocks: range } of this.#windows(start, start + target.byteLength)) {
      // The first window is the largest.
      scratch ??= unfilledBytes(range.end - range.start)
      const blocks = await this.#readBlocks(range, scratch)
      this.#decode(blocks, target.subarray(from - start, to - start), target.byteLength)
    }
  }

  /** Not through a view: a file that is truncated while it is mapped would end the process. */
  async #readBlocks(range: ByteRange, scratch: Uint8Array): Promise<Uint8Array> {
    if (!(this.#blocks instanceof StoredBlocks)) {
      return checkReturned(await this.#blocks.bytes(range), range.start, range.end, this.label)
    }
    const { source, start } = this.#blocks
    const blocks = scratch.subarray(0, range.end - range.start)
    await readInto(source, start + range.start, blocks)
    return blocks
  }

  #decode(blocks: Uint8Array, target: Uint8Array, resultBytes: number): void {
    native().decodeBlocks(this.#type.name, blocks, this.#dtype, target, resultBytes)
  }

  /** The range widened to whole blocks. */
  #widen(start: number, end: number): { from: number; to: number } {
    const size = this.#numberBytes
    return { from: start - (start % size), to: Math.ceil(end / size) * size }
  }

  *#windows(from: number, to: number): Generator<Window> {
    const size = this.#numberBytes
    const step = Math.max(size, WINDOW_BYTES - (WINDOW_BYTES % size))
    for (let at = from; at < to; at += step) {
      const end = Math.min(to, at + step)
      const blocks = { start: (at / size) * this.#type.bytes, end: (end / size) * this.#type.bytes }
      yield { from: at, to: end, blocks }
    }
  }
}
