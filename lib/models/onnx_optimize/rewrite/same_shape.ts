/** Shapes that are equal whatever the sizes of symbolic extents are. */
import type { Dim, Dims } from '../../onnx/evaluate/dims.js'
import type { RewriteValue } from './rewrite_graph.js'

/** Whether two extents are equal for all sizes of symbolic ones. */
export function isSameDim(one: Dim | undefined, other: Dim | undefined): boolean {
  return one !== null && one !== undefined && one === other
}

export function isSameDims(one: Dims | undefined, other: Dims | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.length === other.length &&
    one.every((dim, axis) => isSameDim(dim, other[axis]))
  )
}

/** Whether a value has the shape of another one for all sizes of symbolic extents. */
export function hasSameShape(one: RewriteValue | undefined, other: RewriteValue | undefined): boolean {
  return one !== undefined && other !== undefined && isSameDims(one.shape, other.shape)
}
