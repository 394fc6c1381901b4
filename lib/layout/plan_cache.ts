/**
 * Plans that were made lately. Planning takes some fifty times as long as a small tensor's reorder, and programs ask
 * for the same few reorders again and again; a plan is immutable, so all who ask alike can share one. Each worker
 * thread has a cache of its own, as its addon objects are its own.
 */
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import { type Dtype, isDtype } from '../dtype/dtypes.js'
import { MAX_AXES } from './extents.js'
import type { Layout } from './layout.js'
import { isParsedLayout } from './parse_layout.js'

/** One side of what is asked for. */
export interface PlannedSide {
  readonly layout: Layout
  readonly lower?: readonly number[] | undefined
  readonly upper?: readonly number[] | undefined
}

/** What a plan depends on. */
export interface PlanRequest {
  readonly dtype: Dtype
  readonly as?: 'weights' | undefined
  /** Checked, and never changed by anybody. */
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

/** A thousand ordinary plans, or fifty with the largest tables: more than a model has, and less than one tensor. */
const MOST_BYTES = 8 * 1024 * 1024
/** What an entry takes in JavaScript, beside its key: two storages with their digits, and the objects around them. */
const ENTRY_BYTES = 4096

/** Least recently used first. */
const plans = new Map<string, { readonly plan: unknown; readonly bytes: number }>()
let held = 0
/** The last answer again, without a move in the map. */
let latest: string | undefined

/**
 * The key of a request: two of one key are alike in all that a plan depends on. Absent for requests that are not
 * remembered: with a layout that parseLayout did not make, which could answer differently each time, with values that are
 * no whole numbers, which planning refuses, and with scales by the dozen.
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

/** Scales that make a key longer than a plan of its own is worth: more than channels of an image. */
const MOST_SCALES = 16

function stepText(step: ElementStep): string | undefined {
  const { to, saturate } = step
  if (!isScaling(step)) return ` ${to} ${step.mode} ${saturate} ${step.round}`
  if (step.scales.length > MOST_SCALES) return undefined
  const numbers = `${scalarsText(step.scales)} ${scalarsText(step.offsets)}`
  return ` ${step.kind} ${to} ${step.rules} ${saturate} ${numbers} ${step.blocks}`
}

/** Every number as a text of its own. NaN, which could have several, is refused before anything is planned. */
function scalarsText(scalars: Float64Array): string {
  // As a bias -0 keeps a sum of -0, which 0 does not, and both print as 0.
  return Array.from(scalars, (scalar) => (Object.is(scalar, -0) ? '-0' : `${scalar}`)).join()
}

/** Padding of no elements, one count an axis, is as none. Absent for what is no list of whole numbers. */
function listText(list: readonly number[] | undefined, zerosOfRank: number | undefined): string | undefined {
  if (list === undefined) return ' -'
  if (!Array.isArray(list)) return undefined
  // Read once: a list of the caller's may grow while it is walked over.
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

/** The plan that was kept under `key`. */
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

/** Keeps a plan, and forgets those that nobody asked for the longest. @param nativeBytes - what the addon holds for it */
export function keep(key: string | undefined, plan: unknown, nativeBytes: number): void {
  if (key === undefined) return
  const bytes = ENTRY_BYTES + 2 * key.length + nativeBytes
  held += bytes - (plans.get(key)?.bytes ?? 0)
  plans.delete(key)
  plans.set(key, { plan, bytes })
  latest = key
  for (const [oldest, entry] of plans) {
    if (held <= MOST_BYTES) break
    plans.delete(oldest)
    held -= entry.bytes
  }
}

/** How many plans are kept, and how many bytes they are counted for; for tests. */
export function keptPlans(): { readonly count: number; readonly bytes: number; readonly most: number } {
  return { count: plans.size, bytes: held, most: MOST_BYTES }
}
