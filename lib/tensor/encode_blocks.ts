/** Quantizes dense tensors to blocks, lazily: a range of blocks computes the numbers that it needs. */
import { checkRange } from '../bytes/check_range.js'
import { readInto } from '../bytes/fill_memory.js'
import type { ByteSource } from '../bytes/source.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { BLOCK_DTYPES, type BlockDtype, type BlockDtypeInfo } from '../dtype/block_types.js'
import { DTYPES } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { blockBytesOf, StoredBlocks } from './block_tensor.js'
import { cast } from './cast.js'
import { asStored, type StoredTensor } from './dense.js'
import { isPlain } from './plain_storage.js'
import { reorder } from './reorder.js'
import type { BlockTensor, DenseTensor } from './tensor.js'

/** Block types that numbers are quantized to: those of the package gguf. */
export const QUANTIZED_BLOCK_DTYPES = [
  'q8_0',
  'q4_0',
  'q4_1',
  'q5_0',
  'q5_1',
  'tq1_0',
  'tq2_0',
  'mxfp4',
] as const satisfies readonly BlockDtype[]

/** A block type that `quantize` makes. */
export type QuantizedBlockDtype = (typeof QUANTIZED_BLOCK_DTYPES)[number]

/** @throws TileworkError ERR_DTYPE for a block type that is only read */
export function checkQuantized(dtype: BlockDtype): asserts dtype is QuantizedBlockDtype {
  if ((QUANTIZED_BLOCK_DTYPES as readonly string[]).includes(dtype)) return
  const known = QUANTIZED_BLOCK_DTYPES.join(', ')
  throw new TileworkError('ERR_DTYPE', `${dtype} is only read; numbers are quantized to ${known}.`)
}

/** True for a matrix of floats whose rows are whole blocks: what quantized models quantize, while vectors keep their type. */
export function hasWholeBlocks({ dtype, shape, hasData }: DenseTensor, block: BlockDtype): boolean {
  const isFloat = DTYPES[dtype].kind === 'float' && DTYPES[dtype].bits >= 16
  return isFloat && hasData && shape.length >= 2 && shape.at(-1)! % BLOCK_DTYPES[block].elements === 0
}

/**
 * The tensor as row-major blocks, computed when they are read.
 *
 * @throws TileworkError ERR_DTYPE for complex numbers and for a type that is only read; ERR_LAYOUT_SHAPE where rows are no whole
 * blocks; reads throw ERR_QUANTIZATION for numbers that are not finite or too large for a float16 scale
 */
export function encodedBlocks(tensor: DenseTensor, dtype: BlockDtype): BlockTensor {
  checkQuantized(dtype)
  const plain = isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major')
  const numbers = asStored(cast(plain, 'float32'))
  const { name, shape, metadata } = tensor
  const source = new EncodedSource(numbers, BLOCK_DTYPES[dtype], blockBytesOf(dtype, shape))
  return new StoredBlocks({ source, start: 0, dtype, shape, name, metadata })
}

/** Bytes of numbers that are quantized at a time. */
const WINDOW_BYTES = 1024 * 1024

class EncodedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #numbers: StoredTensor
  readonly #type: BlockDtypeInfo

  constructor(numbers: StoredTensor, type: BlockDtypeInfo, byteLength: number) {
    this.#numbers = numbers
    this.#type = type
    this.byteLength = byteLength
    this.label = `tensor "${numbers.name}"`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const { elements, bytes } = this.#type
    const first = Math.floor(start / bytes)
    const last = Math.ceil(end / bytes)
    const blocks = unfilledBytes((last - first) * bytes)
    const step = Math.max(1, Math.floor(WINDOW_BYTES / (4 * elements)))
    for (let at = first; at < last; at += step) {
      const count = Math.min(step, last - at)
      const numbers = unfilledBytes(4 * count * elements)
      await readInto(this.#numbers.source, this.#numbers.start + 4 * at * elements, numbers)
      const target = blocks.subarray((at - first) * bytes, (at - first + count) * bytes)
      const bad = native().encodeBlocks(this.#type.name, numbers, target)
      if (bad >= 0) throw this.#refusal(at * elements + bad, numbers, bad)
    }
    return blocks.subarray(start - first * bytes, end - first * bytes)
  }

  #refusal(element: number, numbers: Uint8Array, index: number): TileworkError {
    const value = new DataView(numbers.buffer, numbers.byteOffset).getFloat32(4 * index, true)
    const reason = Number.isFinite(value)
      ? `the scale of the block of element ${element} overflows float16`
      : `element ${element} is ${value}`
    return new TileworkError('ERR_QUANTIZATION', `${this.label} cannot be ${this.#type.name}: ${reason}.`)
  }
}
