/** Arithmetic of shapes of which some extents are symbolic. */
import type { NodeRule } from '../../rewrite/rewriter.js'
import { attributesOf, FAR, int, isOnlyUse, ruleOf } from './facts.js'
import { listConstant, UNARY } from './movements.js'
import { sliceOf } from './no_ops.js'

/** The shape of what an elementwise operator gives is that of its input. */
const shapeOfUnary: NodeRule['apply'] = (node, { make }) => {
  const inner = node.input(0)?.producer
  if (inner?.domain !== '' || !UNARY.has(inner.opType) || !isOnlyUse(node.input(0), node)) return undefined
  return make(node.opType, [inner.input(0)], attributesOf(node))
}

/** A part of a shape, which Shape gives itself. */
const sliceOfShape: NodeRule['apply'] = (node, { make }) => {
  const shape = node.producer(0, 'Shape')
  const [slice, ...others] = sliceOf(node) ?? []
  if (!shape || !slice || others.length > 0 || slice.step !== 1 || node.opset < FIRST_WITH_PARTS)
    return undefined
  const isWhole = shape.source.attributes.length === 0
  if (!isWhole || !isOnlyUse(node.input(0), node)) return undefined
  const end = slice.end >= FAR ? {} : { end: int(slice.end) }
  return make('Shape', [shape.input(0)], { start: int(slice.start), ...end })
}

/** Shape has `start` and `end` from this version of the operator set on. */
const FIRST_WITH_PARTS = 15

/**
 * A target of Reshape that is computed from extents of its own input: an extent in the same place is 0, which copies it, and one
 * other that is not known is -1.
 */
const reshapeTarget: NodeRule['apply'] = (node, maker) => {
  const [x, target] = node.inputs
  const list = target?.elements?.isPartial ? target.elements.list : undefined
  if (!x || !list || node.opset < 5 || node.int('allowzero') === 1) return undefined
  const { shape } = x
  const found = list.map((dim, axis) => {
    if (typeof dim === 'number') return dim
    return dim !== null && shape?.[axis] === dim ? 0 : -1
  })
  if (!isClearTarget(list, found)) return undefined
  return maker.make('Reshape', [x, listConstant(maker, found)])
}

/** Whether the new target says the same for all extents, also where one is 0 and no element tells what -1 is. */
function isClearTarget(list: readonly unknown[], found: readonly number[]): boolean {
  const open = found.filter((extent) => extent === -1).length
  // A constant 0 copies an extent already; where it stands for another one, it is not looked at.
  if (open > 1 || list.includes(0) || found.some((extent) => extent < -1)) return false
  return open === 0 || list.includes(-1) || !found.includes(0)
}

export const SHAPES: readonly NodeRule[] = [
  ruleOf('shape-of-elementwise', ['Shape', 'Size'], shapeOfUnary),
  ruleOf('slice-of-shape', ['Slice'], sliceOfShape),
  ruleOf('reshape-target', ['Reshape'], reshapeTarget),
]
