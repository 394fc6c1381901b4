/** Which failures are worth another attempt: those whose reason may be gone by then. */
import { RetryableError } from '../bytes/remote/url_scheme.js'
import { type ErrorCode, TileworkError } from '../errors.js'

/** Codes whose reason may pass. Damaged bytes, wrong options and missing rights stay as they are. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set(['ERR_FILE_CHANGED', 'ERR_IO'])

/** Errors of the system that say something about the file and not about the moment. */
const LASTING_ERRNO: ReadonlySet<string> = new Set([
  'EACCES',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'EPERM',
  'EROFS',
])

/** Depth at which a chain of causes is no longer followed. */
const MAX_CAUSES = 8

export function isTransient(error: unknown): boolean {
  if (!(error instanceof TileworkError) || !TRANSIENT.has(error.code)) return false
  const causes = causesOf(error)
  if (causes.some((cause) => cause instanceof RetryableError)) return true
  return !causes.some(isLasting)
}

function causesOf(error: Error): object[] {
  const causes: object[] = []
  for (let { cause } = error; isObject(cause) && causes.length < MAX_CAUSES; { cause } = cause as Error)
    causes.push(cause)
  return causes
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** A system call or a server that has given an answer which another attempt would get again. */
function isLasting(cause: object): boolean {
  const { code, $metadata } = cause as { code?: unknown; $metadata?: { httpStatusCode?: number } }
  const status = $metadata?.httpStatusCode ?? 0
  return (typeof code === 'string' && LASTING_ERRNO.has(code)) || (status >= 400 && status < 500)
}
