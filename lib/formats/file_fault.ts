/**
 * Ends a walk over bytes that cannot be interpreted from an offset on. The reader that knows what the bytes should have
 * been catches it and reports it with the path. It is a TileworkError, so that one that escapes still has a code and a
 * sentence.
 */
import { type ErrorCode, TileworkError } from '../errors.js'

export class FileFault extends TileworkError {
  /** Byte offset in the source. */
  declare readonly offset: number

  constructor(code: ErrorCode, message: string, offset: number) {
    super(code, message, { offset })
  }
}

/** Codes of what went wrong around the bytes of a file, and says nothing about them. */
const SOURCE_CODES: ReadonlySet<ErrorCode> = new Set([
  'ERR_IO',
  'ERR_PERMISSION',
  'ERR_FILE_CHANGED',
  'ERR_CLOSED',
  'ERR_ABORTED',
  'ERR_ARGUMENT',
])

/** True for an error that a check reports as a finding: the bytes are wrong. */
export function isOfBytes(error: unknown): error is TileworkError {
  return error instanceof TileworkError && !SOURCE_CODES.has(error.code)
}
