/**
 * Joins two layouts of the same logical axes into a native reorder plan. A plan is immutable and may run many times, also
 * concurrently.
 */
import { isUint8Array } from 'node:util/types'
import { isPinned } from '../bytes/fill_memory.js'
import { inSlices, SLICE_BYTES } from '../bytes/slices.js'
import { systemError } from '../bytes/system_error.js'
import { byteLengthOf, bytesOfView } from '../bytes/view_bytes.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { checkObject, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted, withCancelFlag } from '../cancel.js'
import { DevicePlan } from '../device/device_plan.js'
import type { DeviceChoice } from '../device/devices.js'
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import { DTYPES, type Dtype, type DtypeName, isMovable, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { greatest } from '../long_lists.js'
import { native } from '../native/addon.js'
import type { NativeExplanation, NativePlanDescription, NativeReorderPlan } from '../native/types.js'
import { uncloneable } from '../uncloneable.js'
import { valueText } from '../value_text.js'
import { explanationText } from './explanation_text.js'
import { checkPadding, checkRank, copyExtents } from './extents.js'
import { foldAxes } from './fold_axes.js'
import { hasAnyRank, type Layout, type LayoutStorage, type StorageOptions } from './layout.js'
import { MAX_PLANNED_AXES } from './limits.js'
import { type AnyLayoutName, isParsedLayout, parseLayout, toLayout } from './parse_layout.js'
import { keep, type PlannedSide, type PlanRequest, recall } from './plan_cache.js'

/** A layout with explicit padding. */
export interface PlacedLayout {
  readonly layout: AnyLayoutName | Layout
  /** Extra elements before the first, one count per axis. */
  readonly lower?: readonly number[]
  /** Extra elements after the last, one count per axis. */
  readonly upper?: readonly number[]
}

/** The two layouts, the shape and the dtype of a reorder. */
export interface PlanReorderOptions {
  /** Dtype. Elements are moved as bit patterns; 4-bit dtypes change the order of some weight layouts. */
  readonly dtype: DtypeName
  /** Logical shape in elements. A shape with fewer axes than a named layout gets trailing ones. */
  readonly shape: readonly number[]
  readonly from: AnyLayoutName | Layout | PlacedLayout
  readonly to: AnyLayoutName | Layout | PlacedLayout
  /** `weights` lets a data layout join a weights layout of the same rank by position (`b` is `o`, `f` is `i`). */
  readonly as?: 'weights'
}

/** A slice of a larger tensor of shape `shape`: the elements at `start + step * i` along each axis. */
export interface SliceOfWhole {
  readonly shape: readonly number[]
  readonly start: readonly number[]
  readonly step: readonly number[]
}

/** How a plan runs. */
export interface Explanation extends NativeExplanation {
  readonly from: string
  readonly to: string
  /** Notes of both layouts, for example that a reorder does no Winograd arithmetic. */
  readonly notes: readonly string[]
  /** The explanation as printable lines: kernel and reason, loops outermost first (strides in elements), parts, stores. */
  readonly text: string
}

/** Options of `ReorderPlan.run`. */
export interface RunOptions {
  readonly signal?: AbortSignal
  /** One of `devices()`, or its id. Default: the CPU. */
  readonly device?: DeviceChoice
}

/** An immutable, reusable reorder. Buffers contain storage bytes: packed, little-endian, padding included. */
export interface ReorderPlan {
  /** Byte length of the source buffer. */
  readonly sourceBytes: number
  /** Byte length of the destination buffer. */
  readonly destinationBytes: number
  /**
   * Fills `destination` from `source`, on the calling thread. Padding of the destination becomes zero. The buffers must not
   * overlap.
   *
   * @param source - a typed array of any element type: its bytes count
   * @throws TileworkError ERR_ARGUMENT unless both have the plan's byte lengths
   */
  runSync(source: ArrayBufferView, destination: ArrayBufferView): void
  /**
   * As `runSync`, without blocking the event loop for long, or on a device. Buffers on a SharedArrayBuffer are processed by
   * tilework's own threads. Other memory could be transferred or collected during the run, so it is processed by the calling
   * thread and its helpers in slices of some milliseconds, or copied for a device. A transferred buffer is ERR_ARGUMENT.
   *
   * @throws TileworkError as `runSync`; ERR_ABORTED; with a device ERR_NO_DEVICE, ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD,
   * ERR_DEVICE_LOST
   */
  run(source: ArrayBufferView, destination: ArrayBufferView, options?: RunOptions): Promise<void>
  /** Which kernel runs and why, how it moves elements, the loop nest, the parts and the stores. */
  explain(): Explanation
}

/** Two layouts of the same logical axes, bound to a shape. */
export interface JoinedLayouts {
  /** The addon's plan, made at the first access: a caller that needs only sizes pays for no planning. */
  readonly plan: NativeReorderPlan
  readonly from: { readonly layout: Layout; readonly storage: LayoutStorage }
  readonly to: { readonly layout: Layout; readonly storage: LayoutStorage }
  /** Explicit padding of the destination, one count per axis of the shape; immutable. */
  readonly lower: readonly number[]
  readonly upper: readonly number[]
}

/**
 * Plans a reorder between two layouts of the same logical axes. Planning is the expensive part: keep the plan and run it
 * for each tensor of the same shape.
 *
 * @returns a plan; `sourceBytes` and `destinationBytes` are the lengths of the buffers that it takes
 * @throws TileworkError ERR_LAYOUT_NAME for an unknown layout, ERR_LAYOUT_SHAPE for a shape that a layout cannot store,
 * ERR_LAYOUT_JOIN for layouts with different axes, ERR_DTYPE for an unknown dtype, ERR_OVERFLOW for 2^53 elements and more,
 * ERR_UNSUPPORTED for 2-bit and 6-bit elements and strings, ERR_ARGUMENT
 */
export function planReorder(options: PlanReorderOptions): ReorderPlan {
  checkOptions(options, 'planReorder', ['dtype', 'shape', 'from', 'to', 'as'])
  const joined = readInput('The options of planReorder', () => joinLayouts(readDescription(options)))
  const { plan } = joined
  const reorderPlan: ReorderPlan & { readonly uncloneable: symbol } = {
    // The first property, because a failed structuredClone reports the first property that cannot be cloned.
    uncloneable: UNCLONEABLE,
    sourceBytes: plan.sourceBytes,
    destinationBytes: plan.destinationBytes,
    // The addon checks its arguments. For a small tensor a second check would cost as much as the reorder.
    runSync: (source, destination) => {
      try {
        // It takes no other arrays than those of bytes, and leaves both as they are when it throws.
        plan.runSync(source as Uint8Array, destination as Uint8Array)
      } catch (error) {
        const [from, to] = buffersOf(plan, source, destination)
        if (from === source && to === destination) throw systemError.from('reorder', error)
        systemError.wrap('reorder', () => plan.runSync(from, to))
      }
    },
    run: async (givenSource, givenDestination, options) => {
      const [source, destination] = buffersOf(plan, givenSource, givenDestination)
      const { signal, device } = readRunOptions(options)
      const runner = device === undefined ? plan : new DevicePlan(plan, device)
      const run = (from: Uint8Array, to: Uint8Array) =>
        withCancelFlag(signal, (cancel) =>
          systemError.wrapAsync('reorder', () => runner.run(from, to, 0, plan.destinationBytes, cancel)),
        )
      if (isPinned(source) && isPinned(destination)) await run(source, destination)
      else if (device === undefined) await runBySlices(plan, source, destination, signal)
      else await runOnCopies(plan, source, destination, run)
    },
    explain: () => explainPlan(joined),
  }
  return reorderPlan
}

const UNCLONEABLE = uncloneable('a plan; call planReorder in each thread, with the same options')

/** Options of `joinLayouts`: also a slice of the source, and element conversions. */
export interface JoinOptions extends Omit<PlanReorderOptions, 'as'> {
  readonly dtype: Dtype
  readonly as?: 'weights' | undefined
  readonly slice?: SliceOfWhole | undefined
  /** Conversions in the order in which they run; the first one takes elements of `dtype`. */
  readonly casts?: readonly ElementStep[] | undefined
}

/**
 * Binds both layouts and checks everything that planning depends on. Planning itself is deferred to the first use of `plan`,
 * unless only the planner can decide whether the layouts can be joined.
 *
 * @throws TileworkError as `planReorder`
 */
export function joinLayouts(options: JoinOptions): JoinedLayouts {
  const { dtype, shape, as, slice, casts = [] } = options
  const request = { dtype, shape, as, slice, casts, from: sideOf(options.from), to: sideOf(options.to) }
  const known = recall<JoinedLayouts>(request)
  if (known) return known
  // A getter may return different numbers each time, so one copy is both planned and used as the cache key.
  const copy = copyOf(request)
  const joined = new BoundLayouts(copy)
  if (joined.needsPlanner) void joined.plan
  else keep(copy, joined, 0)
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

/** Copies a list. Anything that is not a list is refused later, when it is bound. */
function list<Numbers extends readonly number[] | undefined>(numbers: Numbers): Numbers {
  if (!Array.isArray(numbers)) return numbers
  const copy: number[] = []
  const rank = checkRank('A list', numbers)
  for (let axis = 0; axis < rank; axis++) copy.push(numbers[axis])
  return copy as unknown as Numbers
}

class BoundLayouts implements JoinedLayouts {
  readonly from: JoinedLayouts['from']
  readonly to: JoinedLayouts['to']
  readonly lower: readonly number[]
  readonly upper: readonly number[]
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
    // Axes that the layout appends have size 1 and no padding.
    const { lower, upper } = this.to.storage.side
    this.lower = Object.freeze([...lower.slice(0, shape.length)])
    this.upper = Object.freeze([...upper.slice(0, shape.length)])
  }

  get plan(): NativeReorderPlan {
    this.#plan ??= this.#makePlan()
    return this.#plan
  }

  /** True where the layouts need the planner's own checks: of the digits of callers' layouts, and of very large offsets. */
  get needsPlanner(): boolean {
    const { from, to } = this
    const isParsed = isParsedLayout(from.layout) && isParsedLayout(to.layout)
    return !isParsed || from.storage.extents.length > MAX_PLANNED_AXES || this.#mayReachTooFar()
  }

  #makePlan(): NativeReorderPlan {
    const description = this.#describe()
    const addon = native()
    const plan = systemError.wrap(this.#title, () => addon.planReorder(description))
    keep(this.#request, this, plan.footprint)
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
   * The planner computes a source offset for every slot of the destination, padding included, and refuses offsets above
   * 2^56. The bound computed here is never too low.
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

/** Number of indices along an axis that have a slot in the storage; a lower bound where axes are fused. */
function slotsOf({ side }: LayoutStorage, axis: number): number {
  const counts = side.pieces.map(({ digits }) =>
    digits.reduce((slots, { axes, radix }) => (axes.includes(axis) ? slots * radix : slots), 1),
  )
  return greatest(counts)
}

/** A copy of the options, each read once. */
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

function sideOf(side: string | Layout | PlacedLayout): PlannedSide {
  if (typeof side === 'string') return { layout: parseLayout(side) }
  const { layout, lower, upper }: PlacedLayout = 'storage' in side ? { layout: side } : side
  return { layout: toLayout(layout), lower, upper }
}

/** `row_major` and `column_major` get the trailing ones that the other layout appends. */
function bind(side: PlannedSide, shape: readonly number[], rank: number, dtype: Dtype): LayoutStorage {
  const isAnyRank = hasAnyRank(side.layout)
  // Padding with too few counts is passed on; the layout refuses it.
  const padding = (counts: readonly number[]): readonly number[] =>
    isAnyRank && counts.length === shape.length ? extend(counts, rank, 0) : counts
  const options = {
    dtype,
    ...(side.lower && { lower: padding(side.lower) }),
    ...(side.upper && { upper: padding(side.upper) }),
  }
  return storageOf(side.layout, isAnyRank ? extend(shape, rank, 1) : shape, options)
}

/** Calls `layout.storage`, which may be a caller's own. @throws TileworkError ERR_ARGUMENT for an invalid result */
function storageOf(layout: Layout, shape: readonly number[], options: StorageOptions): LayoutStorage {
  return readInput('The layout', () => {
    const storage = layout.storage(shape, options)
    if (storage?.side && Array.isArray(storage.extents)) return storage
    const message = `the storage of layout ${layout.name} is ${valueText(storage)}; it must be an object with extents and a side`
    throw new TileworkError('ERR_ARGUMENT', message)
  })
}

/** The step, with its blocks extended to the axes that a named layout appends. */
function ofRank(step: ElementStep, rank: number): ElementStep {
  return isScaling(step) ? { ...step, blocks: extend(step.blocks, rank, 1) } : step
}

function extend(values: readonly number[], rank: number, fill: number): readonly number[] {
  return values.length >= rank ? values : [...values, ...Array(rank - values.length).fill(fill)]
}

function checkAxes(from: Layout, to: Layout, as: 'weights' | undefined): void {
  if (as !== undefined && as !== 'weights') {
    throw new TileworkError('ERR_ARGUMENT', `as is ${valueText(as)}; it must be 'weights' or absent`)
  }
  if (hasAnyRank(from) || hasAnyRank(to) || from.axes === to.axes) return
  if (as === 'weights' && from.axes.length === to.axes.length) return
  const advice = from.axes.length === to.axes.length ? "; pass as: 'weights' to join axes by position" : ''
  throw new TileworkError(
    'ERR_LAYOUT_JOIN',
    `${from.name} has the axes ${from.axes} and ${to.name} has ${to.axes}; they must be the same${advice}`,
  )
}

function movableBits(dtype: Dtype): number {
  const { name, bits } = DTYPES[resolveDtype(dtype)]
  if (!isMovable(name)) {
    const reason =
      bits === 0 ? 'its elements have no fixed size' : `cast ${bits}-bit elements to a wider type first`
    throw new TileworkError('ERR_UNSUPPORTED', `elements of type ${dtype} cannot be reordered: ${reason}`)
  }
  return bits
}

/** On the calling thread: the caller may transfer a buffer between two slices. */
async function runBySlices(
  plan: NativeReorderPlan,
  source: Uint8Array,
  destination: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { destinationBytes, rangeQuantum } = plan
  const size = Math.ceil(SLICE_BYTES / rangeQuantum) * rangeQuantum
  throwIfAborted(signal)
  checkApart(source, destination)
  const slice = (from: number, to: number): void => {
    checkBuffers(plan, source, destination)
    systemError.wrap('reorder', () => {
      // The addon reads two arguments faster than four.
      if (to - from === destinationBytes) plan.runSync(source, destination)
      else plan.runSync(source, destination.subarray(from, to), from, to)
    })
  }
  await inSlices(0, destinationBytes, size, slice, signal)
}

/** Checks the whole buffers for overlap: the addon sees only slices and copies of them. */
function checkApart(source: Uint8Array, destination: Uint8Array): void {
  if (source.buffer !== destination.buffer || source.byteLength === 0 || destination.byteLength === 0) return
  const [first, second] =
    source.byteOffset < destination.byteOffset ? [source, destination] : [destination, source]
  if (first.byteOffset + first.byteLength <= second.byteOffset) return
  throw new TileworkError('ERR_ARGUMENT', "'source' and 'destination' overlap.")
}

/** Runs on copies, because a device accesses memory while JavaScript runs. */
async function runOnCopies(
  plan: NativeReorderPlan,
  source: Uint8Array,
  destination: Uint8Array,
  run: (source: Uint8Array, destination: Uint8Array) => Promise<void>,
): Promise<void> {
  checkApart(source, destination)
  const from = unfilledBytes(plan.sourceBytes)
  const to = unfilledBytes(plan.destinationBytes)
  from.set(source)
  await run(from, to)
  checkBuffers(plan, source, destination)
  destination.set(to)
}

/** The bytes of both. @throws TileworkError ERR_ARGUMENT */
function buffersOf(
  plan: NativeReorderPlan,
  source: ArrayBufferView,
  destination: ArrayBufferView,
): [source: Uint8Array, destination: Uint8Array] {
  const [from, to] = [bytesOf(source), bytesOf(destination)] as [Uint8Array, Uint8Array]
  checkBuffers(plan, from, to)
  return [from, to]
}

/** A view of the bytes of any other typed array; what is none is refused by `checkBuffers`. */
function bytesOf(array: ArrayBufferView): unknown {
  return ArrayBuffer.isView(array) && !isUint8Array(array) ? bytesOfView(array, 'A buffer of a plan') : array
}

function checkBuffers(plan: NativeReorderPlan, source: Uint8Array, destination: Uint8Array): void {
  for (const [role, bytes, expected] of [
    ['source', source, plan.sourceBytes],
    ['destination', destination, plan.destinationBytes],
  ] as const) {
    const found = byteLengthOf(bytes)
    if (found === expected) continue
    const given = found === undefined ? valueText(bytes) : `a typed array of ${found} bytes`
    throw new TileworkError(
      'ERR_ARGUMENT',
      `the ${role} is ${given}; it must be a typed array of ${expected} bytes`,
    )
  }
}

/** How the plan of two layouts runs. */
export function explainPlan({ plan, from, to }: JoinedLayouts): Explanation {
  const explanation = plan.explain()
  const sides = {
    from: from.layout.name,
    to: to.layout.name,
    notes: [...new Set([...from.layout.notes, ...to.layout.notes])],
  }
  const axes = from.layout.axes || to.layout.axes
  return { ...explanation, ...sides, text: explanationText(explanation, { ...sides, axes }) }
}
