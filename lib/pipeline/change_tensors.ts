/** The changes of tensors in a conversion: source layout, dtype, quantization and target layout, all lazy. */
import { checkFlag, checkOptions, readInput } from '../caller_input.js'
import type { DeviceChoice } from '../device/devices.js'
import { onDevice } from '../device/on_device.js'
import { type BlockDtype, isBlockDtype, resolveElementType } from '../dtype/block_types.js'
import { DTYPES, type DtypeName } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { mapTensors, type Tensors } from '../formats/tensor_list.js'
import { type AnyLayoutName, parseLayout } from '../layout/parse_layout.js'
import { asLayout } from '../tensor/as_layout.js'
import { dequantized, withoutBlocks } from '../tensor/block_tensor.js'
import { cast } from '../tensor/cast.js'
import { checkQuantized, encodedBlocks, hasWholeBlocks } from '../tensor/encode_blocks.js'
import { type QuantizeOptions, quantize } from '../tensor/quantize.js'
import { reorder } from '../tensor/reorder.js'
import type { AnyTensor, DenseTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'

/** How a conversion changes tensors. Without any of these options they are written unchanged. */
export interface TensorChanges {
  /** Names or indices (below 0 from the end) of the tensors to write, in this order. Default: all. */
  readonly tensors?: readonly (string | number)[]
  /**
   * Dtype to write. A block type, for GGUF, quantizes float matrices whose rows are whole blocks; other tensors are unchanged.
   */
  readonly dtype?: DtypeName | BlockDtype
  /** With a `dtype` of floats: integers and booleans keep theirs, as in `half()` of PyTorch. Default false. */
  readonly keepIntegers?: boolean
  /** Quantizes to `dtype` with these parameters, as `quantize` does. */
  readonly quantize?: QuantizeOptions
  /** Memory layout to write. Default: `row_major` with `fromLayout`, otherwise the layout of the tensor. */
  readonly layout?: AnyLayoutName
  /** Padding of `layout` before and after each axis. */
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
  /** Layout of the stored elements, where the file format cannot express it. Needs `shape`. */
  readonly fromLayout?: AnyLayoutName
  /** Logical shape of the stored elements, with `fromLayout`. */
  readonly shape?: readonly number[]
  /** Padding of `fromLayout` before and after each axis. */
  readonly fromLower?: readonly number[]
  readonly fromUpper?: readonly number[]
  /** `weights` joins a data layout and a weights layout by the position of their axes. */
  readonly as?: 'weights'
  /** Computes on this OpenCL device. */
  readonly device?: DeviceChoice
}

/** A tensor before and after the change of its layout. */
export interface ReorderedTensor {
  readonly before: DenseTensor
  readonly after: DenseTensor
}

/** Most failed tensors in an error message. */
const MAX_LISTED_FAILURES = 5

/**
 * Checks everything that does not depend on a file, before any file is opened.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_DTYPE, ERR_LAYOUT_NAME
 */
export function checkTensorChanges(changes: TensorChanges): void {
  const { tensors, layout, lower, upper, fromLayout, shape, fromLower, fromUpper, as } = changes
  if (tensors !== undefined) checkSelectors(tensors)
  if (changes.dtype !== undefined) {
    const dtype = resolveElementType(changes.dtype)
    if (isBlockDtype(dtype)) checkQuantized(dtype)
  }
  for (const name of [layout, fromLayout]) if (name !== undefined) parseLayout(name)
  if (fromLayout !== undefined && shape === undefined) {
    refuse('fromLayout needs shape: the file does not contain the logical shape.')
  }
  if (fromLayout === undefined && (shape ?? fromLower ?? fromUpper) !== undefined) {
    refuse('shape, fromLower and fromUpper need fromLayout.')
  }
  if (layout === undefined && (lower ?? upper) !== undefined) refuse('lower and upper need layout.')
  if ((layout ?? fromLayout) === undefined && as !== undefined) refuse('as needs layout or fromLayout.')
  checkFlag(changes.keepIntegers ?? false, 'keepIntegers')
  if (changes.quantize === undefined) return
  checkOptions(changes.quantize, 'quantize', ['scale', 'zeroPoint', 'axis', 'blockSize', 'saturate', 'rules'])
  if (changes.dtype === undefined) refuse('quantize needs dtype, the dtype of the quantized values.')
}

function checkSelectors(selectors: unknown): void {
  const wrong = readInput('tensors', () => {
    if (!Array.isArray(selectors)) return { value: selectors }
    const index = Array.from(selectors).findIndex(
      (selector) => typeof selector !== 'string' && !Number.isSafeInteger(selector),
    )
    return index === -1 ? undefined : { value: selectors[index] as unknown }
  })
  if (!wrong) return
  refuse(`tensors is or has ${valueText(wrong.value)}; it must be an array of names and indices.`)
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

/** True where the options name a layout, so that tensors are reordered. */
export function changesLayout({ layout, fromLayout }: TensorChanges): boolean {
  return layout !== undefined || fromLayout !== undefined
}

/** True where the dtype of some tensor changes. */
export function changesElements(tensors: Iterable<AnyTensor>, changes: TensorChanges): boolean {
  const { dtype, quantize } = changes
  if (quantize !== undefined || dtype === undefined) return quantize !== undefined
  const target = resolveElementType(dtype)
  for (const tensor of tensors) if (tensor.dtype !== target && !keepsInteger(tensor, changes)) return true
  return false
}

/** True for integers and booleans that stay beside floats of another type. */
export function keepsInteger({ dtype: from }: AnyTensor, { dtype, keepIntegers }: TensorChanges): boolean {
  if (!keepIntegers || dtype === undefined || isBlockDtype(from)) return false
  const to = resolveElementType(dtype)
  return !isBlockDtype(to) && DTYPES[to].kind === 'float' && INTEGER_KINDS.has(DTYPES[from].kind)
}

const INTEGER_KINDS: ReadonlySet<string> = new Set(['int', 'uint', 'bool'])

/**
 * Each tensor in the layout of the options, lazily.
 *
 * @throws TileworkError with the code of the first tensor that cannot be converted; the message lists the others
 */
export function reorderTensors(tensors: Tensors, changes: TensorChanges): Tensors {
  return changeEach(tensors, changes, (tensor) => reorderTensor(tensor, changes).after)
}

/**
 * Each tensor with the dtype of the options, in its current layout.
 *
 * @throws TileworkError as `reorderTensors`
 */
export function changeElementTypes(tensors: Tensors, changes: TensorChanges): Tensors {
  return changeEach(tensors, changes, (tensor) => changeElementType(tensor, changes))
}

/** The tensor, computed on the device of the options. Tensors that are not dense are copied without a device. */
export function computeOnDevice(tensor: AnyTensor, { device }: TensorChanges): AnyTensor {
  return device === undefined || tensor.kind !== 'dense' ? tensor : onDevice(tensor, device)
}

interface Failure {
  readonly tensor: AnyTensor
  readonly error: TileworkError
}

/** Tries the change of each tensor, so that failures are known before anything is written. */
function changeEach(
  tensors: Tensors,
  changes: TensorChanges,
  change: (tensor: AnyTensor) => AnyTensor,
): Tensors {
  const failures: Failure[] = []
  for (const tensor of tensors) {
    try {
      change(tensor)
    } catch (error) {
      // An unknown layout fails for every tensor, so one message is enough.
      if (!(error instanceof TileworkError) || error.code === 'ERR_LAYOUT_NAME') throw error
      failures.push({ tensor, error })
    }
  }
  if (failures.length > 0) throw failureOf(failures, tensors.length, changes.tensors !== undefined)
  return mapTensors(tensors, change)
}

function failureOf(failures: readonly Failure[], total: number, isSelection: boolean): TileworkError {
  const first = failures[0]!.error
  const listed = failures
    .slice(0, MAX_LISTED_FAILURES)
    .map(({ tensor, error }) => `"${tensor.name}": ${error.message.replace(/\.$/, '')}`)
  const more = failures.length > listed.length ? `; and ${failures.length - listed.length} more` : ''
  const what =
    total === 1
      ? 'The tensor cannot be converted'
      : `${failures.length} of ${total} tensors cannot be converted`
  const advice = isSelection ? '' : ' Select the others with the option tensors.'
  return new TileworkError(first.code, `${what}: ${listed.join('; ')}${more}.${advice}`, { cause: first })
}

/** The tensor before and after the change of its layout; other changes are applied to both. */
export function reorderTensor(tensor: AnyTensor, changes: TensorChanges): ReorderedTensor {
  const before = changeElementType(withSourceLayout(requireDense(tensor), changes), changes) as DenseTensor
  const { layout, lower, upper, as } = changes
  if (layout === undefined) return { before, after: reorder(before, 'row_major') }
  const after = reorder(before, layout, {
    ...(lower && { lower }),
    ...(upper && { upper }),
    ...(as && { as }),
  })
  return { before, after }
}

function withSourceLayout(tensor: DenseTensor, changes: TensorChanges): DenseTensor {
  const { fromLayout, shape, fromLower: lower, fromUpper: upper } = changes
  // checkTensorChanges refuses one of the two alone.
  if (fromLayout === undefined || shape === undefined) return tensor
  return asLayout(tensor, fromLayout, shape, { ...(lower && { lower }), ...(upper && { upper }) })
}

function changeElementType(tensor: AnyTensor, changes: TensorChanges): AnyTensor {
  const { dtype, quantize: parameters } = changes
  if (dtype === undefined || keepsInteger(tensor, changes)) return tensor
  if (parameters) return quantize(tensor, dtype as DtypeName, parameters)
  const target = resolveElementType(dtype)
  if (tensor.dtype === target) return tensor
  if (!isBlockDtype(target)) return cast(tensor, target)
  const numbers = withoutBlocks(tensor)
  return numbers.kind === 'dense' && hasWholeBlocks(numbers, target) ? encodedBlocks(numbers, target) : tensor
}

function requireDense(tensor: AnyTensor): DenseTensor {
  if (tensor.kind === 'dense') return tensor
  if (tensor.kind === 'block') return dequantized(tensor)
  throw new TileworkError('ERR_UNSUPPORTED', `A ${tensor.kind} tensor has no memory layout.`)
}
