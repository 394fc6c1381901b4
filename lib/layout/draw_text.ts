/** Draws a layout for the terminal: memory in its order, one row of slots per line. */
import { describeDigits, orderFor } from './describe.js'
import { checkDrawing, type DrawOptions } from './draw_options.js'
import { hasAnyRank, type Layout } from './layout.js'
import {
  formatShape,
  type MemoryGroup,
  type MemoryPicture,
  type MemoryRow,
  memoryPicture,
} from './memory_rows.js'
import { workExample } from './worked_example.js'

/** Most rows in a drawing: a large tensor has billions. */
const MAX_ROWS = 48
const DEFAULT_WIDTH = 100
const HOLE = '·'
/** Light backgrounds of the 256-colour palette that colour-blind readers can distinguish; text on them is black. */
const BACKGROUNDS = [117, 222, 115, 228, 111, 216, 182] as const

/**
 * Draws where each element of `shape` lies in memory, as text. Each row is a range of memory and starts with the offset of
 * its first slot, in elements; rows are grouped by block; holes are `·`. A drawing of a large shape omits rows and says so.
 *
 * @throws TileworkError as `layout.storage`; ERR_ARGUMENT unless `layout` is from `parseLayout` and the options are valid
 */
export function drawLayoutText(layout: Layout, shape: readonly number[], options: DrawOptions = {}): string {
  return drawText(layout, shape, checkDrawing(layout, options, 'drawLayoutText'))
}

function drawText(layout: Layout, shape: readonly number[], options: DrawOptions): string {
  const width = Math.min(400, Math.max(40, Math.floor(options.width ?? DEFAULT_WIDTH) || DEFAULT_WIDTH))
  const bound = layout.storage(shape, options)
  // Offset, two gaps, and the coordinates that a row may share.
  const named = bound.extents.filter((extent) => extent > 1).map((extent) => String(extent - 1).length + 2)
  const margin = named.reduce((sum, length) => sum + length, String(bound.elements).length + 4)
  const picture = memoryPicture(layout, shape, options, {
    maxRows: MAX_ROWS,
    fits: (cells, labelLength, gaps) => margin + cells * (labelLength + 2) + gaps <= width,
  })
  const example = workExample(picture)
  return [
    ...headLines(layout, shape, options, picture),
    '',
    ...(picture.storage.elements === 0
      ? ['(no slots: the tensor is empty)']
      : memoryLines(picture, options.color === true)),
    '',
    ...legendLines(layout, options),
    ...(example === undefined ? [] : [`Example  ${example}`]),
  ].join('\n')
}

function headLines(
  layout: Layout,
  shape: readonly number[],
  options: DrawOptions,
  picture: MemoryPicture,
): string[] {
  const { elements, byteLength, extents } = picture.storage
  const used = extents.reduce((count, extent) => count * extent, 1)
  const lines = [
    `${layout.name}  ${formatShape(shape)}${options.dtype === undefined ? '' : ` ${options.dtype}`}`,
    `${plural(elements, 'slot')} = ${plural(used, 'element')} + ${plural(elements - used, 'hole')}` +
      (options.dtype === undefined ? '' : `; ${byteLength} bytes`),
  ]
  if (!hasAnyRank(layout)) lines.push(`memory order, outermost first: ${orderFor(layout, options.dtype)}`)
  return lines
}

function memoryLines(picture: MemoryPicture, color: boolean): string[] {
  const rows = picture.groups.flatMap((group) => group.rows)
  const offsetWidth = Math.max(...rows.map((row) => String(row.offset).length))
  const sharedWidth = Math.max(...rows.map((row) => row.shared.length))
  const lines = picture.groups.flatMap((group, position) => [
    ...(group.title === ''
      ? []
      : [...(position === 0 ? [] : ['']), `${' '.repeat(offsetWidth)}  ${titleOf(group)}`]),
    ...group.rows.map((row) => {
      const offset = String(row.offset).padStart(offsetWidth)
      const shared = row.shared.padEnd(sharedWidth)
      return `${offset}  ${sharedWidth === 0 ? '' : `${shared}  `}${cellsOf(row, picture, color)}`
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

function cellsOf(row: MemoryRow, picture: MemoryPicture, color: boolean): string {
  if (row.cells.length === 0) return ` ${HOLE} ${row.slots} holes, up to offset ${row.offset + row.slots - 1}`
  const cells = row.cells.map((coordinate, position) => {
    const gap = position > 0 && picture.gapEvery > 1 && position % picture.gapEvery === 0 ? ' ' : ''
    if (coordinate === null) return `${gap} ${HOLE.padEnd(picture.labelLength)}`
    const label = ` ${picture.label(coordinate).padEnd(picture.labelLength)}`
    if (!color) return gap + label
    const background = BACKGROUNDS[(coordinate[picture.colourAxis] ?? 0) % BACKGROUNDS.length]
    return `${gap}\x1b[48;5;${background}m\x1b[38;5;16m${label}\x1b[0m`
  })
  return cells.join(color ? '' : ' ').trimEnd()
}

function legendLines(layout: Layout, options: DrawOptions): string[] {
  const padded = [...(options.lower ?? []), ...(options.upper ?? [])].some((count) => count > 0)
  const digits = describeDigits(layout, options.dtype)
  const width = Math.max(0, ...digits.map(({ digit }) => digit.length))
  return [
    'How to read it',
    '  A row is a range of memory; its first number is the offset of its first slot, in elements.',
    '  Coordinates that a whole row shares come before it; a cell has the others.',
    `  ${HOLE} is a hole: a slot with no element, ${padded ? 'from explicit padding or rounding up, ' : ''}written as zero and never read.`,
    ...(digits.length === 0 ? [] : ['Digits of the offset, outermost first']),
    ...digits.map(({ digit, meaning }) => `  ${digit.padEnd(width)}  ${meaning}`),
    ...layout.notes.map((note) => `Note: ${note}`),
  ]
}
