/** BTF for the registry. BTF has no magic number; it is recognised where count, first offset and first record agree. */
import type { FileHead } from '../file_head.js'
import type { FormatEntry } from '../format.js'
import {
  DTYPE_BY_CODE,
  DTYPE_START,
  FORMAT_NAME,
  HEADER_BYTES,
  LAYOUT_COO_OF_DOCUMENT,
  LAYOUT_START,
  MAX_RANK,
  swapBytes,
  U64_BYTES,
} from './schema.js'
import type { BtfWriteOptions } from './write.js'

export const btfEntry = {
  name: FORMAT_NAME,
  extensions: ['.btf'],
  writeOptions: { cooLayoutCode: true },
  detect,
  isDamaged,
  load: async () => (await import('./index.js')).btf,
} as const satisfies FormatEntry<BtfWriteOptions>

/** Also true for a file with swapped bytes, so that the reader can report the byte order. */
async function detect(head: FileHead): Promise<boolean> {
  const { byteLength } = head
  const count = (await head.range(0, U64_BYTES))?.getBigUint64(0, true)
  // Eight zero bytes are a BTF file without tensors; a longer file that starts with zeros may have any format.
  if (count === 0n) return byteLength === U64_BYTES
  const offset = (await head.range(U64_BYTES, 2 * U64_BYTES))?.getBigUint64(0, true)
  if (count === undefined || offset === undefined) return false
  const maxCount = Math.floor((byteLength - U64_BYTES) / U64_BYTES)
  if (count > maxCount) {
    return swapBytes(count) <= maxCount && swapBytes(offset) === (swapBytes(count) + 1n) * 8n
  }
  if (offset < U64_BYTES + U64_BYTES * Number(count) || offset > byteLength - HEADER_BYTES) return false
  const record = await head.range(Number(offset), Number(offset) + HEADER_BYTES)
  return (
    record !== undefined &&
    record.getBigUint64(0, true) <= MAX_RANK &&
    record.getUint8(DTYPE_START) < DTYPE_BY_CODE.length &&
    record.getUint8(LAYOUT_START) <= LAYOUT_COO_OF_DOCUMENT
  )
}

/** True for a file that ends inside its offset table: the first offset equals the end of the table. */
async function isDamaged(head: FileHead): Promise<boolean> {
  const table = await head.range(0, 2 * U64_BYTES)
  const count = table?.getBigUint64(0, true) ?? 0n
  return count > 0n && table?.getBigUint64(U64_BYTES, true) === (count + 1n) * BigInt(U64_BYTES)
}
