/** Texts of files in messages. */

/** Characters of a text that are shown: enough to recognise it while the message stays one line. */
const SHOWN_LENGTH = 60

/** Text of a file for a message: quoted, with control characters escaped, shortened. */
export function quote(text: string): string {
  const cut = text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text
  return JSON.stringify(cut)
}
