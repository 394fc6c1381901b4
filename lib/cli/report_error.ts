/** How a failure is told: one line on stderr for a person, one object for a program. */
import { TileworkError } from '../index.js'
import { InputError } from './open_input.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/** An error in JSON. Fields that the error does not have are absent. */
export interface ErrorReport {
  readonly code: string
  readonly message: string
  readonly path?: string
  readonly offset?: number
}

/** The error that a wrapped failure is about. */
function reasonOf(failure: unknown): unknown {
  return failure instanceof InputError ? failure.reason : failure
}

export function errorReport(failure: unknown): ErrorReport {
  const reason = reasonOf(failure)
  if (!(reason instanceof TileworkError)) {
    return { code: 'ERR_INTERNAL', message: reason instanceof Error ? reason.message : String(reason) }
  }
  const { code, message, path, offset } = reason
  return { code, message, ...(path !== undefined && { path }), ...(offset !== undefined && { offset }) }
}

/** Writes `tilework: CODE: message (path, offset)`; `file` is given where a command has several. */
export function printError(failure: unknown, terminal: Terminal, file?: string): void {
  const { code, message, path, offset } = errorReport(failure)
  const places = [
    file,
    path === file ? undefined : path,
    offset === undefined ? undefined : `offset ${offset}`,
  ]
  const known = places.filter((place) => place !== undefined).join(', ')
  const line = `tilework: ${code}: ${message}${known === '' ? '' : ` (${known})`}`
  terminal.stderr.write(`${printable(line)}\n`)
  const reason = reasonOf(failure)
  // A fault of tilework itself can only be found with its stack.
  if (code === 'ERR_INTERNAL' && reason instanceof Error && reason.stack)
    terminal.stderr.write(`${reason.stack}\n`)
}
