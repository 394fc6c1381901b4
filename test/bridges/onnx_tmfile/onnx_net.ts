/** Small ONNX models in short form, for conversions. */
import { type DenseTensor, tensor } from '../../../lib/index.js'
import { type NewAttribute, OnnxModel } from '../../../lib/onnx.js'

/** Values of attributes; the type follows: whole numbers, text, lists, and floats as `{ float }`. */
export type Attributes = Readonly<
  Record<
    string,
    number | string | readonly number[] | { readonly float: number } | { readonly floats: readonly number[] }
  >
>

/** A shape of a graph input, a constant, or the name of a value; empty for an omitted input. */
export type Given = readonly number[] | DenseTensor | string

/** Float32 numbers that are no special case of any operator. */
export function floats(...shape: number[]): DenseTensor {
  const size = shape.reduce((one, other) => one * other, 1)
  return tensor(
    Float32Array.from({ length: size }, (_, at) => 0.25 + ((at * 7) % 11) / 8),
    { shape },
  )
}

export function ints(...values: number[]): DenseTensor {
  return tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })
}

export const scalar = (value: number): DenseTensor => tensor(Float32Array.of(value), { shape: [] })

export class OnnxNet {
  readonly model: OnnxModel
  #count = 0

  constructor(opset = 13) {
    this.model = OnnxModel.create({ opset, irVersion: 8 })
  }

  input(shape: readonly (number | string)[], dtype: 'float32' | 'uint8' | 'int64' = 'float32'): string {
    const name = this.#name('x')
    this.model.graph.addInput(name, { kind: 'tensor', dtype, shape })
    return name
  }

  constant(value: DenseTensor): string {
    const name = this.#name('c')
    this.model.graph.setInitializer(name, value)
    return name
  }

  /** Adds a node. Returns the name of its first output; the others end with their number. */
  op(opType: string, given: readonly Given[], attributes: Attributes = {}, outputs = 1): string {
    const inputs = given.map((each) =>
      typeof each === 'string' ? each : 'kind' in each ? this.constant(each) : this.input(each),
    )
    const name = this.#name('y')
    const names = Array.from({ length: outputs }, (_, at) => (at === 0 ? name : `${name}_${at}`))
    const typed = Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key, attributeOf(value)]),
    )
    this.model.graph.addNode({ opType, name: `${opType}_${name}`, inputs, outputs: names, attributes: typed })
    return name
  }

  out(...names: string[]): OnnxModel {
    for (const name of names) this.model.graph.addOutput(name, { kind: 'tensor', dtype: 'float32' })
    return this.model
  }

  #name(letter: string): string {
    this.#count += 1
    return `${letter}${this.#count}`
  }
}

function attributeOf(value: Attributes[string]): NewAttribute {
  if (typeof value === 'number') return { type: 'INT', value }
  if (typeof value === 'string') return { type: 'STRING', value }
  if ('float' in value) return { type: 'FLOAT', value: value.float }
  if ('floats' in value) return { type: 'FLOATS', value: value.floats }
  return { type: 'INTS', value }
}
