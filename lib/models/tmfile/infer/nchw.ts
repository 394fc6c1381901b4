/**
 * What the runtime does to an NHWC model while it loads it: four-dimensional shapes are permuted to NCHW, and parameters
 * that name axes follow for seven operators. Facts: the loader and the shape inference of Concat in the reference.
 */

import type { OperatorParams } from '../../../formats/tmfile/operators.js'
import type { TmfileNode } from '../../../formats/tmfile/types.js'
import type { Shape } from './shape_rule.js'

/** n, h, w, c → n, c, h, w; other ranks stay. */
export function toNchw(shape: Shape): Shape {
  const [n, h, w, c] = shape
  return shape.length === 4 ? [n!, c!, h!, w!] : shape
}

/** n, c, h, w → n, h, w, c; other ranks stay. */
export function toNhwc(shape: Shape): Shape {
  const [n, c, h, w] = shape
  return shape.length === 4 ? [n!, h!, w!, c!] : shape
}

/**
 * The parameters that a node of an NHWC model has after it is loaded.
 *
 * @param rank - of the first input
 * @returns undefined where the runtime refuses the node, or reads past its shapes
 */
export function nchwParams(node: TmfileNode, rank: number): TmfileNode['params'] | undefined {
  switch (node.operator) {
    case 'Softmax':
      return { axis: node.params.axis === 3 ? 1 : node.params.axis }
    case 'Concat':
      return concatParams(node.params, rank)
    case 'Reduction':
      return reductionParams(node.params)
    case 'Pad':
      return padParams(node.params)
    case 'StridedSlice':
      return stridedSliceParams(node.params)
    case 'Reshape':
      return reshapeParams(node.params)
    default:
      return node.params
  }
}

/** Axes of a Concat by rank; the runtime refuses others. */
const CONCAT_AXES: Readonly<Record<number, Readonly<Record<number, number>>>> = {
  3: { 1: 2, 2: 1 },
  4: { 1: 2, 2: 3, 3: 1 },
}

function concatParams(params: OperatorParams['Concat'], rank: number): OperatorParams['Concat'] | undefined {
  const axes = CONCAT_AXES[rank]
  if (!axes) return params
  const axis = axes[params.axis]
  return axis === undefined ? undefined : { axis }
}

function reductionParams(params: OperatorParams['Reduction']): OperatorParams['Reduction'] | undefined {
  if (params.dim_0 === 1 && params.dim_1 === 2) return { ...params, dim_0: 2, dim_1: 3 }
  // Becomes axis 4, which no shape has.
  return params.dim_0 === -1 ? undefined : params
}

/** The fields of n, c, h and w hold those of n, h, w and c on disk. */
function padParams(params: OperatorParams['Pad']): OperatorParams['Pad'] {
  const { pad_c_0, pad_c_1, pad_h_0, pad_h_1, pad_w_0, pad_w_1 } = params
  const channels = { pad_c_0: pad_w_0, pad_c_1: pad_w_1 }
  const plane = { pad_h_0: pad_c_0, pad_h_1: pad_c_1, pad_w_0: pad_h_0, pad_w_1: pad_h_1 }
  return { ...params, ...channels, ...plane }
}

function stridedSliceParams(params: OperatorParams['StridedSlice']): OperatorParams['StridedSlice'] {
  const { begin_c, begin_h, begin_w, end_c, end_h, end_w, stride_c, stride_h, stride_w } = params
  return {
    ...params,
    ...{ begin_c: begin_w, begin_h: begin_c, begin_w: begin_h },
    ...{ end_c: end_w, end_h: end_c, end_w: end_h },
    ...{ stride_c: stride_w, stride_h: stride_c, stride_w: stride_h },
  }
}

/** Targets of 3 and 4 extents are permuted; 5 and more, or none, make the runtime refuse the file. */
function reshapeParams(params: OperatorParams['Reshape']): OperatorParams['Reshape'] | undefined {
  const target = params.re_shape
  if (!target || target.length > 4) return undefined
  const [first, second, third] = target
  const re_shape = target.length === 3 ? [first!, third!, second!] : toNchw(target)
  return { ...params, re_shape }
}
