/**
 * The size limit of a typed array, and allocations that respect it. Node 20 allows 4 GiB (`buffer.constants.MAX_LENGTH` is
 * 2^32); later versions allow more memory than any machine has.
 */
import { constants } from 'node:buffer'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { HUGE_PAGE_BYTES } from '../native/limits.js'
import { memoryBudget } from './memory_budget.js'

/** Below this size, a zeroed array is faster than a Buffer, the only memory that is not zeroed. */
const ZEROED_BYTES = 16 * 1024

/** Largest view in bytes on this version of Node. */
export const MAX_VIEW_BYTES: number = constants.MAX_LENGTH

/** @throws TileworkError ERR_VIEW_TOO_LARGE with advice, when `byteLength` does not fit one view */
export function checkViewLength(byteLength: number, maximum: number = MAX_VIEW_BYTES): void {
  if (byteLength <= maximum) return
  throw new TileworkError(
    'ERR_VIEW_TOO_LARGE',
    `${byteLength} bytes exceed the limit of ${maximum} for one typed array on Node ${process.versions.node}; ` +
      'request smaller ranges, for example bytes({ start, end }).',
  )
}

/**
 * `byteLength` zero bytes.
 *
 * @throws TileworkError ERR_VIEW_TOO_LARGE; ERR_LIMIT when allocation fails or the memory budget is smaller
 */
export function allocateBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  checkAllocation(byteLength)
  return allocate(byteLength, () => new Uint8Array(byteLength))
}

function checkAllocation(byteLength: number): void {
  checkViewLength(byteLength)
  if (byteLength <= memoryBudget()) return
  throw new TileworkError(
    'ERR_LIMIT',
    `${byteLength} bytes exceed the memory budget of ${memoryBudget()}; request smaller ranges.`,
  )
}

function allocate(byteLength: number, make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  try {
    return make()
  } catch (cause) {
    throw new TileworkError('ERR_LIMIT', `${byteLength} bytes could not be allocated.`, { cause })
  }
}

/**
 * As `allocateBytes`, for results that are overwritten completely: large ones get huge pages.
 *
 * @throws TileworkError as `allocateBytes`
 */
export function resultBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  return withPages(allocateBytes(byteLength))
}

function withPages(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength >= HUGE_PAGE_BYTES) native().preparePages(bytes)
  return bytes
}

/**
 * Memory for a read that fills all of it and discards it on failure. It is not zeroed, which would cost as much as the read.
 * `allocUnsafeSlow` is the only such allocation that shares no pool with other buffers.
 *
 * @throws TileworkError as `allocateBytes`
 */
export function unfilledBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  checkAllocation(byteLength)
  if (byteLength < ZEROED_BYTES) return new Uint8Array(byteLength)
  return withPages(
    allocate(byteLength, () => new Uint8Array(Buffer.allocUnsafeSlow(byteLength).buffer as ArrayBuffer)),
  )
}
