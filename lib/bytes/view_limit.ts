/**
 * How large one typed array may be, and memory that is asked for under that rule. Node 20 ends at 4 GiB
 * (`buffer.constants.MAX_LENGTH` is 2^32 there); later versions have no limit that a machine could reach.
 */
import { constants } from 'node:buffer'
import { TileworkError } from '../errors.js'
import { memoryBudget } from './memory_budget.js'

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
  checkViewLength(byteLength)
  if (byteLength > memoryBudget()) {
    throw new TileworkError(
      'ERR_LIMIT',
      `${byteLength} bytes were asked for at once and the memory budget is ${memoryBudget()}; ask for smaller windows.`,
    )
  }
  try {
    return new Uint8Array(byteLength)
  } catch (cause) {
    throw new TileworkError('ERR_LIMIT', `There is no memory for ${byteLength} bytes.`, { cause })
  }
}
