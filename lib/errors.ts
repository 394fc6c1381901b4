/**
 * The one error class, and the findings that a check returns.
 *
 * The class lives in one ES module, which `require('tilework')` loads as well, so `instanceof` works
 * however the package was loaded.
 */
import { ERROR_CODES, NOTE_CODES } from './error_codes.js'

export { ERROR_CODES, NOTE_CODES }

/** A stable error code. */
export type ErrorCode = keyof typeof ERROR_CODES

/** Where an error happened, and what it was caused by. Every field is optional. */
export interface ErrorPlace {
  /** File format, for example `btf`. */
  readonly format?: string
  /** Place inside the file, for example `tensors[12].dims[0]`; of ERR_IO and ERR_FILE_CHANGED the file itself. */
  readonly path?: string
  /** Byte offset inside the file. */
  readonly offset?: number
  readonly cause?: unknown
}

/** The only error class that tilework throws on purpose. */
export class TileworkError extends Error {
  override readonly name = 'TileworkError'
  readonly code: ErrorCode
  // Declared only: a field that is not set must be absent, so that a printed error has no rows of undefined.
  declare readonly format?: string
  declare readonly path?: string
  declare readonly offset?: number

  /**
   * @param code - stable code, see {@link ERROR_CODES}
   * @param message - one sentence that has the offending value and the limit
   */
  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}) {
    super(message, place.cause === undefined ? undefined : { cause: place.cause })
    this.code = code
    if (place.format !== undefined) this.format = place.format
    if (place.path !== undefined) this.path = place.path
    if (place.offset !== undefined) this.offset = place.offset
  }
}

/** What a lenient read or a check noticed. `check` reports errors as findings too. */
export interface Finding {
  readonly severity: 'error' | 'warning'
  readonly code: FindingCode
  /** Place inside the file, for example `tensors[2].dims`. */
  readonly path: string
  /** Byte offset inside the file. */
  readonly offset: number
  /** One sentence that has the value and the limit. */
  readonly message: string
}

/** Findings use the error codes, and these for what is no error in a lenient read. */
export type FindingCode = ErrorCode | keyof typeof NOTE_CODES

/** Strictness of a read: `lenient` opens what can be read safely, `strict` what the format's rules allow. */
export type Level = 'lenient' | 'strict'
