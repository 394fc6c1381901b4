/** SHA-256 of a tensor, chunk by chunk, so that a tensor larger than memory can be hashed. */
import { endianness } from 'node:os'
import { createHasher, type Hasher } from '../bytes/hasher.js'
import { bufferWithinBudget } from '../bytes/memory_budget.js'
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { yieldToEventLoop } from '../event_loop.js'
import { checkTensor } from './check_tensor.js'
import type { AnyTensor, BlockTensor, DenseTensor, SparseTensor } from './tensor.js'

/** Large enough that a reordered tensor is computed in few calls, small enough for any machine. */
const CHUNK_BYTES = 8 * 1024 * 1024

export interface DigestOptions {
  readonly signal?: AbortSignal
  /** Called with the number of bytes just read. */
  readonly onBytes?: (bytes: number) => void
}

/**
 * Hexadecimal SHA-256 of the packed little-endian storage bytes, holes included, or of the blocks. For a sparse tensor: of the bytes of
 * its indices (64-bit, `[entryCount, rank]` row-major), then of its values. Large tensors are hashed on a worker thread.
 *
 * @throws TileworkError ERR_ABORTED; ERR_UNSUPPORTED for strings; ERR_NO_DATA, and whatever reading the bytes throws
 */
export async function digest(tensor: AnyTensor, options: DigestOptions = {}): Promise<string> {
  checkTensor(tensor, 'digest', 'or blocks')
  checkOptions(options, 'digest', ['signal', 'onBytes'])
  const { signal, onBytes } = readInput('The options of digest', () => ({ ...options }))
  checkListener(onBytes, 'onBytes')
  throwIfAborted(signal)
  if (tensor.kind === 'dense') return digestDense(tensor, signal, onBytes)
  if (tensor.kind === 'block') return digestBlocks(tensor, signal, onBytes)
  if (tensor.kind === 'sparse') return digestSparse(tensor, signal, onBytes)
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `Tensor "${tensor.name}" holds strings, which have no packed bytes.`,
  )
}

type OnBytes = DigestOptions['onBytes']

async function digestDense(
  tensor: DenseTensor,
  signal: AbortSignal | undefined,
  onBytes: OnBytes,
): Promise<string> {
  const { byteLength } = tensor.storage
  return hashRange(byteLength, signal, onBytes, (start, chunk) => tensor.copyTo(chunk, { start }))
}

async function digestBlocks(
  tensor: BlockTensor,
  signal: AbortSignal | undefined,
  onBytes: OnBytes,
): Promise<string> {
  return hashRange(tensor.byteLength, signal, onBytes, async (start, chunk) => {
    chunk.set(await tensor.bytes({ start, end: start + chunk.byteLength }))
  })
}

async function digestSparse(
  tensor: SparseTensor,
  signal: AbortSignal | undefined,
  onBytes: OnBytes,
): Promise<string> {
  const indices = littleEndianBytes(await tensor.indices())
  const values = await tensor.values()
  const bytes = [indices, values]
  return hashRange(indices.byteLength + values.byteLength, signal, onBytes, async (start, chunk) => {
    let filled = 0
    let before = 0
    for (const part of bytes) {
      const from = Math.max(0, start + filled - before)
      const fragment = part.subarray(Math.min(from, part.byteLength), from + chunk.byteLength - filled)
      chunk.set(fragment, filled)
      filled += fragment.byteLength
      before += part.byteLength
    }
  })
}

/** Hashes `byteLength` bytes that `fill` writes chunk by chunk. */
async function hashRange(
  byteLength: number,
  signal: AbortSignal | undefined,
  onBytes: OnBytes,
  fill: (start: number, chunk: Uint8Array) => Promise<unknown>,
): Promise<string> {
  const chunkBytes = Math.min(bufferWithinBudget(CHUNK_BYTES), byteLength)
  const hasher: Hasher = createHasher(byteLength, chunkBytes)
  try {
    for (let start = 0; start < byteLength; start += chunkBytes) {
      throwIfAborted(signal)
      const buffer = await hasher.buffer()
      const length = Math.min(chunkBytes, byteLength - start)
      await fill(start, buffer.subarray(0, length))
      hasher.push(buffer, length)
      onBytes?.(length)
      await yieldToEventLoop()
    }
    return await hasher.digest()
  } finally {
    hasher.close()
  }
}

function littleEndianBytes(indices: BigInt64Array): Uint8Array {
  const bytes = Buffer.from(indices.buffer, indices.byteOffset, indices.byteLength)
  return endianness() === 'LE' ? bytes : Buffer.from(bytes).swap64()
}
