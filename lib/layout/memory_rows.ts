/**
 * Divides memory, or one block of it, into rows for a drawing. A row covers as many of the innermost digits as fit into the
 * width, so that rows and blocks are aligned; rows that share the outer digits form a group. Only visible slots are decoded, so
 * the cost of a drawing does not depend on the size of the tensor.
 */
import { DTYPES, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { type DigitRule, formatDigit } from './digit_rule.js'
import { type DrawnStorage, drawnStorage } from './drawn_storage.js'
import type { Digit, Layout, StorageOptions } from './layout.js'
import { coordinateInStorage } from './offset.js'

/** A contiguous range of slots. */
export interface MemoryRow {
  /** Number of slots. Adjacent rows of holes are merged into one row, which has no cells. */
  readonly slots: number
  /** Offset of the first slot, in elements. */
  readonly offset: number
  /** Coordinates that all elements of the row share, for example `y0 x1`; empty for a row of holes. */
  readonly shared: string
  /** Coordinates over all axes of the layout, null for holes. */
  readonly cells: readonly (readonly number[] | null)[]
}

/** Rows that share their outer digits. */
export interface MemoryGroup {
  /** Values of the outer digits, for example `f/16 = 1`; empty when everything is one group. */
  readonly title: string
  readonly rows: readonly MemoryRow[]
}

/** A layout bound to a shape, ready to draw. */
export interface MemoryPicture {
  readonly storage: DrawnStorage
  /** Cells in a full row. */
  readonly rowLength: number
  /** Cells between two visible gaps of a row. */
  readonly gapEvery: number
  /** Characters of the longest cell label. */
  readonly labelLength: number
  readonly groups: readonly MemoryGroup[]
  readonly omittedSlots: number
  /** Whether the rows are those of one block. */
  readonly isBlock: boolean
  /** The hue of a cell, below {@link HUES}: the index along `colourAxis`. */
  readonly hueOf: (coordinate: readonly number[]) => number
  /** The tone of a slot, 0 or 1, alternating along rows and columns as on a chessboard. */
  readonly toneOf: (offset: number) => 0 | 1
  /** The axis whose index selects the hue. */
  readonly colourAxis: number
  /** Prefix of an index, by axis: a letter, or `d0=`. */
  readonly names: readonly string[]
  /** Label of a cell: the coordinates that its row does not share. */
  readonly label: (coordinate: readonly number[]) => string
  /** An example sentence for relative labels, which count from the first index of the block; undefined for absolute labels. */
  readonly relativeExample: string | undefined
  /** `f5 y0 x1` for any coordinate. */
  readonly fullLabel: (coordinate: readonly number[]) => string
}

/** Few hues, so that colour-blind readers can distinguish them; tones separate neighbours of the same hue. */
export const HUES = 4

/** Size limits of a drawing. */
export interface PictureLimits {
  /** Whether a row of `cells` cells with labels of `labelLength` characters, `gaps` gaps and `margin` more characters fits. */
  readonly fits: (cells: number, labelLength: number, gaps: number, margin: number) => boolean
  readonly maxRows: number
}

/** Divides the memory of `shape` in `layout` into rows and groups. @throws TileworkError as `layout.storage` */
export function memoryPicture(
  layout: Layout,
  shape: readonly number[],
  options: StorageOptions,
  limits: PictureLimits,
): MemoryPicture {
  const storage = drawnStorage(layout, shape, options)
  const names = axisNames(layout, storage)
  const longest = storage.extents.map((extent) => Math.max(0, extent - 1))
  const labels = {
    text: (axes: readonly number[], at: readonly number[]) => labelOf(names, axes, at, ''),
    longest,
  }
  const row = chooseRow(storage, labels, limits, 0)
  const digitsInGroupTitle = chooseGroup(storage, row)
  const shared = visibleAxes(storage).filter((axis) => !row.axes.includes(axis))
  const { groups, slotsShown } = readGroups(
    storage,
    row,
    { start: 0, slots: storage.elements },
    limits,
    (offset) => ({
      title: groupTitle(storage, digitsInGroupTitle, offset),
      shared: (coordinate) => labelOf(names, shared, coordinate, ' '),
    }),
  )
  return pictureOf(layout, storage, row, {
    groups,
    omittedSlots: storage.elements - slotsShown,
    isBlock: false,
  })
}

/** Preferred number of cells in a row of a block. */
const BLOCK_ROW = 16

/**
 * As `memoryPicture`, for one block, whose position is in its title. Where long indices would split 16 slots into several rows,
 * cell labels are relative to the first index of the block, which each row names, for example `f1008+`.
 */
export function blockPicture(
  layout: Layout,
  shape: readonly number[],
  options: StorageOptions,
  limits: PictureLimits,
  index: number,
): MemoryPicture {
  const storage = drawnStorage(layout, shape, options)
  const names = axisNames(layout, storage)
  const { firstDigit, slots, count, noun } = blocksOf(storage)
  const { low, high } = blockRanges(storage, index)
  const full: Labels = { text: (axes, coordinate) => labelOf(names, axes, coordinate, ''), longest: high }
  const relative: Labels = {
    text: (axes, coordinate) => axes.map((axis) => coordinate[axis]! - low[axis]!).join(','),
    longest: high,
    start: (axes) => `${labelOf(names, axes, low, ' ')}+`,
  }
  const fullRow = chooseRow(storage, full, limits, firstDigit)
  const relativeRow = chooseRow(storage, relative, limits, firstDigit)
  const isSplit = fullRow.length < Math.min(BLOCK_ROW, slots)
  const row = isSplit && relativeRow.length > fullRow.length ? relativeRow : fullRow
  const inside = storage.digits.slice(firstDigit).filter(({ radix }) => radix > 1)
  const axes = visibleAxes(storage).filter((axis) => inside.some(({ positions }) => positions.includes(axis)))
  const shared = axes.filter((axis) => !row.axes.includes(axis))
  const start = index * slots
  const title = `${noun} ${index} of ${count}: slots ${start} to ${start + slots - 1}`
  const { groups, slotsShown } = readGroups(storage, row, { start, slots }, limits, () => ({
    title: [title, blockLabel(storage, names, index)].filter((part) => part !== '').join(', '),
    shared: (coordinate) =>
      [labelOf(names, shared, coordinate, ' '), row.labels.start?.(row.axes) ?? '']
        .filter((part) => part !== '')
        .join(' '),
  }))
  return pictureOf(layout, storage, row, { groups, omittedSlots: start + slots - slotsShown, isBlock: true })
}

function pictureOf(
  layout: Layout,
  storage: DrawnStorage,
  row: RowChoice,
  rows: Pick<MemoryPicture, 'groups' | 'omittedSlots' | 'isBlock'>,
): MemoryPicture {
  const names = axisNames(layout, storage)
  const colourAxis = chooseColourAxis(layout, storage)
  const rowsPerRun = Math.ceil(row.run / row.length)
  return {
    ...rows,
    storage,
    rowLength: row.length,
    gapEvery: row.gapEvery,
    labelLength: row.labelLength,
    colourAxis,
    hueOf: (coordinate) => (coordinate[colourAxis] ?? 0) % HUES,
    toneOf: (offset) => {
      const inRun = offset % row.run
      const line = ((offset - inRun) / row.run) * rowsPerRun + Math.floor(inRun / row.length)
      return ((line + (inRun % row.length)) % 2) as 0 | 1
    },
    names,
    label: (coordinate) => row.labels.text(row.axes, coordinate) || '0',
    relativeExample: relativeExampleOf(row, rows.groups[0]?.rows ?? [], names),
    fullLabel: (coordinate) => labelOf(names, visibleAxes(storage), coordinate, ' ') || 'the element',
  }
}

/** For example `Cells count from the indices with + before them: 0,1 after o8 i0+ is o8 i1.` */
function relativeExampleOf(
  { labels, axes }: RowChoice,
  rows: readonly MemoryRow[],
  names: readonly string[],
): string | undefined {
  const coordinate = rows.flatMap(({ cells }) => cells.slice(1)).find((cell) => cell !== null)
  if (labels.start === undefined || !coordinate) return undefined
  const cell = `${labels.text(axes, coordinate)} after ${labels.start(axes)}`
  return `Cells count from the indices with + before them: ${cell} is ${labelOf(names, axes, coordinate, ' ')}.`
}

/** A sentence on how elements of a sub-byte dtype share bytes; undefined for other dtypes. */
export function sharedBytes(dtype: DtypeName | undefined): string | undefined {
  const bits = dtype === undefined ? 8 : DTYPES[resolveDtype(dtype)].bits
  if (bits >= 8) return undefined
  if (bits === 6) return `4 slots of ${dtype} share 3 bytes, the one with the lower offset in the lower bits.`
  return `${8 / bits} slots of ${dtype} share a byte, the one with the lower offset in its lower bits.`
}

export function hasHoles({ groups }: MemoryPicture): boolean {
  return groups.some(({ rows }) => rows.some(({ cells }) => cells.length === 0 || cells.includes(null)))
}

/** The blocks of a storage: its innermost digits. */
export interface Blocks {
  /** The outermost digit inside a block. */
  readonly firstDigit: number
  readonly slots: number
  readonly count: number
  /** What the drawing calls them; a layout without blocks is divided into runs. */
  readonly noun: 'block' | 'run'
}

/** Most slots of a run, the part that is drawn in place of a block where the layout has no blocks. */
const MAX_PLAIN_BLOCK = 256

/** The innermost digits that form a block; in a layout without blocks, as many digits as fit into `MAX_PLAIN_BLOCK` slots. */
export function blocksOf({ digits, elements }: DrawnStorage): Blocks {
  let firstDigit = digits.length
  while (firstDigit > 0 && !isTop(digits, firstDigit - 1)) firstDigit--
  const isPlain = slotsBelow(digits, firstDigit) === 1
  if (isPlain) {
    const isSmall = (position: number): boolean => {
      const slots = slotsBelow(digits, position)
      return slots <= MAX_PLAIN_BLOCK || slotsBelow(digits, position + 1) === 1
    }
    firstDigit = digits.length
    while (firstDigit > 0 && isSmall(firstDigit - 1)) firstDigit--
  }
  const slots = slotsBelow(digits, firstDigit)
  return { firstDigit, slots, count: slots === 0 ? 0 : elements / slots, noun: isPlain ? 'run' : 'block' }
}

/** Most slots that are read to find the index ranges of a block. */
const MAX_LABELLED_SLOTS = 4096

/** The lowest and highest index of each axis among the elements of a block; Infinity and -1 without elements. */
function blockRanges(storage: DrawnStorage, index: number): { low: number[]; high: number[] } {
  const { slots } = blocksOf(storage)
  const low = storage.extents.map(() => Number.POSITIVE_INFINITY)
  const high = storage.extents.map(() => -1)
  for (let slot = 0; slot < Math.min(slots, MAX_LABELLED_SLOTS); slot++) {
    const coordinate = coordinateInStorage(storage, low.length, index * slots + slot)
    coordinate?.forEach((position, axis) => {
      low[axis] = Math.min(low[axis]!, position)
      high[axis] = Math.max(high[axis]!, position)
    })
  }
  return { low, high }
}

/** The index ranges of the elements of a block: `f16–31 y0 x2`; `holes` for a block without elements. */
export function blockLabel(storage: DrawnStorage, names: readonly string[], index: number): string {
  const axes = visibleAxes(storage)
  const { low, high } = blockRanges(storage, index)
  if (axes.length === 0) return ''
  if (high.every((position) => position === -1)) return 'holes'
  return axes
    .map((axis) => `${names[axis]}${low[axis]}${low[axis] === high[axis] ? '' : `–${high[axis]}`}`)
    .join(' ')
}

/** Prefixes of an index: letters, or `d0=`, `d1=` … for a layout of any rank. */
export function axisNames(layout: Layout, storage: DrawnStorage): string[] {
  return storage.extents.map((_, axis) => layout.axes[axis] ?? `d${axis}=`)
}

function labelOf(
  names: readonly string[],
  axes: readonly number[],
  coordinate: readonly number[],
  gap: string,
): string {
  return axes.map((axis) => `${names[axis]}${coordinate[axis]}`).join(names[0]?.endsWith('=') ? ' ' : gap)
}

function visibleAxes({ extents, digits }: DrawnStorage): number[] {
  const long = extents.flatMap((extent, axis) => (extent > 1 ? [axis] : []))
  const blocked = digits.filter(({ radix }) => radix > 1).flatMap(({ positions }) => positions)
  return extents.flatMap((_, axis) => (long.includes(axis) || blocked.includes(axis) ? [axis] : []))
}

/** How cells are labelled. */
interface Labels {
  /** Text of a cell, from the axes that its row does not share. */
  readonly text: (axes: readonly number[], coordinate: readonly number[]) => string
  /** The coordinate with the longest label. */
  readonly longest: readonly number[]
  /** Text of each row where labels are relative. */
  readonly start?: (axes: readonly number[]) => string
}

interface RowChoice {
  readonly labels: Labels
  /** Most cells of a row. */
  readonly length: number
  /** Slots of all digits that the row covers; more than `length` where they are split into several rows. */
  readonly run: number
  readonly gapEvery: number
  readonly labelLength: number
  readonly axes: readonly number[]
  /** First digit that the row covers, completely or in part. */
  readonly firstDigit: number
}

/** Adds digits from the innermost outwards while the row fits, then a part of the first digit that does not fit. */
function chooseRow(
  storage: DrawnStorage,
  labels: Labels,
  limits: PictureLimits,
  firstDigit: number,
): RowChoice {
  let choice: RowChoice = {
    labels,
    length: 1,
    run: 1,
    gapEvery: 1,
    labelLength: 1,
    axes: [],
    firstDigit: storage.digits.length,
  }
  for (let position = storage.digits.length - 1; position >= firstDigit; position--) {
    const { radix, positions } = storage.digits[position]!
    if (radix <= 1) continue
    const axes = [...new Set([...choice.axes, ...positions])].sort((one, other) => one - other)
    const labelLength = labels.text(axes, labels.longest).length
    const margin = labels.start === undefined ? 0 : labels.start(axes).length + 2
    const part = largestPart(radix, (count) =>
      limits.fits(choice.length * count, labelLength, choice.length > 1 ? count - 1 : 0, margin),
    )
    if (part === 1 && choice.length > 1) break
    const length = choice.length * part
    choice = {
      labels,
      length,
      run: choice.length * radix,
      gapEvery: choice.length,
      labelLength,
      axes,
      firstDigit: position,
    }
    if (part < radix) break
  }
  return choice
}

/** Values of a digit per row: preferably a divisor of the radix that fills at least half the row, so that rows are equal. */
function largestPart(radix: number, fits: (count: number) => boolean): number {
  if (fits(radix)) return radix
  let maxCount = 1
  while (fits(maxCount + 1)) maxCount++
  for (let count = maxCount; count > 1 && count * 2 >= maxCount; count--) {
    if (radix % count === 0) return count
  }
  return maxCount
}

/**
 * Number of outer digits in the title of a group: up to the last slice, or all but the last two digits, as far as they apply to
 * all elements.
 */
function chooseGroup({ digits, commonDigits }: DrawnStorage, row: RowChoice): number {
  const lastSlice = digits.findLastIndex(({ weight, radix }, position) => {
    return radix > 1 && weight > 1 && position < row.firstDigit
  })
  let count = Math.min(commonDigits, lastSlice >= 0 ? lastSlice + 1 : row.firstDigit - 1)
  // A title above every row would hide the blocks, so a group has at least two rows.
  while (count > 0 && slotsBelow(digits, count) < 2 * row.length) count--
  return Math.max(0, count)
}

export function slotsBelow(digits: readonly Digit[], position: number): number {
  return digits.slice(position).reduce((slots, { radix }) => slots * radix, 1)
}

function groupTitle(storage: DrawnStorage, count: number, offset: number): string {
  const parts: string[] = []
  for (let position = 0; position < count; position++) {
    if (storage.digits[position]!.radix === 1) continue
    parts.push(`${digitName(storage, position)} = ${digitValue(storage.digits, position, offset)}`)
  }
  return parts.join(', ')
}

/** The arithmetic of a digit: `f/16`, `y`, `f%16`, `(o/4)%8`; `d0` in a layout of any rank. */
export function digitName(storage: DrawnStorage, position: number): string {
  const { axes, positions } = storage.digits[position]!
  return axes === '' ? `d${positions[0]}` : formatDigit(ruleOf(storage.digits, position), true)
}

/** The rule that a digit is bound from. */
export function ruleOf(digits: readonly Digit[], position: number): DigitRule {
  const { axes, weight, radix } = digits[position]!
  return { axes, weight, radix: isTop(digits, position) ? 'extent' : radix }
}

/** Whether a digit is the top digit of its axes; other digits count inside a block. */
function isTop(digits: readonly Digit[], position: number): boolean {
  const { axes, weight } = digits[position]!
  return axes === '' || digits.every((other) => other.axes !== axes || other.weight <= weight)
}

/** The value of a digit at `offset`. */
export function digitValue(digits: readonly Digit[], position: number, offset: number): number {
  const below = slotsBelow(digits, position + 1)
  return ((offset - (offset % below)) / below) % digits[position]!.radix
}

interface RowTexts {
  readonly title: string
  readonly shared: (coordinate: readonly number[]) => string
}

/** Rows scanned per visible row. Layouts with large blocks have long runs of padding, which are merged. */
const ROWS_SCANNED = 16

function readGroups(
  storage: DrawnStorage,
  row: RowChoice,
  range: { readonly start: number; readonly slots: number },
  { maxRows }: PictureLimits,
  textsOf: (offset: number) => RowTexts,
): { groups: MemoryGroup[]; slotsShown: number } {
  const groups: { title: string; rows: MemoryRow[] }[] = []
  const end = range.start + range.slots
  let offset = range.start
  let shown = 0
  for (let scanned = 0; offset < end && scanned < maxRows * ROWS_SCANNED; scanned++) {
    const inRun = offset % row.run
    const { title, shared } = textsOf(offset)
    const next = readRow(storage, offset, Math.min(row.length, row.run - inRun), shared)
    const previous = groups.at(-1)?.rows.at(-1)
    if (previous !== undefined && isEmpty(previous) && isEmpty(next)) {
      groups.at(-1)!.rows.splice(-1, 1, { ...previous, cells: [], slots: previous.slots + next.slots })
    } else {
      if (shown === maxRows) break
      if (groups.length === 0 || groups.at(-1)!.title !== title) groups.push({ title, rows: [] })
      groups.at(-1)!.rows.push(next)
      shown++
    }
    offset += next.slots
  }
  return { groups, slotsShown: offset }
}

function isEmpty(row: MemoryRow): boolean {
  return row.cells.every((cell) => cell === null)
}

function readRow(
  storage: DrawnStorage,
  offset: number,
  slots: number,
  shared: (coordinate: readonly number[]) => string,
): MemoryRow {
  const cells = Array.from({ length: slots }, (_, cell) =>
    coordinateInStorage(storage, storage.extents.length, offset + cell),
  )
  const first = cells.find((cell) => cell !== null) ?? null
  return { offset, slots, shared: first === null ? '' : shared(first), cells }
}

/** The channel axis if there is one; else the first blocked axis; else the axis before the last two. */
function chooseColourAxis(layout: Layout, { digits, extents }: DrawnStorage): number {
  const isLong = (axis: number) => (extents[axis] ?? 1) > 1
  const channel = [...'fogi']
    .map((letter) => layout.axes.indexOf(letter))
    .find((axis) => axis >= 0 && isLong(axis))
  if (channel !== undefined) return channel
  const blocked = digits.find(({ weight, positions }) => weight > 1 && isLong(positions[0]!))
  if (blocked !== undefined) return blocked.positions[0]!
  const thirdLast = Math.max(0, extents.length - 3)
  return isLong(thirdLast)
    ? thirdLast
    : Math.max(
        0,
        extents.findIndex((extent) => extent > 1),
      )
}

/** The shape as text; at most its first 12 axes. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.slice(0, 12).join(', ')}${shape.length > 12 ? `, … ${shape.length - 12} more` : ''}]`
}
