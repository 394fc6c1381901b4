/** What a rule of shape inference gets and returns; see infer_shapes.ts. */
import type { OperatorParams } from '../../../formats/tmfile/operators.js'

export type Shape = readonly number[]

/** One node: shapes of its inputs, parameters, and the number of its outputs. Axes are those of NCHW. */
export interface RuleCase<Params = never> {
  readonly inputs: readonly Shape[]
  readonly params: Params
  readonly outputs: number
}

/** The shapes of all outputs; undefined where the rule does not hold. */
export type ShapeRule<Params = never> = (given: RuleCase<Params>) => readonly Shape[] | undefined

/** The rule of the operator `Name`. */
export type RuleOf<Name extends keyof OperatorParams> = ShapeRule<OperatorParams[Name]>

export function countOf(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1)
}

/** The one output of a rule. */
export function one(shape: Shape | undefined): readonly Shape[] | undefined {
  return shape && [shape]
}
