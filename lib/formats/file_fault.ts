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
