/** Tables for a person: columns without lines, so that they can be read, cut and searched alike. */
import { createRequire } from 'node:module'
import type TableClass from 'cli-table3'
import type { Colors } from './terminal.js'

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

/** Loaded with the first table: most runs of the command line print none, and every run would wait for it. */
function loadTable(): typeof TableClass {
  return createRequire(import.meta.url)('cli-table3')
}

/** Every line of a frame is empty; only the gap between columns is left. */
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
  // The last column is filled up with blanks, which only widen what is piped.
  return `${table.toString().replace(/ +$/gm, '')}\n`
}
