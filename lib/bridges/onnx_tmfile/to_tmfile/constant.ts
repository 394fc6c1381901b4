/** Constants of an ONNX graph while it is converted: initializers, Constant nodes and folded values. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { broadcastTo, countOf, type Shape, transposed } from '../../../models/onnx/evaluate/arrays.js'
import {
  ARRAYS,
  type Elements,
  elementsOf,
  isPartial,
  type KnownElements,
  Value,
} from '../../../models/onnx/evaluate/value.js'
import type { TmfileQuantization } from '../../../models/tmfile/index.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
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
  /** Gives the elements, in the first use; of `from` where there is one. */
  readonly read: (elements: KnownElements) => Elements | undefined
  /** The constant that this one is a changed copy of. */
  readonly from?: Constant
  readonly tensor?: DenseTensor | undefined
  readonly codes?: Codes | undefined
  /** True for the value as the model has it. */
  readonly isOriginal?: boolean
}

export class Constant extends Value {
  readonly name: string
  /** The tensor of the file, where its elements are unchanged; it is not read unless it has to be. */
  readonly tensor: DenseTensor | undefined
  readonly codes: Codes | undefined
  readonly isOriginal: boolean
  readonly #from: Constant | undefined
  readonly #read: ConstantInit['read']
  #made: KnownElements | undefined
  #numbers: Numbers | undefined

  constructor({ name, dtype, shape, read, from, tensor, codes, isOriginal = false }: ConstantInit) {
    super(dtype, shape, () => this.#computed())
    this.name = name
    this.tensor = tensor
    this.codes = codes
    this.isOriginal = isOriginal
    this.#from = from
    this.#read = read
  }

  static ofTensor(name: string, tensor: DenseTensor): Constant {
    const { dtype, shape } = tensor
    return new Constant({ name, dtype, shape, tensor, read: () => elementsOf(tensor), isOriginal: true })
  }

  static ofValue(name: string, value: Value): Constant {
    const { dtype, shape } = value
    return new Constant({ name, dtype, shape, read: () => value.elements })
  }

  static ofNumbers(
    name: string,
    dtype: 'float32' | 'int32',
    shape: Shape,
    values: ArrayLike<number>,
  ): Constant {
    const elements = ARRAYS[dtype].from(values)
    return new Constant({ name, dtype, shape, read: () => elements })
  }

  /** One number, repeated. */
  static filled(shape: Shape, value: number): Constant {
    return Constant.ofNumbers('', 'float32', [1], [value]).expanded(shape)
  }

  /** The elements as floats, read at the first use. Integers are exact up to 2^53; bool is 0 and 1. */
  get numbers(): Numbers {
    if (!this.tensor && this.size > MAX_COMPUTED_ELEMENTS)
      refuse(`${this.size} elements are constant; at most ${MAX_COMPUTED_ELEMENTS} are computed`)
    this.#numbers ??= numbersOf(this.#checked(this.elements))
    return this.#numbers
  }

  /** Applies the changes of a chain from its start, or from elements that were read before: a file may have a hundred thousand. */
  #computed(): KnownElements {
    const chain: Constant[] = [this]
    for (let at = this.#from; at; at = at.#made ? undefined : at.#from) chain.push(at)
    let elements = NO_ELEMENTS
    for (const each of chain.reverse()) elements = each.#made ?? this.#checked(each.#read(elements))
    this.#made = elements
    return elements
  }

  #checked(elements: Elements | undefined): KnownElements {
    return elements && !isPartial(elements)
      ? elements
      : refuse(`its constant "${this.name}" is ${this.dtype}`)
  }

  /** The same constant as another value. */
  named(name: string): Constant {
    const { dtype, shape, tensor, codes } = this
    return new Constant({ name, dtype, shape, tensor, codes, from: this, read: (elements) => elements })
  }

  /** The same elements in another shape. */
  reshaped(shape: Shape): Constant {
    const { name, dtype, tensor, codes } = this
    if (countOf(shape) !== this.size) refuse(`${this.size} elements do not fit the shape [${shape}]`)
    // Records per index stay valid only where their axis does; the callers keep it in place.
    const kept = codes && { ...codes, values: codes.values.reshaped(shape) }
    return new Constant({ name, dtype, shape, tensor, codes: kept, from: this, read: (elements) => elements })
  }

  transposed(perm: Shape): Constant {
    const { name, dtype, codes, shape: own } = this
    const axis = codes?.axis === undefined ? {} : { axis: perm.indexOf(codes.axis) }
    const moved = codes && { ...codes, values: codes.values.transposed(perm), ...axis }
    const shape = perm.map((axis) => own[axis]!)
    const read = (elements: KnownElements): KnownElements => transposed(elements, own, perm)
    return new Constant({ name, dtype, shape, codes: moved, from: this, read })
  }

  /** The elements repeated to `shape`, as numpy broadcasts. */
  expanded(shape: Shape): Constant {
    const { name, dtype, shape: own } = this
    const read = (elements: KnownElements): KnownElements => broadcastTo(elements, own, shape)
    return new Constant({ name, dtype, shape, from: this, read })
  }

  /** Float32 elements that a function gives. */
  mapped(change: (value: number, index: number) => number): Constant {
    const { name, shape } = this
    const read = (elements: KnownElements): KnownElements =>
      Float32Array.from(numbersOf(elements) as ArrayLike<number>, change)
    return new Constant({ name, dtype: 'float32', shape, from: this, read })
  }
}

const NO_ELEMENTS: KnownElements = new Float32Array()

type Numbers = Float32Array | Float64Array

/** Float32 for floats of at most 32 bits, else float64. */
function numbersOf(elements: KnownElements): Numbers {
  if (elements instanceof Float32Array || elements instanceof Float64Array) return elements
  return Float64Array.from(elements as ArrayLike<number | bigint>, Number)
}
