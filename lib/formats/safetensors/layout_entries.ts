/**
 * Blocked tensors in a format of row-major arrays: the storage is written as such an array, and a metadata entry describes it:
 * `tilework.layout.<name>` = `{"layout": …, "shape": […], "lower": […], "upper": […]}`. Other readers see a plain array and a
 * string. An entry is used only where the layout gives exactly the shape in the file.
 */

import type { Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { parseLayout } from '../../layout/parse_layout.js'
import { arrayShape } from '../../layout/storage.js'
import { isPadded, isPlain } from '../../tensor/plain_storage.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import type { Report } from '../report.js'
import type { EntryTable } from './entry_table.js'
import { LAYOUT_KEY_PREFIX, MAX_LAYOUT_ENTRY_LENGTH, METADATA_KEY, quote } from './schema.js'

/** The layout and logical shape of a stored array. */
export interface Placement {
  readonly layout: string
  /** Logical shape. */
  readonly shape: readonly number[]
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
}

const FIELDS: ReadonlySet<string> = new Set(['layout', 'shape', 'lower', 'upper'])

/** The metadata entry for a blocked or padded tensor; undefined for a plain one. */
export function layoutEntryOf({ shape, storage }: DenseTensor): string | undefined {
  if (isPlain(storage)) return undefined
  const { layout, lower, upper } = storage
  return JSON.stringify({ layout, shape, ...(isPadded(storage) && { lower, upper }) })
}

/** The valid layout entries of `metadata`, by index in the table. Others are reported; their tensors stay plain. */
export function readLayoutEntries(
  metadata: ReadonlyMap<string, string>,
  metadataAt: ReadonlyMap<string, number>,
  table: EntryTable,
  report: Report,
): Map<number, Placement> {
  const placements = new Map<number, Placement>()
  for (const [key, text] of metadata) {
    if (!key.startsWith(LAYOUT_KEY_PREFIX)) continue
    const index = table.find(key.slice(LAYOUT_KEY_PREFIX.length))
    const entry = index === undefined ? undefined : table.at(index)
    const placement = entry
      ? placementOf(text, entry.type.dtype, entry.shape)
      : 'the file has no tensor with its name'
    if (typeof placement === 'string') {
      const message = `The layout entry ${quote(key)} is ignored: ${placement}.`
      const place = { path: `${METADATA_KEY}[${quote(key)}]`, offset: metadataAt.get(key)! }
      report.note('ERR_LAYOUT_SHAPE', message, place)
    } else {
      placements.set(index!, placement)
    }
  }
  return placements
}

/** The placement, or what is wrong with the entry. */
function placementOf(text: string, dtype: Dtype, stored: readonly number[]): Placement | string {
  if (text.length > MAX_LAYOUT_ENTRY_LENGTH) return `it has ${text.length} characters`
  const value = parseObject(text)
  if (value === undefined) return 'it must be a JSON object of layout, shape, lower and upper'
  const { layout, shape, lower, upper } = value
  if (typeof layout !== 'string') return 'its layout must be a string'
  if (!isList(shape)) return 'its shape must be a list'
  for (const counts of [lower, upper]) {
    if (counts === undefined) continue
    if (!isList(counts) || counts.length !== shape.length) return 'its padding must have one count per axis'
  }
  const placement = { layout, shape, ...(isList(lower) && { lower }), ...(isList(upper) && { upper }) }
  try {
    // `storage` throws for anything but counts, so from here on the lists contain numbers.
    const array = arrayShape(parseLayout(layout).storage(shape, { dtype, ...placement }))
    if (array.length === stored.length && array.every((extent, at) => extent === stored[at])) {
      return placement
    }
    return `${quote(layout)} stores [${shape}] as [${array}]; the file has [${stored}]`
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    return error.message.replace(/\.$/, '')
  }
}

function isList(value: unknown): value is readonly number[] {
  return Array.isArray(value)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return Object.keys(value).every((key) => FIELDS.has(key)) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The metadata without layout entries, which belong to the tensors and are regenerated on writing. */
export function withoutLayoutEntries(metadata: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const others = new Map<string, string>()
  for (const [key, value] of metadata) if (!key.startsWith(LAYOUT_KEY_PREFIX)) others.set(key, value)
  return others
}
