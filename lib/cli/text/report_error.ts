/** How a failure is told: one line on stderr for a person, one object for a program. */
import { TileworkError } from '../../index.js'
import { InputError } from '../files/open_input.js'
import { optionAdvice } from './option_advice.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/** An error in JSON. Fields that the error does not have are absent. */
export interface ErrorReport {
  readonly code: string
  readonly message: string
  /** The input that could not be opened. */
  readonly file?: string
  /** Place inside the file; of an ERR_IO the path in the file system. */
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
  const { code, path, offset } = reason
  const message = optionAdvice(reason.message)
  const file = failure instanceof InputError ? failure.file : undefined
  return {
    code,
    message,
    ...(file !== undefined && { file }),
    ...(path !== undefined && { path }),
    ...(offset !== undefined && { offset }),
  }
}

/**
 * Writes `tilework: CODE: message (file, path, offset)`, of these what the message does not say itself. `input` is given
 * where a command has several.
 */
export function printError(failure: unknown, terminal: Terminal, input?: string): void {
  const { code, message, file = input, path, offset } = errorReport(failure)
  const names = [file, path].filter((name) => name !== undefined && !message.includes(name))
  const places = [...new Set(names), ...(offset === undefined ? [] : [`offset ${offset}`])]
  const known = places.join(', ')
  const line = `tilework: ${code}: ${message}${known === '' ? '' : ` (${known})`}`
  terminal.stderr.write(`${printable(line)}\n`)
  const reason = reasonOf(failure)
  // A fault of tilework itself can only be found with its stack.
  if (code === 'ERR_INTERNAL' && reason instanceof Error && reason.stack)
    terminal.stderr.write(`${reason.stack}\n`)
}
