/** Walks the tensor infos of a file, with exact arithmetic: dims, products and offsets may be any 64-bit numbers. */
import { isUtf8 } from 'node:buffer'
import { BLOCK_DTYPES, isBlockDtype } from '../../dtype/block_types.js'
import { DTYPES } from '../../dtype/dtypes.js'
import type { Budget } from '../budget.js'
import { type Exact, exactSizeOf, multiply } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import type { Place, Report } from '../report.js'
import type { HeaderCursor } from './header_cursor.js'
import { textOf } from './metadata_values.js'
import {
  DTYPE_BY_NUMBER,
  MAX_NAME_BYTES,
  MAX_RANK,
  SIZE_LIMIT,
  tensorPath,
  U32_BYTES,
  U64_BYTES,
} from './schema.js'
import { TensorTable } from './tensor_table.js'

/** @throws FileFault for what cannot be read; `report` decides about the rest */
export async function walkInfos(
  cursor: HeaderCursor,
  count: Exact,
  budget: Budget,
  report: Report,
): Promise<TensorTable> {
  budget.demand('tensors', Number(count), cursor.at)
  const table = new TensorTable(Number(count))
  for (let index = 0; index < Number(count); index++) {
    const offset = cursor.at
    const range = await cursor.text(`tensors[${index}]`)
    const bytes = cursor.bytes(range.start, range.end)
    const name = textOf(bytes)
    const place = { path: tensorPath(name, index), offset }
    checkName(bytes, place, report)
    const dims = await dimsAt(cursor, place.path)
    const tailBytes = U32_BYTES + U64_BYTES
    if (!cursor.holds(tailBytes)) await cursor.load(tailBytes, place.path)
    const typeAt = cursor.at
    const type = cursor.u32()
    const start = cursor.u64()
    const byteLength = bytesOf(type, dims, place.path, typeAt)
    if (!cursor.isLittleEndian) checkByteOrder(type, place.path, typeAt)
    const decoded = Number(exactSizeOf(dims).elements) * 4
    budget.demand(
      'totalBytes',
      Math.max(byteLength, isBlockDtype(DTYPE_BY_NUMBER.get(type)) ? decoded : 0),
      offset,
    )
    if (typeof start === 'bigint') {
      const message = `${place.path} starts at ${start} of the data; the file has fewer bytes.`
      throw new FileFault('ERR_OFFSET_RANGE', message, typeAt + U32_BYTES)
    }
    if (!table.add(name, type, dims, start, byteLength)) {
      report.broken('ERR_DUPLICATE', `${place.path}: two tensors have this name.`, place)
    }
  }
  return table
}

function checkName(bytes: Uint8Array, place: Place, report: Report): void {
  if (bytes.byteLength === 0) report.deviation('ERR_HEADER', `${place.path}: the name is empty.`, place)
  if (bytes.byteLength > MAX_NAME_BYTES) {
    const message = `${place.path}: the name has ${bytes.byteLength} bytes; llama.cpp takes up to ${MAX_NAME_BYTES}.`
    report.deviation('ERR_LIMIT', message, place)
  }
  if (!isUtf8(bytes)) {
    report.deviation('ERR_VALUE', `${place.path}: the name is not UTF-8; it is shown with U+FFFD.`, place)
  }
}

/** Fastest first. */
async function dimsAt(cursor: HeaderCursor, path: string): Promise<number[]> {
  if (!cursor.holds(U32_BYTES)) await cursor.load(U32_BYTES, path)
  const offset = cursor.at
  const rank = cursor.u32()
  if (rank > MAX_RANK) {
    throw new FileFault('ERR_RANK', `${path} has ${rank} dims; the format takes up to ${MAX_RANK}.`, offset)
  }
  const dimBytes = rank * cursor.sizeBytes
  if (!cursor.holds(dimBytes)) await cursor.load(dimBytes, path)
  const dims: number[] = []
  for (let axis = 0; axis < rank; axis++) {
    const at = cursor.at
    const dim = cursor.size()
    if (typeof dim === 'bigint') {
      throw new FileFault(
        'ERR_OVERFLOW',
        `${path}.dims[${axis}] is ${dim}; no file has so many elements.`,
        at,
      )
    }
    dims.push(dim)
  }
  return dims
}

/** Writers of big-endian files swap scales of some block types and not of others, so codes and scales cannot be told. */
function checkByteOrder(number: number, path: string, offset: number): void {
  const type = DTYPE_BY_NUMBER.get(number)
  if (!isBlockDtype(type)) return
  const message = `${path} is ${type} in a big-endian file; the byte order of blocks is not defined there.`
  throw new FileFault('ERR_UNSUPPORTED', message, offset)
}

/** Bytes of a tensor. @throws FileFault for an unknown type, rows that are no whole blocks, and sizes from 2^63 on */
function bytesOf(number: number, dims: readonly number[], path: string, offset: number): number {
  const type = DTYPE_BY_NUMBER.get(number)
  if (type === undefined) {
    const message = `${path} has the type ${number} of ggml, which is unknown, removed, or not for files; its size cannot be told.`
    throw new FileFault('ERR_DTYPE', message, offset)
  }
  const { nonZero, elements } = exactSizeOf(dims)
  const block = isBlockDtype(type) ? BLOCK_DTYPES[type] : { elements: 1, bytes: DTYPES[type].bits / 8 }
  if ((dims[0] ?? 1) % block.elements !== 0) {
    const message = `${path} is ${type} with rows of ${dims[0] ?? 1} elements; a row must be whole blocks of ${block.elements}.`
    throw new FileFault('ERR_DTYPE', message, offset)
  }
  if (multiply(nonZero, block.bytes) >= SIZE_LIMIT) {
    throw new FileFault(
      'ERR_OVERFLOW',
      `${path} has ${nonZero} elements; sizes end below 2^63 bytes.`,
      offset,
    )
  }
  const blocks = typeof elements === 'bigint' ? elements / BigInt(block.elements) : elements / block.elements
  return Number(multiply(blocks, block.bytes))
}
