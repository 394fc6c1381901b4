/**
 * Text of files made safe for a terminal: names and messages may contain escape sequences that move the cursor, change the
 * title or hide other text (CWE-150).
 */
import type { Terminal } from './terminal.js'

// Control characters of ISO 6429 (C0, DEL, C1), line and paragraph separators, format characters (marks of the writing direction,
// zero-width spaces and joiners, tags), other characters without a glyph, and lone surrogates.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** True for text that a terminal displays as it is. */
export function isPrintable(text: string): boolean {
  return text.search(UNSAFE) === -1
}

/** `text` with every unsafe character replaced by the result of `replacement`. */
export function escapeUnsafe(text: string, replacement: (character: string) => string): string {
  return text.replace(UNSAFE, replacement)
}

/** `text` with every unsafe character written as `\uXXXX`, above U+FFFF as two of them. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escapeCharacter)
}

/** JSON of the same value without characters that a terminal interprets. */
export function printableJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  // JSON.stringify writes no control characters outside strings but the line breaks of the indentation.
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : escapeCharacter(character)))
}

/** Writes the JSON of a command: indented on a terminal, on one line for a program. */
export function printJson(value: unknown, terminal: Terminal): void {
  terminal.stdout.write(`${printableJson(value, terminal.stdoutIsTerminal ? 2 : undefined)}\n`)
}

function escapeCharacter(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
