/**
 * Joins two layouts of the same logical axes into a native reorder plan. Planning is paid once; a plan is
 * immutable and may be run many times, at the same time.
 */
import { systemError } from '../bytes/system_error.js'
import { byteLengthOf } from '../bytes/view_bytes.js'
import { checkObject, checkOptions, readInput } from '../caller_input.js'
import { withCancelFlag } from '../cancel.js'
import { DevicePlan } from '../device/device_plan.js'
import type { DeviceChoice } from '../device/devices.js'
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import { DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import type { NativeExplanation, NativePlanDescription, NativeReorderPlan } from '../native/types.js'
import { valueText } from '../value_text.js'
import { explanationText } from './explanation_text.js'
import { checkPadding, checkRank, copyExtents } from './extents.js'
import { foldAxes } from './fold_axes.js'
import { hasAnyRank, type Layout, type LayoutStorage, type StorageOptions } from './layout.js'
import { MAX_PLANNED_AXES } from './limits.js'
import { type AnyLayoutName, isParsedLayout, parseLayout, toLayout } from './parse_layout.js'
import { keep, type PlannedSide, type PlanRequest, planKey, recall } from './plan_cache.js'

/** A layout with explicit padding. */
export interface PlacedLayout {
  readonly layout: AnyLayoutName | Layout
  /** Extra elements before the first, one count an axis. */
  readonly lower?: readonly number[]
  /** Extra elements after the last, one count an axis. */
  readonly upper?: readonly number[]
}

/** What `planReorder` joins. */
export interface PlanReorderOptions {
  /** Element type. Elements are moved as bit patterns; 4-bit types change the meaning of some weight layouts. */
  readonly dtype: DtypeName
  /** Logical extents; ones are appended up to the rank of a named layout. */
  readonly shape: readonly number[]
  readonly from: AnyLayoutName | Layout | PlacedLayout
  readonly to: AnyLayoutName | Layout | PlacedLayout
  /** `weights` lets a data layout join a weights layout of the same rank by position (`b` is `o`, `f` is `i`). */
  readonly as?: 'weights'
}

/** The part of a larger tensor that is taken: `start + step * i` along each axis of `shape`, the whole tensor's. */
export interface SliceOfWhole {
  readonly shape: readonly number[]
  readonly start: readonly number[]
  readonly step: readonly number[]
}

/** How a plan will run. */
export interface Explanation extends NativeExplanation {
  readonly from: string
  readonly to: string
  /** Sentences a reader should know, for example that winograd arithmetic is not done. */
  readonly notes: readonly string[]
  /** All of it as lines to print: kernel and why, loops outermost first (strides in elements), parts, stores. */
  readonly text: string
}

/** How `ReorderPlan.run` runs. */
export interface RunOptions {
  readonly signal?: AbortSignal
  /** One of `devices()`, or its id; the CPU by default. */
  readonly device?: DeviceChoice
}

/** An immutable, reusable reorder. Buffers are storage bytes: packed, little-endian, holes included. */
export interface ReorderPlan {
  readonly sourceBytes: number
  readonly destinationBytes: number
  /**
   * Fills all of `destination` from all of `source`; holes of the destination become zero.
   * The two must not overlap. Errors: ERR_ARGUMENT when a length is wrong.
   */
  runSync(source: Uint8Array, destination: Uint8Array): void
  /**
   * As `runSync`, on tilework's own threads, or on a device. Neither buffer may be transferred while it runs. Errors: also
   * ERR_ABORTED; with a device ERR_NO_DEVICE, ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD and ERR_DEVICE_LOST.
   */
  run(source: Uint8Array, destination: Uint8Array, options?: RunOptions): Promise<void>
  explain(): Explanation
}

/** Two layouts of the same logical axes, bound to a shape. */
export interface JoinedLayouts {
  /** The addon's plan, made when it is first read: what only asks for sizes costs no planning. */
  readonly plan: NativeReorderPlan
  readonly from: { readonly layout: Layout; readonly storage: LayoutStorage }
  readonly to: { readonly layout: Layout; readonly storage: LayoutStorage }
}

/**
 * Plans a reorder between two layouts of the same logical axes.
 *
 * @throws TileworkError ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_LAYOUT_JOIN, ERR_DTYPE, ERR_OVERFLOW, ERR_ARGUMENT;
 * ERR_UNSUPPORTED for elements of 2 bits and strings
 */
export function planReorder(options: PlanReorderOptions): ReorderPlan {
  checkOptions(options, 'planReorder', ['dtype', 'shape', 'from', 'to', 'as'])
  const joined = readInput('What planReorder takes', () => joinLayouts(readDescription(options)))
  const { plan } = joined
  return {
    sourceBytes: plan.sourceBytes,
    destinationBytes: plan.destinationBytes,
    // The addon checks its arguments itself. For a small tensor every further check would cost as much as the work.
    runSync: (source, destination) => {
      try {
        plan.runSync(source, destination)
      } catch (error) {
        checkBuffers(plan, source, destination)
        throw systemError.from('reorder', error)
      }
    },
    run: async (source, destination, options) => {
      checkBuffers(plan, source, destination)
      const { signal, device } = readRunOptions(options)
      const runner = device === undefined ? plan : new DevicePlan(plan, device)
      await withCancelFlag(signal, (cancel) =>
        systemError.wrapAsync('reorder', () =>
          runner.run(source, destination, 0, plan.destinationBytes, cancel),
        ),
      )
    },
    explain: () => explain(joined),
  }
}

/** What `joinLayouts` takes beside the options of `planReorder`. */
export interface JoinOptions extends PlanReorderOptions {
  readonly dtype: Dtype
  readonly slice?: SliceOfWhole
  /** `dtype` is that of the source, and the first cast takes it. */
  readonly casts?: readonly ElementStep[]
}

/**
 * Binds both layouts, of a part of the source where one is named, and checks everything that planning depends on. Planning
 * itself waits for the first use of `plan`, unless only the planner can tell whether the layouts join.
 *
 * @throws TileworkError as `planReorder`
 */
export function joinLayouts(options: JoinOptions): JoinedLayouts {
  const { dtype, shape, as, slice, casts = [] } = options
  const asked = { dtype, shape, as, slice, casts, from: place(options.from), to: place(options.to) }
  const known = recall<JoinedLayouts>(planKey(asked))
  if (known) return known
  // A list may give other numbers each time it is read: what is planned and what it is kept under come from a copy.
  const joined = new BoundLayouts(copyOf(asked))
  if (joined.needsPlanner) void joined.plan
  return joined
}

function copyOf({ dtype, as, shape, slice, casts, from, to }: PlanRequest): PlanRequest {
  return {
    dtype,
    as,
    casts,
    shape: list(shape),
    slice: slice && { shape: list(slice.shape), start: list(slice.start), step: list(slice.step) },
    from: { layout: from.layout, lower: list(from.lower), upper: list(from.upper) },
    to: { layout: to.layout, lower: list(to.lower), upper: list(to.upper) },
  }
}

/** What is no list stays what it is, and is refused where it is bound. */
function list<Numbers extends readonly number[] | undefined>(numbers: Numbers): Numbers {
  if (!Array.isArray(numbers)) return numbers
  return Array.from(
    { length: checkRank('A list', numbers) },
    (_, axis) => numbers[axis],
  ) as unknown as Numbers
}

class BoundLayouts implements JoinedLayouts {
  readonly from: JoinedLayouts['from']
  readonly to: JoinedLayouts['to']
  readonly #request: PlanRequest
  readonly #elementBits: number
  #plan: NativeReorderPlan | undefined

  constructor(request: PlanRequest) {
    const { dtype, shape, from, to, as, slice, casts } = request
    this.#request = request
    this.#elementBits = casts.length > 0 ? DTYPES[dtype].bits : movableBits(dtype)
    checkAxes(from.layout, to.layout, as)
    const rank = Math.max(shape.length, from.layout.axes.length, to.layout.axes.length)
    this.from = { layout: from.layout, storage: bind(from, slice?.shape ?? shape, rank, dtype) }
    this.to = { layout: to.layout, storage: bind(to, shape, rank, casts.at(-1)?.to ?? dtype) }
  }

  get plan(): NativeReorderPlan {
    this.#plan ??= this.#recallOrPlan()
    return this.#plan
  }

  /** True where the planner may refuse what was bound: it alone checks digits of foreign layouts and far offsets. */
  get needsPlanner(): boolean {
    const { from, to } = this
    const isParsed = isParsedLayout(from.layout) && isParsedLayout(to.layout)
    return !isParsed || from.storage.extents.length > MAX_PLANNED_AXES || this.#mayReachTooFar()
  }

  #recallOrPlan(): NativeReorderPlan {
    const key = planKey(this.#request)
    const known = recall<JoinedLayouts>(key)
    if (known) return known.plan
    const description = this.#describe()
    const addon = native()
    const plan = systemError.wrap(this.#title, () => addon.planReorder(description))
    this.#plan = plan
    keep(key, this, plan.footprint)
    return plan
  }

  #describe(): NativePlanDescription {
    const { slice, casts } = this.#request
    const { extents } = this.from.storage
    const rank = extents.length
    const description = {
      elementBits: this.#elementBits,
      shape: this.to.storage.extents,
      from: this.from.storage.side,
      to: this.to.storage.side,
      ...(slice && {
        slice: { shape: extents, start: extend(slice.start, rank, 0), step: extend(slice.step, rank, 1) },
      }),
      ...(casts.length > 0 && { casts: casts.map((step) => ofRank(step, rank)) }),
    }
    return rank > MAX_PLANNED_AXES ? foldAxes(description, this.#title) : description
  }

  get #title(): string {
    return `${this.from.layout.name} to ${this.to.layout.name}`
  }

  /**
   * The planner computes source offsets for every slot of the destination, padding included, and refuses those above 2^56.
   * This bound on them is never too low.
   */
  #mayReachTooFar(): boolean {
    const { storage: from } = this.from
    const { storage: to } = this.to
    const { lower, upper } = from.side
    let ratio = 1
    for (let axis = 0; axis < from.extents.length; axis++) {
      const padded = lower[axis]! + from.extents[axis]! + upper[axis]!
      const step = Math.abs(this.#request.slice?.step[axis] ?? 1)
      ratio = Math.max(ratio, (step * (slotsOf(to, axis) + to.side.lower[axis]!)) / Math.max(1, padded))
    }
    return !(from.elements * (ratio + 1) < 2 ** 55)
  }
}

/** Index values of an axis that a storage has slots for; at least, where axes are fused. */
function slotsOf({ digits }: LayoutStorage, axis: number): number {
  return digits.reduce((slots, { positions, radix }) => (positions.includes(axis) ? slots * radix : slots), 1)
}

/** A copy that is read once, and has nothing of the caller's but layouts of its own. */
function readDescription({ dtype, shape, from, to, as }: PlanReorderOptions): JoinOptions {
  const given = {
    dtype: resolveDtype(dtype),
    shape: copyExtents('shape', shape),
    from: readSide('from', from),
    to: readSide('to', to),
  }
  return as === undefined ? given : { ...given, as }
}

function readSide(role: 'from' | 'to', side: string | Layout | PlacedLayout): string | Layout | PlacedLayout {
  if (typeof side === 'string') return side
  checkObject(side, `${role} is a layout, or { layout, lower, upper }`)
  if ('storage' in side) return side
  checkOptions(side, `the ${role} of planReorder`, ['layout', 'lower', 'upper'])
  return { layout: side.layout, ...checkPadding(side) }
}

function readRunOptions(options: RunOptions = {}): RunOptions {
  checkOptions(options, 'run', ['signal', 'device'])
  return readInput('The options of run', () => ({ ...options }))
}

function place(side: string | Layout | PlacedLayout): PlannedSide {
  if (typeof side === 'string') return { layout: parseLayout(side) }
  const { layout, lower, upper }: PlacedLayout = 'storage' in side ? { layout: side } : side
  return { layout: toLayout(layout), lower, upper }
}

/** A layout of any rank has the rank of its shape, so it takes the ones that a named partner appends. */
function bind(side: PlannedSide, shape: readonly number[], rank: number, dtype: Dtype): LayoutStorage {
  const isAnyRank = hasAnyRank(side.layout)
  // Padding with too few counts stays as it is, and is refused by the layout.
  const padding = (counts: readonly number[]): readonly number[] =>
    isAnyRank && counts.length === shape.length ? extend(counts, rank, 0) : counts
  const options = {
    dtype,
    ...(side.lower && { lower: padding(side.lower) }),
    ...(side.upper && { upper: padding(side.upper) }),
  }
  return storageOf(side.layout, isAnyRank ? extend(shape, rank, 1) : shape, options)
}

/** As `layout.storage`, which may be a caller's own. @throws TileworkError ERR_ARGUMENT for what is no storage */
function storageOf(layout: Layout, shape: readonly number[], options: StorageOptions): LayoutStorage {
  return readInput('The layout', () => {
    const storage = layout.storage(shape, options)
    if (storage?.side && Array.isArray(storage.extents)) return storage
    const message = `Layout ${layout.name} gave ${valueText(storage)} for its storage, which must have extents and a side.`
    throw new TileworkError('ERR_ARGUMENT', message)
  })
}

/** A step with blocks for the axes that a named layout appends, too. */
function ofRank(step: ElementStep, rank: number): ElementStep {
  return isScaling(step) ? { ...step, blocks: extend(step.blocks, rank, 1) } : step
}

function extend(values: readonly number[], rank: number, fill: number): readonly number[] {
  return values.length >= rank ? values : [...values, ...Array(rank - values.length).fill(fill)]
}

function checkAxes(from: Layout, to: Layout, as: 'weights' | undefined): void {
  if (as !== undefined && as !== 'weights') {
    throw new TileworkError('ERR_ARGUMENT', `as is ${valueText(as)}; it must be 'weights' or absent.`)
  }
  if (hasAnyRank(from) || hasAnyRank(to) || from.axes === to.axes) return
  if (as === 'weights' && from.axes.length === to.axes.length) return
  const advice =
    from.axes.length === to.axes.length
      ? '; "as: \'weights\'" joins axes by position where that is meant'
      : ''
  throw new TileworkError(
    'ERR_LAYOUT_JOIN',
    `${from.name} has the axes ${from.axes} and ${to.name} has ${to.axes}${advice}.`,
  )
}

function movableBits(dtype: Dtype): number {
  const bits: number = DTYPES[resolveDtype(dtype)].bits
  if (bits < 4) {
    const reason =
      bits === 0 ? 'its elements have no fixed size' : 'cast its elements of 2 bits to a wider type first'
    throw new TileworkError('ERR_UNSUPPORTED', `No layout moves elements of type ${dtype}: ${reason}.`)
  }
  return bits
}

function checkBuffers(plan: NativeReorderPlan, source: Uint8Array, destination: Uint8Array): void {
  for (const [role, bytes, expected] of [
    ['source', source, plan.sourceBytes],
    ['destination', destination, plan.destinationBytes],
  ] as const) {
    const found = byteLengthOf(bytes)
    if (found === expected) continue
    const advice = ArrayBuffer.isView(bytes)
      ? '; a view of its bytes is new Uint8Array(it.buffer, it.byteOffset, it.byteLength)'
      : ''
    const given = found === undefined ? `${valueText(bytes)} was given${advice}` : `it has ${found} bytes`
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The ${role} must be a Uint8Array of ${expected} bytes; ${given}.`,
    )
  }
}

function explain({ plan, from, to }: JoinedLayouts): Explanation {
  const explanation = plan.explain()
  const sides = {
    from: from.layout.name,
    to: to.layout.name,
    notes: [...new Set([...from.layout.notes, ...to.layout.notes])],
  }
  const axes = from.layout.axes || to.layout.axes
  return { ...explanation, ...sides, text: explanationText(explanation, { ...sides, axes }) }
}
