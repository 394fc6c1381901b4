/** The operators of a tmfile that have a counterpart in ONNX, one row each. */
import type { OperatorName } from '../../../models/tmfile/index.js'
import type { OperatorRow } from './node_scope.js'
import { ACTIVATION_ROWS } from './operators/activations.js'
import { DETECTION_ROWS } from './operators/detection.js'
import { ELEMENTWISE_ROWS } from './operators/elementwise.js'
import { MOVEMENT_ROWS } from './operators/movement.js'
import { NORMALIZATION_ROWS } from './operators/normalization.js'
import { PRODUCT_ROWS } from './operators/products.js'
import { WINDOW_ROWS } from './operators/windows.js'

export const TO_ONNX: readonly OperatorRow[] = [
  ...WINDOW_ROWS,
  ...PRODUCT_ROWS,
  ...NORMALIZATION_ROWS,
  ...ACTIVATION_ROWS,
  ...ELEMENTWISE_ROWS,
  ...MOVEMENT_ROWS,
  ...DETECTION_ROWS,
].sort((one, other) => (one.operator < other.operator ? -1 : 1))

const BY_OPERATOR: ReadonlyMap<string, OperatorRow> = new Map(TO_ONNX.map((row) => [row.operator, row]))

/** Undefined for an operator without a counterpart. */
export function rowOf(operator: string): OperatorRow | undefined {
  return BY_OPERATOR.get(operator)
}

/** Why an operator of a tmfile has no row. */
const REFUSED: Partial<Record<OperatorName, string>> = {
  ArgMax: 'the engine infers a wrong shape for it',
  ArgMin: 'the engine infers a wrong shape for it',
  DetectionPostProcess: 'ONNX has no operator that decodes boxes',
  Generic: 'its meaning is outside the file',
  LogSoftmax: 'the engine writes past its output',
  Minimum: 'the engine cannot load it',
  Psroipooling: 'ONNX has no position-sensitive pooling',
  ROIPooling: 'its rounding is not that of MaxRoiPool',
  RPN: 'ONNX has no operator that proposes regions',
  Region: 'ONNX has no operator that decodes boxes',
  Reorg: 'its order of elements is not that of SpaceToDepth',
  Roialign: 'its sampling is not that of RoiAlign',
  SpatialTransformer: 'its grid is not that of GridSample',
  Tile: 'the engine infers a wrong shape for it',
  Where: 'the engine runs ReLU1 in its place',
}

/** The operators that are refused for a reason of their own, and the reason. */
export const REFUSED_OPERATORS: ReadonlyMap<string, string> = new Map(Object.entries(REFUSED))

export function refusalOf(operator: string): string {
  return REFUSED_OPERATORS.get(operator) ?? 'ONNX has no counterpart that is known to be equal'
}
