/** What a pickle is made of here: data alone. A name that Python would import stays a name. */
import type { TorchType } from '../torch_types.js'

export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleList
  | PickleTuple
  | PickleDict
  | PickleSet
  | PickleObject
  | PickleGlobal
  | PickleOpaque
  | PickleComplex
  | PickleDevice
  | PickleLayout
  | StorageValue
  | TensorValue

export class PickleList {
  readonly items: PickleValue[] = []
}

/** A tuple, or a torch.Size. */
export class PickleTuple {
  readonly items: readonly PickleValue[]

  constructor(items: readonly PickleValue[]) {
    this.items = items
  }
}

/** A dict, an OrderedDict or a Counter. Keys that are equal in Python are one key; tuples are keys by identity. */
export class PickleDict {
  /** Made with the first item: every tensor has an empty OrderedDict of hooks. */
  #entries: Map<PickleValue, PickleValue> | undefined

  get entries(): ReadonlyMap<PickleValue, PickleValue> {
    return this.#entries ?? NO_ENTRIES
  }

  set(key: PickleValue, value: PickleValue): void {
    this.#entries ??= new Map()
    this.#entries.set(key, value)
  }
}

const NO_ENTRIES: ReadonlyMap<PickleValue, PickleValue> = new Map()

export class PickleSet {
  readonly items: readonly PickleValue[]

  constructor(items: readonly PickleValue[]) {
    this.items = items
  }
}

/** An object of a TorchScript class: its attributes are its state. */
export class PickleObject {
  readonly className: string
  state: PickleValue = null

  constructor(className: string) {
    this.className = className
  }
}

/** What a name of the allow-list means. Calling, where it is possible, makes a value of this file. */
export type GlobalKind =
  | 'dict'
  | 'counter'
  | 'size'
  | 'device'
  | 'encode'
  | 'bytes'
  | 'bytearray'
  | 'set'
  | 'complex'
  | 'class'
  | 'rebuild'
  | 'layout'
  | 'scheme'
  | 'dtype'
  | 'storage'
  | 'script-class'
  | 'script-function'

export class PickleGlobal {
  /** Module and name, joined by a dot. */
  readonly name: string
  readonly kind: GlobalKind

  constructor(name: string, kind: GlobalKind) {
    this.name = name
    this.kind = kind
  }
}

/** A name outside the allow-list, or what a call of it would have made. */
export class PickleOpaque {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export class PickleComplex {
  readonly real: number
  readonly imaginary: number

  constructor(real: number, imaginary: number) {
    this.real = real
    this.imaginary = imaginary
  }
}

export class PickleDevice {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A memory layout of torch, such as `torch.sparse_coo`. */
export class PickleLayout {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A storage that a persistent id names. Its bytes are found when all pickles are read. */
export class StorageValue {
  readonly key: string
  /** Undefined for bytes without an element type. */
  readonly type: TorchType | undefined
  /** Elements of `type`; bytes where it has none. */
  readonly elements: number
  /** The first element in the storage `key`, in elements: a view of an old file. */
  readonly offset: number

  constructor(key: string, type: TorchType | undefined, elements: number, offset = 0) {
    this.key = key
    this.type = type
    this.elements = elements
    this.offset = offset
  }
}

/** A tensor that a call of a rebuild function describes. */
export type TensorForm = StridedForm | MetaForm | SparseForm | NestedForm

export class TensorValue {
  readonly form: TensorForm
  readonly requiresGrad: boolean
  readonly isParameter: boolean

  constructor(form: TensorForm, requiresGrad: boolean, isParameter = false) {
    this.form = form
    this.requiresGrad = requiresGrad
    this.isParameter = isParameter
  }
}

/** Elements of a storage at regular distances: element (i, j, …) is at `offset + i * strides[0] + j * strides[1] + …`. */
export interface StridedForm {
  readonly kind: 'strided'
  readonly storage: StorageValue
  readonly type: TorchType
  /** Of the first element, in elements of `type`. */
  readonly offset: number
  readonly shape: readonly number[]
  /** In elements of `type`. */
  readonly strides: readonly number[]
  /** True where the stored numbers are the conjugates of the values. */
  readonly conjugate: boolean
  /** True where the stored numbers are the negatives of the values. */
  readonly negative: boolean
  readonly quantizer?: Quantizer
}

/** Scales and zero points: numbers, or tensors with one element per index of `axis`. */
export interface Quantizer {
  readonly scale: number | TensorValue
  readonly zeroPoint: number | TensorValue
  readonly axis?: number
}

/** A tensor without data. */
export interface MetaForm {
  readonly kind: 'meta'
  readonly type: TorchType
  readonly shape: readonly number[]
}

export interface SparseForm {
  readonly kind: 'sparse'
  /** `coo`: indices per entry. The others: compressed along rows (csr, bsr) or columns (csc, bsc). */
  readonly layout: 'coo' | 'csr' | 'csc' | 'bsr' | 'bsc'
  readonly shape: readonly number[]
  /** Of coo the indices; else the compressed and the plain indices. */
  readonly indices: readonly TensorValue[]
  readonly values: TensorValue
}

/** Tensors of several shapes in one buffer. */
export interface NestedForm {
  readonly kind: 'nested'
  readonly buffer: TensorValue
  readonly sizes: TensorValue
  readonly strides: TensorValue
  readonly offsets: TensorValue
}
