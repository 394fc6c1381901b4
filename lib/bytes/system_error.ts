/**
 * Turns what the operating system or the addon throws into a TileworkError. The system's own code (`ENOENT`,
 * `ENOSPC`) stays in the message and the original in `cause`, so nothing that helps to find the fault is lost.
 */
import { ERROR_CODES, type ErrorCode, TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** A TileworkError for an error of `path`; a TileworkError is given back as it is. */
function from(path: string, error: unknown): TileworkError {
  if (isTileworkError(error)) return error
  const { code, message, path: ownPath } = fieldsOf(error)
  if (code !== undefined && Object.hasOwn(ERROR_CODES, code)) {
    // The addon says itself which of two files it means.
    return new TileworkError(code as ErrorCode, message, { path: ownPath ?? path, cause: error })
  }
  return new TileworkError('ERR_IO', `${path}: ${reason(path, error)}`, { path, cause: error })
}

/** What the system says, with its code, for a sentence that has named `path` already. */
function reason(path: string, error: unknown): string {
  const { code, message, syscall } = fieldsOf(error)
  const repeated = `, ${syscall} '${path}'`
  const said = message.endsWith(repeated) ? `${message.slice(0, -repeated.length)} (${syscall})` : message
  return code !== undefined && !said.includes(code) ? `${code}: ${said}` : said
}

/** What an error says of itself. A user's source may throw anything: null, a string, an object that throws again. */
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
    // A revoked Proxy cannot even be asked that.
    return false
  }
}

/** Runs `action`; whatever it throws becomes a TileworkError that names `path`. */
function wrap<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw from(path, error)
  }
}

/** As `wrap`, for an action that answers later. */
async function wrapAsync<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw from(path, error)
  }
}

export const systemError = { from, reason, wrap, wrapAsync }
