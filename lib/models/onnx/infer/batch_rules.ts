/**
 * How a node follows a batch that changed, operator by operator: entries of constant lists that were the old batch, and constants
 * that lack the new one. Shapes are numbers here; a symbolic batch has a number in its place.
 */

import { integersOf } from '../document/attribute.js'
import {
  axisOf,
  type Dim,
  type Dims,
  isKnown,
  productOf,
  productOfAll,
  quotientOf,
} from '../evaluate/dims.js'
import { type BatchSite, placeInTarget } from './batch_view.js'

/** Another list of integers that an input or attribute gives. */
export interface EntryEdit {
  readonly kind: 'list'
  readonly input: number
  readonly attribute?: string
  readonly values: readonly number[]
  /** Index of the entry that is a multiple of the batch; others do not depend on it. */
  readonly batchAt?: number
}

/** An input that no input of the model changes, and that lacks the batch along an axis. */
export interface WidenEdit {
  readonly kind: 'widen'
  readonly input: number
  readonly axis: number
  /** Dimension along the axis now. */
  readonly from: number
  readonly to: number
}

export type BatchEdit = EntryEdit | WidenEdit

/** What a node needs: edits, none, or it cannot follow. */
export type Needs = readonly BatchEdit[] | 'misfit'

const NOTHING: readonly BatchEdit[] = []

type Rule = (site: BatchSite) => Needs

export function needsOf(site: BatchSite): Needs {
  const { node } = site
  if (node.domain !== '' && node.domain !== 'ai.onnx') return NOTHING
  return RULES.get(node.opType)?.(site) ?? NOTHING
}

/** The dimension of the target at the place of the batch takes it. */
function reshape(site: BatchSite): Needs {
  const target = site.list(1, 'shape')
  const [before, after] = [site.before(0), site.after(0)]
  if (!target) return NOTHING
  if (before && !after) return 'misfit'
  const axes = site.changedAxes(0)
  if (!before || !after || axes.length === 0) return NOTHING
  const [axis] = axes as [number]
  const [old, place] = [site.outputBefore, placeInTarget(site)]
  const { from, to } = site.view.change
  const isMultiple = productOf(before[axis]!, to) === productOf(after[axis]!, from)
  if (!old || !place || !isMultiple) return 'misfit'
  const { axis: at } = place
  const wanted = old.with(at, productOf(quotientOf(old[at]!, from), to))
  const copies = site.int('allowzero', 0) === 0
  const fits = (list: readonly number[]): boolean => isEqual(resolved(list, after, copies), wanted)
  if (fits(target)) return NOTHING
  const attribute = site.node.attribute('shape') ? { attribute: 'shape' } : {}
  const values = targetsLike(target, old, at, copies).find(fits)
  return values ? [{ kind: 'list', input: 1, ...attribute, values }] : 'misfit'
}

/** Targets that take the batch at an axis from the input: copied, or computed, with what was computed before as a number. */
function targetsLike(
  target: readonly number[],
  old: Dims,
  at: number,
  copies: boolean,
): (readonly number[])[] {
  const computed = target.map((dim, axis) => (axis === at ? -1 : dim === -1 ? old[axis]! : dim))
  return [...(copies ? [target.with(at, 0)] : []), ...(computed.every(isKnown) ? [computed] : [])]
}

/** The shape that a target gives; undefined where the numbers of elements differ, or may differ. */
function resolved(target: readonly number[], data: Dims, copies: boolean): Dims | undefined {
  const dims = target.map((dim, axis): Dim => (dim === 0 && copies ? (data[axis] ?? null) : dim))
  const total = productOfAll(data)
  const computed = dims.indexOf(-1)
  if (computed < 0) return productOfAll(dims) === total ? dims : undefined
  const others = productOfAll(dims.toSpliced(computed, 1))
  return dims.with(computed, quotientOf(total, others))
}

function isEqual(one: Dims | undefined, other: Dims): boolean {
  return one?.length === other.length && one.every((dim, at) => dim === other[at])
}

/** Where the data have the batch, the target may leave it to them. */
function expand(site: BatchSite): Needs {
  const target = site.list(1)
  const before = site.before(0)
  if (!target || !before) return NOTHING
  let values = target
  for (const axis of site.changedAxes(0)) {
    const at = axis - before.length + target.length
    if (target[at] !== 1 && target[at] === before[axis]) values = values.with(at, 1)
  }
  return values === target ? NOTHING : [{ kind: 'list', input: 1, values }]
}

/** Inputs that are joined agree in all other dimensions. */
function concat(site: BatchSite): Needs {
  const { inputs } = site
  // A node may have a hundred thousand inputs, so one input gives the dimension of an axis to all others.
  const sources = new Map<number, number>()
  for (const input of inputs.keys())
    for (const axis of site.changedAxes(input)) if (!sources.has(axis)) sources.set(axis, input)
  const rank = site.after([...sources.values()][0] ?? 0)?.length ?? 0
  sources.delete(axisOf(site.int('axis', 1), rank) ?? -1)
  const needs = [...sources].flatMap(([axis, from]) =>
    Array.from(inputs.keys(), (input) => sameDim(site, [input, axis], [from, axis])),
  )
  return together(needs)
}

/** What all of them need; one that cannot follow makes the node a misfit. */
function together(needs: readonly Needs[]): Needs {
  return needs.includes('misfit') ? 'misfit' : needs.flatMap((each) => each as readonly BatchEdit[])
}

type Place = readonly [input: number, axis: number]

/** The dimension of one input has to be that of another, which changed. */
function sameDim(site: BatchSite, [input, axis]: Place, [from, fromAxis]: Place): Needs {
  const dims = site.after(input)
  const to = site.after(from)?.[fromAxis]
  if (input === from || !isKnown(to) || !dims) return NOTHING
  const own = dims[axis]
  if (!isKnown(own) || own === to) return NOTHING
  return site.isFixed(input) ? [{ kind: 'widen', input, axis, from: own, to }] : 'misfit'
}

/** Inputs whose dimension is that of the first: the batch of their rows. */
function sameAs(from: Place, ...places: readonly Place[]): Rule {
  return (site) => {
    if (!site.changedAxes(from[0]).includes(from[1])) return NOTHING
    return together(places.map((place) => sameDim(site, place, from)))
  }
}

/** Initial states and lengths of sequences; the batch is the second axis, or the first with `layout` 1. */
const recurrent: Rule = (site) =>
  site.int('layout', 0) === 1
    ? sameAs([0, 0], [4, 0], [5, 0], [6, 0])(site)
    : sameAs([0, 1], [4, 0], [5, 1], [6, 1])(site)

/** Elements that fixed indices choose along a changed axis are those of the old batch alone. */
const gather: Rule = (site) => {
  const axis = axisOf(site.int('axis', 0), site.after(0)?.length ?? 0)
  const isChanged = axis !== undefined && site.changedAxes(0).includes(axis)
  return isChanged && site.isFixed(1) ? 'misfit' : NOTHING
}

const gatherAlongOthers: Rule = (site) => {
  const axis = axisOf(site.int('axis', 0), site.after(0)?.length ?? 0)
  const changed = site.changedAxes(0)
  if (changed.length === 0) return NOTHING
  if (changed.includes(axis ?? -1)) return site.isFixed(1) ? 'misfit' : NOTHING
  const inputs = site.node.opType === 'GatherElements' ? [1] : [1, 2]
  const places = changed.flatMap((each) => inputs.map((input) => [input, each] as const))
  return together(places.map((place) => sameDim(site, place, [0, place[1]])))
}

/** Fixed tuples of indices name elements of the old batch alone, unless they begin behind it. */
const tuples: Rule = (site) => {
  const changed = site.changedAxes(0)
  if (changed.length === 0 || !site.isFixed(1)) return NOTHING
  const first = site.int('batch_dims', 0)
  const depth = site.after(1)?.at(-1)
  const last = isKnown(depth) ? first + depth : Number.POSITIVE_INFINITY
  return changed.some((axis) => axis < last) ? 'misfit' : NOTHING
}

/** Exporters write the greatest int32 or int64 for "to the end". */
const TO_THE_END = 2 ** 31 - 1

/** A slice of the whole old batch becomes one of the whole new batch; a part of a batch is one of the old batch alone. */
const slice: Rule = (site) => {
  const rank = site.after(0)?.length ?? 0
  const changed = site.changedAxes(0)
  if (changed.length === 0) return NOTHING
  const [starts, ends] = [site.list(1, 'starts'), site.list(2, 'ends')]
  const hasAxes = (site.inputs[3] ?? '') !== '' || site.node.attribute('axes') !== undefined
  const axes = hasAxes ? site.list(3, 'axes') : starts?.map((_, at) => at)
  const steps = (site.inputs[4] ?? '') === '' ? starts?.map(() => 1) : site.list(4)
  if (!starts || !ends || !axes || !steps) return NOTHING
  let values = ends
  for (const [at, axis] of axes.entries()) {
    const own = axisOf(axis, rank)
    if (own === undefined || !changed.includes(own)) continue
    const [old, now] = [site.before(0)![own] as number, site.after(0)![own] as number]
    const isWhole = (starts[at] === 0 || starts[at]! <= -old) && ends[at]! >= old && steps[at] === 1
    if (!isWhole) return 'misfit'
    if (ends[at]! < now) values = values.with(at, TO_THE_END)
  }
  if (values === ends) return NOTHING
  const attribute = site.node.attribute('ends') ? { attribute: 'ends' } : {}
  return [{ kind: 'list', input: 2, ...attribute, values }]
}

/** A dimension of 1 that is removed is that of an old batch alone. */
const squeeze: Rule = (site) => {
  const changed = site.changedAxes(0)
  if (changed.length === 0) return NOTHING
  const rank = site.after(0)!.length
  const hasAxes = (site.inputs[1] ?? '') !== '' || site.node.attribute('axes') !== undefined
  const axes = hasAxes ? site.list(1, 'axes')?.map((axis) => axisOf(axis, rank)) : undefined
  const isRemoved = (axis: number): boolean =>
    hasAxes ? axes?.includes(axis) === true : site.before(0)![axis] === 1
  return changed.some(isRemoved) ? 'misfit' : NOTHING
}

/** Fixed lengths of parts add up to the old batch. */
const split: Rule = (site) => {
  const axis = axisOf(site.int('axis', 0), site.after(0)?.length ?? 0)
  const isChanged = axis !== undefined && site.changedAxes(0).includes(axis)
  return isChanged && site.list(1, 'split') !== undefined ? 'misfit' : NOTHING
}

/** A list of dimensions of the result has that of the batch at an index. */
function sizes(input: number): Rule {
  return (site) => {
    const list = site.list(input)
    if (!list) return NOTHING
    const attribute = site.node.attribute('axes')
    const axes = attribute && integersOf(attribute)
    if (attribute && !axes) return 'misfit'
    const rank = site.after(0)?.length ?? 0
    for (const axis of site.changedAxes(0)) {
      const at = axes ? axes.findIndex((each) => axisOf(each, rank) === axis) : axis
      const [old, now] = [site.before(0)![axis] as number, site.after(0)![axis] as number]
      if (list[at] === undefined || list[at] === now) continue
      if (list[at] !== old) return 'misfit'
      return [{ kind: 'list', input, values: list.with(at, now), batchAt: at }]
    }
    return NOTHING
  }
}

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['AffineGrid', sizes(1)],
  ['Concat', concat],
  ['DeformConv', sameAs([0, 0], [2, 0], [4, 0])],
  ['Expand', expand],
  ['GRU', recurrent],
  ['Gather', gather],
  ['GatherElements', gatherAlongOthers],
  ['GatherND', tuples],
  ['GridSample', sameAs([0, 0], [1, 0])],
  ['LSTM', recurrent],
  ['RNN', recurrent],
  ['Reshape', reshape],
  ['Resize', sizes(3)],
  ['ReverseSequence', (site) => sameAs([0, site.int('batch_axis', 1)], [1, 0])(site)],
  ['ScatterElements', gatherAlongOthers],
  ['ScatterND', tuples],
  ['Slice', slice],
  ['Split', split],
  ['Squeeze', squeeze],
])
