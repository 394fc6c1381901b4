/**
 * Computes the outputs of a node whose inputs are constants, or lists of integers of which some are symbolic dimensions. Callers
 * visit the nodes of a graph in topological order and keep the values, so that no chain is too deep.
 *
 * Results are those of onnxruntime, bit for bit. Where engines differ, or the standard leaves a result open, nothing is computed,
 * unless the caller asks for results that may be rounded otherwise.
 *
 * Source: the operator specifications of ONNX; agreement with onnxruntime is tested on random graphs.
 */
import { Call, type EvaluatedNode, type OperatorRow, UNKNOWN, WorkBudget } from './call.js'
import { CONVERSIONS } from './conversions.js'
import { ELEMENTWISE } from './elementwise.js'
import { MOVEMENT } from './movement.js'
import { REDUCTIONS } from './reductions.js'
import { isValueDtype, Value } from './value.js'

const OPERATORS: ReadonlyMap<string, OperatorRow> = new Map(
  [...ELEMENTWISE, ...MOVEMENT, ...REDUCTIONS, ...CONVERSIONS].map((each) => [each.operator, each]),
)

/** Limits of what is computed, and how exactly. */
export interface EvaluatorOptions {
  /** Elements of an input or output that is computed, at most. */
  readonly maxElements: number
  /** Elements that are read and made by all calls, at most. */
  readonly maxWork: number
  /** Whether results count that other engines may round otherwise: Exp, MatMul, sums of many floats. Default false. */
  readonly rounding?: boolean
}

export class Evaluator {
  readonly #options: EvaluatorOptions
  readonly #budget: WorkBudget

  constructor(options: EvaluatorOptions) {
    this.#options = options
    this.#budget = new WorkBudget(options.maxWork)
  }

  /** Whether something was not computed because it is too large, or too much with what was computed before. */
  get isExceeded(): boolean {
    return this.#budget.isExceeded
  }

  /** What is known of the outputs; undefined where they do not follow, and beyond the limits. */
  outputsOf(node: EvaluatedNode): readonly (Value | undefined)[] | undefined {
    const row = node.domain === '' ? OPERATORS.get(node.opType) : undefined
    if (!row || node.opset < row.since || !hasValues(node, row) || !this.#takes(node, row)) return undefined
    try {
      const made = row.run(new Call(node, this.#budget, this.#options))
      return made instanceof Value ? [made] : made
    } catch (error) {
      if (error === UNKNOWN) return undefined
      throw error
    }
  }

  #takes(node: EvaluatedNode, { needs, exact, rounded }: OperatorRow): boolean {
    if (needs === 'shapes') return true
    const dtype = node.dtype(0)
    return (
      isValueDtype(dtype) && (exact.has(dtype) || (this.#options.rounding === true && rounded.has(dtype)))
    )
  }
}

/**
 * Whether outputs of a node may be computed, as far as that follows from which of its inputs may be known.
 *
 * @param mayBeKnown - false for an input of which no element is known; true for an omitted one
 */
export function mayHaveValues(
  { opType, domain, count }: { readonly opType: string; readonly domain: string; readonly count: number },
  mayBeKnown: (at: number) => boolean,
): boolean {
  const row = domain === '' ? OPERATORS.get(opType) : undefined
  if (!row || row.needs === 'shapes') return row !== undefined
  if (row.needs === 'first') return mayBeKnown(0)
  const isSome = row.needs === 'some'
  for (let at = 0; at < count; at++) if (mayBeKnown(at) === isSome) return isSome
  return !isSome
}

/** Whether the values are there that the operator needs; without reading them, since most nodes have none. */
function hasValues(node: EvaluatedNode, { needs }: OperatorRow): boolean {
  if (needs === 'shapes') return true
  const count = needs === 'first' ? 1 : node.inputs.length
  let known = 0
  for (let at = 0; at < count; at++) {
    if (!node.has(at) || node.value(at)) known += 1
    else if (needs !== 'some') return false
  }
  return known > 0
}
