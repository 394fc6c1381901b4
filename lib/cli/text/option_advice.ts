/** Advice of the library in the words of the command line. */

/** `message`, with the option of the command line in the place of the one of `open`. */
export function optionAdvice(code: string, message: string): string {
  if (code !== 'ERR_PATH_ESCAPE') return message
  return message
    .replace(/symlinks: 'follow' allows it\.$/, '--symlinks follow allows it.')
    .replace(/hardLinks: 'allow' allows it\.$/, '--hard-links allow takes it.')
}
