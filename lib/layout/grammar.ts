/**
 * Layout names are sentences of a small grammar; this file turns one into digits.
 *
 *     name  = outer { "_" block } [ "__" align { "_" align } ] [ "_swizzled_by_" int ]
 *     outer = token { "_" token }         token = letters (plain axes) | letters "s" (index of the block)
 *     block = letters ("sv" | "sa") int   align = "a" letter int
 *
 * Memory order is the order of the words, the last varies fastest. `b_fs_yx_fsv16` is b, f/16, y, x, f%16.
 * The notation is that of OpenVINO's GPU plugin (`intel_gpu/runtime/format.hpp`); any name of the grammar works,
 * not only those that the plugin uses.
 */

import { type DigitRule, inner, rest } from './digit_rule.js'
import type { Layout } from './layout.js'
import { refuseName } from './refuse_name.js'

/** What a name of the grammar says. */
export interface GrammarLayout {
  readonly kind: Extract<Layout['kind'], 'data' | 'weights' | 'weights_grouped'>
  /** Letters in logical order. */
  readonly axes: string
  readonly digits: readonly DigitRule[]
  /** Extents that are rounded up to a multiple, by letter. */
  readonly align: ReadonlyMap<string, number>
  /** oneDNN's generic tag; absent where a blocking descriptor cannot say it (fused axes, swizzles). */
  readonly onednnTag?: string
}

/** Logical order of data axes: batch, feature, then space, outermost first. */
const DATA_AXES = 'bfvuwzyx'
/** Logical order of weight axes: group, output and input channel, then space. */
const WEIGHT_AXES = 'goizyx'
const LETTERS = 'bfvuwzyxgoi'
const PLAIN = new RegExp(`^[${LETTERS}]+$`)
const SLICE = new RegExp(`^([${LETTERS}]+)s$`)
const BLOCK = new RegExp(`^([${LETTERS}]+)s[va]([0-9]+)$`)
const ALIGN = new RegExp(`^a([${LETTERS}])([0-9]+)$`)
const SWIZZLE = /^(.*)_swizzled_by_([0-9]+)$/
/** A block has at most nine decimal digits: far above any real block, far below where products lose exactness. */
const SIZE = /^[1-9][0-9]{0,8}$/

interface OuterToken {
  readonly axes: string
  readonly isSlice: boolean
}

interface BlockToken {
  readonly axes: string
  readonly size: number
}

interface Sentence {
  readonly outer: readonly OuterToken[]
  readonly blocks: readonly BlockToken[]
  readonly align: ReadonlyMap<string, number>
  readonly swizzle: number | undefined
}

/** Reads a name by the grammar. Throws ERR_LAYOUT_NAME, which says the word and the rule that it breaks. */
export function parseGrammar(name: string): GrammarLayout {
  const sentence = readSentence(name)
  const axes = logicalAxes(name, sentence.outer)
  checkBlocks(name, sentence)
  const digits = sentence.swizzle === undefined ? plainDigits(name, sentence) : swizzledDigits(name, sentence)
  const kind = axes.includes('g') ? 'weights_grouped' : /[oi]/.test(axes) ? 'weights' : 'data'
  const tag = onednnTag(sentence, axes)
  return { kind, axes, digits, align: sentence.align, ...(tag === undefined ? {} : { onednnTag: tag }) }
}

function readSentence(name: string): Sentence {
  const swizzled = SWIZZLE.exec(name)
  const [order = '', alignment, ...more] = (swizzled?.[1] ?? name).split('__')
  if (more.length > 0) refuseName(name, 'only one "__" may stand in a name, before the alignments')
  const outer: OuterToken[] = []
  const blocks: BlockToken[] = []
  for (const word of order.split('_')) {
    if (word === '') refuseName(name, 'a word before or after an "_" is empty')
    const block = BLOCK.exec(word)
    if (block !== null) {
      blocks.push({ axes: block[1]!, size: readSize(name, word, block[2]!) })
    } else if (blocks.length > 0) {
      refuseName(name, `the word "${word}" stands after a block; blocks such as "fsv16" come last`)
    } else {
      outer.push(readOuter(name, word))
    }
  }
  const align = readAlignments(name, alignment)
  return { outer, blocks, align, swizzle: swizzled === null ? undefined : Number(swizzled[2]) }
}

function readOuter(name: string, word: string): OuterToken {
  const slice = SLICE.exec(word)
  if (slice !== null) return { axes: slice[1]!, isSlice: true }
  if (PLAIN.test(word)) return { axes: word, isSlice: false }
  return refuseName(
    name,
    `the word "${word}" is neither axes ("yx"), nor a slice ("fs"), nor a block ("fsv16"); axes are ${[...LETTERS].join(' ')}`,
  )
}

function readSize(name: string, word: string, digits: string): number {
  if (!SIZE.test(digits)) {
    refuseName(name, `the number in "${word}" must be 1 to 999999999, without leading zeros`)
  }
  return Number(digits)
}

function readAlignments(name: string, text: string | undefined): Map<string, number> {
  const align = new Map<string, number>()
  for (const word of text === undefined ? [] : text.split('_')) {
    const match = ALIGN.exec(word)
    if (match === null) refuseName(name, `the word "${word}" after "__" is not an alignment such as "ai32"`)
    const letter = match[1]!
    if (align.has(letter)) refuseName(name, `axis ${letter} is aligned twice`)
    align.set(letter, readSize(name, word, match[2]!))
  }
  return align
}

function logicalAxes(name: string, outer: readonly OuterToken[]): string {
  const used = outer.map((token) => token.axes).join('')
  const repeated = [...used].find((letter, position) => used.indexOf(letter) !== position)
  if (repeated !== undefined) refuseName(name, `axis ${repeated} occurs twice before the blocks`)
  if (used === '') refuseName(name, 'no axes are named before the blocks')
  const data = [...used].find((letter) => !WEIGHT_AXES.includes(letter))
  const weight = [...used].find((letter) => !DATA_AXES.includes(letter))
  if (data !== undefined && weight !== undefined) {
    refuseName(name, `it mixes the data axis ${data} with the weight axis ${weight}`)
  }
  return [...(weight === undefined ? DATA_AXES : WEIGHT_AXES)]
    .filter((letter) => used.includes(letter))
    .join('')
}

function checkBlocks(name: string, { outer, blocks, align }: Sentence): void {
  for (const slice of outer.filter((token) => token.isSlice)) {
    if (!blocks.some((block) => block.axes === slice.axes)) {
      refuseName(name, `the slice "${slice.axes}s" has no block, for example "${slice.axes}sv16"`)
    }
  }
  for (const block of blocks) {
    if (!outer.some((token) => token.isSlice && token.axes === block.axes)) {
      refuseName(name, `the block of "${block.axes}" has no slice "${block.axes}s" before it`)
    }
    if (!Number.isSafeInteger(blockSizes(blocks, block.axes).reduce((product, size) => product * size, 1))) {
      refuseName(name, `the blocks of "${block.axes}" multiply to more than 2^53 - 1`)
    }
  }
  for (const letter of align.keys()) {
    if (!outer.some((token) => token.axes.includes(letter))) {
      refuseName(name, `axis ${letter} is aligned but does not occur`)
    }
    // A fused index counts the plain extents, so an alignment inside it would change nothing without a word.
    if (outer.some((token) => token.isSlice && token.axes.length > 1 && token.axes.includes(letter))) {
      refuseName(name, `axis ${letter} is part of a fused index and cannot be aligned on its own`)
    }
  }
}

function blockSizes(blocks: readonly BlockToken[], axes: string): number[] {
  return blocks.filter((block) => block.axes === axes).map((block) => block.size)
}

function plainDigits(name: string, { outer, blocks }: Sentence): DigitRule[] {
  const digits = outerDigits(outer, blocks)
  blocks.forEach((block, position) => {
    // Of two blocks of one axis the left is the more significant, so the weight is what stands to the right.
    const right = blockSizes(blocks.slice(position + 1), block.axes)
    const weight = right.reduce((product, size) => product * size, 1)
    digits.push(inner(block.axes, weight, block.size))
  })
  if (digits.length > MAX_DIGITS)
    refuseName(name, `it has ${digits.length} digits; the limit is ${MAX_DIGITS}`)
  return digits
}

/** Every digit is a loop of the planner; real names need 9, and the bound keeps a hostile name cheap. */
const MAX_DIGITS = 24

function outerDigits(outer: readonly OuterToken[], blocks: readonly BlockToken[]): DigitRule[] {
  return outer.flatMap(({ axes, isSlice }) => {
    if (!isSlice) return [...axes].map((letter) => rest(letter))
    return [
      rest(
        axes,
        blockSizes(blocks, axes).reduce((product, size) => product * size, 1),
      ),
    ]
  })
}

/** Output channels that a swizzle permutes among themselves. */
const SWIZZLED_CHANNELS = 32

/**
 * `_swizzled_by_k` stores channel o at the place of o' = 32·⌊o/32⌋ + (32/k)·(o mod k) + ⌊(o mod 32)/k⌋. The upper
 * part of a block of o' is therefore o mod k, the lower part ⌊o/k⌋ mod (32/k): the same digits, other significance.
 */
function swizzledDigits(name: string, sentence: Sentence): DigitRule[] {
  const step = sentence.swizzle
  const sizes = blockSizes(sentence.blocks, 'o').join(',')
  if ((step !== 2 && step !== 4) || (sizes !== '4,8' && sizes !== '32')) {
    refuseName(name, 'a swizzle is by 2 or 4 and needs output-channel blocks of 4 and 8, or one of 32')
  }
  return plainDigits(name, sentence).flatMap((digit) => {
    if (digit.axes !== 'o' || digit.radix === 'rest') return [digit]
    return swizzle(digit.weight, digit.radix, step)
  })
}

function swizzle(weight: number, radix: number, step: number): DigitRule[] {
  const border = SWIZZLED_CHANNELS / step
  if (weight >= border) return [inner('o', weight / border, radix)]
  if (weight * radix <= border) return [inner('o', weight * step, radix)]
  return [inner('o', 1, (weight * radix) / border), inner('o', weight * step, border / weight)]
}

function onednnTag({ outer, blocks, swizzle: step }: Sentence, axes: string): string | undefined {
  if (step !== undefined || outer.some((token) => token.isSlice && token.axes.length > 1)) return undefined
  const letter = (axis: string) => 'abcdefgh'[axes.indexOf(axis)]!
  const order = outer.flatMap((token) =>
    [...token.axes].map((axis) => (token.isSlice ? letter(axis).toUpperCase() : letter(axis))),
  )
  return [...order, ...blocks.map((block) => `${block.size}${letter(block.axes)}`)].join('')
}
