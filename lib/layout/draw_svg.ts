/**
 * Draws a layout as SVG. Above is an overview: the digits of the offset with their steps, and the blocks in their order.
 * On the left is the tensor with the offset in each cell; on the right is its memory, or one block of it, with the
 * coordinates in each cell. An element has the same colour in both.
 */

import { append, greatest } from '../long_lists.js'
import { orderFor } from './describe.js'
import { checkDrawing, type DrawOptions } from './draw_options.js'
import { hasAnyRank, type Layout } from './layout.js'
import {
  blockPicture,
  blocksOf,
  formatShape,
  hasHoles,
  type MemoryPicture,
  type MemoryRow,
  memoryPicture,
  sharedBytes,
} from './memory_rows.js'
import { offsetInStorage } from './offset.js'
import { blockChain, digitsCaption, drawnValues, overviewDigits } from './overview.js'
import { workExample } from './worked_example.js'

/** Most rows of memory in a drawing; more do not fit a screen. */
const MAX_ROWS = 36
/** Most cells of a slice: of the only slice, of one of several, and of slices that are truncated anyway. */
const ONLY_SLICE = { rows: 32, columns: 16 }
const SLICE = { rows: 8, columns: 8 }
const TRUNCATED_SLICE = { rows: 4, columns: 4 }

const MARGIN = 28
const OVERVIEW_TOP = 96
/** Space for the titles of the two halves. */
const TITLE_HEIGHT = 34
const CELL_HEIGHT = 22
/** Upper bound of the width of a character in the cell font, so labels always fit. */
const CHARACTER = 6.4
const TENSOR_WIDTH = 420
const TENSOR_HEIGHT = 760
/** Beside one block a few slices are enough. */
const TENSOR_HEIGHT_BESIDE_BLOCK = 400
const SLICE_GAP = 14
/** Space between cells that differ in more than the innermost digit. */
const GAP = 4
/** Height of the name above a slice, and of the names of its columns. */
const SLICE_TITLE = 17
const COLUMN_NAMES = 15
/** Width of a row of memory, and the minimum width of the legend below it. */
const MEMORY_WIDTH = 640
const LEGEND_WIDTH = 640
const SANS = "font-family=\"'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\""
/** Classes of text and shapes; `STYLE` gives them a second set of colours for dark pages. */
const INK = 'ink'
const FAINT = 'faint'

/**
 * Fills by tone and hue (blue, orange, green, purple). Each light one differs from each dark one for every kind of colour
 * vision, and the text is readable on all.
 */
export const FILLS = {
  light: [
    ['#cce9f8', '#f8e2b3', '#b3e2d5', '#f0d7e5'],
    ['#67bceb', '#e9a91a', '#1aa881', '#d186b0'],
  ],
  dark: [
    ['#123044', '#3f2b00', '#003325', '#3d2030'],
    ['#2b78a6', '#966500', '#007a57', '#a3527d'],
  ],
} as const
export const INKS = { light: '#1f2328', dark: '#ffffff' } as const
export const PAGES = { light: '#ffffff', dark: '#0d1117' } as const

/** A style sheet, because colours as attributes would need a second document for dark mode. */
const STYLE = `<style>${rulesOf('light')}
@media (prefers-color-scheme: dark) {
${rulesOf('dark')}
}</style>`

function rulesOf(mode: 'light' | 'dark'): string {
  const isLight = mode === 'light'
  const rules = {
    page: `fill:${PAGES[mode]}`,
    ink: `fill:${INKS[mode]}`,
    faint: `fill:${isLight ? '#57606a' : '#9da7b3'}`,
    frame: `fill:${isLight ? '#fbfcfd' : '#161b22'};stroke:${isLight ? '#d0d7de' : '#3d444d'}`,
    line: `stroke:${isLight ? '#57606a' : '#9da7b3'};fill:none`,
    hole: 'fill:url(#hole)',
    gap: `fill:${isLight ? '#f6f8fa' : '#21262d'}`,
    hatch: `stroke:${isLight ? '#c4ccd4' : '#4a525c'}`,
    ...Object.fromEntries(
      FILLS[mode].flatMap((fills, tone) => fills.map((fill, hue) => [fillClass(tone, hue), `fill:${fill}`])),
    ),
  }
  return Object.entries(rules)
    .map(([name, rule]) => `.${name}{${rule}}`)
    .join('\n')
}

function fillClass(tone: number, hue: number): string {
  return `c${tone}${hue}`
}

/** A part of the drawing and its size. */
interface Drawn {
  readonly svg: readonly string[]
  readonly width: number
  readonly height: number
}

/**
 * Draws where each element of `shape` lies in memory, as a self-contained SVG document for light and dark pages: an overview
 * of digits and blocks, then the tensor beside its memory, or beside one block of it. A drawing of a large shape omits cells
 * and names their number.
 *
 * @throws TileworkError as `layout.storage`; ERR_ARGUMENT unless `layout` is from `parseLayout` and the options are valid
 */
export function drawLayoutSvg(layout: Layout, shape: readonly number[], options: DrawOptions = {}): string {
  return drawSvg(layout, shape, checkDrawing(layout, options, 'drawLayoutSvg'))
}

function drawSvg(layout: Layout, shape: readonly number[], options: DrawOptions): string {
  const pictures = picturesOf(layout, shape, options)
  const picture = pictures[0]!
  const memoryLeft = MARGIN + TENSOR_WIDTH + 48
  const overview = drawOverview(layout, picture, OVERVIEW_TOP)
  const top = OVERVIEW_TOP + overview.height + TITLE_HEIGHT
  const tensor = drawTensor(picture, MARGIN, top)
  let memoryHeight = 0
  const memories = pictures.map((each) => {
    const drawn = drawMemory(each, memoryLeft, top + memoryHeight)
    memoryHeight += drawn.height
    return drawn
  })
  const bottom = top + Math.max(tensor.height, memoryHeight) + 24
  const memoryWidth = Math.max(LEGEND_WIDTH, greatest(memories.map(({ width }) => width)))
  const inside = Math.max(memoryLeft - MARGIN + memoryWidth, overview.width)
  const legend = drawLegend(layout, options, pictures, bottom, inside)
  const width = inside + 2 * MARGIN
  const height = bottom + legend.height + MARGIN
  const title = `${layout.name} ${formatShape(shape)}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${height}" viewBox="0 0 ${round(width)} ${height}" role="img" ${SANS}>`,
    `<title>${escapeXml(`Memory layout ${title}`)}</title>`,
    STYLE,
    HATCH,
    `<rect width="${round(width)}" height="${height}" class="page"/>`,
    ...drawHead(layout, title, options, pictures, memoryLeft, top),
    ...overview.svg,
    ...tensor.svg,
    ...memories.flatMap(({ svg }) => svg),
    ...legend.svg,
    '</svg>',
    '',
  ].join('\n')
}

/** The whole memory where it is small; otherwise the first block, and the last block where only that one has padding. */
function picturesOf(layout: Layout, shape: readonly number[], options: DrawOptions): MemoryPicture[] {
  const limits = {
    maxRows: MAX_ROWS,
    fits: (cells: number, labelLength: number, gapCount: number, margin: number) =>
      margin * CHARACTER + cells * cellWidth(labelLength) + gapCount * GAP <= MEMORY_WIDTH,
  }
  const whole = memoryPicture(layout, shape, options, limits)
  if (whole.omittedSlots === 0) return [whole]
  const first = blockPicture(layout, shape, options, limits, 0)
  const last = blocksOf(whole.storage).count - 1
  if (last < 1 || hasHoles(first)) return [first]
  const end = blockPicture(layout, shape, options, limits, last)
  return hasHoles(end) ? [first, end] : [first]
}

const HATCH =
  '<defs><pattern id="hole" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
  '<rect width="6" height="6" class="gap"/><line x1="0" y1="0" x2="0" y2="6" class="hatch" stroke-width="1.6"/></pattern>' +
  '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">' +
  '<path d="M0 0L8 4L0 8Z" class="faint"/></marker></defs>'

const BOX_HEIGHT = 20
const STEP = 62
const OVERVIEW_ROW = 28

/** One row of boxes for each digit, and the chain of the blocks. */
function drawOverview(layout: Layout, { storage }: MemoryPicture, top: number): Drawn {
  const digits = overviewDigits(layout, storage)
  if (digits.length === 0) return { svg: [], width: 0, height: 0 }
  const svg = [text(MARGIN, top, `Overview: the digits ${digitsCaption(storage)}`, { size: 13, weight: 600 })]
  const left = MARGIN + greatest(digits.map(({ name }) => name.length)) * 7.5 + 14
  const chains = digits.map(({ radix, stride }, row) => {
    const labels = drawnValues(radix).map((value) => (value === 'gap' ? value : String(value)))
    return drawChain(labels, stride, left, top + 18 + row * OVERVIEW_ROW, 30)
  })
  const meanings = left + greatest(chains.map(({ width }) => width)) + 24
  digits.forEach(({ name, meaning }, row) => {
    const y = top + 18 + row * OVERVIEW_ROW + 14
    svg.push(text(MARGIN, y, name, { size: 12, weight: 600 }))
    append(svg, chains[row]!.svg)
    svg.push(text(meanings, y, meaning, { size: 12 }))
  })
  let y = top + 18 + digits.length * OVERVIEW_ROW
  let width = meanings - MARGIN + greatest(digits.map(({ meaning }) => meaning.length)) * CHARACTER
  const links = blockChain(layout, storage)
  if (links.length > 0) {
    const { count, slots, noun } = blocksOf(storage)
    const words = `${count} ${noun}s of ${slots} slots in memory, each with the offset of its first slot`
    svg.push(text(MARGIN, y + 20, words, { size: 13, weight: 600 }))
    const labels = links.map((link) => (link === 'gap' ? link : `${link.offset}: ${link.label}`))
    const longest = greatest(labels.map((label) => label.length))
    const chain = drawChain(
      labels,
      slots,
      MARGIN,
      y + 32,
      longest * CHARACTER + 14,
      MEMORY_WIDTH + TENSOR_WIDTH,
    )
    append(svg, chain.svg)
    width = Math.max(width, chain.width)
    y += 32 + chain.height
  }
  return { svg, width, height: y - top + 12 }
}

/** Boxes from left to right with arrows between neighbours, wrapped at `maxWidth`. */
function drawChain(
  labels: readonly string[],
  stride: number,
  left: number,
  top: number,
  boxWidth: number,
  maxWidth = Number.POSITIVE_INFINITY,
): Drawn {
  const svg: string[] = []
  let [x, y, width] = [left, top, 0]
  labels.forEach((label, position) => {
    const isGap = label === 'gap'
    if (!isGap && x + boxWidth - left > maxWidth) {
      x = left
      y += OVERVIEW_ROW
    }
    if (isGap) {
      svg.push(text(x + 10, y + 14, '…', { size: 12, anchor: 'middle' }))
      x += 26
      return
    }
    const frame = `<rect x="${round(x)}" y="${y}" width="${round(boxWidth)}" height="${BOX_HEIGHT}" rx="3" class="frame"/>`
    svg.push(frame, text(x + boxWidth / 2, y + 14, label, { size: 10.5, anchor: 'middle' }))
    x += boxWidth
    width = Math.max(width, x - left)
    const next = labels[position + 1]
    if (next === undefined || next === 'gap') {
      x += 6
      return
    }
    const end = x + STEP
    svg.push(
      `<path d="M${round(x + 3)} ${y + 14}H${round(end - 3)}" class="line" marker-end="url(#tip)"/>`,
      text((x + end) / 2, y + 9, `+${stride}`, { size: 9.5, fill: FAINT, anchor: 'middle' }),
    )
    x = end
  })
  return { svg, width, height: y - top + OVERVIEW_ROW }
}

function drawHead(
  layout: Layout,
  title: string,
  options: DrawOptions,
  pictures: readonly MemoryPicture[],
  memoryLeft: number,
  top: number,
): string[] {
  const { storage, isBlock } = pictures[0]!
  const used = storage.extents.reduce((count, extent) => count * extent, 1)
  const order = hasAnyRank(layout) ? '' : `order in memory: ${orderFor(layout, options.dtype)}     `
  const bytes = options.dtype === undefined ? '' : `, ${storage.byteLength} bytes of ${options.dtype}`
  const counts = `${storage.elements} slots: ${used} elements and ${storage.elements - used} holes${bytes}`
  const part = isBlock ? `One ${blocksOf(storage).noun} of its memory` : 'Its memory, in order'
  return [
    text(MARGIN, 42, title, { size: 22, weight: 600 }),
    text(MARGIN, 66, order + counts, { size: 13, fill: FAINT }),
    text(MARGIN, top - 14, 'The tensor (each cell: its offset in memory)', { size: 13, weight: 600 }),
    text(memoryLeft, top - 14, `${part} (each cell: the element stored there)`, { size: 13, weight: 600 }),
  ]
}

function drawTensor(picture: MemoryPicture, left: number, top: number): Drawn {
  const { extents } = picture.storage
  if (extents.includes(0)) {
    const words = text(left, top + 16, 'The tensor has no elements.', { size: 12, fill: FAINT })
    return { svg: [words], width: TENSOR_WIDTH, height: 24 }
  }
  const grid = sliceGrid(picture)
  const across = Math.max(1, Math.floor((TENSOR_WIDTH + SLICE_GAP) / (grid.width + SLICE_GAP)))
  const down = Math.max(
    1,
    Math.floor((picture.isBlock ? TENSOR_HEIGHT_BESIDE_BLOCK : TENSOR_HEIGHT) / grid.height),
  )
  const shown = Math.min(grid.slices, across * down)
  const svg: string[] = []
  for (let slice = 0; slice < shown; slice++) {
    const x = left + (slice % across) * (grid.width + SLICE_GAP)
    const y = top + Math.floor(slice / across) * grid.height
    append(svg, drawSlice(picture, grid, sliceCoordinate(extents, grid.sliceAxes, slice), x, y))
  }
  const height = Math.ceil(shown / across) * grid.height
  if (shown === grid.slices && grid.rows === grid.allRows && grid.columns === grid.allColumns) {
    return { svg, width: TENSOR_WIDTH, height }
  }
  const slices = grid.slices === 1 ? '' : `${shown} of ${grid.slices} slices, `
  const note = `Drawn: ${slices}${grid.rows} × ${grid.columns} of ${grid.allRows} × ${grid.allColumns} cells.`
  svg.push(text(left, top + height + 6, note, { size: 11, fill: FAINT }))
  return { svg, width: TENSOR_WIDTH, height: height + 20 }
}

/** The last two axes of size 2 or more are the rows and columns of a slice; the other axes number the slices. */
interface SliceGrid {
  readonly rowAxis: number | undefined
  readonly columnAxis: number | undefined
  readonly sliceAxes: readonly number[]
  readonly slices: number
  readonly rows: number
  readonly columns: number
  readonly allRows: number
  readonly allColumns: number
  readonly headerWidth: number
  readonly cellWidth: number
  readonly width: number
  readonly height: number
}

function sliceGrid({ storage: { extents, elements }, names, colourAxis }: MemoryPicture): SliceGrid {
  const long = extents.flatMap((extent, axis) => (extent > 1 ? [axis] : []))
  const [rowAxis, columnAxis] = long.length >= 2 ? long.slice(-2) : [undefined, long[0]]
  const [allRows, allColumns] = [rowAxis, columnAxis].map((axis) =>
    axis === undefined ? 1 : extents[axis]!,
  ) as [number, number]
  const sliceAxes = long.slice(0, -2)
  // Channels vary fastest, so that a truncated drawing shows several of them.
  const ordered = sliceAxes.includes(colourAxis)
    ? [...sliceAxes.filter((axis) => axis !== colourAxis), colourAxis]
    : sliceAxes
  const slices = sliceAxes.reduce((count, axis) => count * extents[axis]!, 1)
  const limit =
    slices === 1 ? ONLY_SLICE : allRows > SLICE.rows || allColumns > SLICE.columns ? TRUNCATED_SLICE : SLICE
  const rows = Math.min(allRows, limit.rows)
  const headerWidth = rowAxis === undefined ? 0 : `${names[rowAxis]}${rows - 1}`.length * CHARACTER + 10
  const widest = Math.max(
    String(elements).length,
    `${columnAxis === undefined ? '' : names[columnAxis]}0`.length,
  )
  const cellSize = cellWidth(widest)
  const columns = Math.min(
    allColumns,
    limit.columns,
    Math.max(1, Math.floor((TENSOR_WIDTH - headerWidth) / cellSize)),
  )
  const width = headerWidth + columns * cellSize
  const height = SLICE_TITLE + COLUMN_NAMES + rows * CELL_HEIGHT + 10
  return {
    rowAxis,
    columnAxis,
    sliceAxes: ordered,
    slices,
    rows,
    columns,
    allRows,
    allColumns,
    headerWidth,
    cellWidth: cellSize,
    width,
    height,
  }
}

function sliceCoordinate(extents: readonly number[], axes: readonly number[], slice: number): number[] {
  const coordinate = extents.map(() => 0)
  let quotient = slice
  for (const axis of [...axes].reverse()) {
    coordinate[axis] = quotient % extents[axis]!
    quotient = Math.floor(quotient / extents[axis]!)
  }
  return coordinate
}

function drawSlice(
  picture: MemoryPicture,
  grid: SliceGrid,
  base: readonly number[],
  left: number,
  top: number,
): string[] {
  const { storage, names } = picture
  const name = [...grid.sliceAxes]
    .sort((one, other) => one - other)
    .map((axis) => `${names[axis]}${base[axis]}`)
    .join(' ')
  const svg = name === '' ? [] : [text(left, top + 12, name, { size: 11, weight: 600 })]
  for (let column = 0; grid.columnAxis !== undefined && column < grid.columns; column++) {
    const x = left + grid.headerWidth + column * grid.cellWidth + (grid.cellWidth - 2) / 2
    const label = `${names[grid.columnAxis]}${column}`
    svg.push(text(x, top + SLICE_TITLE + 10, label, { size: 10, fill: FAINT, anchor: 'middle' }))
  }
  for (let row = 0; row < grid.rows; row++) {
    const y = top + SLICE_TITLE + COLUMN_NAMES + row * CELL_HEIGHT
    if (grid.rowAxis !== undefined) {
      const label = `${names[grid.rowAxis]}${row}`
      svg.push(text(left + grid.headerWidth - 6, y + 15, label, { size: 10, fill: FAINT, anchor: 'end' }))
    }
    for (let column = 0; column < grid.columns; column++) {
      const coordinate = base.map((position, axis) =>
        axis === grid.rowAxis ? row : axis === grid.columnAxis ? column : position,
      )
      const offset = offsetInStorage(storage, coordinate.length, coordinate)
      svg.push(
        cell(left + grid.headerWidth + column * grid.cellWidth, y, grid.cellWidth, {
          label: String(offset),
          fill: colourOf(picture, coordinate, offset),
          hint: `${picture.fullLabel(coordinate)} is at offset ${offset}`,
        }),
      )
    }
  }
  return svg
}

function drawMemory(picture: MemoryPicture, left: number, top: number): Drawn {
  if (picture.storage.elements === 0) {
    return {
      svg: [text(left, top + 16, 'The storage has no slots.', { size: 12, fill: FAINT })],
      width: 0,
      height: 24,
    }
  }
  const columns = memoryColumns(picture, left)
  const svg: string[] = []
  let y = top
  for (const group of picture.groups) {
    const drawn = drawGroup(group, picture, columns, y)
    append(svg, drawn.svg)
    y += drawn.height + 8
  }
  if (picture.omittedSlots > 0) {
    svg.push(
      text(left, y + 10, `… ${picture.omittedSlots} more slots are not drawn.`, { size: 11, fill: FAINT }),
    )
    y += 20
  }
  return { svg, width: columns.width, height: y - top }
}

/** Horizontal positions in the picture of the memory. */
interface MemoryColumns {
  readonly left: number
  /** End of the offsets. */
  readonly offsetsEnd: number
  readonly cellsLeft: number
  readonly cellWidth: number
  readonly width: number
}

function memoryColumns(picture: MemoryPicture, left: number): MemoryColumns {
  const rows = picture.groups.flatMap((group) => group.rows)
  const sharedWidth = greatest(rows.map((row) => row.shared.length)) * CHARACTER
  const offsetsEnd = left + String(rows.at(-1)!.offset).length * CHARACTER + 8
  const cellsLeft = offsetsEnd + (sharedWidth === 0 ? 0 : sharedWidth + 10) + 8
  const cellSize = cellWidth(picture.labelLength)
  const width = cellsLeft - left + rowWidth(picture, cellSize) + 10
  return { left, offsetsEnd, cellsLeft, cellWidth: cellSize, width }
}

/** A frame with the rows of a group. */
function drawGroup(
  { title, rows }: MemoryPicture['groups'][number],
  picture: MemoryPicture,
  columns: MemoryColumns,
  top: number,
): { readonly svg: readonly string[]; readonly height: number } {
  const { left, offsetsEnd, cellsLeft, width } = columns
  const hasTitle = title !== ''
  const height = (hasTitle ? 20 : 6) + rows.length * (CELL_HEIGHT + 2) + 6
  const svg = [
    `<rect x="${left - 6}" y="${top}" width="${round(width)}" height="${height}" rx="6" class="frame"/>`,
  ]
  if (hasTitle) svg.push(text(left + 2, top + 15, title, { size: 11, weight: 600, fill: FAINT }))
  rows.forEach((row, position) => {
    const rowTop = top + (hasTitle ? 22 : 6) + position * (CELL_HEIGHT + 2)
    svg.push(text(offsetsEnd, rowTop + 15, String(row.offset), { size: 10, fill: FAINT, anchor: 'end' }))
    svg.push(text(offsetsEnd + 10, rowTop + 15, row.shared, { size: 10 }))
    append(svg, drawRow(row, picture, cellsLeft, rowTop, columns.cellWidth))
  })
  return { svg, height }
}

function drawRow(row: MemoryRow, picture: MemoryPicture, left: number, top: number, width: number): string[] {
  if (row.cells.length === 0) {
    const label = `${row.slots} holes, up to offset ${row.offset + row.slots - 1}`
    return [cell(left, top, rowWidth(picture, width), { label, fill: 'hole', hint: label })]
  }
  return row.cells.map((coordinate, position) => {
    const x = left + position * width + gaps(picture, position)
    const offset = row.offset + position
    if (coordinate === null)
      return cell(x, top, width, { label: '', fill: 'hole', hint: `offset ${offset} is a hole` })
    return cell(x, top, width, {
      label: picture.label(coordinate),
      fill: colourOf(picture, coordinate, offset),
      hint: `offset ${offset} holds ${picture.fullLabel(coordinate)}`,
    })
  })
}

function rowWidth(picture: MemoryPicture, width: number): number {
  return picture.rowLength * width + gaps(picture, picture.rowLength - 1)
}

function gaps({ gapEvery }: MemoryPicture, position: number): number {
  return gapEvery > 1 ? Math.floor(position / gapEvery) * GAP : 0
}

function drawLegend(
  layout: Layout,
  options: DrawOptions,
  pictures: readonly MemoryPicture[],
  top: number,
  width: number,
): Drawn {
  const picture = pictures[0]!
  const colourName = picture.names[picture.colourAxis]?.replace('=', '') ?? ''
  const isPadded = [...(options.lower ?? []), ...(options.upper ?? [])].some((count) => count > 0)
  const padded = isPadded ? ' (explicit padding, or rounding up)' : ''
  const example = workExample(picture)
  const sentences = [
    'Offsets grow to the right, then downwards; the number before a row is the offset of its first slot, in elements.',
    colourName === ''
      ? ''
      : `Hue: the index along ${colourName}; light and dark alternate from slot to slot. Both halves agree.`,
    pictures.map(({ relativeExample }) => relativeExample).find((each) => each !== undefined) ?? '',
    sharedBytes(options.dtype) ?? '',
    ...layout.notes,
    ...(example === undefined ? [] : [`Example: ${example}`]),
  ].filter((sentence) => sentence !== '')
  const svg = [`<line x1="${MARGIN}" y1="${top}" x2="${round(MARGIN + width)}" y2="${top}" class="line"/>`]
  let y = top + 27
  if (pictures.some(hasHoles)) {
    const words = `A hole: a slot with no element${padded}, written as zero and never read.`
    svg.push(cell(MARGIN, top + 12, 26, { label: '', fill: 'hole', hint: 'a hole' }))
    svg.push(text(MARGIN + 34, y, words, { size: 12 }))
    y += 25
  }
  const lines = sentences.flatMap((sentence) => wrap(sentence, Math.floor(width / 6)))
  append(
    svg,
    lines.map((line, position) => text(MARGIN, y + position * 19, line, { size: 12 })),
  )
  return { svg, width, height: y - top + lines.length * 19 }
}

function wrap(sentence: string, length: number): string[] {
  const lines: string[] = []
  for (const word of sentence.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= length)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

function cellWidth(labelLength: number): number {
  return Math.max(26, Math.ceil(labelLength * CHARACTER + 8))
}

function cell(
  x: number,
  y: number,
  width: number,
  { label, fill, hint }: { label: string; fill: string; hint: string },
): string {
  const rectangle = `<rect x="${round(x)}" y="${y}" width="${round(width - 2)}" height="${CELL_HEIGHT - 2}" rx="3" class="${fill}"/>`
  const words = label === '' ? '' : text(x + (width - 2) / 2, y + 14, label, { size: 10.5, anchor: 'middle' })
  return `<g><title>${escapeXml(hint)}</title>${rectangle}${words}</g>`
}

interface TextStyle {
  readonly size: number
  readonly weight?: number
  readonly fill?: string
  readonly anchor?: 'middle' | 'end'
}

function text(
  x: number,
  y: number,
  content: string,
  { size, weight, fill = INK, anchor }: TextStyle,
): string {
  const attributes =
    (weight === undefined ? '' : ` font-weight="${weight}"`) +
    (anchor === undefined ? '' : ` text-anchor="${anchor}"`)
  // Repeated spaces separate the parts of a line and must be kept.
  return `<text x="${round(x)}" y="${round(y)}" font-size="${size}" class="${fill}"${attributes} xml:space="preserve">${escapeXml(content)}</text>`
}

function colourOf(picture: MemoryPicture, coordinate: readonly number[], offset: number): string {
  return fillClass(picture.toneOf(offset), picture.hueOf(coordinate))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escapeXml(content: string): string {
  return content.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
