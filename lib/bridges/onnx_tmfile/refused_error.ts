/** The one error of a conversion that names all nodes without a counterpart. */
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'

/** A node that cannot be converted. */
export interface RefusedNode {
  readonly node: string
  readonly operator: string
  readonly reason: string
}

/** Names that are listed of nodes with one operator and reason. */
const LISTED = 3

export function refusedError(
  refused: readonly RefusedNode[],
  target: string,
  format: 'onnx' | 'tmfile',
): TileworkError {
  const groups = new Map<string, string[]>()
  for (const { node, operator, reason } of refused) {
    const what = `(${operator}): ${reason}`
    groups.set(what, [...(groups.get(what) ?? []), valueText(node)])
  }
  const lines = [...groups].map(([what, names]) => `  ${listText(names)} ${what}`)
  const count = refused.length === 1 ? '1 node has' : `${refused.length} nodes have`
  const message = `The model cannot become ${target}; ${count} no counterpart:\n${lines.join('\n')}`
  return new TileworkError('ERR_UNSUPPORTED', message, { format })
}

function listText(names: readonly string[]): string {
  const left = names.length - LISTED
  const listed = names.slice(0, left > 1 ? LISTED : names.length).join(', ')
  return left > 1 ? `${listed} and ${left} more` : listed
}
