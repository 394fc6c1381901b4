/** The width of a text in terminal columns, and shortening and wrapping to a width. */
import { stripVTControlCharacters } from 'node:util'

const ASCII = /^[\u0020-\u007e]*$/
/** East Asian and emoji characters, which take two columns. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]/u
/** Combining marks and format characters, which take none. */
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u

/** Columns of a text without line breaks; escape sequences take none. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const character of stripVTControlCharacters(text)) width += characterWidth(character)
  return width
}

function characterWidth(character: string): number {
  if (ZERO.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

/** `text` in at most `width` columns: the middle becomes `…`, because names differ at their ends. */
export function cutMiddle(text: string, width: number): string {
  if (text.length <= width && ASCII.test(text)) return text
  if (displayWidth(text) <= width) return text
  const characters = [...text]
  const tailWidth = Math.floor((width - 1) / 2)
  const tail = take(characters.toReversed(), tailWidth).reverse()
  const head = take(characters, width - 1 - displayWidth(tail.join('')))
  return `${head.join('')}…${tail.join('')}`
}

/** As many characters from the start as fit. */
function take(characters: readonly string[], width: number): string[] {
  const taken: string[] = []
  let left = width
  for (const character of characters) {
    left -= characterWidth(character)
    if (left < 0) break
    taken.push(character)
  }
  return taken
}

/** Breaks a list of a label and parts at its commas and semicolons; following lines are indented by `indent`. */
export function wrapList(line: string, width: number, indent = '  '): string[] {
  if (displayWidth(line) <= width) return [line]
  const lines: string[] = []
  let current = ''
  for (const part of line.split(/(?<=[,;] )/)) {
    if (current.trim() !== '' && displayWidth((current + part).trimEnd()) > width) {
      lines.push(current.trimEnd())
      current = indent
    }
    current += part
  }
  lines.push(current.trimEnd())
  return lines
}
