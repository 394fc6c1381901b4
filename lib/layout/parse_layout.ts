/** From a name to a layout that can be asked. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { defineLayout, type LayoutDefinition } from './definition.js'
import type { Layout, LayoutStorage, StorageOptions } from './layout.js'
import { coordinateInStorage, offsetInStorage } from './offset.js'
import { bindStorage } from './storage.js'

export { LAYOUT_NAMES } from './catalogue.js'

/** Names kept after parsing. Above the size of the catalogue, and small enough that hostile names cost nothing. */
const CACHE_ENTRIES = 256
const cache = new Map<string, Layout>()
const parsed = new WeakSet<Layout>()

/**
 * The layout of a name: one of {@link LAYOUT_NAMES}, an older name of one of them, `row_major`, `column_major`, or any other name
 * that the layout grammar makes, for example `b_fs_yx_fsv24`.
 *
 * @throws TileworkError ERR_LAYOUT_NAME with the word and the rule that it breaks; ERR_ARGUMENT if it is no string
 */
export function parseLayout(name: string): Layout {
  if (typeof name !== 'string') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `A layout name is a string, not ${name === null ? 'null' : typeof name}.`,
    )
  }
  const known = cache.get(name)
  if (known !== undefined) return known
  const layout = layoutOf(defineLayout(name))
  parsed.add(layout)
  if (cache.size >= CACHE_ENTRIES) cache.delete(cache.keys().next().value!)
  cache.set(name, layout)
  return layout
}

/** Whether a layout was made here: then its name says all of it. */
export function isParsedLayout(layout: Layout): boolean {
  return parsed.has(layout)
}

/**
 * @param call - names the function at the start of the message
 * @throws TileworkError ERR_ARGUMENT for what `parseLayout` did not give
 */
export function checkParsedLayout(layout: unknown, call: string): Layout {
  if (parsed.has(layout as Layout)) return layout as Layout
  const message = `${call} takes a layout that parseLayout gave; ${valueText(layout)} was given.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function layoutOf(definition: LayoutDefinition): Layout {
  const { name, kind, axes, order, onednnTag, aliases, notes } = definition
  const bind = rememberLast((shape: readonly number[], options?: StorageOptions) =>
    bindStorage(definition, shape, options),
  )
  return Object.freeze({
    name,
    kind,
    axes,
    order,
    ...(onednnTag === undefined ? {} : { onednnTag }),
    aliases,
    notes,
    // Never the remembered object: a caller who changed it would change the offsets of all others.
    storage: (shape: readonly number[], options?: StorageOptions) => bindStorage(definition, shape, options),
    offsetOf: (shape: readonly number[], index: readonly number[], options?: StorageOptions) =>
      offsetInStorage(bind(shape, options), shape.length, index),
    coordinateOf: (shape: readonly number[], offset: number, options?: StorageOptions) =>
      coordinateInStorage(bind(shape, options), shape.length, offset),
  })
}

type Bind = (shape: readonly number[], options?: StorageOptions) => LayoutStorage

/** Offsets are asked in loops over one shape; comparing a few numbers is cheaper than binding anew. */
function rememberLast(bind: Bind): Bind {
  let asked: readonly unknown[] = []
  let last: LayoutStorage | undefined
  return (shape, options = {}) => {
    const asks = [shape, options.lower, options.upper, options.dtype]
    if (last === undefined || !asks.every((ask, position) => isSame(ask, asked[position]))) {
      last = bind(shape, options)
      asked = asks.map((ask) => (Array.isArray(ask) ? [...ask] : ask))
    }
    return last
  }
}

function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other
  return one.length === other.length && [...one].every((value, position) => Object.is(value, other[position]))
}
