/** The operators of ONNX that have a counterpart in a tmfile, one row each. */
import { CONVOLUTION_ROWS } from './operators/convolution.js'
import { ELEMENTWISE_ROWS } from './operators/elementwise.js'
import { NORMALIZATION_ROWS } from './operators/normalization.js'
import { PAD_ROWS } from './operators/pad.js'
import { POOLING_ROWS } from './operators/pooling.js'
import { PRODUCT_ROWS } from './operators/products.js'
import { QUANTIZED_ROWS } from './operators/quantized.js'
import { RECURRENT_ROWS } from './operators/recurrent.js'
import { REDUCTION_ROWS } from './operators/reductions.js'
import { RESIZE_ROWS } from './operators/resize.js'
import { SHAPE_ROWS } from './operators/shapes.js'
import type { OperatorRow } from './step.js'

export const TO_TMFILE: readonly OperatorRow[] = [
  ...CONVOLUTION_ROWS,
  ...POOLING_ROWS,
  ...PRODUCT_ROWS,
  ...NORMALIZATION_ROWS,
  ...ELEMENTWISE_ROWS,
  ...REDUCTION_ROWS,
  ...SHAPE_ROWS,
  ...PAD_ROWS,
  ...RESIZE_ROWS,
  ...RECURRENT_ROWS,
  ...QUANTIZED_ROWS,
].sort((one, other) => (one.operator < other.operator ? -1 : 1))

const BY_OPERATOR: ReadonlyMap<string, OperatorRow> = new Map(TO_TMFILE.map((row) => [row.operator, row]))

/** Undefined for an operator without a counterpart. */
export function rowOf(operator: string): OperatorRow | undefined {
  return BY_OPERATOR.get(operator)
}

/** Why an operator of ONNX has no row. */
const REFUSED: Readonly<Record<string, string>> = {
  ArgMax: 'the engine infers a wrong shape for its own operator',
  ArgMin: 'the engine infers a wrong shape for its own operator',
  RNN: 'the engine has another order of weights',
  Erf: 'the engine has no error function; Gelu that is written with it is recognised',
  RoiAlign: 'the operator of the engine computes something else',
}

/** The operators that are refused for a reason of their own, and the reason. */
export const REFUSED_OPERATORS: ReadonlyMap<string, string> = new Map(Object.entries(REFUSED))

export function refusalOf(operator: string, domain: string): string {
  if (domain !== '') return `operators of the domain ${domain} have no counterpart`
  return REFUSED_OPERATORS.get(operator) ?? 'the engine has no counterpart'
}
