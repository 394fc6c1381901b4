/** Computes the offset of one element step by step, as an example below a drawing. */
import { digitName, digitValue, type MemoryPicture } from './memory_rows.js'
import { offsetInStorage } from './offset.js'

/** For example `f17 y1 x2: f/16 = 1, y = 1, x = 2, f%16 = 1, so the offset is ((1·2 + 1)·3 + 2)·16 + 1 = 177.` */
export function workExample({ storage, fullLabel }: MemoryPicture): string | undefined {
  const { extents, side } = storage
  if (extents.includes(0)) return undefined
  const last = extents.map((extent) => extent - 1)
  // The last column of an S2 layout is an exception; the example shows the rule.
  const index =
    side.pieces.length > 1
      ? last.map((position, axis) => (axis === side.pieces[0]!.axis ? 0 : position))
      : last
  const offset = offsetInStorage(storage, index.length, index)
  const digits = storage.digits.flatMap(({ radix }, position) => {
    if (radix === 1) return []
    return [
      { name: digitName(storage, position), radix, value: digitValue(storage.digits, position, offset) },
    ]
  })
  if (digits.length === 0) return undefined
  const values = digits.map(({ name, value }) => `${name} = ${value}`).join(', ')
  const shifted = side.lower.some((count) => count > 0) ? ', counted from the start of the padding' : ''
  return `${fullLabel(index)}${shifted}: ${values}, so the offset is ${offsetText(digits, offset)}.`
}

function offsetText(digits: Parameters<typeof horner>[0], offset: number): string {
  return digits.length === 1 ? String(offset) : `${horner(digits)} = ${offset}`
}

function horner(digits: readonly { readonly radix: number; readonly value: number }[]): string {
  return digits
    .slice(1)
    .reduce(
      (text, { radix, value }) => `${text.includes('+') ? `(${text})` : text}·${radix} + ${value}`,
      String(digits[0]!.value),
    )
}
