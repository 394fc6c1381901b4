/** Tables without frame lines, so that they can be read, cut and searched easily. */
import { cutMiddle, displayWidth } from './display_width.js'
import type { Colors } from './terminal.js'

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** Colours the text of a cell; the padding around it is not coloured. */
  readonly paint?: (text: string, colors: Colors) => string
  /** Whether texts may be shortened in the middle where the table is wider than the terminal. */
  readonly canShrink?: boolean
  /** The column is omitted where the table is wider than the terminal and every cell has this text. */
  readonly usual?: string
}

const GAP = '  '
/** A column is never narrower, because a name shortened further is not recognisable. */
const MIN_COLUMN_WIDTH = 12

/** A table as one string, for few rows. */
export function formatTable(
  columns: readonly Column[],
  rows: Iterable<readonly string[]>,
  colors: Colors,
  maxWidth?: number,
): string {
  return [...tableLines(columns, rows, colors, maxWidth)].join('')
}

/**
 * The lines of a table: the titles, then one line per row. Time is linear in the number of rows; no row is stored.
 *
 * @param rows - iterated up to four times
 * @param maxWidth - columns of the terminal; absent for a pipe, whose reader needs whole names
 */
export function* tableLines(
  columns: readonly Column[],
  rows: Iterable<readonly string[]>,
  colors: Colors,
  maxWidth = Number.POSITIVE_INFINITY,
): Generator<string> {
  const natural = widthsOf(columns, rows)
  const needed = widthOf(natural) > maxWidth ? unusualColumns(columns, rows) : [...columns.keys()]
  if (needed.length < columns.length) {
    const kept = {
      *[Symbol.iterator]() {
        for (const row of rows) yield needed.map((at) => row[at]!)
      },
    }
    const shown = needed.map((at) => columns[at]!)
    yield* tableLines(shown, kept, colors, maxWidth)
    return
  }
  const widths = fit(columns, natural, maxWidth)
  const head = columns.map(({ title, align }, at) =>
    // The last title needs no padding.
    pad(title, colors.dim(title), widths[at]!, align, at === columns.length - 1),
  )
  yield `${head.join(GAP)}\n`
  for (const row of rows) yield `${formatRow(columns, row, widths, colors)}\n`
}

function widthsOf(columns: readonly Column[], rows: Iterable<readonly string[]>): number[] {
  const widths = columns.map(({ title }) => displayWidth(title))
  for (const row of rows) {
    for (let at = 0; at < widths.length; at++) {
      const width = displayWidth(row[at]!)
      if (width > widths[at]!) widths[at] = width
    }
  }
  return widths
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, (widths.length - 1) * GAP.length)
}

function unusualColumns(columns: readonly Column[], rows: Iterable<readonly string[]>): number[] {
  const isUsual = columns.map(({ usual }) => usual !== undefined)
  for (const row of rows) {
    for (let at = 0; at < isUsual.length; at++) if (row[at] !== columns[at]!.usual) isUsual[at] = false
  }
  return [...columns.keys()].filter((at) => !isUsual[at])
}

/** Narrows the widest columns that may shrink until the table fits or no column can shrink further. */
function fit(columns: readonly Column[], widths: number[], maxWidth: number): number[] {
  let excess = widthOf(widths) - maxWidth
  for (; excess > 0; excess--) {
    let widest = -1
    for (let at = 0; at < widths.length; at++) {
      const canShrink = columns[at]!.canShrink === true && widths[at]! > MIN_COLUMN_WIDTH
      if (canShrink && widths[at]! > (widths[widest] ?? 0)) widest = at
    }
    if (widest === -1) break
    widths[widest]! -= 1
  }
  return widths
}

function formatRow(
  columns: readonly Column[],
  row: readonly string[],
  widths: readonly number[],
  colors: Colors,
): string {
  const cells = columns.map(({ align, paint }, at) => {
    const text = cutMiddle(row[at]!, widths[at]!)
    const painted = paint ? paint(text, colors) : text
    return pad(text, painted, widths[at]!, align, at === columns.length - 1)
  })
  return cells.join(GAP).trimEnd()
}

/** @param isLast - whether it is the last column, which is not padded: trailing blanks would be useless in a pipe */
function pad(text: string, painted: string, width: number, align: Column['align'], isLast: boolean): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(text)))
  if (align === 'right') return blanks + painted
  return isLast ? painted : painted + blanks
}
