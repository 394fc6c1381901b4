/** What rules of dimensions share: they compare what is known of the shapes and constants of a node with its operator. */
import { axisOf, type Dims } from '../../evaluate/dims.js'
import type { NodeView } from '../../infer/node_view.js'
import { rangeText } from '../range_text.js'

/**
 * Returns what is wrong, as a text that follows the path of the node and its operator; undefined where nothing is, or where
 * too little is known.
 *
 * @param since - version that defined the operator
 */
export type ExtentRule = (node: NodeView, since: number) => string | undefined

/** The first problem of several rules. */
export function firstOf(rules: readonly ExtentRule[]): ExtentRule {
  return (node, since) => {
    for (const rule of rules) {
      const problem = rule(node, since)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

export function rankProblem(node: NodeView, input: number, least: number, most = least): string | undefined {
  const rank = node.dims(input)?.length
  if (rank === undefined || (rank >= least && rank <= most)) return undefined
  return `has the rank ${rank} for input ${input}; it takes ${rangeText(least, most)}`
}

export function axisProblem(axis: number, rank: number, what = 'axis'): string | undefined {
  return axisOf(axis, rank) === undefined ? `has the ${what} ${axis}; the rank is ${rank}` : undefined
}

/** Reports axes outside of the rank, and one that is there twice. */
export function axesProblem(axes: readonly number[], rank: number, what = 'axis'): string | undefined {
  for (const axis of axes) {
    const problem = axisProblem(axis, rank, what)
    if (problem !== undefined) return problem
  }
  return new Set(axes.map((axis) => axisOf(axis, rank))).size < axes.length
    ? `has an ${what} twice`
    : undefined
}

/** The elements of an input that is an initializer or a constant, as a list or a scalar. */
export function constantList(node: NodeView, input: number): Dims | undefined {
  const known = node.known(input)
  return known?.isConstant ? known.value?.list : undefined
}

/** The same where all elements are numbers. */
export function constantOf(node: NodeView, input: number): readonly number[] | undefined {
  const values = constantList(node, input)
  return values?.every((value) => typeof value === 'number') ? (values as readonly number[]) : undefined
}

export function textOfDims(dims: Dims): string {
  return `[${dims.map((dim) => dim ?? '?').join(', ')}]`
}

/** The shapes of all inputs; undefined where one is not known. */
export function allDims(node: NodeView): readonly Dims[] | undefined {
  const shapes = node.inputs.map((_, input) => node.dims(input))
  return shapes.every((shape) => shape !== undefined) ? (shapes as Dims[]) : undefined
}
