/**
 * Makes text from files safe for a terminal: names and messages may contain escape sequences that move the cursor, change the
 * title or hide other text (CWE-150).
 */
import type { OutputStream, Terminal } from './terminal.js'

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

/** `text` with every unsafe character written as `\uXXXX`; characters above U+FFFF as two escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escapeCharacter)
}

/** Most characters of a name in a line of text; JSON has all. */
const SHOWN_LENGTH = 4096

/** `printable(name)`, without the middle of a very long name. */
export function printableName(name: string): string {
  if (name.length <= SHOWN_LENGTH) return printable(name)
  const half = SHOWN_LENGTH / 2
  return printable(`${name.slice(0, half)}…${name.slice(-half)}`)
}

/** The first `length` characters of `printable(text)`. */
export function printableStart(text: string, length: number): string {
  const whole = printable(text)
  return whole.length <= length ? whole : `${whole.slice(0, length)}…`
}

/** JSON of the same value without characters that a terminal interprets. */
export function printableJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, undefined, indent))
}

function escapeJson(text: string): string {
  // Outside strings, the only control characters in the output of JSON.stringify are line breaks of the indentation.
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : escapeCharacter(character)))
}

/**
 * Writes the JSON of a command: indented on a terminal, on one line for a program.
 *
 * The elements of lists in a report are written one by one: their text may be many times as large as their data.
 *
 * @param value - a report or an array of reports, whose lists need not be arrays
 */
export function printJson(value: unknown, { stdout, stdoutIsTerminal }: Terminal): void {
  const indent = stdoutIsTerminal ? 2 : 0
  writeTexts(
    (function* () {
      yield* reportTexts(value, '', indent)
      yield '\n'
    })(),
    stdout,
  )
}

function* reportTexts(value: unknown, margin: string, indent: number): Generator<string> {
  if (Array.isArray(value)) yield* listTexts(value, margin, indent, reportTexts)
  else if (typeof value === 'object' && value !== null) yield* objectTexts(value, margin, indent)
  else yield* valueTexts(value, margin, indent)
}

function* objectTexts(object: object, margin: string, indent: number): Generator<string> {
  const [lineBreak, inner] = indent === 0 ? ['', ''] : ['\n', margin + ' '.repeat(indent)]
  let separator = '{'
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue
    yield `${separator}${lineBreak}${inner}${printableJson(key)}:${indent === 0 ? '' : ' '}`
    yield* isList(value) ? listTexts(value, inner, indent, valueTexts) : valueTexts(value, inner, indent)
    separator = ','
  }
  yield separator === '{' ? '{}' : `${lineBreak}${margin}}`
}

function* listTexts(
  list: Iterable<unknown>,
  margin: string,
  indent: number,
  textsOf: (value: unknown, margin: string, indent: number) => Iterable<string>,
): Generator<string> {
  const [lineBreak, inner] = indent === 0 ? ['', ''] : ['\n', margin + ' '.repeat(indent)]
  let separator = '['
  for (const value of list) {
    yield separator + lineBreak + inner
    yield* textsOf(value, inner, indent)
    separator = ','
  }
  yield separator === '[' ? '[]' : `${lineBreak}${margin}]`
}

function* valueTexts(value: unknown, margin: string, indent: number): Generator<string> {
  const text = JSON.stringify(value, undefined, indent)
  // In slices, because escaping may make a name of many megabytes six times as long.
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + WRITE_LENGTH)
    if (isHighSurrogate(text.charCodeAt(end - 1)) && end < text.length) end++
    // A line break in a text is escaped, so each one here is followed by indentation.
    yield escapeJson(text.slice(start, end)).replaceAll('\n', `\n${margin}`)
    start = end
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}

/** Characters per write. */
const WRITE_LENGTH = 2 ** 16

/** Writes many short texts in few calls. */
export function writeTexts(texts: Iterable<string>, stdout: Pick<OutputStream, 'write'>): void {
  let collected: string[] = []
  let length = 0
  for (const text of texts) {
    collected.push(text)
    length += text.length
    if (length < WRITE_LENGTH) continue
    stdout.write(collected.join(''))
    collected = []
    length = 0
  }
  if (length > 0) stdout.write(collected.join(''))
}

function escapeCharacter(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
