/** `compress --sensitivity`: the errors of weights as a table with a bar for each. */
import type { WeightError } from '../../onnx.js'
import { printable } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'

const BAR_WIDTH = 20
/** Decibels of the longest bar, at least, so that small differences look small: 6 decibels are twice the error. */
const LEAST_SPAN = 6
/** Blocks of one to eight eighths. */
const EIGHTHS = '▏▎▍▌▋▊▉█'

/** Worst weight first. A bar is as long as the decibels that a weight is below the best of those that change. */
export function errorTable(to: string, errors: readonly WeightError[], { colors, width }: Terminal): string {
  if (errors.length === 0) return `${to}: no weight would change\n`
  const finite = errors.map(({ sqnr }) => sqnr).filter(Number.isFinite)
  const [worst = 0, best = worst] = [finite.at(0), finite.at(-1)]
  const span = Math.max(LEAST_SPAN, best - worst)
  const rows = errors.map(({ name, opType, max, rms, sqnr }) => [
    printable(name),
    opType,
    max.toPrecision(3),
    rms.toPrecision(3),
    Number.isFinite(sqnr) ? sqnr.toFixed(1) : 'exact',
    Number.isFinite(sqnr) ? bar((best - sqnr) / span) : '',
  ])
  const columns = [
    { title: 'weight', canShrink: true },
    { title: 'node' },
    { title: 'max error', align: 'right' },
    { title: 'RMS', align: 'right' },
    { title: 'SQNR dB', align: 'right' },
    { title: `below the best (full: ${span.toFixed(1)} dB)` },
  ] as const
  return `${to}: what each weight would lose\n\n${formatTable(columns, rows, colors, width)}`
}

/** @param share - of the full width, 0 to 1 */
function bar(share: number): string {
  const eighths = Math.max(1, Math.round(8 * BAR_WIDTH * share))
  const rest = eighths % 8
  return EIGHTHS.at(-1)!.repeat(Math.floor(eighths / 8)) + (rest === 0 ? '' : EIGHTHS[rest - 1])
}
