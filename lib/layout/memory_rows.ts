/**
 * Memory cut into rows for a drawing. A row holds as many of the innermost digits as fit the width, so that rows and
 * blocks line up; rows that share the outer digits form a group. Only the slots that are shown are ever decoded,
 * so a drawing costs the same for a tensor of a terabyte.
 */
import { formatDigit } from './digit_rule.js'
import type { Digit, Layout, LayoutStorage, StorageOptions } from './layout.js'
import { coordinateInStorage } from './offset.js'

/** A stretch of memory. */
export interface MemoryRow {
  /** More than the cells of one row where rows without any element were folded into one; then there are no cells. */
  readonly slots: number
  /** Offset of the first slot, in elements. */
  readonly address: number
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

/** What a drawing needs to know of a layout and a shape. */
export interface MemoryPicture {
  readonly storage: LayoutStorage
  /** Cells in a full row. */
  readonly rowLength: number
  /** A visible gap belongs before every cell whose position is a multiple of this. */
  readonly gapEvery: number
  /** Characters of the longest label that a cell can have. */
  readonly labelLength: number
  readonly groups: readonly MemoryGroup[]
  readonly slotsLeftOut: number
  /** Axis whose index gives the colour. */
  readonly colourAxis: number
  /** What stands before an index, by axis: a letter, or `d0=`. */
  readonly names: readonly string[]
  /** Text of a cell of these rows. */
  readonly label: (coordinate: readonly number[]) => string
  /** `f5 y0 x1` for any coordinate. */
  readonly fullLabel: (coordinate: readonly number[]) => string
}

/** How much room a drawing has. */
export interface PictureRoom {
  /** Whether a row of so many cells with labels of that many characters, and so many gaps between them, fits. */
  readonly fits: (cells: number, labelLength: number, gaps: number) => boolean
  readonly maxRows: number
}

/** Cuts the memory of `shape` in `layout` into rows and groups. Errors: as `layout.storage`. */
export function cutMemory(
  layout: Layout,
  shape: readonly number[],
  options: StorageOptions,
  room: PictureRoom,
): MemoryPicture {
  const storage = layout.storage(shape, options)
  const names = axisNames(layout, storage)
  const row = chooseRow(storage, names, room)
  const digitsInGroupTitle = chooseGroup(storage.digits, row)
  const shared = visibleAxes(storage).filter((axis) => !row.axes.includes(axis))
  const { groups, slotsShown } = readGroups(storage, row, room.maxRows, (address) => ({
    title: groupTitle(storage, digitsInGroupTitle, address),
    shared: (coordinate) => labelOf(names, shared, coordinate, ' '),
  }))
  return {
    storage,
    rowLength: row.length,
    gapEvery: row.gapEvery,
    labelLength: row.labelLength,
    groups,
    slotsLeftOut: storage.elements - slotsShown,
    colourAxis: chooseColourAxis(layout, storage),
    names,
    label: (coordinate) => labelOf(names, row.axes, coordinate, '') || '0',
    fullLabel: (coordinate) => labelOf(names, visibleAxes(storage), coordinate, ' ') || 'the element',
  }
}

/** Letters, or `d0=`, `d1=` … for a layout of any rank: what stands before an index. */
function axisNames(layout: Layout, storage: LayoutStorage): string[] {
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

function visibleAxes({ extents, digits }: LayoutStorage): number[] {
  const long = extents.flatMap((extent, axis) => (extent > 1 ? [axis] : []))
  const blocked = digits.filter(({ radix }) => radix > 1).flatMap(({ positions }) => positions)
  return extents.flatMap((_, axis) => (long.includes(axis) || blocked.includes(axis) ? [axis] : []))
}

interface RowChoice {
  /** Cells of a row, at most. */
  readonly length: number
  /** Slots of the digits that the row holds, whole; longer than `length` where they are broken into several rows. */
  readonly run: number
  readonly gapEvery: number
  readonly labelLength: number
  readonly axes: readonly number[]
  /** First digit that the row holds, whole or in part. */
  readonly firstDigit: number
}

/** Takes digits from the innermost outwards while the row fits, and a part of the first one that does not. */
function chooseRow(storage: LayoutStorage, names: readonly string[], room: PictureRoom): RowChoice {
  let choice: RowChoice = {
    length: 1,
    run: 1,
    gapEvery: 1,
    labelLength: 1,
    axes: [],
    firstDigit: storage.digits.length,
  }
  for (let position = storage.digits.length - 1; position >= 0; position--) {
    const { radix, positions } = storage.digits[position]!
    if (radix <= 1) continue
    const axes = [...new Set([...choice.axes, ...positions])].sort((one, other) => one - other)
    const labelLength = longestLabel(storage, names, axes)
    const part = largestPart(radix, (count) =>
      room.fits(choice.length * count, labelLength, choice.length > 1 ? count - 1 : 0),
    )
    if (part === 1 && choice.length > 1) break
    const length = choice.length * part
    choice = {
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

/** How much of a digit goes into a row: a divisor if one uses half the room, so that rows are even; else all the room. */
function largestPart(radix: number, fits: (count: number) => boolean): number {
  if (fits(radix)) return radix
  let most = 1
  while (fits(most + 1)) most++
  for (let count = most; count > 1 && count * 2 >= most; count--) {
    if (radix % count === 0) return count
  }
  return most
}

function longestLabel({ extents }: LayoutStorage, names: readonly string[], axes: readonly number[]): number {
  return labelOf(
    names,
    axes,
    extents.map((extent) => Math.max(0, extent - 1)),
    '',
  ).length
}

/** How many outer digits the title of a group names: through the last slice, or all but the last two digits. */
function chooseGroup(digits: readonly Digit[], row: RowChoice): number {
  const lastSlice = digits.findLastIndex(({ weight, radix }, position) => {
    return radix > 1 && weight > 1 && position < row.firstDigit
  })
  let count = lastSlice >= 0 ? lastSlice + 1 : row.firstDigit - 1
  // A title above every single row would hide the blocks, so a group has two rows or more.
  while (count > 0 && slotsBelow(digits, count) < 2 * row.length) count--
  return Math.max(0, count)
}

function slotsBelow(digits: readonly Digit[], position: number): number {
  return digits.slice(position).reduce((slots, { radix }) => slots * radix, 1)
}

function groupTitle(storage: LayoutStorage, count: number, address: number): string {
  const parts: string[] = []
  for (let position = 0; position < count; position++) {
    if (storage.digits[position]!.radix === 1) continue
    parts.push(`${digitName(storage, position)} = ${digitValue(storage.digits, position, address)}`)
  }
  return parts.join(', ')
}

/** The digit's arithmetic: `f/16`, `y`, `f%16`, `(o/4)%8`; `d0` in a layout of any rank. */
export function digitName(storage: LayoutStorage, position: number): string {
  const { axes, positions, weight, radix } = storage.digits[position]!
  if (axes === '') return `d${positions[0]}`
  const isTop = storage.digits.every((other) => other.axes !== axes || other.weight <= weight)
  return formatDigit({ axes, weight, radix: isTop ? 'rest' : radix }, true)
}

/** What the digit is in the slot at `address`. */
export function digitValue(digits: readonly Digit[], position: number, address: number): number {
  const below = slotsBelow(digits, position + 1)
  return ((address - (address % below)) / below) % digits[position]!.radix
}

interface RowWords {
  readonly title: string
  readonly shared: (coordinate: readonly number[]) => string
}

/** Rows looked at for one row shown. Layouts with large blocks have long stretches of holes, which are folded. */
const ROWS_SCANNED = 16

function readGroups(
  storage: LayoutStorage,
  row: RowChoice,
  maxRows: number,
  words: (address: number) => RowWords,
): { groups: MemoryGroup[]; slotsShown: number } {
  const groups: { title: string; rows: MemoryRow[] }[] = []
  let address = 0
  let shown = 0
  for (let scanned = 0; address < storage.elements && scanned < maxRows * ROWS_SCANNED; scanned++) {
    const inRun = address % row.run
    const { title, shared } = words(address)
    const next = readRow(storage, address, Math.min(row.length, row.run - inRun), shared)
    const previous = groups.at(-1)?.rows.at(-1)
    if (previous !== undefined && isEmpty(previous) && isEmpty(next)) {
      groups.at(-1)!.rows.splice(-1, 1, { ...previous, cells: [], slots: previous.slots + next.slots })
    } else {
      if (shown === maxRows) break
      if (groups.length === 0 || groups.at(-1)!.title !== title) groups.push({ title, rows: [] })
      groups.at(-1)!.rows.push(next)
      shown++
    }
    address += next.slots
  }
  return { groups, slotsShown: address }
}

function isEmpty(row: MemoryRow): boolean {
  return row.cells.every((cell) => cell === null)
}

function readRow(
  storage: LayoutStorage,
  address: number,
  slots: number,
  shared: (coordinate: readonly number[]) => string,
): MemoryRow {
  const cells = Array.from({ length: slots }, (_, cell) =>
    coordinateInStorage(storage, storage.extents.length, address + cell),
  )
  const first = cells.find((cell) => cell !== null) ?? null
  return { address, slots, shared: first === null ? '' : shared(first), cells }
}

/** Channels where a layout has them; else the first blocked axis; else the axis outside the last two. */
function chooseColourAxis(layout: Layout, { digits, extents }: LayoutStorage): number {
  const isLong = (axis: number) => (extents[axis] ?? 1) > 1
  const channel = [...'fogi']
    .map((letter) => layout.axes.indexOf(letter))
    .find((axis) => axis >= 0 && isLong(axis))
  if (channel !== undefined) return channel
  const blocked = digits.find(({ weight, positions }) => weight > 1 && isLong(positions[0]!))
  if (blocked !== undefined) return blocked.positions[0]!
  const outside = Math.max(0, extents.length - 3)
  return isLong(outside)
    ? outside
    : Math.max(
        0,
        extents.findIndex((extent) => extent > 1),
      )
}

/** The shape as text; only the start of one of a very high rank. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.slice(0, 12).join(', ')}${shape.length > 12 ? `, … ${shape.length - 12} more` : ''}]`
}
