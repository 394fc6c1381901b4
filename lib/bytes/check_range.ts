/** The checks that every source makes before it reads, and the errors that sources share. */
import { types } from 'node:util'
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

/** The getter of %TypedArray%.prototype: a caller's object may define its own `length` or `buffer`. */
function ofTypedArray<Field extends 'buffer' | 'byteOffset' | 'byteLength'>(
  field: Field,
): (bytes: Uint8Array) => Uint8Array[Field] {
  const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), field)!
  return (bytes) => get!.call(bytes)
}

const bufferOf = ofTypedArray('buffer')
const offsetOf = ofTypedArray('byteOffset')
const lengthOf = ofTypedArray('byteLength')

/**
 * Checks what a caller's source or tensor returned for a range: exactly `end - start` bytes. A wrong length would end in a
 * corrupt file.
 *
 * @returns a plain Uint8Array on memory of fixed length, as jobs of the addon need
 * @throws TileworkError ERR_IO
 */
export function checkReturned(bytes: unknown, start: number, end: number, label: string): Uint8Array {
  const isBytes = types.isUint8Array(bytes)
  if (isBytes && lengthOf(bytes) === end - start) return plainBytes(bytes)
  const found = isBytes ? `${lengthOf(bytes)} bytes` : typeof bytes
  throw new TileworkError(
    'ERR_IO',
    `${label} returned ${found} for the range [${start}, ${end}); it must return ${end - start} bytes.`,
    {
      path: label,
    },
  )
}

function plainBytes(bytes: Uint8Array): Uint8Array {
  const length = lengthOf(bytes)
  // A detached buffer has length 0, and no view can be made on it.
  if (length === 0) return new Uint8Array(0)
  const buffer = bufferOf(bytes)
  const plain = new Uint8Array(buffer, offsetOf(bytes), length)
  // The ES2023 library types lack `resizable` and `growable`.
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean }
  return resizable || growable ? new Uint8Array(plain) : plain
}

/** The error for a use after close. */
export function closedError(label: string): TileworkError {
  return new TileworkError('ERR_CLOSED', `${label} was closed.`, { path: label })
}

/** The error for a source that returns fewer bytes than it had when it was opened. */
export function lostBytesError(label = 'the source'): TileworkError {
  return new TileworkError('ERR_FILE_CHANGED', `${label} became shorter while it was read.`, { path: label })
}

/** The error for a synchronous read of a source without synchronous reads. */
export function asyncOnlyError(label = 'the source'): TileworkError {
  return new TileworkError('ERR_ASYNC_ONLY', `${label} can only be read asynchronously; use bytes().`)
}
