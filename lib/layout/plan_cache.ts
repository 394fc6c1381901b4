/**
 * A cache of recent plans, least recently used first. Planning takes about fifty times as long as the reorder of a small
 * tensor, and programs repeat the same few reorders; a plan is immutable, so equal requests share one. Each worker thread
 * has its own cache, because it has its own addon objects.
 */
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import { type Dtype, isDtype } from '../dtype/dtypes.js'
import { MAX_AXES } from './extents.js'
import type { Layout } from './layout.js'
import { isParsedLayout } from './parse_layout.js'

/** Source or destination of a request. */
export interface PlannedSide {
  readonly layout: Layout
  readonly lower?: readonly number[] | undefined
  readonly upper?: readonly number[] | undefined
}

/** Everything that a plan depends on. */
export interface PlanRequest {
  readonly dtype: Dtype
  readonly as?: 'weights' | undefined
  /** Checked and immutable. */
  readonly casts: readonly ElementStep[]
  readonly shape: readonly number[]
  readonly from: PlannedSide
  readonly to: PlannedSide
  readonly slice?:
    | {
        readonly shape: readonly number[]
        readonly start: readonly number[]
        readonly step: readonly number[]
      }
    | undefined
}

/** A thousand ordinary plans, or fifty with the largest tables: more than a model needs, less than one tensor. */
const MAX_BYTES = 8 * 1024 * 1024
/** Bytes of an entry in JavaScript without its key: two storages, their digits and the objects around them. */
const ENTRY_BYTES = 4096

/** Least recently used first. */
const plans = new Map<string, { readonly plan: unknown; readonly bytes: number }>()
let heldBytes = 0
/** The key of the last answer: repeating it does not reorder the map. */
let latest: string | undefined

/**
 * The key of a request: requests with the same key have the same plan. Undefined for requests that are not cached: with a
 * layout that `parseLayout` did not return, which may answer differently each time; with values that are not whole
 * numbers, which planning refuses; and with many scales.
 */
export function planKey({ dtype, as, casts, shape, from, to, slice }: PlanRequest): string | undefined {
  const isKnown = isDtype(dtype) && (as === undefined || as === 'weights')
  if (!isKnown || !isParsedLayout(from.layout) || !isParsedLayout(to.layout)) return undefined
  const lists = [shape, from.lower, from.upper, to.lower, to.upper, slice?.shape, slice?.start, slice?.step]
  const ranks = [
    -1,
    (slice?.shape ?? shape).length,
    (slice?.shape ?? shape).length,
    shape.length,
    shape.length,
  ]
  let key = `${dtype} ${as} ${from.layout.name} ${to.layout.name}`
  for (let i = 0; i < lists.length; i++) {
    const text = listText(lists[i], ranks[i])
    if (text === undefined) return undefined
    key += text
  }
  for (const step of casts) {
    const text = stepText(step)
    if (text === undefined) return undefined
    key += text
  }
  return key
}

/** With more scales the key costs more than a new plan. Images have at most 4 channels. */
const MAX_SCALES = 16

function stepText(step: ElementStep): string | undefined {
  const { to, saturate } = step
  if (!isScaling(step)) return ` ${to} ${step.mode} ${saturate} ${step.round}`
  if (step.scales.length > MAX_SCALES) return undefined
  const numbers = `${scalarsText(step.scales)} ${scalarsText(step.offsets)}`
  return ` ${step.kind} ${to} ${step.rules} ${saturate} ${numbers} ${step.blocks}`
}

/** Different text for different numbers. NaN is refused before planning. */
function scalarsText(scalars: Float64Array): string {
  // As a bias, -0 preserves a sum of -0 and 0 does not; both print as 0.
  return Array.from(scalars, (scalar) => (Object.is(scalar, -0) ? '-0' : `${scalar}`)).join()
}

/** Zero padding counts as none. Undefined for a value that is not a list of whole numbers. */
function listText(list: readonly number[] | undefined, zerosOfRank: number | undefined): string | undefined {
  if (list === undefined) return ' -'
  if (!Array.isArray(list)) return undefined
  // Read once: a caller's list may grow during the loop.
  const { length } = list
  if (length > MAX_AXES) return undefined
  let isZero = length === zerosOfRank
  let text = ' '
  for (let i = 0; i < length; i++) {
    const value = list[i]
    if (!Number.isSafeInteger(value)) return undefined
    isZero &&= value === 0
    text += `${value},`
  }
  return isZero ? ' -' : text
}

/** The plan cached under `key`. */
export function recall<Plan>(key: string | undefined): Plan | undefined {
  const known = key === undefined ? undefined : plans.get(key)
  if (key === undefined || known === undefined) return undefined
  if (latest !== key) {
    plans.delete(key)
    plans.set(key, known)
    latest = key
  }
  return known.plan as Plan
}

/** Caches a plan and evicts the least recently used ones. @param nativeBytes - memory that the addon holds for it */
export function keep(key: string | undefined, plan: unknown, nativeBytes: number): void {
  if (key === undefined) return
  const bytes = ENTRY_BYTES + 2 * key.length + nativeBytes
  heldBytes += bytes - (plans.get(key)?.bytes ?? 0)
  plans.delete(key)
  plans.set(key, { plan, bytes })
  latest = key
  for (const [oldest, entry] of plans) {
    if (heldBytes <= MAX_BYTES) break
    plans.delete(oldest)
    heldBytes -= entry.bytes
  }
}

/** Number of cached plans and the bytes they count for, for tests. */
export function cachedPlans(): { readonly count: number; readonly bytes: number; readonly maxBytes: number } {
  return { count: plans.size, bytes: heldBytes, maxBytes: MAX_BYTES }
}
