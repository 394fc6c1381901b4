/** Quotes arguments for a command line that can be printed on a terminal and pasted into a shell. */
import { escapeUnsafe, isPrintable } from './printable.js'

/** Characters without a meaning in any POSIX shell, at any position of a word. */
const PLAIN_WORD = /^[A-Za-z0-9_\-./,:=@%+]+$/
/** The same for cmd.exe and PowerShell, where a comma separates the elements of an array. */
const PLAIN_WORD_OF_WINDOWS = /^[A-Za-z0-9_\-./:=+\\]+$/

/**
 * The words, quoted where necessary: `'…'` for every POSIX shell; `$'…'` (POSIX.1-2024; bash, zsh, ksh) for words with
 * characters that a terminal interprets. On Windows `"…"` for cmd.exe and PowerShell; words with quotes, `$`, backticks or
 * characters that a terminal interprets are quoted for PowerShell 7.3 or newer, because no form works in both.
 */
export function shellQuote(words: readonly string[], platform: NodeJS.Platform = process.platform): string {
  return words.map(platform === 'win32' ? quoteForWindows : quoteForPosix).join(' ')
}

function quoteForPosix(word: string): string {
  if (PLAIN_WORD.test(word)) return word
  if (isPrintable(word)) return `'${word.replaceAll("'", "'\\''")}'`
  const escaped = word.replace(/[\\']/g, '\\$&')
  return `$'${escapeUnsafe(escaped, octalBytes)}'`
}

/** UTF-8 bytes in octal: escapes of characters depend on the locale of the shell, and three digits need no terminator. */
function octalBytes(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

function quoteForWindows(word: string): string {
  if (PLAIN_WORD_OF_WINDOWS.test(word)) return word
  if (!isPrintable(word)) {
    const escaped = word.replace(/[`"$]/g, '`$&')
    return `"${escapeUnsafe(escaped, (character) => `\`u{${character.codePointAt(0)!.toString(16)}}`)}"`
  }
  if (/["$`]/.test(word)) return `'${word.replaceAll("'", "''")}'`
  // Programs on Windows parse a backslash before a quote as an escape.
  return `"${word.replace(/\\$/, '\\\\')}"`
}
