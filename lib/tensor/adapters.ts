/**
 * Adapts typed arrays and tensors of other libraries. They are recognised by their fields, not by their class, so no library
 * needs to be installed. Bytes in memory are shared, not copied.
 */
import { DeferredSource } from '../bytes/deferred.js'
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { type BitOrder, swapBitOrder } from '../dtype/bit_order.js'
import { type CanonicalDtype, DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { isDenseTensor } from './check_tensor.js'
import { StoredTensor } from './dense.js'
import { checkShape, sizeOf } from './shape.js'
import { stringTensor } from './string_list.js'
import type { DenseTensor, StringTensor } from './tensor.js'
import { type DtypeOfArray, dtypeOfTypedArray } from './typed_array_dtype.js'

export interface AsTensorOptions<Name extends DtypeName = DtypeName> {
  /** For a typed array: the element type of its bits, for example `bfloat16` in a Uint16Array. Default: its own type. */
  readonly dtype?: Name
  /** For a typed array. Default: one axis. */
  readonly shape?: readonly number[]
  readonly name?: string
  /**
   * For a typed array of sub-byte elements: `high-first` where the first element is in the highest bits of its byte; the array
   * is then copied. Default `low-first`, as in tensors.
   */
  readonly bitOrder?: BitOrder
}

/** A tensor of onnxruntime. */
export interface OnnxRuntimeTensor {
  readonly type: string
  readonly dims: readonly number[]
  readonly data: unknown
}

/** A string tensor of onnxruntime. */
export interface OnnxRuntimeStrings {
  readonly type: 'string'
  readonly dims: readonly number[]
  readonly data: readonly string[]
}

/** A tensor of TensorFlow.js. */
export interface TensorFlowTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  dataSync?(): unknown
  data?(): Promise<unknown>
}

/** Any object that returns its packed little-endian bytes in row-major order. */
export interface BytesTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  bytes(): Promise<Uint8Array> | Uint8Array
  bytesSync?(): Uint8Array
}

/** What `asTensor` takes. */
export type TensorLike = DenseTensor | ArrayBufferView | OnnxRuntimeTensor | TensorFlowTensor | BytesTensor

/**
 * Adapts a typed array (with `shape`), a tensor of onnxruntime or TensorFlow.js, or anything with `dtype`, `shape` and
 * `bytes()`. A dense tensor of tilework is returned unchanged.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_DTYPE; ERR_UNSUPPORTED for strings of libraries other than onnxruntime
 */
export function asTensor(value: OnnxRuntimeStrings, options?: AsTensorOptions): StringTensor
export function asTensor<D extends Dtype>(value: DenseTensor<D>, options?: AsTensorOptions): DenseTensor<D>
export function asTensor<Name extends DtypeName>(
  value: ArrayBufferView,
  options: AsTensorOptions<Name> & { readonly dtype: Name },
): DenseTensor<CanonicalDtype<Name>>
export function asTensor<Values extends ArrayBufferView>(
  value: Values,
  options?: Omit<AsTensorOptions, 'dtype'>,
): DenseTensor<DtypeOfArray<Values>>
export function asTensor(value: TensorLike, options?: AsTensorOptions): DenseTensor
export function asTensor(
  value: TensorLike | OnnxRuntimeStrings,
  options: AsTensorOptions = {},
): DenseTensor | StringTensor {
  checkOptions(options, 'asTensor', ['dtype', 'shape', 'name', 'bitOrder'])
  const { dtype, shape, name, bitOrder } = readInput('The options of asTensor', () => readOptions(options))
  return readInput('The tensor', () => {
    if (isDenseTensor(value)) return value
    if (ArrayBuffer.isView(value)) return fromTypedArray(value, { dtype, shape, name, bitOrder })
    if (isStrings(value)) return stringTensor(value.data, { shape: value.dims, name })
    if (has(value, 'dims', 'type', 'data')) return fromOnnxRuntime(value as OnnxRuntimeTensor, name)
    if (has(value, 'dtype', 'shape') && isMethod(value, 'bytes')) return fromBytes(value as BytesTensor, name)
    if (has(value, 'dtype', 'shape') && (isMethod(value, 'dataSync') || isMethod(value, 'data'))) {
      return fromTensorFlow(value as TensorFlowTensor, name)
    }
    throw new TileworkError(
      'ERR_ARGUMENT',
      `value is ${valueText(value)}; asTensor takes typed arrays, tensors of onnxruntime and TensorFlow.js, and objects with dtype, shape and bytes().`,
    )
  })
}

/** Options after one read, without getters. */
interface PlainOptions {
  readonly dtype: string | undefined
  readonly shape: readonly number[] | undefined
  readonly name: string
  readonly bitOrder: BitOrder
}

function readOptions({ dtype, shape, name = '', bitOrder = 'low-first' }: AsTensorOptions): PlainOptions {
  if (bitOrder !== 'low-first' && bitOrder !== 'high-first') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `bitOrder is ${valueText(bitOrder)}; it must be low-first or high-first.`,
    )
  }
  return { dtype, shape, name: checkName(name), bitOrder }
}

function has(value: unknown, ...keys: string[]): boolean {
  return typeof value === 'object' && value !== null && keys.every((key) => key in value)
}

function isStrings(value: unknown): value is OnnxRuntimeStrings {
  return has(value, 'dims', 'data') && (value as OnnxRuntimeStrings).type === 'string'
}

function isMethod(value: unknown, key: string): boolean {
  return typeof (value as Record<string, unknown>)[key] === 'function'
}

function fromTypedArray(array: ArrayBufferView, options: PlainOptions): DenseTensor {
  const named = options.dtype ?? dtypeOfTypedArray(array)
  if (named === undefined) {
    throw new TileworkError('ERR_ARGUMENT', 'a DataView has no element type; pass dtype.')
  }
  const dtype = resolveDtype(named)
  const given = bytesOf(array, 'the array')
  const bytes = options.bitOrder === 'high-first' ? swapBitOrder(given, dtype) : given
  const { bits } = DTYPES[dtype]
  const elements = bits === 0 ? 0 : Math.floor((bytes.byteLength * 8) / bits)
  return place(dtype, options.shape ?? [elements], options.name, () => new MemorySource(bytes))
}

function fromOnnxRuntime({ dims, type, data }: OnnxRuntimeTensor, name: string): DenseTensor {
  return place(type, dims, name, () => new MemorySource(bytesOf(data, 'the data of the tensor')))
}

function fromBytes(value: BytesTensor, name: string): DenseTensor {
  return place(value.dtype, value.shape, name, (byteLength, label) =>
    deferred(byteLength, label, {
      load: () => value.bytes(),
      ...(isMethod(value, 'bytesSync') && { loadSync: () => value.bytesSync?.() }),
    }),
  )
}

function fromTensorFlow(value: TensorFlowTensor, name: string): DenseTensor {
  return place(value.dtype, value.shape, name, (byteLength, label) =>
    deferred(byteLength, label, {
      load: async () => bytesOf(await value.data?.(), label),
      ...(isMethod(value, 'dataSync') && { loadSync: () => bytesOf(value.dataSync?.(), label) }),
    }),
  )
}

/** A source over the bytes that a foreign tensor loads; any error of it becomes a TileworkError. */
function deferred(
  byteLength: number,
  label: string,
  { load, loadSync }: { load: () => unknown; loadSync?: () => unknown },
): ByteSource {
  return new DeferredSource({
    byteLength,
    label,
    load: () => systemError.wrapAsync(label, async () => checkLoaded(await load(), label)),
    ...(loadSync && { loadSync: () => systemError.wrap(label, () => checkLoaded(loadSync(), label)) }),
  })
}

/** The bytes that a foreign tensor loaded; the source checks their length. */
function checkLoaded(loaded: unknown, label: string): Uint8Array {
  if (ArrayBuffer.isView(loaded) && loaded instanceof Uint8Array) return loaded
  throw new TileworkError('ERR_ARGUMENT', `${label} loaded ${valueText(loaded)}; it must load a Uint8Array.`)
}

/** A row-major tensor over the source that `open` returns, whose length must match element type and shape. */
function place(
  dtypeName: string,
  shape: readonly number[],
  name: string,
  open: (byteLength: number, label: string) => ByteSource,
): DenseTensor {
  const dtype = resolveDtype(dtypeName)
  if (dtype === 'string') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      'dtype is string; only tensors of onnxruntime hold strings that asTensor takes.',
    )
  }
  const checked = checkShape(shape)
  const needed = packedByteLength(dtype, sizeOf(checked))
  const source = open(needed, `tensor "${name}"`)
  if (source.byteLength !== needed) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${source.byteLength} bytes were given; ${dtype} of shape [${checked}] needs ${needed}.`,
    )
  }
  return new StoredTensor({ source, start: 0, dtype, shape: checked, name })
}

function bytesOf(data: unknown, what: string): Uint8Array {
  if (ArrayBuffer.isView(data)) return bytesOfView(data, what)
  throw new TileworkError('ERR_UNSUPPORTED', `${what} is ${valueText(data)}; it must be a typed array.`)
}
