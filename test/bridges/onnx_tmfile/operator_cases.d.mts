import type { tensor } from '../../../lib/index.js'
import type * as tmfile from '../../../lib/tmfile.js'
import type { TmfileModel } from '../../../lib/tmfile.js'

export interface OperatorCase {
  readonly operator: string
  readonly params: Readonly<Record<string, unknown>>
  readonly inputs: readonly (readonly number[])[]
  readonly opTypes: readonly string[]
  readonly noEngine?: string
  readonly range?: readonly [number, number]
}

export const OPERATOR_CASES: readonly OperatorCase[]
export function numbers(seed: number): () => number
export function modelOf(
  given: OperatorCase,
  library: typeof tmfile & { readonly tensor: typeof tensor },
): TmfileModel
