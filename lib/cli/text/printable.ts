/**
 * Text from a file, made safe for a terminal: names and messages may hold escape sequences that move the
 * cursor, change the title or hide what was printed (CWE-150).
 */

// Control characters of ISO 6429 (C0, DEL, C1), line separators, and the marks that change the writing direction.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** True for text that a terminal shows as it is. */
export function isPrintable(text: string): boolean {
  return text.search(UNSAFE) === -1
}

/** `text` with every unsafe character written as `written` gives it. */
export function escapeUnsafe(text: string, written: (character: string) => string): string {
  return text.replace(UNSAFE, written)
}

/** `text` with every unsafe character written as `\uXXXX`. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escapeCharacter)
}

/** JSON that stays the same value, but holds no character a terminal would act upon. */
export function printableJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  // Line breaks of the indentation are the only control characters that JSON.stringify writes outside strings.
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : escapeCharacter(character)))
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
