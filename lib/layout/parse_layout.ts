/** From a name to a layout that can be asked. */
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
export function parseLayout(name: AnyLayoutName): Layout {
  if (typeof name !== 'string') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `A layout name is a string, not ${name === null ? 'null' : typeof name}.`,
    )
  }
  const known = cache.get(name)
  if (known !== undefined) return known
  const definition = defineLayout(name)
  const layout = definition.name === name ? layoutOf(definition) : parseLayout(definition.name)
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

/**
 * The layout of a name, or an object that has all that such a layout has, if it is a caller's own.
 *
 * @throws TileworkError ERR_LAYOUT_NAME; ERR_ARGUMENT for what is neither
 */
export function toLayout(layout: unknown): Layout {
  if (typeof layout === 'string') return parseLayout(layout)
  const isLayout = parsed.has(layout as Layout) || readInput('The layout', () => hasFields(layout))
  if (isLayout) return layout as Layout
  const message = `The layout must be a name or what parseLayout gives; ${valueText(layout)} was given.`
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
    readInput(`A storage of ${name}`, () => bindStorage(definition, shape, options))
  const bind = rememberLast(bindAnew)
  return Object.freeze({
    name,
    kind,
    axes,
    order,
    ...(onednnTag === undefined ? {} : { onednnTag }),
    // Every caller gets these same lists.
    aliases: Object.freeze([...aliases]),
    notes: Object.freeze([...notes]),
    // Never the remembered object: a caller who changed it would change the offsets of all others.
    storage: bindAnew,
    offsetOf: (shape: readonly number[], index: readonly number[], options?: StorageOptions) =>
      offsetInStorage(bind(shape, options), shape.length, index),
    coordinateOf: (shape: readonly number[], offset: number, options?: StorageOptions) =>
      coordinateInStorage(bind(shape, options), shape.length, offset),
  })
}

type Bind = (shape: readonly number[], options?: StorageOptions) => LayoutStorage

/** Offsets are asked in loops over one shape; comparing a few numbers is cheaper than binding anew. */
function rememberLast(bind: Bind): Bind {
  let asked: Asked | undefined
  let last: LayoutStorage | undefined
  return (shape, options = {}) =>
    readInput('The shape or an option of a layout', () => {
      if (last !== undefined && asked !== undefined && isSame(shape, options, asked)) return last
      // Copies, bound and remembered both: a list may give other numbers each time it is read.
      const asks = copyOf(shape, options)
      last = bind(asks.shape, asks)
      asked = asks
      return last
    })
}

interface Asked extends StorageOptions {
  readonly shape: readonly number[]
}

function copyOf(shape: readonly number[], options: StorageOptions): Asked {
  const { dtype } = options
  const padding = checkPadding(options)
  return { shape: checkExtents('shape', shape), ...padding, ...(dtype !== undefined && { dtype }) }
}

function isSame(shape: readonly number[], { lower, upper, dtype }: StorageOptions, asked: Asked): boolean {
  if (dtype !== asked.dtype || !isSameList(shape, asked.shape)) return false
  return isSameList(lower, asked.lower) && isSameList(upper, asked.upper)
}

/** As far as the known list goes: the other one may be of any length. */
function isSameList(list: readonly number[] | undefined, known: readonly number[] | undefined): boolean {
  if (list === undefined || known === undefined) return list === known
  return Array.isArray(list) && list.length === known.length && known.every((value, i) => value === list[i])
}
