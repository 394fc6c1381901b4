/** Makes the tensors of checked descriptions. Nothing is read before someone asks for bytes. */
import type { ByteSource } from '../../bytes/source.js'
import { SwappedSource } from '../../bytes/swapped_source.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { AbsentTensor } from '../../tensor/absent.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { QuantizationParameters } from '../../tensor/quantization.js'
import { stridedTensor } from '../../tensor/strided.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import type { MetaForm, StorageValue, StridedForm } from './pickle/values.js'
import { METADATA } from './schema.js'
import { SignedSource } from './signed_source.js'
import { byteLengthOf, type StorageTable } from './storages.js'
import { TORCH_TYPES, type TorchType } from './torch_types.js'

/** What tensors are made from: the storages of one file. */
export interface TensorFile {
  readonly storages: StorageTable
  readonly isBigEndian: boolean
}

/** What is said of a tensor beside its elements. */
export interface TensorAbout {
  readonly name: string
  readonly requiresGrad: boolean
  /** Further entries of the metadata. */
  readonly metadata?: readonly (readonly [string, string])[]
  readonly quantization?: QuantizationParameters
}

/** A tensor of a storage, row-major. */
export function makeStrided(file: TensorFile, form: StridedForm, about: TensorAbout): DenseTensor {
  const { type, storage } = form
  const place = file.storages.byKey.get(storage.key)?.place
  const metadata = metadataOf(about, type, storage.key)
  if (!place) return absentTensor(form, about, metadata, 'its storage is on the device "meta"')
  const swaps = file.isBigEndian && type.swapBytes > 1
  const source = swaps ? swappedSource(place, type) : place.source
  const start = swaps ? 0 : place.start
  const view = withParts(form)
  const rootOffset = storage.offset === 0 ? 0 : (storage.offset * (storage.type?.bytes ?? 1)) / view.bytes
  // Named one by one: a writer makes each tensor several times, and a spread takes a microsecond per property.
  const tensor = stridedTensor({
    source,
    start,
    elements: place.byteLength / view.bytes,
    dtype: view.dtype,
    shape: view.shape,
    strides: view.strides,
    offset: view.offset + rootOffset,
    name: about.name,
    metadata,
    quantization: about.quantization,
  })
  const signed = withSigns(tensor, form)
  return view.dtype === type.dtype ? signed : retyped(signed, type, form)
}

function swappedSource(
  { source, start, byteLength }: { source: ByteSource; start: number; byteLength: number },
  type: TorchType,
): ByteSource {
  const swapBytes = type.swapBytes as 2 | 4 | 8
  return new SwappedSource({ source, start, byteLength: byteLength - (byteLength % swapBytes), swapBytes })
}

/** The view in elements that the reorder kernels move: whole bytes, and of a pair of floats each for itself. */
function withParts({ type, offset, shape, strides }: StridedForm): Pick<
  StridedForm,
  'offset' | 'shape' | 'strides'
> & {
  readonly dtype: DenseTensor['dtype']
  readonly bytes: number
} {
  const { dtype, parts, spread, bytes } = type
  // Elements that share a byte move with it.
  if (spread === 'last') return { dtype: 'uint8', bytes, offset, shape, strides }
  if (spread === undefined) return { dtype, bytes, offset, shape, strides }
  const wide = {
    offset: offset * parts,
    shape: [...shape, parts],
    strides: [...strides.map((stride) => stride * parts), 1],
  }
  return { dtype, bytes: bytes / parts, ...wide }
}

/** The bytes as elements that share them: the last axis has as many more. */
function retyped(bytes: StoredTensor, { dtype }: TorchType, { shape, type }: StridedForm): StoredTensor {
  const { source, start, name, metadata } = bytes
  const last = shape.at(-1) ?? 1
  return new StoredTensor({
    ...{ source, start, dtype, name, metadata },
    shape: [...shape.slice(0, -1), last * type.parts],
  })
}

/** The values of a view whose bits say that it is stored conjugated or negated. */
function withSigns(tensor: StoredTensor, { conjugate, negative, type }: StridedForm): StoredTensor {
  const { kind, bits } = DTYPES[type.dtype]
  const isComplex = kind === 'complex'
  const flipsReal = negative
  const flipsImaginary = isComplex && conjugate !== negative
  if (!flipsReal && !flipsImaginary) return tensor
  if (!isComplex && kind !== 'float') {
    throw new TileworkError('ERR_UNSUPPORTED', `tensor "${tensor.name}" is a negated view of ${type.name}.`)
  }
  const { source, start, name, dtype, shape, metadata, storage } = tensor
  const numbers = isComplex ? 2 : 1
  const signed = new SignedSource({
    ...{ source, start, byteLength: storage.byteLength, size: bits / 8 / numbers, every: numbers },
    remainders: [...(flipsReal ? [0] : []), ...(flipsImaginary ? [1] : [])],
  })
  return new StoredTensor({ source: signed, start: 0, name, dtype, shape, metadata })
}

/** A tensor without data. */
export function makeMeta(form: MetaForm, about: TensorAbout): DenseTensor {
  return absentTensor(form, about, metadataOf(about, form.type), 'it is on the device "meta"')
}

function absentTensor(
  { type, shape }: Pick<StridedForm, 'type' | 'shape'>,
  { name }: TensorAbout,
  metadata: ReadonlyMap<string, string>,
  reason: string,
): DenseTensor {
  const { dtype, parts, spread } = type
  const extents =
    spread === 'axis'
      ? [...shape, parts]
      : spread === 'last'
        ? [...shape.slice(0, -1), (shape.at(-1) ?? 1) * parts]
        : shape
  return new AbsentTensor({ dtype, shape: extents, name, reason, metadata })
}

/** The bytes of a storage without a tensor. */
export function storageBytes(file: TensorFile, storage: StorageValue, name: string): DenseTensor {
  const form: StridedForm = {
    kind: 'strided',
    storage,
    type: storage.type ?? TORCH_TYPES.get('uint8')!,
    offset: 0,
    shape: [storage.elements],
    strides: [1],
    conjugate: false,
    negative: false,
  }
  const tensor = makeStrided(file, form, { name, requiresGrad: false })
  if (!tensor.hasData) return tensor
  const { source, start } = tensor as StoredTensor
  return new StoredTensor({ source, start, dtype: 'uint8', shape: [byteLengthOf(storage)], name })
}

/** Says in a safetensors file that its tensors are of torch, without which the libraries of Hugging Face refuse it. */
const FRAMEWORK = ['format', 'pt'] as const

function metadataOf(about: TensorAbout, type: TorchType, key?: string): ReadonlyMap<string, string> {
  return new Map([
    FRAMEWORK,
    [METADATA.requiresGrad, String(about.requiresGrad)],
    ...(key === undefined ? [] : [[METADATA.storage, key] as const]),
    ...(type.name === type.dtype ? [] : [[METADATA.type, type.name] as const]),
    ...(about.metadata ?? []),
  ])
}
