/** Decides which failures are transient, that is worth another attempt. */
import { RetryableError } from '../bytes/remote/url_scheme.js'
import { type ErrorCode, TileworkError } from '../errors.js'

/** Codes of failures that may be transient. Damaged bytes, wrong options and missing permissions are not. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set(['ERR_FILE_CHANGED', 'ERR_IO'])

/** System errors that concern the file itself and would occur again. */
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

/** Longest chain of causes that is followed. */
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

/** Whether a system call or a server failed in a way that another attempt would repeat. */
function isLasting(cause: object): boolean {
  const { code, $metadata } = cause as { code?: unknown; $metadata?: { httpStatusCode?: number } }
  const status = $metadata?.httpStatusCode ?? 0
  return (typeof code === 'string' && LASTING_ERRNO.has(code)) || (status >= 400 && status < 500)
}
