/** The report of `convert` on a graph that was converted to another format. */
import type { ConvertResult } from '../../index.js'
import { formatCount } from './byte_count.js'

type GraphReport = NonNullable<ConvertResult['graph']>

/** Lists in the reports of both directions, and the words for their entries. */
const COUNTED = {
  folded: 'folded',
  fused: 'fused',
  replaced: 'replaced',
  copied: 'outputs copied',
  zeros: 'constants without data, filled with zeros',
}

/** A line with counts, then one for each note. */
export function graphLines(output: string, report: GraphReport): string[] {
  const { nodes, notes } = report
  const counts = Object.entries(report).flatMap(([list, entries]) => {
    const what = (COUNTED as Partial<Record<string, string>>)[list]
    return what !== undefined && entries.length > 0 ? [`${entries.length} ${what}`] : []
  })
  const end = counts.length === 0 ? '' : ` (${counts.join(', ')})`
  return [`${output} has ${formatCount(nodes, 'node')}${end}.`, ...notes]
}
