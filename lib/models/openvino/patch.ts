/** Changes of a text file by byte ranges: everything outside of them keeps its bytes. */

/** The bytes `[start, end)` become `text`; where both are equal, it is inserted. */
export interface Patch {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** @param patches - ranges that do not overlap; of two at one offset the first is inserted first */
export function patched(bytes: Uint8Array, patches: readonly Patch[]): Uint8Array {
  const parts: Uint8Array[] = []
  let at = 0
  for (const { start, end, text } of [...patches].sort((one, other) => one.start - other.start)) {
    parts.push(bytes.subarray(at, start), Buffer.from(text))
    at = end
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}

/** A text as the value of an attribute, in either kind of quotes; line ends would be read as spaces. */
export function attributeText(text: string): string {
  return text.replace(/[&<"'\t\r\n]/g, (character) => ESCAPES[character]!)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\r': '&#13;',
  '\n': '&#10;',
}
