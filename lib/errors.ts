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

/** The location and the cause of an error. Every field is optional. */
export interface ErrorPlace {
  /** File format, for example `btf`. */
  readonly format?: string
  /** Path inside the file, for example `tensors[12].dims[0]`; for ERR_IO and ERR_FILE_CHANGED the path of the file. */
  readonly path?: string
  /** Byte offset inside the file. */
  readonly offset?: number
  readonly cause?: unknown
}

/** The only error class that tilework throws on purpose. */
export class TileworkError extends Error {
  override readonly name = 'TileworkError'
  readonly code: ErrorCode
  // Declared only: an unset field is absent, so that a printed error has no undefined fields.
  declare readonly format?: string
  declare readonly path?: string
  declare readonly offset?: number
  /** The file that `open` or `convert` read: its path, or its URL without user, password and query; absent for bytes in memory. */
  declare readonly file?: string

  /**
   * @param code - stable code, see {@link ERROR_CODES}
   * @param message - the problem, the value and what is allowed, in this order
   */
  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}) {
    super(message, place.cause === undefined ? undefined : { cause: place.cause })
    this.code = code
    if (place.format !== undefined) this.format = place.format
    if (place.path !== undefined) this.path = place.path
    if (place.offset !== undefined) this.offset = place.offset
  }
}

/** Says of an error which file it is about, unless it says so already. @returns the error */
export function aboutFile(error: unknown, file: string | undefined): unknown {
  if (error instanceof TileworkError && file !== undefined && error.file === undefined)
    (error as { file?: string }).file = file
  return error
}

/** A problem that a lenient read or a check found. `check` reports errors as findings as well. */
export interface Finding {
  readonly severity: 'error' | 'warning'
  readonly code: FindingCode
  /** Path inside the file, for example `tensors[2].dims`. */
  readonly path: string
  /** Byte offset inside the file. */
  readonly offset: number
  /** The problem, the value and what is allowed. */
  readonly message: string
  /** Set where a tensor of the file cannot be read, so that what is opened does not have it. */
  readonly omitsTensor?: true
}

/** An error code, or a code of a finding that is not an error. */
export type FindingCode = ErrorCode | keyof typeof NOTE_CODES

/** Strictness of a read: `lenient` accepts what can be read safely, `strict` only what the rules of the format allow. */
export type Level = 'lenient' | 'strict'
