/** `compress --sensitivity`: the errors of weights as a table with a bar for each. */
import type { WeightError } from '../../onnx.js'
import { printable } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'

const BAR_WIDTH = 20

/** Worst weight first. A bar is as long as the signal to noise, relative to the best weight that changes. */
export function errorTable(to: string, errors: readonly WeightError[], { colors, width }: Terminal): string {
  if (errors.length === 0) return `${to}: no weight would change\n`
  const finite = errors.map(({ sqnr }) => sqnr).filter(Number.isFinite)
  const most = Math.max(1, ...finite)
  const rows = errors.map(({ name, opType, max, rms, sqnr }) => [
    printable(name),
    opType,
    max.toPrecision(3),
    rms.toPrecision(3),
    Number.isFinite(sqnr) ? sqnr.toFixed(1) : 'exact',
    '█'.repeat(Math.round((BAR_WIDTH * Math.max(0, Math.min(sqnr, most))) / most)),
  ])
  const columns = [
    { title: 'weight', canShrink: true },
    { title: 'node' },
    { title: 'max error', align: 'right' },
    { title: 'RMS', align: 'right' },
    { title: 'SQNR dB', align: 'right' },
    { title: to },
  ] as const
  return formatTable(columns, rows, colors, width)
}
