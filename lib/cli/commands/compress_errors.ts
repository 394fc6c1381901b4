/** `compress --sensitivity`: a table of the quantization errors of weights, with a bar for each. */
import type { WeightError } from '../../onnx.js'
import { printable } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'

const BAR_WIDTH = 20
/** The longest bar stands for at least this many decibels, so that small differences look small; 6 dB are twice the error. */
const LEAST_SPAN = 6
/** Blocks of one to eight eighths. */
const EIGHTHS = '▏▎▍▌▋▊▉█'

/** Worst weight first. The length of a bar is the difference in decibels to the best weight that changes. */
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
