/**
 * How large one typed array may be, and memory that is asked for under that rule. Node 20 ends at 4 GiB
 * (`buffer.constants.MAX_LENGTH` is 2^32 there); later versions have no limit that a machine could reach.
 */
import { constants } from 'node:buffer'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { memoryBudget } from './memory_budget.js'

/** From this size on the pages of fresh memory cost more than what is written to it. */
const HUGE_PAGE_BYTES = 2 * 1024 * 1024

/** Below this, zeroing is faster than to make a Buffer, the only memory that comes without it. */
const ZEROED_BYTES = 16 * 1024

/** Most bytes of one view on this version of Node. */
export const MAX_VIEW_BYTES: number = constants.MAX_LENGTH

/** @throws TileworkError ERR_VIEW_TOO_LARGE with advice, when `byteLength` does not fit one view */
export function checkViewLength(byteLength: number, maximum: number = MAX_VIEW_BYTES): void {
  if (byteLength <= maximum) return
  throw new TileworkError(
    'ERR_VIEW_TOO_LARGE',
    `${byteLength} bytes were asked for at once and one typed array has at most ${maximum} on Node ${process.versions.node}; ` +
      'ask for smaller windows, for example bytes({ start, end }).',
  )
}

/**
 * `byteLength` zero bytes.
 *
 * @throws TileworkError ERR_VIEW_TOO_LARGE, or ERR_LIMIT when the memory cannot be had or is more than the budget
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
    `${byteLength} bytes were asked for at once and the memory budget is ${memoryBudget()}; ask for smaller windows.`,
  )
}

function allocate(byteLength: number, make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  try {
    return make()
  } catch (cause) {
    throw new TileworkError('ERR_LIMIT', `There is no memory for ${byteLength} bytes.`, { cause })
  }
}

/**
 * As `allocateBytes`, for memory that is about to be written all over: large results get huge pages.
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
 * Bytes that a read is about to fill, and that nobody sees if it fails: not zeroed before, which would cost as much
 * as the read itself. `allocUnsafeSlow` is the one way to such memory that shares no pool with other buffers.
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
