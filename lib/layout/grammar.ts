/**
 * Parses a layout name into digits. Names follow a small grammar:
 *
 *     name  = outer { "_" block } [ "__" align { "_" align } ] [ "_swizzled_by_" int ]
 *     outer = token { "_" token }         token = letters (plain axes) | letters "s" (index of the block)
 *     block = letters ("sv" | "sa") int   align = "a" letter int
 *
 * The words are in memory order, the last varies fastest: `b_fs_yx_fsv16` is b, f/16, y, x, f%16. Source of the notation:
 * OpenVINO's GPU plugin, `intel_gpu/runtime/format.hpp`. Names that the plugin does not use are parsed as well.
 */

import { blockDigit, type DigitRule, topDigit } from './digit_rule.js'
import type { Layout } from './layout.js'
import { refuseName } from './refuse_name.js'

/** A parsed name. */
export interface GrammarLayout {
  readonly kind: Extract<Layout['kind'], 'data' | 'weights' | 'weights_grouped'>
  /** Letters in logical order. */
  readonly axes: string
  readonly digits: readonly DigitRule[]
  /** By letter: the multiple to which its extent is rounded up. */
  readonly align: ReadonlyMap<string, number>
  /** oneDNN's generic tag; absent where no blocking descriptor represents the layout (fused axes, swizzles). */
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
/** Block sizes of one to nine decimal digits: far above any real block, far below 2^53. */
const SIZE = /^[1-9][0-9]{0,8}$/

interface OuterToken {
  readonly axes: string
  readonly isSlice: boolean
}

interface BlockToken {
  readonly axes: string
  readonly size: number
}

interface Words {
  readonly outer: readonly OuterToken[]
  readonly blocks: readonly BlockToken[]
  readonly align: ReadonlyMap<string, number>
  readonly swizzle: number | undefined
}

/** @throws TileworkError ERR_LAYOUT_NAME with the word and the rule that it breaks */
export function parseGrammar(name: string): GrammarLayout {
  const words = readWords(name)
  const axes = logicalAxes(name, words.outer)
  checkBlocks(name, words)
  const digits = words.swizzle === undefined ? plainDigits(name, words) : swizzledDigits(name, words)
  const kind = axes.includes('g') ? 'weights_grouped' : /[oi]/.test(axes) ? 'weights' : 'data'
  const tag = onednnTag(words, axes)
  return { kind, axes, digits, align: words.align, ...(tag === undefined ? {} : { onednnTag: tag }) }
}

function readWords(name: string): Words {
  const swizzled = SWIZZLE.exec(name)
  const [order = '', alignment, ...more] = (swizzled?.[1] ?? name).split('__')
  if (more.length > 0) refuseName(name, 'it has more than one "__"; one is allowed, before the alignments')
  const outer: OuterToken[] = []
  const blocks: BlockToken[] = []
  for (const word of order.split('_')) {
    if (word === '') refuseName(name, 'a word before or after an "_" is empty')
    const block = BLOCK.exec(word)
    if (block !== null) {
      blocks.push({ axes: block[1]!, size: readSize(name, word, block[2]!) })
    } else if (blocks.length > 0) {
      refuseName(name, `the word "${word}" follows a block; blocks such as "fsv16" must come last`)
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

function checkBlocks(name: string, { outer, blocks, align }: Words): void {
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
    // A fused index is computed from unaligned sizes, so an alignment inside it would be ignored silently.
    if (outer.some((token) => token.isSlice && token.axes.length > 1 && token.axes.includes(letter))) {
      refuseName(name, `axis ${letter} is part of a fused index and cannot be aligned on its own`)
    }
  }
}

function blockSizes(blocks: readonly BlockToken[], axes: string): number[] {
  return blocks.filter((block) => block.axes === axes).map((block) => block.size)
}

function plainDigits(name: string, { outer, blocks }: Words): DigitRule[] {
  const digits = outerDigits(outer, blocks)
  blocks.forEach((block, position) => {
    // Of two blocks of an axis the left one is more significant: its weight is the product of the block sizes to its right.
    const right = blockSizes(blocks.slice(position + 1), block.axes)
    const weight = right.reduce((product, size) => product * size, 1)
    digits.push(blockDigit(block.axes, weight, block.size))
  })
  if (digits.length > MAX_NAME_DIGITS)
    refuseName(name, `it has ${digits.length} digits; the limit is ${MAX_NAME_DIGITS}`)
  return digits
}

/** Every digit becomes a loop in the planner. Real names need 9; the limit bounds the cost of a hostile name. */
const MAX_NAME_DIGITS = 24

function outerDigits(outer: readonly OuterToken[], blocks: readonly BlockToken[]): DigitRule[] {
  return outer.flatMap(({ axes, isSlice }) => {
    if (!isSlice) return [...axes].map((letter) => topDigit(letter))
    return [
      topDigit(
        axes,
        blockSizes(blocks, axes).reduce((product, size) => product * size, 1),
      ),
    ]
  })
}

/** Output channels that a swizzle permutes. */
const SWIZZLED_CHANNELS = 32
/** Sizes of the output-channel blocks of the plugin's swizzled layouts, outermost first. */
const SWIZZLED_BLOCKS: readonly string[] = ['4,8', '2,16', '32']

/**
 * `_swizzled_by_k` stores channel o where o' = 32·⌊o/32⌋ + (32/k)·(o mod k) + ⌊(o mod 32)/k⌋ would be. The upper part of a
 * block of o' is therefore o mod k and the lower part ⌊o/k⌋ mod (32/k): the same digits with other weights.
 */
function swizzledDigits(name: string, words: Words): DigitRule[] {
  const step = words.swizzle
  const sizes = blockSizes(words.blocks, 'o').join(',')
  if ((step !== 2 && step !== 4) || !SWIZZLED_BLOCKS.includes(sizes)) {
    refuseName(
      name,
      'a swizzle must be by 2 or 4, and needs output-channel blocks of 4 and 8, of 2 and 16, or of 32',
    )
  }
  return plainDigits(name, words).flatMap((digit) => {
    if (digit.axes !== 'o' || digit.radix === 'extent') return [digit]
    return swizzle(digit.weight, digit.radix, step)
  })
}

function swizzle(weight: number, radix: number, step: number): DigitRule[] {
  const border = SWIZZLED_CHANNELS / step
  if (weight >= border) return [blockDigit('o', weight / border, radix)]
  if (weight * radix <= border) return [blockDigit('o', weight * step, radix)]
  return [blockDigit('o', 1, (weight * radix) / border), blockDigit('o', weight * step, border / weight)]
}

function onednnTag({ outer, blocks, swizzle: step }: Words, axes: string): string | undefined {
  if (step !== undefined || outer.some((token) => token.isSlice && token.axes.length > 1)) return undefined
  const letter = (axis: string) => 'abcdefgh'[axes.indexOf(axis)]!
  const order = outer.flatMap((token) =>
    [...token.axes].map((axis) => (token.isSlice ? letter(axis).toUpperCase() : letter(axis))),
  )
  return [...order, ...blocks.map((block) => `${block.size}${letter(block.axes)}`)].join('')
}
