/** Parses layout names, with a cache of parsed layouts. */
import { readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { AnyLayoutName } from './catalogue.js'
import { defineLayout, type LayoutDefinition } from './definition.js'
import { checkExtents, checkPadding } from './extents.js'
import type { Layout, LayoutStorage, StorageOptions } from './layout.js'
import { coordinateInStorage, offsetInStorage } from './offset.js'
import { bindStorage } from './storage.js'

export { type AnyLayoutName, LAYOUT_NAMES, type LayoutAlias, type LayoutName } from './catalogue.js'

/** Cached layouts: more than the catalogue has, and few enough that hostile names cannot fill the memory. */
const CACHE_ENTRIES = 256
const cache = new Map<string, Layout>()
/** The layouts that were parsed, numbered. */
const parsed = new WeakMap<Layout, number>()
let parsedCount = 0

/**
 * Parses the name of a layout. A name is one of these:
 *
 * - `row_major` or `column_major`, which take shapes of any rank
 * - a name of {@link LAYOUT_NAMES}, or its name in an older release
 * - an alias such as `nchw`, in lower or upper case
 * - any other name of the layout grammar, for example `b_fs_yx_fsv24`
 *
 * @returns the same immutable object for the same layout; `name` is the canonical name
 * @throws TileworkError ERR_LAYOUT_NAME with the rule that the name breaks and the nearest known names; ERR_ARGUMENT unless it
 * is a string
 */
export function parseLayout(name: AnyLayoutName): Layout {
  if (typeof name !== 'string') {
    throw new TileworkError('ERR_ARGUMENT', `a layout name is ${valueText(name)}; it must be a string`)
  }
  const known = cache.get(name)
  if (known !== undefined) return known
  const definition = defineLayout(name)
  const layout = definition.name === name ? layoutOf(definition) : parseLayout(definition.name)
  if (!parsed.has(layout)) parsed.set(layout, parsedCount++)
  if (cache.size >= CACHE_ENTRIES) cache.delete(cache.keys().next().value!)
  cache.set(name, layout)
  return layout
}

/** True for a layout that `parseLayout` returned, which its name describes completely. */
export function isParsedLayout(layout: Layout): boolean {
  return parsed.has(layout)
}

/** The number of a layout that `parseLayout` returned; undefined for any other. */
export function parsedLayoutId(layout: Layout): number | undefined {
  return parsed.get(layout)
}

/**
 * @param call - the function that the error names
 * @throws TileworkError ERR_ARGUMENT for a value that `parseLayout` did not return
 */
export function checkParsedLayout(layout: unknown, call: string): Layout {
  if (parsed.has(layout as Layout)) return layout as Layout
  const message = `${call} was given ${valueText(layout)}; it takes a layout from parseLayout`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/**
 * Parses a name; an object with the members of a layout is returned as it is.
 *
 * @throws TileworkError ERR_LAYOUT_NAME; ERR_ARGUMENT for anything else
 */
export function toLayout(layout: unknown): Layout {
  if (typeof layout === 'string') return parseLayout(layout)
  const isLayout = parsed.has(layout as Layout) || readInput('The layout', () => hasFields(layout))
  if (isLayout) return layout as Layout
  const message = `the layout is ${valueText(layout)}; it must be a name or a layout from parseLayout`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function hasFields(value: unknown): boolean {
  const { name, kind, axes, notes, storage } = Object(value) as Partial<Layout>
  const isNamed = [name, kind, axes].every((text) => typeof text === 'string')
  return isNamed && Array.isArray(notes) && typeof storage === 'function'
}

function layoutOf(definition: LayoutDefinition): Layout {
  const { name, kind, axes, order, onednnTag, aliases, notes } = definition
  const bindAnew = (shape: readonly number[], options?: StorageOptions) =>
    readInput(`The shape or an option of ${name}`, () => bindStorage(definition, shape, options))
  const bind = rememberLast(bindAnew)
  return Object.freeze({
    name,
    kind,
    axes,
    order,
    ...(onednnTag === undefined ? {} : { onednnTag }),
    // All callers share these lists.
    aliases: Object.freeze([...aliases]),
    notes: Object.freeze([...notes]),
    // A fresh storage for each call: if callers shared one, a change by one of them would corrupt the offsets of all others.
    storage: bindAnew,
    offsetOf: (shape: readonly number[], index: readonly number[], options?: StorageOptions) =>
      offsetInStorage(bind(shape, options), shape.length, index),
    coordinateOf: (shape: readonly number[], offset: number, options?: StorageOptions) =>
      coordinateInStorage(bind(shape, options), shape.length, offset),
  })
}

type Bind = (shape: readonly number[], options?: StorageOptions) => LayoutStorage

/** Remembers the last bound shape: callers compute offsets in loops over one shape, and comparing it is cheaper than binding. */
function rememberLast(bind: Bind): Bind {
  let bound: BoundArguments | undefined
  let last: LayoutStorage | undefined
  return (shape, options = {}) =>
    readInput('The shape or an option of a layout', () => {
      if (last !== undefined && bound !== undefined && isSame(shape, options, bound)) return last
      // A getter may return different numbers each time, so the same copy is bound and remembered.
      const copy = copyOf(shape, options)
      last = bind(copy.shape, copy)
      bound = copy
      return last
    })
}

interface BoundArguments extends StorageOptions {
  readonly shape: readonly number[]
}

function copyOf(shape: readonly number[], options: StorageOptions): BoundArguments {
  const { dtype } = options
  const padding = checkPadding(options)
  return { shape: checkExtents('shape', shape), ...padding, ...(dtype !== undefined && { dtype }) }
}

function isSame(
  shape: readonly number[],
  { lower, upper, dtype }: StorageOptions,
  bound: BoundArguments,
): boolean {
  if (dtype !== bound.dtype || !isSameList(shape, bound.shape)) return false
  return isSameList(lower, bound.lower) && isSameList(upper, bound.upper)
}

/** Reads at most as many elements of `list` as `known` has: a caller's list may be of any length. */
function isSameList(list: readonly number[] | undefined, known: readonly number[] | undefined): boolean {
  if (list === undefined || known === undefined) return list === known
  if (!Array.isArray(list) || list.length !== known.length) return false
  // Callers ask for one offset after the other: a loop takes a third of the time of every().
  for (let at = 0; at < known.length; at++) if (list[at] !== known[at]) return false
  return true
}
