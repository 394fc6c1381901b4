/**
 * Compares the values of two tensors, natively, in one pass and in bounded memory, whatever their element types, layouts and
 * sources are. Equal storages are recognised by their bytes, which takes no longer than reading them.
 */
import { readInto } from '../bytes/fill_memory.js'
import { bufferWithinBudget } from '../bytes/memory_budget.js'
import { systemError } from '../bytes/system_error.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { throwIfAborted, withCancelFlag } from '../cancel.js'
import { decodeElement } from '../dtype/decode.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { packedByteLength, placeOf } from '../dtype/packed_codes.js'
import { native } from '../native/addon.js'
import type { NativeDifferences, NativeDifferencesResult } from '../native/types.js'
import { asStored, type StoredTensor } from './dense.js'
import { nativeStorageOf } from './native_storage.js'
import { isPlain } from './plain_storage.js'
import { reorder } from './reorder.js'
import type { DenseTensor } from './tensor.js'

/** Which differences do not matter: a pair is within it if `|b - a| <= absolute + relative * |a|`, as `numpy.isclose(b, a)`. */
export interface Tolerance {
  /** Default 0. */
  readonly absolute?: number
  /** Default 0. */
  readonly relative?: number
}

/** An element: a bigint for 64-bit integers, the two halves of a complex number, the text of a string. */
export type ElementValue = number | bigint | boolean | readonly [number, number] | string

/** An element that is not equal in both tensors. */
export interface DifferentElement {
  /** One index per axis of the first tensor. */
  readonly index: readonly number[]
  readonly a: ElementValue
  readonly b: ElementValue
}

/**
 * How the values of two tensors differ; `a` is the reference. 0 and -0 are equal, and so are NaN and NaN. Errors and sums are
 * those of real numbers; magnitudes for complex ones. Numbers that do not exist are null: those of strings, and those that need
 * a finite pair.
 */
export interface ValueDifferences {
  /** Number of compared elements. */
  readonly count: number
  /** Whether both have the same element type and the same bits in every element. */
  readonly equalBits: boolean
  /** Elements that are not equal; 0 where all values are equal. */
  readonly different: number
  /** Of these, the ones beyond the tolerance. An infinity or NaN beside another value is beyond every tolerance. */
  readonly beyond: number
  readonly first: DifferentElement | null
  readonly firstBeyond: DifferentElement | null
  /** The largest `|b - a|`; infinite for an infinity beside another number. Pairs with NaN have no error. */
  readonly maxError: number | null
  /** Where it is, first. */
  readonly worst: DifferentElement | null
  /** The largest `|b - a| / |a|` of the finite pairs with `a` other than 0. */
  readonly maxRelativeError: number | null
  readonly worstRelative: DifferentElement | null
  /** Mean of `|b - a|` over the finite pairs. */
  readonly meanError: number | null
  /** Signal-to-quantization-noise ratio in dB, `10 log10(sum a² / sum (b - a)²)`; infinite without an error. */
  readonly sqnr: number | null
  /** Cosine of the angle between both as vectors; null where one of them is all zeros. */
  readonly cosine: number | null
  /** Number of NaNs in one of the tensors alone and in both; null where equal bits made counting needless. */
  readonly nans: { readonly a: number; readonly b: number; readonly both: number } | null
}

export interface CompareOptions {
  readonly tolerance: Required<Tolerance>
  readonly signal: AbortSignal | undefined
  /** Called with the number of bytes of `a` compared since the last call. */
  readonly onBytes: (bytes: number) => void
}

/** Bytes compared between two reports of progress. */
const STEP_BYTES = 64 * 1024 * 1024
/** Bytes of a window of a source that is read through JavaScript; four windows exist at a time. */
const WINDOW_BYTES = 2 * 1024 * 1024

/**
 * Compares tensors with the same number of elements, in logical row-major order.
 *
 * @throws TileworkError ERR_NO_DATA, ERR_ABORTED, ERR_ARGUMENT, and what reading the bytes throws
 */
export async function compareValues(
  a: DenseTensor,
  b: DenseTensor,
  options: CompareOptions,
): Promise<ValueDifferences> {
  throwIfAborted(options.signal)
  const storages = [asStored(a), asStored(b)] as const
  return systemError.wrapAsync(storages[0].source.label ?? a.name, async () => {
    // biome-ignore lint/plugin: a pair
    if (hasSameStorage(a, b) && (await haveEqualBytes(...storages, options))) return equalBits(a.size)
    const pair: Pair = { a: plainOf(a), b: plainOf(b) }
    const { absolute, relative } = options.tolerance
    const found = native().createDifferences(a.dtype, b.dtype, absolute, relative)
    await addAll(pair, found, options)
    return resultOf(found.result(), pair)
  })
}

/** The result for tensors of which every bit is equal. */
export function equalBits(count: number): ValueDifferences {
  const none = { first: null, firstBeyond: null, worst: null, worstRelative: null }
  const errors = { maxError: 0, maxRelativeError: 0, meanError: 0, sqnr: Number.POSITIVE_INFINITY, cosine: 1 }
  return { count, equalBits: true, different: 0, beyond: 0, ...none, ...errors, nans: null }
}

/** Two tensors of row-major storage. */
interface Pair {
  readonly a: StoredTensor
  readonly b: StoredTensor
}

function plainOf(tensor: DenseTensor): StoredTensor {
  return asStored(isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major'))
}

/** Whether equal bytes mean equal elements. */
function hasSameStorage(a: DenseTensor, b: DenseTensor): boolean {
  if (a.dtype !== b.dtype || a.storage.byteLength !== b.storage.byteLength) return false
  if (isPlain(a.storage) && isPlain(b.storage)) return true
  const textOf = ({ shape, storage: { layout, lower, upper } }: DenseTensor): string =>
    JSON.stringify([shape, layout, lower, upper])
  return textOf(a) === textOf(b)
}

/** False also where the bytes pass through JavaScript anyway: comparing elements reads them once. */
async function haveEqualBytes(
  a: StoredTensor,
  b: StoredTensor,
  { signal, onBytes }: CompareOptions,
): Promise<boolean> {
  const [one, other] = [nativeStorageOf(a), nativeStorageOf(b)]
  if (!one || !other) return false
  const { byteLength } = a.storage
  const found = native().createDifferences(a.dtype, b.dtype, 0, 0)
  for (let start = 0; start < byteLength; start += STEP_BYTES) {
    const size = Math.min(STEP_BYTES, byteLength - start)
    await withCancelFlag(signal, (cancel) =>
      found.compareBytes(one.side, one.start + start, other.side, other.start + start, size, cancel),
    )
    if (!found.result().hasEqualBytes) {
      onBytes(-start)
      return false
    }
    onBytes(size)
  }
  return true
}

async function addAll({ a, b }: Pair, found: NativeDifferences, options: CompareOptions): Promise<void> {
  const [one, other] = [nativeStorageOf(a), nativeStorageOf(b)]
  if (!one || !other) return addWindows({ a, b }, found, options)
  const { signal, onBytes } = options
  for (const { startOf, count } of stepsOf({ a, b }, STEP_BYTES)) {
    await withCancelFlag(signal, (cancel) =>
      found.add(
        one.side,
        one.start + startOf(a.dtype),
        other.side,
        other.start + startOf(b.dtype),
        count,
        cancel,
      ),
    )
    onBytes(packedByteLength(a.dtype, count))
  }
}

/** Compares one window of both while it reads the next. */
async function addWindows(pair: Pair, found: NativeDifferences, options: CompareOptions): Promise<void> {
  const { a, b } = pair
  const { signal, onBytes } = options
  const windowBytes = bufferWithinBudget(WINDOW_BYTES)
  const windows = [0, 1].map(() => ({
    a: allocateBytes(Math.min(windowBytes, a.storage.byteLength)),
    b: allocateBytes(Math.min(windowBytes, b.storage.byteLength)),
  }))
  let comparing: Promise<void> = Promise.resolve()
  let turn = 0
  try {
    for (const { startOf, count } of stepsOf(pair, windowBytes)) {
      throwIfAborted(signal)
      const window = windows[turn % 2]!
      turn++
      const read = async (tensor: StoredTensor, bytes: Uint8Array): Promise<Uint8Array> => {
        const target = bytes.subarray(0, packedByteLength(tensor.dtype, count))
        await readInto(tensor.source, tensor.start + startOf(tensor.dtype), target)
        return target
      }
      const [ofA, ofB] = await Promise.all([read(a, window.a), read(b, window.b)])
      await comparing
      comparing = found.add(ofA, 0, ofB, 0, count)
      // Awaited in the next iteration; until then Node would report a failure as an unhandled rejection.
      comparing.catch(() => undefined)
      onBytes(ofA.byteLength)
    }
  } finally {
    await comparing
  }
}

interface Step {
  /** Byte offset of the first element in a storage of the type. */
  readonly startOf: (dtype: Dtype) => number
  readonly count: number
}

/** Consecutive ranges of elements that start at whole bytes of both types. */
function* stepsOf({ a, b }: Pair, stepBytes: number): Generator<Step> {
  const bits = Math.max(DTYPES[a.dtype].bits, DTYPES[b.dtype].bits)
  const inStep = Math.max(8, Math.floor(stepBytes / bits) * 8)
  for (let first = 0; first < a.size; first += inStep) {
    yield {
      startOf: (dtype) => (first * DTYPES[dtype].bits) / 8,
      count: Math.min(inStep, a.size - first),
    }
  }
}

async function resultOf(result: NativeDifferencesResult, pair: Pair): Promise<ValueDifferences> {
  const { pairs, different, beyond, hasEqualBits } = result
  const numberOrNull = (value: number): number | null => (Number.isNaN(value) ? null : value)
  return {
    count: pairs,
    equalBits: hasEqualBits,
    different,
    beyond,
    first: await elementAt(pair, result.firstDifferent),
    firstBeyond: await elementAt(pair, result.firstBeyond),
    maxError: result.largestError,
    worst: await elementAt(pair, result.worst),
    maxRelativeError: result.largestRelativeError,
    worstRelative: await elementAt(pair, result.worstRelative),
    meanError: numberOrNull(result.meanError),
    sqnr: numberOrNull(result.sqnr),
    cosine: numberOrNull(result.cosine),
    nans: { a: result.referenceNans, b: result.otherNans, both: result.bothNans },
  }
}

async function elementAt({ a, b }: Pair, position: number): Promise<DifferentElement | null> {
  if (position < 0) return null
  return { index: indexOf(a.shape, position), a: await valueAt(a, position), b: await valueAt(b, position) }
}

/** The index of an element by its position in row-major order. */
export function indexOf(shape: readonly number[], position: number): number[] {
  const index: number[] = []
  let rest = position
  for (const extent of [...shape].reverse()) {
    index.unshift(rest % extent)
    rest = Math.floor(rest / extent)
  }
  return index
}

async function valueAt(tensor: StoredTensor, position: number): Promise<ElementValue> {
  const { start, end, slot } = placeOf(tensor.dtype, position)
  const bytes = allocateBytes(end - start)
  await readInto(tensor.source, tensor.start + start, bytes)
  if (DTYPES[tensor.dtype].kind !== 'complex') return decodeElement(tensor.dtype, bytes, slot)
  const half: Dtype = tensor.dtype === 'complex64' ? 'float32' : 'float64'
  return [decodeElement(half, bytes, 0) as number, decodeElement(half, bytes, 1) as number]
}
