/**
 * A cache of recent plans. Planning takes about fifty times as long as the reorder of a small
 * tensor, and programs repeat the same few reorders; a plan is immutable, so equal requests share one. Each worker thread
 * has its own cache, because it has its own addon objects.
 */
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { MAX_AXES } from './extents.js'
import type { Layout } from './layout.js'
import { parsedLayoutId } from './parse_layout.js'

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
/** Bytes of an entry in JavaScript: two storages, their digits and the objects around them. */
const ENTRY_BYTES = 2048
/** Bytes of an entry for each further axis or element conversion. */
const ITEM_BYTES = 512

interface Entry {
  readonly request: PlanRequest
  readonly plan: unknown
  readonly bytes: number
  /** Whether the entry was used since it was cached or last spared. */
  isUsed: boolean
}

/** Entries by the hash of the request. On a hash collision the later request replaces the earlier one. */
const plans = new Map<number, Entry>()
let heldBytes = 0

/**
 * The cached plan of a request. Requests are compared by numbers: building a string key takes longer than the reorder of a small
 * tensor.
 */
export function recall<Plan>(request: PlanRequest): Plan | undefined {
  const hash = hashOf(request)
  const known = hash === undefined ? undefined : plans.get(hash)
  if (known === undefined || !isSame(request, known.request)) return undefined
  known.isUsed = true
  return known.plan as Plan
}

/**
 * Caches a plan and evicts others, oldest first. An entry that was used since is spared once, which approximates "least recently
 * used" without moving an entry on every hit (the clock algorithm).
 *
 * @param request - a copy that nobody changes
 * @param nativeBytes - memory that the addon holds for the plan
 */
export function keep(request: PlanRequest, plan: unknown, nativeBytes: number): void {
  const hash = hashOf(request)
  if (hash === undefined) return
  const items = request.shape.length + request.casts.length
  const bytes = ENTRY_BYTES + items * ITEM_BYTES + nativeBytes
  heldBytes += bytes - (plans.get(hash)?.bytes ?? 0)
  plans.delete(hash)
  plans.set(hash, { request, plan, bytes, isUsed: false })
  for (const [oldest, entry] of plans) {
    if (heldBytes <= MAX_BYTES) break
    plans.delete(oldest)
    if (entry.isUsed) {
      entry.isUsed = false
      plans.set(oldest, entry)
    } else heldBytes -= entry.bytes
  }
}

/** Most scales of a cached request: hashing more costs more than planning. Images have at most 4 channels. */
const MAX_SCALES = 16

/** A number for each dtype. */
const CODES: ReadonlyMap<Dtype, number> = new Map(Object.values(DTYPES).map(({ name, onnx }) => [name, onnx]))

/**
 * A hash of a request, from the numbers that usually differ. Undefined for requests that are not cached: with a caller's own
 * layout, which may return different digits each time; with values that are not whole numbers, which planning refuses; and with
 * many scales.
 */
function hashOf({ dtype, casts, shape, from, to, slice }: PlanRequest): number | undefined {
  const fromId = parsedLayoutId(from.layout)
  const toId = parsedLayoutId(to.layout)
  const code = CODES.get(dtype)
  if (fromId === undefined || toId === undefined || code === undefined) return undefined
  let hash: number | undefined = mix(mix(code, fromId), toId)
  hash = mixList(hash, shape)
  hash = mixList(hash, from.lower)
  hash = mixList(hash, from.upper)
  hash = mixList(hash, to.lower)
  hash = mixList(hash, to.upper)
  if (slice !== undefined) {
    hash = mixList(mixList(mixList(hash, slice.shape), slice.start), slice.step)
  }
  for (const step of casts) hash = mixStep(hash, step)
  return hash
}

function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1)
  return mixed ^ (mixed >>> 15)
}

/** Ignores zeros, because zero padding equals no padding. Undefined for a value that is not a list of whole numbers. */
function mixList(hash: number | undefined, list: readonly number[] | undefined): number | undefined {
  if (hash === undefined || list === undefined) return hash
  if (!Array.isArray(list)) return undefined
  // The length is read once: a caller's list may grow during the loop.
  const { length } = list
  if (length > MAX_AXES) return undefined
  let mixed = hash
  for (let i = 0; i < length; i++) {
    const value = list[i]
    if (!Number.isSafeInteger(value)) return undefined
    if (value !== 0) mixed = mix(mixed, value + i)
  }
  return mixed
}

function mixStep(hash: number | undefined, step: ElementStep): number | undefined {
  if (hash === undefined) return undefined
  const mixed = mix(hash, CODES.get(step.to)! + (step.saturate ? 256 : 0))
  if (!isScaling(step)) return mixText(mixText(mixed, step.mode), step.round)
  if (step.scales.length > MAX_SCALES) return undefined
  return mixList(mixScalars(mixScalars(mixText(mixed, step.kind), step.scales), step.offsets), step.blocks)
}

/** Mixes the first letter only: no two values of an option start with the same letter. */
function mixText(hash: number, text: string): number {
  return mix(hash, text.charCodeAt(0))
}

function mixScalars(hash: number, scalars: Float64Array): number {
  return scalars.reduce((mixed, scalar) => mix(mixed, scalar * 2 ** 32), hash)
}

/** Whether two requests have the same plan; `known` has a hash, so all its numbers are whole. */
function isSame(request: PlanRequest, known: PlanRequest): boolean {
  const { dtype, as, casts, shape, from, to, slice } = request
  if (dtype !== known.dtype || as !== known.as || casts.length !== known.casts.length) return false
  if (from.layout !== known.from.layout || to.layout !== known.to.layout) return false
  if (!isSameList(shape, known.shape)) return false
  const rank = known.shape.length
  const sourceRank = known.slice?.shape.length ?? rank
  return (
    isSameSlice(slice, known.slice) &&
    isSamePadding(from.lower, known.from.lower, sourceRank) &&
    isSamePadding(from.upper, known.from.upper, sourceRank) &&
    isSamePadding(to.lower, known.to.lower, rank) &&
    isSamePadding(to.upper, known.to.upper, rank) &&
    casts.every((step, i) => isSameStep(step, known.casts[i]!))
  )
}

function isSameList(list: readonly number[], known: readonly number[]): boolean {
  const { length } = known
  if (list.length !== length) return false
  for (let i = 0; i < length; i++) {
    if (list[i] !== known[i]) return false
  }
  return true
}

/** Compares padding; zeros for all axes equal no padding. */
function isSamePadding(
  list: readonly number[] | undefined,
  known: readonly number[] | undefined,
  rank: number,
): boolean {
  if (list === known) return true
  if (list === undefined) return isZero(known!, rank)
  if (known === undefined) return isZero(list, rank)
  return isSameList(list, known)
}

function isZero(list: readonly number[], rank: number): boolean {
  if (list.length !== rank) return false
  for (let i = 0; i < rank; i++) {
    if (list[i] !== 0) return false
  }
  return true
}

function isSameSlice(slice: PlanRequest['slice'], known: PlanRequest['slice']): boolean {
  if (slice === undefined || known === undefined) return slice === known
  const isSameShape = isSameList(slice.shape, known.shape)
  return isSameShape && isSameList(slice.start, known.start) && isSameList(slice.step, known.step)
}

/** The source type of a step is the target of the step before. */
function isSameStep(step: ElementStep, known: ElementStep): boolean {
  if (step === known) return true
  if (step.to !== known.to || step.saturate !== known.saturate) return false
  if (!isScaling(step) || !isScaling(known)) {
    return !isScaling(step) && !isScaling(known) && step.mode === known.mode && step.round === known.round
  }
  const isSameMap = isSameScalars(step.scales, known.scales) && isSameScalars(step.offsets, known.offsets)
  const isSameKind = step.kind === known.kind && step.rules === known.rules
  return isSameKind && isSameMap && isSameList(step.blocks, known.blocks)
}

/** Distinguishes -0 from 0: as a bias, -0 preserves a sum of -0 and 0 does not. */
function isSameScalars(scalars: Float64Array, known: Float64Array): boolean {
  return scalars.length === known.length && scalars.every((scalar, i) => Object.is(scalar, known[i]))
}

/** Number of cached plans and their estimated bytes, for tests. */
export function cachedPlans(): { readonly count: number; readonly bytes: number; readonly maxBytes: number } {
  return { count: plans.size, bytes: heldBytes, maxBytes: MAX_BYTES }
}
