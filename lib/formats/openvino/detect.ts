/** Recognises the XML file of an IR by its root element. A file of weights (`.bin`) has no header. */
import type { FileHead } from '../file_head.js'

/** A root element `net` after a byte order mark, a declaration, comments and instructions. */
const START = /^(?:\xef\xbb\xbf)?(?:[ \t\r\n]|<\?[^?]*\?>|<!--[^-]*-->)*<net[ \t\r\n>]/

export function detectIr({ bytes }: FileHead): boolean {
  return START.test(Buffer.from(bytes).toString('latin1'))
}
