/** Exit codes of errors, by cause: the input, the request, the system, or tilework itself. */
import { type ErrorCode, TileworkError } from '../index.js'
import { EXIT, type ExitCode } from './exit_codes.js'
import { InputError } from './files/open_input.js'

/**
 * The exit code of each error that does not come from opening the input. Errors of headers and data may still blame the
 * input, parts of which are read late; errors of graphs, names and scales blame the request.
 */
const EXIT_BY_ERROR: Record<ErrorCode, ExitCode> = {
  ERR_ABORTED: EXIT.cancelled,
  ERR_ARGUMENT: EXIT.usage,
  ERR_ASYNC_ONLY: EXIT.fault,
  ERR_CHECKSUM: EXIT.unreadable,
  ERR_CLOSED: EXIT.fault,
  ERR_COMPRESSED: EXIT.unreadable,
  ERR_COO_DUPLICATE: EXIT.unreadable,
  ERR_COO_INDEX: EXIT.unreadable,
  ERR_COO_SHAPE: EXIT.unreadable,
  ERR_DEVICE_BUILD: EXIT.io,
  ERR_DEVICE_LOST: EXIT.io,
  ERR_DEVICE_MEMORY: EXIT.io,
  ERR_DTYPE: EXIT.usage,
  ERR_DUPLICATE: EXIT.usage,
  ERR_FILE_CHANGED: EXIT.io,
  ERR_GAP: EXIT.unreadable,
  ERR_GRAPH: EXIT.usage,
  ERR_HEADER: EXIT.unreadable,
  ERR_INTERNAL: EXIT.fault,
  ERR_IO: EXIT.io,
  ERR_LAYOUT_JOIN: EXIT.usage,
  ERR_LAYOUT_NAME: EXIT.usage,
  ERR_LAYOUT_SHAPE: EXIT.usage,
  ERR_LIMIT: EXIT.usage,
  ERR_MISALIGNED: EXIT.unreadable,
  ERR_NATIVE_LOAD: EXIT.fault,
  ERR_NO_DATA: EXIT.usage,
  ERR_NO_DEVICE: EXIT.usage,
  ERR_OFFSET_RANGE: EXIT.unreadable,
  ERR_OVERFLOW: EXIT.usage,
  ERR_OVERLAP: EXIT.unreadable,
  ERR_PATH_ESCAPE: EXIT.unreadable,
  ERR_PERMISSION: EXIT.io,
  ERR_QUANTIZATION: EXIT.usage,
  ERR_RANGE: EXIT.usage,
  ERR_RANK: EXIT.usage,
  ERR_TRUNCATED: EXIT.unreadable,
  ERR_UNKNOWN_FORMAT: EXIT.unreadable,
  ERR_UNSUPPORTED: EXIT.usage,
  ERR_VALUE: EXIT.unreadable,
  ERR_VIEW_TOO_LARGE: EXIT.usage,
  ERR_WORKER_LOST: EXIT.fault,
}

/** Codes that are not about the bytes of the input, even where opening the input throws them. */
const NOT_ABOUT_THE_BYTES: ReadonlySet<ErrorCode> = new Set([
  'ERR_ABORTED',
  'ERR_ARGUMENT',
  'ERR_CLOSED',
  'ERR_FILE_CHANGED',
  'ERR_IO',
  'ERR_NATIVE_LOAD',
  'ERR_PERMISSION',
])

/** The exit code of a failure. A code such as ERR_RANK is about the file when it is opened, and about the request later. */
export function exitCodeOf(failure: unknown): ExitCode {
  if (failure instanceof InputError) {
    const { reason } = failure
    return NOT_ABOUT_THE_BYTES.has(reason.code) ? EXIT_BY_ERROR[reason.code] : EXIT.unreadable
  }
  return failure instanceof TileworkError ? EXIT_BY_ERROR[failure.code] : EXIT.fault
}
