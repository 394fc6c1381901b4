/** Command lines that can be pasted into a POSIX shell. */

/** Characters that no shell gives a meaning, wherever they stand in a word. */
const PLAIN_WORD = /^[A-Za-z0-9_\-./,:=@%+]+$/

export function shellQuote(words: readonly string[]): string {
  return words.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
}
