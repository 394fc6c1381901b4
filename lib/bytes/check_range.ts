/** The checks that every source makes before it touches a byte. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { checkViewLength } from './view_limit.js'

/**
 * @throws TileworkError ERR_RANGE unless `0 <= start <= end <= byteLength`, all whole numbers;
 * ERR_VIEW_TOO_LARGE when the range does not fit one view
 */
export function checkRange(start: number, end: number, byteLength: number, label: string): void {
  const isRange =
    Number.isSafeInteger(start) &&
    Number.isSafeInteger(end) &&
    0 <= start &&
    start <= end &&
    end <= byteLength
  if (!isRange) {
    throw new TileworkError(
      'ERR_RANGE',
      `The range [${valueText(start)}, ${valueText(end)}) does not lie inside the ${byteLength} bytes of ${label}.`,
      { path: label },
    )
  }
  checkViewLength(end - start)
}

/**
 * What a source or tensor of somebody else gave for a range: exactly `end - start` bytes, or an error.
 *
 * @throws TileworkError ERR_IO; a wrong length let through would become a corrupt file
 */
export function checkGiven(bytes: unknown, start: number, end: number, label: string): Uint8Array {
  if (bytes instanceof Uint8Array && bytes.byteLength === end - start) return bytes
  const found = bytes instanceof Uint8Array ? `${bytes.byteLength} bytes` : typeof bytes
  throw new TileworkError('ERR_IO', `${label} gave ${found} for the range [${start}, ${end}).`, {
    path: label,
  })
}

/** The error for a use after close. */
export function closedError(label: string): TileworkError {
  return new TileworkError('ERR_CLOSED', `${label} was closed.`, { path: label })
}
