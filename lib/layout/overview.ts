/**
 * The overview of a drawing: each digit of the offset with its stride in memory, and the order of the blocks.
 */
import { describeDigits } from './describe.js'
import type { DrawnStorage } from './drawn_storage.js'
import { hasAnyRank, type Layout } from './layout.js'
import { axisNames, blockLabel, blocksOf, digitName, ruleOf, slotsBelow } from './memory_rows.js'

/** A digit of the offset with more than one value. */
export interface OverviewDigit {
  readonly name: string
  readonly meaning: string
  /** Number of values. */
  readonly radix: number
  /** Distance in slots between consecutive values. */
  readonly stride: number
  /** Whether the digit is inside a block. */
  readonly isInBlock: boolean
}

/** A block in the chain of blocks, or a gap for omitted blocks. */
export type ChainLink = { readonly offset: number; readonly label: string } | 'gap'

/** Caption of the list of digits; it continues a sentence that starts with "digits". */
export function digitsCaption({ digits, commonDigits }: DrawnStorage): string {
  const where = commonDigits < digits.length ? ' in every column but the last' : ''
  return `of the offset${where}, outermost first; an arrow is a step in slots`
}

/** Outermost first; none for a storage without slots. */
export function overviewDigits(layout: Layout, storage: DrawnStorage): OverviewDigit[] {
  const { digits, elements } = storage
  if (elements === 0) return []
  const described = hasAnyRank(layout) ? [] : describeDigits(digits.map((_, at) => ruleOf(digits, at)))
  const { firstDigit } = blocksOf(storage)
  return digits.flatMap(({ radix }, position) => {
    if (radix === 1) return []
    const { digit = digitName(storage, position), meaning = '' } = described[position] ?? {}
    const stride = slotsBelow(digits, position + 1)
    return [{ name: digit, meaning, radix, stride, isInBlock: position >= firstDigit }]
  })
}

/** Values of a digit that are drawn: the first three and the last, or all of few. */
export function drawnValues(radix: number, most = 3): (number | 'gap')[] {
  if (radix <= most + 1) return Array.from({ length: radix }, (_, value) => value)
  return [...Array.from({ length: most }, (_, value) => value), 'gap', radix - 1]
}

/**
 * The first blocks in memory order, the block after the first step of each outer digit, and the last block; empty for a single
 * block.
 */
export function blockChain(layout: Layout, storage: DrawnStorage): ChainLink[] {
  const { firstDigit, slots, count } = blocksOf(storage)
  if (count < 2) return []
  const outer = storage.digits.slice(0, firstDigit).filter(({ radix }) => radix > 1)
  // The second value of each digit, from the innermost to the outermost.
  const steps = outer.map((_, position) => slotsBelow(outer, position + 1)).reverse()
  const wanted = [0, 1, 2, ...steps, count - 1].filter((index) => index < count)
  const indices = [...new Set(wanted)].sort((one, other) => one - other)
  const names = axisNames(layout, storage)
  return indices.flatMap((index, position): ChainLink[] => {
    const link = { offset: index * slots, label: blockLabel(storage, names, index) }
    return position > 0 && indices[position - 1] !== index - 1 ? ['gap', link] : [link]
  })
}
