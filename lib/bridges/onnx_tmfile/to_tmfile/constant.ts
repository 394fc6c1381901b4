/** Constants of an ONNX graph while it is converted: initializers, Constant nodes and folded values. */
import { decodeAll } from '../../../dtype/decode.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import type { TmfileQuantization } from '../../../models/tmfile/index.js'
import { asStored } from '../../../tensor/dense.js'
import { isPlain } from '../../../tensor/plain_storage.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { broadcastTo, type Numbers, type Shape, sizeOf, transposed } from './arrays.js'
import { refuse } from './refusal.js'

/** Elements of computed constants, so that a small file cannot ask for gigabytes (CWE-770). */
export const MAX_COMPUTED_ELEMENTS = 2 ** 28

/** Integer codes behind a constant that a DequantizeLinear gave. */
export interface Codes {
  readonly values: Constant
  readonly quantization: TmfileQuantization
  /** The axis that has one record per index; undefined for one record. */
  readonly axis?: number
}

interface ConstantInit {
  /** Name of the ONNX value; changed copies keep it. */
  readonly name: string
  readonly dtype: Dtype
  readonly shape: Shape
  readonly tensor?: DenseTensor
  readonly read?: () => Numbers
  readonly codes?: Codes
  /** True for the value as the model has it. */
  readonly isOriginal?: boolean
}

export class Constant {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: Shape
  /** The tensor of the file, where its elements are unchanged; it is not read unless it has to be. */
  readonly tensor: DenseTensor | undefined
  readonly codes: Codes | undefined
  readonly isOriginal: boolean
  readonly #read: () => Numbers
  #numbers: Numbers | undefined

  constructor({ name, dtype, shape, tensor, read, codes, isOriginal = false }: ConstantInit) {
    this.name = name
    this.dtype = dtype
    this.shape = shape
    this.tensor = tensor
    this.codes = codes
    this.isOriginal = isOriginal
    this.#read = read ?? (() => numbersOf(tensor!))
  }

  static ofTensor(name: string, tensor: DenseTensor): Constant {
    const { dtype, shape } = tensor
    return new Constant({ name, dtype, shape, tensor, isOriginal: true })
  }

  static ofNumbers(name: string, dtype: Dtype, shape: Shape, values: ArrayLike<number>): Constant {
    const numbers = dtype === 'float32' ? Float32Array.from(values) : Float64Array.from(values)
    return new Constant({ name, dtype, shape, read: () => numbers })
  }

  /** One number, repeated. */
  static filled(shape: Shape, value: number): Constant {
    return Constant.ofNumbers('', 'float32', [1], [value]).expanded(shape)
  }

  get size(): number {
    return sizeOf(this.shape)
  }

  /** The elements, read at the first use. */
  get numbers(): Numbers {
    if (!this.tensor && this.size > MAX_COMPUTED_ELEMENTS)
      refuse(`${this.size} elements are constant; at most ${MAX_COMPUTED_ELEMENTS} are computed`)
    this.#numbers ??= this.#read()
    return this.#numbers
  }

  /** The same constant as another value. */
  named(name: string): Constant {
    const { dtype, shape, tensor, codes } = this
    const read = (): Numbers => this.numbers
    return new Constant({ name, dtype, shape, read, ...(tensor && { tensor }), ...(codes && { codes }) })
  }

  /** The same elements in another shape. */
  reshaped(shape: Shape): Constant {
    const { name, dtype, tensor, codes } = this
    if (sizeOf(shape) !== this.size) refuse(`${this.size} elements do not fit the shape [${shape}]`)
    const kept = codes && { values: codes.values.reshaped(shape), quantization: codes.quantization }
    // Records per index stay valid only where their axis does; the callers keep it in place.
    const axis = codes?.axis === undefined ? {} : { axis: codes.axis }
    return new Constant({
      ...{ name, dtype, shape, read: () => this.numbers },
      ...(tensor && { tensor }),
      ...(kept && { codes: { ...kept, ...axis } }),
    })
  }

  transposed(perm: Shape): Constant {
    const { name, dtype, codes } = this
    const moved = codes && { values: codes.values.transposed(perm), quantization: codes.quantization }
    const axis = codes?.axis === undefined ? {} : { axis: perm.indexOf(codes.axis) }
    return new Constant({
      ...{ name, dtype, shape: perm.map((from) => this.shape[from]!) },
      read: () => transposed(this.numbers, this.shape, perm),
      ...(moved && { codes: { ...moved, ...axis } }),
    })
  }

  /** The elements repeated to `shape`, as numpy broadcasts. */
  expanded(shape: Shape): Constant {
    const { name, dtype } = this
    return new Constant({ name, dtype, shape, read: () => broadcastTo(this.numbers, this.shape, shape) })
  }

  /** Float32 elements that a function gives. */
  mapped(change: (value: number, index: number) => number): Constant {
    const { name, shape } = this
    const read = (): Numbers => Float32Array.from(this.numbers as ArrayLike<number>, change)
    return new Constant({ name, dtype: 'float32', shape, read })
  }
}

/** Elements of a tensor: float32 for floats of at most 32 bits, else float64, which holds integers up to 2^53. */
function numbersOf(tensor: DenseTensor): Numbers {
  const plain = isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major')
  const values = decodeAll(tensor.dtype, asStored(plain).bytesSync(), tensor.size)
  if (values instanceof Float32Array || values instanceof Float64Array) return values
  return Float64Array.from(values as Iterable<number | bigint>, Number)
}
