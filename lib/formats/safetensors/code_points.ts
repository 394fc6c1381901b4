/**
 * Compares texts by code point, which is the byte order of UTF-8 and the order of the reference writer. JavaScript
 * compares UTF-16 units, which puts characters above U+FFFF (surrogates) before U+E000.
 */
export function compareCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (a === b) continue
    const isSurrogateA = a >= 0xd800 && a <= 0xdfff
    const isSurrogateB = b >= 0xd800 && b <= 0xdfff
    if (isSurrogateA !== isSurrogateB && a >= 0xd800 && b >= 0xd800) return isSurrogateA ? 1 : -1
    return a - b
  }
  return one.length - other.length
}
