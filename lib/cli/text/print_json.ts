/** The one place that writes a command's JSON: indented for a person, on one line for a program. */
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

export function printJson(value: unknown, terminal: Terminal): void {
  terminal.stdout.write(`${printableJson(value, terminal.stdoutIsTerminal ? 2 : undefined)}\n`)
}
