/** Prints what `explain()` reports as lines. */
import type { NativeExplanation } from '../native/types.js'

/** Names of the two layouts, and the letters of the axes; an axis without a letter is d0, d1, … */
export interface ExplainedSides {
  readonly from: string
  readonly to: string
  readonly axes: string
  readonly notes: readonly string[]
}

type Way = NativeExplanation['ways'][number]

const CUTS: Record<NativeExplanation['cut'], string> = {
  whole: 'in one part',
  ranges: 'in ranges of the destination',
  loop: 'by iterations of a loop',
}

/** Several lines, without a trailing line break. */
export function explanationText(plan: NativeExplanation, { from, to, axes, notes }: ExplainedSides): string {
  const letters = (positions: readonly number[]): string =>
    positions.map((position) => axes[position] ?? `d${position}`).join('·')
  const loops = plan.nodes.map(({ axes: positions, count, sourceStride, destinationStride, tail }) => [
    letters(positions) || 'all',
    `${count} iterations`,
    sourceStride === 'table' ? 'source from a table' : `source ${signed(sourceStride)}`,
    `destination ${signed(destinationStride)}`,
    ...(tail ? ['with a tail'] : []),
  ])
  const work = `${plan.parts} on ${plan.threads} ${plan.threads === 1 ? 'thread' : 'threads'}, ${CUTS[plan.cut]}`
  return [
    `${from} to ${to}`,
    `  kernel  ${plan.kernel}: ${plan.reason}`,
    ...columns(plan.ways.map(wayCells)).map((line, i) => `  ${i === 0 ? 'moves ' : '      '}  ${line}`),
    ...columns(loops).map((line, i) => `  ${i === 0 ? 'loops ' : '      '}  ${line}`),
    `  parts   ${work}`,
    `  stores  ${plan.stores}: ${plan.storesReason}`,
    ...wayNotes(plan).map((note) => `  note    ${note}`),
    ...notes.map((note) => `  note    ${note}`),
  ].join('\n')
}

function wayCells({ name, condition, share, ofCopy }: Way): readonly string[] {
  // A share above 0 % is never printed as 0 %, and a share below 100 % never as 100 %.
  const percent = share === 1 ? 100 : Math.min(Math.max(Math.round(share * 100), 1), 99)
  return [
    `${percent} %`,
    name,
    condition,
    ...(ofCopy === undefined ? [] : [`${ofCopy.toFixed(2)} of a copy's rate`]),
  ]
}

function wayNotes({ ways, waysMeasuredOn }: NativeExplanation): readonly string[] {
  return [
    ...(ways.some(({ copiesUnitsAlone }) => copiesUnitsAlone)
      ? ['units are copied one by one, which is the slowest way']
      : []),
    ...(ways.some(({ ofCopy }) => ofCopy !== undefined)
      ? [`rates of ways are from the benchmark on ${waysMeasuredOn}`]
      : []),
  ]
}

function signed(stride: number): string {
  return stride < 0 ? `${stride}` : `+${stride}`
}

/** Aligns cells in columns. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>(
    (found, row) => row.map((cell, i) => Math.max(cell.length, found[i] ?? 0)),
    [],
  )
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
