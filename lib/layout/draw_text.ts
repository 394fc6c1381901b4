/**
 * Draws a layout for the terminal: an overview of the digits of the offset and of the block order; then the whole memory if it is
 * small, or one block of it, one row of slots per line; then sentences that explain it.
 */

import { greatest } from '../long_lists.js'
import { orderFor } from './describe.js'
import { checkDrawing, type DrawOptions } from './draw_options.js'
import { type DrawnStorage, drawnStorage } from './drawn_storage.js'
import { hasAnyRank, type Layout } from './layout.js'
import {
  blockPicture,
  blocksOf,
  formatShape,
  hasHoles,
  type MemoryGroup,
  type MemoryPicture,
  type MemoryRow,
  memoryPicture,
  type PictureLimits,
  sharedBytes,
} from './memory_rows.js'
import { blockChain, digitsCaption, drawnValues, type OverviewDigit, overviewDigits } from './overview.js'
import { workExample } from './worked_example.js'

/** Most rows of a memory that is drawn whole: they fit on a screen below the overview. */
const MAX_WHOLE_ROWS = 20
/** Most rows of a block; a block of 16 × 16 takes half of them. */
const MAX_BLOCK_ROWS = 32
const DEFAULT_WIDTH = 100
const HOLE = '·'
/**
 * Backgrounds of the 256-colour palette by tone and hue (blue, orange, green, purple). Black text is readable on all, and
 * each light one differs from each dark one for every kind of colour vision.
 */
export const BACKGROUNDS = [
  [153, 223, 194, 225],
  [68, 172, 71, 133],
] as const

/**
 * Draws where each element of `shape` lies in memory, as text: first each digit of the offset with its stride and the order of
 * the blocks, then the whole memory or, if it is large, its first block and a block with padding. Each row is a range of memory
 * and starts with the offset of its first slot, in elements; `·` is padding.
 *
 * @throws TileworkError as `layout.storage`; ERR_ARGUMENT unless `layout` is from `parseLayout` and the options are valid
 */
export function drawLayoutText(layout: Layout, shape: readonly number[], options: DrawOptions = {}): string {
  return drawText(layout, shape, checkDrawing(layout, options, 'drawLayoutText'))
}

function drawText(layout: Layout, shape: readonly number[], options: DrawOptions): string {
  const width = Math.min(400, Math.max(40, Math.floor(options.width ?? DEFAULT_WIDTH) || DEFAULT_WIDTH))
  const storage = drawnStorage(layout, shape, options)
  const pictures = picturesOf(layout, shape, options, (maxRows, gap, firstDigit) => {
    const margin = marginOf(storage, firstDigit)
    return {
      maxRows,
      fits: (cells, length, gaps, more) => margin + more + cells * (length + gap) + gaps <= width,
    }
  })
  const example = workExample(pictures[0]!.picture)
  return [
    ...headLines(layout, shape, options, storage),
    '',
    ...overviewLines(layout, storage, width),
    ...(storage.elements === 0
      ? ['(no slots: the tensor is empty)']
      : pictures.flatMap(({ picture, gap }, position) => [
          ...(position === 0 ? [] : ['']),
          ...memoryLines(picture, gap, options.color === true),
        ])),
    '',
    ...legendLines(layout, options, pictures),
    ...(example === undefined
      ? []
      : wrapWords(['Example ', ...example.split(' ')], width - 2).map((line, at) =>
          at === 0 ? line : `  ${line}`,
        )),
  ].join('\n')
}

/** Width of the offset, two gaps, and the coordinates that a row may share: of all drawn digits except the innermost. */
function marginOf({ digits, extents, elements }: DrawnStorage, firstDigit: number): number {
  const drawn = digits.slice(firstDigit).filter(({ radix }) => radix > 1)
  const innermost = drawn.at(-1)?.positions ?? []
  const axes = new Set(drawn.flatMap(({ positions }) => positions))
  return [...axes]
    .filter((axis) => !innermost.includes(axis))
    .reduce((sum, axis) => sum + String(extents[axis]! - 1).length + 2, String(elements).length + 4)
}

interface DrawnPicture {
  readonly picture: MemoryPicture
  /** Columns between two labels. */
  readonly gap: number
}

/** The whole memory where it is small; otherwise the first block, and a block with padding where the first has none. */
function picturesOf(
  layout: Layout,
  shape: readonly number[],
  options: DrawOptions,
  limitsOf: (maxRows: number, gap: number, firstDigit: number) => PictureLimits,
): DrawnPicture[] {
  const whole = widest((gap) => memoryPicture(layout, shape, options, limitsOf(MAX_WHOLE_ROWS, gap, 0)))
  const { storage, omittedSlots } = whole.picture
  if (omittedSlots === 0) return [whole]
  const { firstDigit, count } = blocksOf(storage)
  const block = (index: number): DrawnPicture =>
    widest((gap) => blockPicture(layout, shape, options, limitsOf(MAX_BLOCK_ROWS, gap, firstDigit), index))
  const first = block(0)
  const last = count - 1
  if (last < 1 || hasHoles(first.picture)) return [first]
  const end = block(last)
  return hasHoles(end.picture) ? [first, end] : [first]
}

/** Two columns between labels, unless one column allows longer rows. */
function widest(pictureFor: (gap: number) => MemoryPicture): DrawnPicture {
  const loose = { picture: pictureFor(2), gap: 2 }
  const tight = { picture: pictureFor(1), gap: 1 }
  return tight.picture.rowLength > loose.picture.rowLength ? tight : loose
}

function headLines(
  layout: Layout,
  shape: readonly number[],
  options: DrawOptions,
  { elements, byteLength, extents }: DrawnStorage,
): string[] {
  const used = extents.reduce((count, extent) => count * extent, 1)
  const lines = [
    `${layout.name}  ${formatShape(shape)}${options.dtype === undefined ? '' : ` ${options.dtype}`}`,
    `${plural(elements, 'slot')} = ${plural(used, 'element')} + ${plural(elements - used, 'hole')}` +
      (options.dtype === undefined ? '' : `; ${byteLength} bytes`),
  ]
  if (!hasAnyRank(layout)) lines.push(`memory order, outermost first: ${orderFor(layout, options.dtype)}`)
  return lines
}

function overviewLines(layout: Layout, storage: DrawnStorage, width: number): string[] {
  const digits = overviewDigits(layout, storage)
  if (digits.length === 0) return []
  const nameWidth = greatest(digits.map(({ name }) => name.length))
  const chains = digits.map((digit) => valueChain(digit))
  const chainWidth = greatest(chains.map((chain) => chain.length))
  const lines = digits.flatMap(({ name, meaning }, position) => {
    const line = `  ${name.padEnd(nameWidth)}  ${chains[position]!.padEnd(chainWidth)}`
    const isShort = line.length + 3 + meaning.length <= width
    if (isShort || meaning === '') return [`${line}   ${meaning}`.trimEnd()]
    return [line.trimEnd(), `  ${' '.repeat(nameWidth)}    ${meaning}`]
  })
  return [`Digits ${digitsCaption(storage)}`, ...lines, '', ...chainLines(layout, storage, width)]
}

/** `0 ─+16→ 1 ─+16→ 2 … 35` */
function valueChain({ radix, stride }: OverviewDigit): string {
  const values = drawnValues(radix, 2)
  return values
    .map((value, position) => {
      if (value === 'gap') return ' … '
      const isNext = value - 1 === values[position - 1]
      return !isNext ? String(value) : ` ─+${stride}→ ${value}`
    })
    .join('')
}

function chainLines(layout: Layout, storage: DrawnStorage, width: number): string[] {
  const links = blockChain(layout, storage)
  if (links.length === 0) return []
  const { count, slots, noun } = blocksOf(storage)
  const words = links.map((link, position) => {
    const isNext = position > 0 && link !== 'gap' && links[position - 1] !== 'gap'
    return `${isNext ? `─+${slots}→ ` : ''}${link === 'gap' ? '…' : `${link.offset} [${link.label}]`}`
  })
  const title = `${plural(count, noun)} of ${slots} slots in memory, each with the offset of its first slot`
  return [title, ...wrapWords(words, width - 2).map((line) => `  ${line}`), '']
}

function wrapWords(words: readonly string[], width: number): string[] {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

function memoryLines(picture: MemoryPicture, gap: number, color: boolean): string[] {
  const rows = picture.groups.flatMap((group) => group.rows)
  const offsetWidth = greatest(rows.map((row) => String(row.offset).length))
  const sharedWidth = greatest(rows.map((row) => row.shared.length))
  const lines = picture.groups.flatMap((group, position) => [
    ...(group.title === ''
      ? []
      : [...(position === 0 ? [] : ['']), `${' '.repeat(offsetWidth)}  ${titleOf(group)}`]),
    ...group.rows.map((row) => {
      const offset = String(row.offset).padStart(offsetWidth)
      const shared = row.shared.padEnd(sharedWidth)
      return `${offset}  ${sharedWidth === 0 ? '' : `${shared}  `}${cellsOf(row, picture, gap, color)}`
    }),
  ])
  if (picture.omittedSlots > 0) lines.push('', `… ${plural(picture.omittedSlots, 'more slot')} omitted`)
  return lines
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function titleOf(group: MemoryGroup): string {
  return `── ${group.title} ──`
}

function cellsOf(row: MemoryRow, picture: MemoryPicture, gap: number, color: boolean): string {
  if (row.cells.length === 0) return ` ${HOLE} ${row.slots} holes, up to offset ${row.offset + row.slots - 1}`
  const cells = row.cells.map((coordinate, position) => {
    const between = position > 0 && picture.gapEvery > 1 && position % picture.gapEvery === 0 ? ' ' : ''
    const label = coordinate === null ? HOLE : picture.label(coordinate)
    const text = `${label.padStart(label.length + 1)}${' '.repeat(picture.labelLength - label.length + gap - 1)}`
    if (!color || coordinate === null) return between + text
    const background = BACKGROUNDS[picture.toneOf(row.offset + position)][picture.hueOf(coordinate)]
    return `${between}\x1b[48;5;${background}m\x1b[38;5;16m${text}\x1b[0m`
  })
  return cells.join('').trimEnd()
}

function legendLines(layout: Layout, options: DrawOptions, pictures: readonly DrawnPicture[]): string[] {
  const padded = [...(options.lower ?? []), ...(options.upper ?? [])].some((count) => count > 0)
  const hasHole = pictures.some(({ picture }) => hasHoles(picture))
  return [
    'How to read it',
    '  A row is a range of memory; its first number is the offset of its first slot, in elements.',
    '  Coordinates that a whole row shares come before it; a cell has the others.',
    ...[
      pictures.map(({ picture }) => picture.relativeExample).find((each) => each !== undefined),
      sharedBytes(options.dtype),
    ].flatMap((sentence) => (sentence === undefined ? [] : [`  ${sentence}`])),
    ...(hasHole
      ? [
          `  ${HOLE} is a hole: a slot with no element, ${padded ? 'from explicit padding or rounding up, ' : ''}written as zero and never read.`,
        ]
      : []),
    ...layout.notes.map((note) => `Note: ${note}`),
  ]
}
