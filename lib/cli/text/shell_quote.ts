/** Quotes words for a command line that can be pasted into a shell and printed on a terminal. */
import { escapeUnsafe, isPrintable } from './printable.js'

/** Characters without a meaning in any shell, at any position of a word. */
const PLAIN_WORD = /^[A-Za-z0-9_\-./,:=@%+]+$/

/**
 * The words, quoted where necessary: `'…'` for every POSIX shell; `$'…'` (POSIX.1-2024; bash, zsh, ksh) for words with
 * characters that a terminal interprets.
 */
export function shellQuote(words: readonly string[]): string {
  return words.map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  if (PLAIN_WORD.test(word)) return word
  if (isPrintable(word)) return `'${word.replaceAll("'", "'\\''")}'`
  const escaped = word.replace(/[\\']/g, '\\$&')
  return `$'${escapeUnsafe(escaped, octalBytes)}'`
}

/** UTF-8 bytes in octal: escapes of characters depend on the locale of the shell, and three digits need no terminator. */
function octalBytes(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
