/**
 * Turns errors of the operating system, of the addon and of a user's source into a TileworkError. An error code of the
 * addon stays as it is: `native()` refuses an addon with unknown codes. The system's code (`ENOENT`, `ENOSPC`) stays in
 * the message and the original error in `cause`.
 */
import { ERROR_CODES, type ErrorCode, TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** The TileworkError for an error at `path`; a TileworkError is returned unchanged. */
function from(path: string, error: unknown): TileworkError {
  if (isTileworkError(error)) return error
  const { code, message, path: ownPath } = fieldsOf(error)
  if (code !== undefined && Object.hasOwn(ERROR_CODES, code)) {
    // The addon's own path identifies which of two files failed.
    return new TileworkError(code as ErrorCode, message, { path: ownPath ?? path, cause: error })
  }
  if (code === 'ERR_ACCESS_DENIED') {
    const said = `${path}: Node's permission model does not grant access: ${message}`
    return new TileworkError('ERR_PERMISSION', said, { path, cause: error })
  }
  return new TileworkError('ERR_IO', `${path}: ${reason(path, error)}`, { path, cause: error })
}

/** The system's message with its code, for a sentence that names `path` already. */
function reason(path: string, error: unknown): string {
  const { code, message, syscall } = fieldsOf(error)
  const repeated = `, ${syscall} '${path}'`
  const said = message.endsWith(repeated) ? `${message.slice(0, -repeated.length)} (${syscall})` : message
  return code !== undefined && !said.includes(code) ? `${code}: ${said}` : said
}

/** The fields of an error. A caller's source may throw anything: null, a string, an object whose getters throw. */
function fieldsOf(error: unknown): { code?: string; message: string; syscall?: string; path?: string } {
  try {
    const { code, message, syscall, path } = Object(error) as Record<string, unknown>
    return {
      message: typeof message === 'string' ? message : `${valueText(error)} was thrown`,
      ...(typeof code === 'string' && { code }),
      ...(typeof syscall === 'string' && { syscall }),
      ...(typeof path === 'string' && { path }),
    }
  } catch {
    return { message: 'something that cannot be read was thrown' }
  }
}

function isTileworkError(error: unknown): error is TileworkError {
  try {
    return error instanceof TileworkError
  } catch {
    // instanceof throws for a revoked Proxy.
    return false
  }
}

/** Runs `action`; any error becomes a TileworkError that names `path`. */
function wrap<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw from(path, error)
  }
}

/** As `wrap`, for an asynchronous action. */
async function wrapAsync<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw from(path, error)
  }
}

export const systemError = { from, reason, wrap, wrapAsync }
