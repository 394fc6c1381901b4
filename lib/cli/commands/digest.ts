/** SHA-256 of a tensor, in windows, so that a tensor larger than memory can be hashed. */
import { createHash, type Hash } from 'node:crypto'
import { endianness } from 'node:os'
import { throwIfAborted } from '../../cancel.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { type DenseTensor, type SparseTensor, type Tensor, TileworkError } from '../../index.js'

/** Large enough that the calls cost nothing beside the hash, small enough for any machine. */
const WINDOW_BYTES = 16 * 1024 * 1024

/**
 * Hexadecimal SHA-256 of the packed little-endian storage bytes. Of a sparse tensor these are the bytes of its
 * indices (64-bit, `[entryCount, rank]` row-major), then those of its values.
 *
 * @param onBytes - called with the number of bytes just hashed
 * @throws TileworkError ERR_ABORTED, ERR_UNSUPPORTED for strings, and what reading the bytes throws
 */
export async function sha256(
  tensor: Tensor,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<string> {
  const hash = createHash('sha256')
  if (tensor.kind === 'dense') await hashDense(tensor, hash, signal, onBytes)
  else if (tensor.kind === 'sparse') await hashSparse(tensor, hash, signal, onBytes)
  else
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `Tensor "${tensor.name}" holds strings, which have no packed bytes.`,
    )
  return hash.digest('hex')
}

async function hashDense(
  tensor: DenseTensor,
  hash: Hash,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<void> {
  const { byteLength } = tensor.storage
  const window = new Uint8Array(Math.min(WINDOW_BYTES, byteLength))
  for (let start = 0; start < byteLength; start += WINDOW_BYTES) {
    throwIfAborted(signal)
    const bytes = window.subarray(0, Math.min(WINDOW_BYTES, byteLength - start))
    await tensor.copyTo(bytes, { start })
    hash.update(bytes)
    onBytes(bytes.byteLength)
    await yieldToEventLoop()
  }
}

async function hashSparse(
  tensor: SparseTensor,
  hash: Hash,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<void> {
  const indices = littleEndianBytes(await tensor.indices())
  const values = await tensor.values()
  for (const part of [indices, values]) {
    for (let start = 0; start < part.byteLength; start += WINDOW_BYTES) {
      throwIfAborted(signal)
      const window = part.subarray(start, start + WINDOW_BYTES)
      hash.update(window)
      onBytes(window.byteLength)
      await yieldToEventLoop()
    }
  }
}

function littleEndianBytes(indices: BigInt64Array): Uint8Array {
  const bytes = Buffer.from(indices.buffer, indices.byteOffset, indices.byteLength)
  return endianness() === 'LE' ? bytes : Buffer.from(bytes).swap64()
}
