/** What rules ask of values: elements, shapes that agree, scalars. Where something does not follow, the answer is no. */

import type { Attribute, NewAttribute } from '../../onnx/document/types.js'
import { axisOf as axisOfRank } from '../../onnx/evaluate/dims.js'
import { MAX_SHAPE_VALUES } from '../../onnx/evaluate/value.js'
import { elementsOf, FLOATS } from '../rewrite/elements.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'
import { isSameDim } from '../rewrite/same_shape.js'

/** A rule for operators of ONNX. */
export function ruleOf(name: string, opTypes: readonly string[], apply: NodeRule['apply']): NodeRule {
  return { name, operators: opTypes.map((opType) => ({ opType, domain: '' })), apply }
}

/** A list of integers, or a scalar as a list of one; numbers beyond 2^53 - 1, which mean the end of an axis, cut to that. */
export function integersOf(value: RewriteValue | undefined): readonly number[] | undefined {
  const elements = value && (value.rank ?? 2) < 2 ? elementsOf(value) : undefined
  if (!elements || elements.length > MAX_SHAPE_VALUES) return undefined
  const numbers = Array.from(elements as ArrayLike<number | bigint>, (each) =>
    Math.min(Math.max(Number(each), -FAR), FAR),
  )
  return numbers.every(Number.isInteger) ? numbers : undefined
}

/** The end of an axis, as `integersOf` gives it. */
export const FAR = Number.MAX_SAFE_INTEGER

/** By an input since a version of the operator, by an attribute before; undefined for an omitted list. */
export function listOf(
  node: RewriteNode,
  name: string,
  since: number,
  input: number,
): { readonly isOmitted: boolean; readonly list: readonly number[] | undefined } {
  const isInput = node.opset >= since
  const isOmitted = isInput ? node.input(input) === undefined : node.attribute(name) === undefined
  return { isOmitted, list: isInput ? integersOf(node.input(input)) : node.ints(name) }
}

export function isFloat(value: RewriteValue): boolean {
  return FLOATS.has(value.dtype)
}

/** Whether an elementwise operator with a value and another one has the shape of the value. */
export function keepsShape(value: RewriteValue, other: RewriteValue): boolean {
  const { shape: inner } = other
  if (!inner) return false
  if (inner.length === 0) return true
  const { shape } = value
  if (!shape || inner.length > shape.length) return false
  const offset = shape.length - inner.length
  return inner.every((dim, axis) => dim === 1 || isSameDim(dim, shape[axis + offset]))
}

/** An axis counted from the front; undefined where it is none, and for one from the back of an unknown rank. */
export function axisOf(axis: number | undefined, rank: number | undefined): number | undefined {
  if (axis === undefined || (rank === undefined && axis < 0)) return undefined
  return rank === undefined ? axis : axisOfRank(axis, rank)
}

/** Different axes counted from the front, in order; undefined where one is none. */
export function axesOf(axes: readonly number[], rank: number | undefined): readonly number[] | undefined {
  const found = axes.map((axis) => axisOf(axis, rank))
  const known = found.filter((axis) => axis !== undefined)
  if (known.length < axes.length || new Set(known).size < known.length) return undefined
  return known.sort((one, other) => one - other)
}

/** The axes of a reduction, by an attribute or an input; not those of ArgMax and ArgMin. */
export function reductionAxes(node: RewriteNode): ReturnType<typeof listOf> {
  return listOf(node, 'axes', reductionAxesInput(node), 1)
}

/** The operator set from which on the axes of a reduction are an input. */
export function reductionAxesInput({ opType }: RewriteNode): number {
  return opType === 'ReduceSum' ? 13 : 18
}

/** The axes of a Squeeze or Unsqueeze, in order; undefined where they do not follow. */
export function axesOfChange(node: RewriteNode): readonly number[] | undefined {
  const { list } = listOf(node, 'axes', 13, 1)
  const rank = node.input(0)?.rank
  const added = node.is('Unsqueeze') ? (list?.length ?? 0) : 0
  return list && axesOf(list, rank === undefined ? undefined : rank + added)
}

/** The order of axes of a Transpose; undefined where it does not follow. */
export function permOf(node: RewriteNode): readonly number[] | undefined {
  const perm = node.ints('perm')
  if (!perm) {
    const rank = node.attribute('perm') === undefined ? node.input(0)?.rank : undefined
    return rank === undefined ? undefined : Array.from({ length: rank }, (_, axis) => rank - 1 - axis)
  }
  const isPerm = perm.every((axis) => axis >= 0 && axis < perm.length) && new Set(perm).size === perm.length
  return isPerm ? perm : undefined
}

export function isIdentity(perm: readonly number[]): boolean {
  return perm.every((axis, at) => axis === at)
}

/** The only user of a value is this node, once. */
export function isOnlyUse(value: RewriteValue | undefined, node: RewriteNode): boolean {
  return value?.onlyUser === node && node.inputs.filter((each) => each === value).length === 1
}

/** The attributes of a node, to make another one with them. */
export function attributesOf(
  node: RewriteNode,
  changed: Readonly<Record<string, NewAttribute>> = {},
): Readonly<Record<string, NewAttribute | Attribute>> {
  return { ...Object.fromEntries(node.source.attributes.map((each) => [each.name, each])), ...changed }
}

export const int = (value: number): NewAttribute => ({ type: 'INT', value })
export const ints = (value: readonly number[]): NewAttribute => ({ type: 'INTS', value })
