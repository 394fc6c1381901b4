/**
 * Tensors of other libraries, and typed arrays, as tilework's own: by what they have, not by whose class they are, so
 * no library needs to be installed. Bytes are shared where the other side has them in memory.
 */
import { DeferredSource } from '../bytes/deferred.js'
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { packedByteLength } from '../dtype/decode.js'
import { DTYPES, type Dtype, isDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { StoredTensor } from './dense.js'
import { checkShape, sizeOf } from './shape.js'
import type { DenseTensor } from './tensor.js'
import { dtypeOfTypedArray } from './typed_array_dtype.js'

export interface AsTensorOptions {
  /** For a typed array: what its bits are, for example `bfloat16` of a Uint16Array. Default: its own type. */
  readonly dtype?: Dtype
  /** For a typed array. Default: one axis. */
  readonly shape?: readonly number[]
  readonly name?: string
}

/** A tensor of onnxruntime. */
export interface OnnxRuntimeTensor {
  readonly type: string
  readonly dims: readonly number[]
  readonly data: unknown
}

/** A tensor of TensorFlow.js. */
export interface TensorFlowTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  dataSync?(): unknown
  data?(): Promise<unknown>
}

/** Anything that gives its packed little-endian bytes in row-major order. */
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
 * `bytes()`. A dense tensor of tilework is given back as it is.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_DTYPE; ERR_UNSUPPORTED for strings
 */
export function asTensor(value: TensorLike, options: AsTensorOptions = {}): DenseTensor {
  if (isDense(value)) return value
  if (ArrayBuffer.isView(value)) return fromTypedArray(value, options)
  const { name = '' } = options
  if (has(value, 'dims', 'type', 'data')) {
    const { dims, type, data } = value as OnnxRuntimeTensor
    return place(type, dims, name, () => new MemorySource(bytesOf(data, 'the data of the tensor')))
  }
  if (has(value, 'dtype', 'shape') && isMethod(value, 'bytes')) return fromBytes(value as BytesTensor, name)
  if (has(value, 'dtype', 'shape') && (isMethod(value, 'dataSync') || isMethod(value, 'data'))) {
    return fromTensorFlow(value as TensorFlowTensor, name)
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    'Only typed arrays, onnxruntime and TensorFlow.js tensors, and objects with dtype, shape and bytes() are tensors.',
  )
}

function isDense(value: unknown): value is DenseTensor {
  return has(value, 'kind', 'storage') && (value as DenseTensor).kind === 'dense'
}

function has(value: unknown, ...keys: string[]): boolean {
  return typeof value === 'object' && value !== null && keys.every((key) => key in value)
}

function isMethod(value: unknown, key: string): boolean {
  return typeof (value as Record<string, unknown>)[key] === 'function'
}

function fromTypedArray(array: ArrayBufferView, options: AsTensorOptions): DenseTensor {
  const dtype = options.dtype ?? dtypeOfTypedArray(array)
  if (dtype === undefined) {
    throw new TileworkError('ERR_ARGUMENT', 'A DataView has no element type; pass dtype.')
  }
  const bytes = bytesOf(array, 'the array')
  const bits: number = isDtype(dtype) ? DTYPES[dtype].bits : 0
  const elements = bits === 0 ? 0 : Math.floor((bytes.byteLength * 8) / bits)
  return place(dtype, options.shape ?? [elements], options.name ?? '', () => new MemorySource(bytes))
}

function fromBytes(value: BytesTensor, name: string): DenseTensor {
  return place(value.dtype, value.shape, name, (byteLength, label) => {
    const sync = isMethod(value, 'bytesSync') ? { loadSync: () => value.bytesSync?.() as Uint8Array } : {}
    return new DeferredSource({ byteLength, label, load: () => value.bytes(), ...sync })
  })
}

function fromTensorFlow(value: TensorFlowTensor, name: string): DenseTensor {
  return place(value.dtype, value.shape, name, (byteLength, label) => {
    const load = async (): Promise<Uint8Array> => bytesOf(await value.data?.(), label)
    const sync = isMethod(value, 'dataSync') ? { loadSync: () => bytesOf(value.dataSync?.(), label) } : {}
    return new DeferredSource({ byteLength, label, load, ...sync })
  })
}

/** A row-major tensor over the source that `open` gives; the number of bytes must be the one of type and shape. */
function place(
  dtype: string,
  shape: readonly number[],
  name: string,
  open: (byteLength: number, label: string) => ByteSource,
): DenseTensor {
  if (!isDtype(dtype)) throw new TileworkError('ERR_DTYPE', `${String(dtype)} is no known element type.`)
  if (dtype === 'string') {
    throw new TileworkError('ERR_UNSUPPORTED', 'Tensors of strings cannot be adapted to a dense tensor.')
  }
  const needed = packedByteLength(dtype, sizeOf(checkShape(shape)))
  const source = open(needed, `tensor "${name}"`)
  if (source.byteLength !== needed) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${dtype} of shape [${shape}] needs ${needed} bytes and ${source.byteLength} were given.`,
    )
  }
  return new StoredTensor({ source, start: 0, dtype, shape, name })
}

function bytesOf(data: unknown, what: string): Uint8Array {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  throw new TileworkError('ERR_UNSUPPORTED', `${what} must be a typed array; it is ${typeof data}.`)
}
