/** Arithmetic of shapes of which some extents are symbolic. */
import type { RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'
import { attributesOf, axisOf, FAR, int, integersOf, isOnlyUse, ruleOf } from './facts.js'
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
  const list = target && extentsIn(target)
  if (!x || !list || list.every((each) => typeof each === 'number') || node.opset < 5) return undefined
  // With `allowzero` no 0 copies an extent, and the new target has none.
  const copies = node.int('allowzero') !== 1
  const found = list.map((dim, axis) => {
    if (typeof dim === 'number') return dim
    return copies && isExtentOf(dim, x, axis) ? 0 : -1
  })
  if (!isClearTarget(list, found)) return undefined
  return maker.make('Reshape', [x, listConstant(maker, found)])
}

/** An element of a shape: a number, the name of an extent, or the axis of a value; null where nothing is known. */
type Extent = number | string | null | { readonly value: RewriteValue; readonly axis: number }

function isExtentOf(extent: Extent, x: RewriteValue, axis: number): boolean {
  if (typeof extent === 'string') return x.shape?.[axis] === extent
  return typeof extent === 'object' && extent?.value === x && extent.axis === axis
}

/** The elements of a list of extents. Those that no name stands for are found by the nodes that read them from a shape. */
function extentsIn(list: RewriteValue): readonly Extent[] | undefined {
  const { elements } = list
  const length = list.shape?.[0]
  if (list.rank !== 1 || typeof length !== 'number') return undefined
  const known: readonly Extent[] = elements?.list ?? Array.from({ length }, () => null)
  const parts = list.producer?.is('Concat') ? list.producer.inputs : [list]
  const traced = parts.flatMap((part): readonly Extent[] => {
    const count = part?.shape?.[0]
    if (!part || typeof count !== 'number') return []
    return count === 1 ? [axisRead(part) ?? null] : Array.from({ length: count }, () => null)
  })
  if (traced.length !== length) return known
  return known.map((extent, at) => extent ?? traced[at]!)
}

/** The axis of which an element is the extent, through Unsqueeze and Reshape: Gather or Slice of a Shape, or a Shape of one axis. */
function axisRead(element: RewriteValue): Extent | undefined {
  let node = element.producer
  for (let steps = 0; node?.is(['Unsqueeze', 'Reshape', 'Squeeze']) && steps < 4; steps++)
    node = node.input(0)?.producer
  const shape = node?.is(['Gather', 'Slice']) ? node.producer(0, 'Shape') : node
  const value = shape?.is('Shape') ? shape.input(0) : undefined
  const { rank } = value ?? {}
  if (!node || !shape || !value || rank === undefined) return undefined
  const isWhole = shape.source.attributes.length === 0
  if (node === shape) {
    const start = axisOf(shape.int('start') ?? 0, rank)
    return start === undefined ? undefined : { value, axis: start }
  }
  const [first] = node.is('Gather') ? (integersOf(node.input(1)) ?? []) : [sliceOf(node)?.[0]?.start]
  const axis = isWhole ? axisOf(first, rank) : undefined
  return axis === undefined ? undefined : { value, axis }
}

/** Whether the new target says the same for all extents, also where one is 0 and no element tells what -1 is. */
function isClearTarget(list: readonly Extent[], found: readonly number[]): boolean {
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
