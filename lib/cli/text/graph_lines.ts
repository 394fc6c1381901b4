/** What `convert` says of a graph that became one of another format. */
import type { ConvertResult } from '../../index.js'
import { formatCount } from './byte_count.js'

type GraphReport = NonNullable<ConvertResult['graph']>

/** A line with counts, then one for each note. */
export function graphLines(
  output: string,
  { nodes, folded, fused, replaced, copied, notes }: GraphReport,
): string[] {
  const parts: readonly (readonly [number, string])[] = [
    [folded.length, 'folded'],
    [fused.length, 'fused'],
    [replaced.length, 'replaced'],
    [copied.length, 'outputs copied'],
  ]
  const changes = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  const end = changes.length === 0 ? '' : ` (${changes.join(', ')})`
  return [`${output} computes ${formatCount(nodes, 'node')}${end}.`, ...notes]
}
