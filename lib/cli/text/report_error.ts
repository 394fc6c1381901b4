/** Reports a failure: one line on stderr for a person, one object for a program. */
import { TileworkError } from '../../index.js'
import { InputError } from '../files/open_input.js'
import { optionAdvice } from './option_advice.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/** An error as JSON, without the fields that the error does not have. */
export interface ErrorReport {
  readonly code: string
  readonly message: string
  /** The input that could not be opened. */
  readonly file?: string
  /** Path inside the file; for ERR_IO the path in the file system. */
  readonly path?: string
  readonly offset?: number
}

/** Unwraps an InputError. */
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
 * Writes `tilework: CODE: message (file, path, offset)`; parts that the message contains already are omitted.
 *
 * @param input - the input, for commands with several inputs
 */
export function printError(failure: unknown, terminal: Terminal, input?: string): void {
  const { code, message, file = input, path, offset } = errorReport(failure)
  const names = [file, path].filter((name) => name !== undefined && !message.includes(name))
  const details = [...new Set(names), ...(offset === undefined ? [] : [`offset ${offset}`])]
  const detail = details.join(', ')
  const line = `tilework: ${code}: ${message}${detail === '' ? '' : ` (${detail})`}`
  // Errors about a graph have one line per reason, indented so that text from a file cannot imitate a line of the command.
  terminal.stderr.write(`${line.split('\n').map(printable).join('\n  ')}\n`)
  const reason = reasonOf(failure)
  // Internal errors need the stack to be diagnosed.
  if (code === 'ERR_INTERNAL' && reason instanceof Error && reason.stack)
    terminal.stderr.write(`${reason.stack}\n`)
}

/** An error of the operating system, for a file that a command itself reads or writes. */
export function ioError(what: string, path: string, cause: unknown): TileworkError {
  // Node's message ends with the system call and the path; the path is in the sentence already.
  const reason = cause instanceof Error ? cause.message.replace(/, (\w+) '.*'$/, ' ($1)') : String(cause)
  return new TileworkError('ERR_IO', `${what}: ${reason}.`, { path, cause })
}
