/** A layout drawn for the terminal: memory in its order, a row of slots a line. */
import { describeDigits, orderFor } from './describe.js'
import { checkDrawing, type DrawOptions } from './draw_options.js'
import { hasAnyRank, type Layout } from './layout.js'
import {
  cutMemory,
  formatShape,
  type MemoryGroup,
  type MemoryPicture,
  type MemoryRow,
} from './memory_rows.js'
import { workExample } from './worked_example.js'

/** Rows of memory that are shown; a person scrolls no further, and a large tensor has billions. */
const MAX_ROWS = 48
const DEFAULT_WIDTH = 100
const HOLE = '·'
/** Light backgrounds of the 256-colour palette that differ for colour-blind readers too; text on them is black. */
const BACKGROUNDS = [117, 222, 115, 228, 111, 216, 182] as const

/**
 * Draws where each element of `shape` lands in memory. Every row is a stretch of memory with the offset of its first
 * slot; rows are grouped by the blocks they belong to; holes are `·`. Large shapes are cut, and the drawing says so.
 *
 * @throws TileworkError as `layout.storage`; ERR_ARGUMENT for what is no layout of `parseLayout` and for wrong options
 */
export function drawLayoutText(layout: Layout, shape: readonly number[], options: DrawOptions = {}): string {
  return drawText(layout, shape, checkDrawing(layout, options, 'drawLayoutText'))
}

function drawText(layout: Layout, shape: readonly number[], options: DrawOptions): string {
  const width = Math.min(400, Math.max(40, Math.floor(options.width ?? DEFAULT_WIDTH) || DEFAULT_WIDTH))
  const bound = layout.storage(shape, options)
  // Address, two gaps, and the coordinates that a row may share.
  const named = bound.extents.filter((extent) => extent > 1).map((extent) => String(extent - 1).length + 2)
  const margin = named.reduce((sum, length) => sum + length, String(bound.elements).length + 4)
  const picture = cutMemory(layout, shape, options, {
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
  const addressWidth = Math.max(...rows.map((row) => String(row.address).length))
  const sharedWidth = Math.max(...rows.map((row) => row.shared.length))
  const lines = picture.groups.flatMap((group, position) => [
    ...(group.title === ''
      ? []
      : [...(position === 0 ? [] : ['']), `${' '.repeat(addressWidth)}  ${titleOf(group)}`]),
    ...group.rows.map((row) => {
      const address = String(row.address).padStart(addressWidth)
      const shared = row.shared.padEnd(sharedWidth)
      return `${address}  ${sharedWidth === 0 ? '' : `${shared}  `}${cellsOf(row, picture, color)}`
    }),
  ])
  if (picture.slotsLeftOut > 0) lines.push('', `… ${plural(picture.slotsLeftOut, 'more slot')} left out`)
  return lines
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function titleOf(group: MemoryGroup): string {
  return `── ${group.title} ──`
}

function cellsOf(row: MemoryRow, picture: MemoryPicture, color: boolean): string {
  if (row.cells.length === 0)
    return ` ${HOLE} ${row.slots} holes, up to offset ${row.address + row.slots - 1}`
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
    `  A row is a stretch of memory; its first number is the offset of its first slot, in elements.`,
    `  Coordinates that a whole row shares stand before it; a cell names the others.`,
    `  ${HOLE} is a hole: a slot with no element, ${padded ? 'from explicit padding or rounding up, ' : ''}written as zero and never read.`,
    ...(digits.length === 0 ? [] : ['Digits of the offset, outermost first']),
    ...digits.map(({ digit, meaning }) => `  ${digit.padEnd(width)}  ${meaning}`),
    ...layout.notes.map((note) => `Note: ${note}`),
  ]
}
