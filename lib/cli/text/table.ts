/** Tables without frame lines, which are easy to read, cut and search. */
import { createRequire } from 'node:module'
import type TableClass from 'cli-table3'
import type { Colors } from './terminal.js'

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

/** Loaded with the first table, because most runs print none. */
function loadTable(): typeof TableClass {
  return createRequire(import.meta.url)('cli-table3')
}

/** All frame lines are empty; only the gap between columns remains. */
const NO_FRAME = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
}

export function formatTable(columns: readonly Column[], rows: readonly string[][], colors: Colors): string {
  const table = new (loadTable())({
    head: columns.map((column) => colors.dim(column.title)),
    colAligns: columns.map((column) => column.align ?? 'left'),
    chars: NO_FRAME,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows)
  // The last column is padded with blanks, which are of no use in a pipe.
  return `${table.toString().replace(/ +$/gm, '')}\n`
}
