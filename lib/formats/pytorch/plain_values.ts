/** The plain values of a checkpoint as JavaScript has them: epochs, hyper-parameters, texts. */
import type { DenseTensor } from '../../tensor/tensor.js'
import {
  PickleComplex,
  PickleDevice,
  PickleGlobal,
  PickleLayout,
  PickleOpaque,
  PickleSet,
  PickleTuple,
  type PickleValue,
  StorageValue,
} from './pickle/values.js'

/**
 * A plain value. Whole numbers above 2^53 - 1 are bigints, bytes are a Uint8Array. A storage without a tensor is its bytes, lazily.
 * `opaque` stands for a value of a class that is not read.
 */
export type PytorchValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | ReadonlySet<PytorchValue>
  | { readonly complex: readonly [real: number, imaginary: number] }
  | { readonly dtype: string }
  | { readonly device: string }
  | { readonly opaque: string }
  | DenseTensor

/** @param bytesOf - makes the tensor of a storage's bytes */
export function plainValue(
  value: PickleValue,
  bytesOf: (storage: StorageValue) => DenseTensor,
): PytorchValue {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value
  if (value instanceof PickleSet) return new Set(value.items.map((item) => plainItem(item, bytesOf)))
  return plainItem(value, bytesOf)
}

/** Items of sets are hashable, so a set is not one of them; a tuple is shown as its text. */
function plainItem(value: PickleValue, bytesOf: (storage: StorageValue) => DenseTensor): PytorchValue {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value
  if (value instanceof PickleComplex) return { complex: [value.real, value.imaginary] }
  if (value instanceof PickleDevice) return { device: value.name }
  if (value instanceof PickleGlobal && value.kind === 'dtype') return { dtype: withoutTorch(value.name) }
  if (value instanceof StorageValue) return bytesOf(value)
  if (value instanceof PickleOpaque || value instanceof PickleGlobal || value instanceof PickleLayout) {
    return { opaque: value.name }
  }
  return keyText(value)
}

function withoutTorch(name: string): string {
  return name.replace(/^torch\./, '')
}

/** Items of a tuple, and characters of each, that are shown. */
const SHOWN_ITEMS = 8
const SHOWN_LENGTH = 60

/** A key of a dict as Python prints it; texts as they are. */
export function keyText(key: PickleValue): string {
  if (typeof key === 'string') return key
  if (key instanceof PickleTuple) {
    const items = key.items.slice(0, SHOWN_ITEMS).map(itemText)
    const rest = key.items.length > SHOWN_ITEMS ? ', …' : ''
    return key.items.length === 1 ? `(${items[0]},)` : `(${items.join(', ')}${rest})`
  }
  return itemText(key)
}

function itemText(item: PickleValue): string {
  if (item === null) return 'None'
  if (typeof item === 'boolean') return item ? 'True' : 'False'
  if (typeof item === 'string') return `'${item.slice(0, SHOWN_LENGTH)}'`
  if (typeof item === 'number' || typeof item === 'bigint') return String(item)
  if (item instanceof PickleGlobal || item instanceof PickleOpaque) return item.name
  return '…'
}
