/** Shapes of reductions, and of operators that add or drop axes. */
import { axisOf, type Dims, isKnown } from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

/** Axes by attribute, or by an input since a version. */
function axesOf(node: NodeView, since: number): readonly number[] | 'absent' | 'unknown' {
  if (node.opset < since) {
    // A second input, of a later version, is an error that implementations take differently.
    const isUnclear = node.has(1) || node.node.attribute('axes') !== undefined
    return node.ints('axes') ?? (isUnclear ? 'unknown' : 'absent')
  }
  return node.has(1) ? (node.integers(1) ?? 'unknown') : 'absent'
}

/** Other values than 1 drop the axis. */
const keepsDims = (node: NodeView): boolean => node.int('keepdims', 1) === 1

export function reduce(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const since = node.opType === 'ReduceSum' ? 13 : 18
  const given = axesOf(node, since)
  if (!dims || given === 'unknown') return dims && keepsDims(node) ? dims.map(() => null) : undefined
  const isNone = given === 'absent' || given.length === 0
  if (isNone && node.opset >= since && node.int('noop_with_empty_axes', 0) !== 0) return dims
  const axes = new Set(isNone ? dims.keys() : given.map((axis) => axisOf(axis, dims.length)))
  if (axes.has(undefined)) return undefined
  if (keepsDims(node)) return dims.map((dim, axis) => (axes.has(axis) ? 1 : dim))
  return dims.filter((_, axis) => !axes.has(axis))
}

export function argReduce(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const axis = dims && axisOf(node.int('axis', 0), dims.length)
  if (!dims || axis === undefined) return undefined
  return keepsDims(node) ? dims.with(axis, 1) : dims.filter((_, at) => at !== axis)
}

/** Statistics over the axes from one on, which keep the rank. */
export function layerStatistics(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  const first = dims && axisOf(node.int('axis', -1), dims.length)
  const statistics = first === undefined ? undefined : dims?.map((dim, axis) => (axis < first ? dim : 1))
  return [dims, statistics, statistics]
}

export function squeeze(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const given = axesOf(node, 13)
  if (!dims || given === 'unknown') return undefined
  if (given === 'absent') return dims.every(isKnown) ? dims.filter((dim) => dim !== 1) : undefined
  const axes = new Set(given.map((axis) => axisOf(axis, dims.length)))
  return axes.has(undefined) ? undefined : dims.filter((_, axis) => !axes.has(axis))
}

export function unsqueeze(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const given = axesOf(node, 13)
  if (!dims || typeof given === 'string') return undefined
  const rank = dims.length + given.length
  const axes = new Set(given.map((axis) => axisOf(axis, rank)))
  if (axes.has(undefined) || axes.size < given.length) return undefined
  const others = dims.values()
  return Array.from({ length: rank }, (_, axis) => (axes.has(axis) ? 1 : others.next().value!))
}

export function topK(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  const axis = dims && axisOf(node.int('axis', -1), dims.length)
  if (!dims || axis === undefined) return []
  const k = node.opset < 10 ? node.int('k') : node.values(1)?.[0]
  const shape = dims.with(axis, typeof k === 'number' && k < 0 ? null : (k ?? null))
  return [shape, shape]
}

/** Elements of the whole input, or along an axis, each once. */
export function unique(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  const given = node.int('axis')
  const axis = dims && given !== undefined ? axisOf(given, dims.length) : undefined
  const found = given === undefined ? [null] : axis === undefined ? undefined : dims?.with(axis, null)
  return [found, [null], [null], [null]]
}
