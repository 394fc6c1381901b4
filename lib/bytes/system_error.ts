/**
 * Turns what the operating system or the addon throws into a TileworkError. The system's own code (`ENOENT`,
 * `ENOSPC`) stays in the message and the original in `cause`, so nothing that helps to find the fault is lost.
 */
import { ERROR_CODES, type ErrorCode, TileworkError } from '../errors.js'

/** A TileworkError for an error of `path`; a TileworkError is given back as it is. */
function from(path: string, error: unknown): TileworkError {
  if (error instanceof TileworkError) return error
  // A user's source may reject with anything, null included.
  const { code, message = error } = Object(error) as { code?: unknown; message?: unknown }
  if (typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)) {
    return new TileworkError(code as ErrorCode, String(message), { path, cause: error })
  }
  return new TileworkError('ERR_IO', `${path}: ${reason(path, error)}`, { path, cause: error })
}

/** What the system says, with its code, for a sentence that has named `path` already. */
function reason(path: string, error: unknown): string {
  const { code, message = error, syscall } = error as { code?: unknown; message?: unknown; syscall?: unknown }
  const repeated = `, ${String(syscall)} '${path}'`
  const text = String(message)
  const said = text.endsWith(repeated) ? `${text.slice(0, -repeated.length)} (${String(syscall)})` : text
  return typeof code === 'string' && !said.includes(code) ? `${code}: ${said}` : said
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
