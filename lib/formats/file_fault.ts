/**
 * Ends a walk over bytes that cannot be understood from an offset on, whatever asked for the walk: the reader that knows
 * what the bytes were to be catches it and reports it with the place. It is an error of the library all the same, so that
 * one that nobody catches says what it has to say.
 */
import { type ErrorCode, TileworkError } from '../errors.js'

export class FileFault extends TileworkError {
  /** Byte offset in the source. */
  declare readonly offset: number

  constructor(code: ErrorCode, message: string, offset: number) {
    super(code, message, { offset })
  }
}
