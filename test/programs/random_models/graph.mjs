/**
 * Random models for test/programs/onnx_random.mjs: small graphs of the operators that passes of `optimize` look at, with constants that
 * are often neutral ones. Every extent is known while a model is drawn; the model declares some of them as symbols.
 */
import { tensor } from '../../../dist/index.js'
import { OnnxModel } from '../../../dist/onnx.js'
import { generator, pick } from '../../../scripts/seeded.mjs'

const OPSETS = [11, 13, 17, 21]
const MAX_ELEMENTS = 2000
const DTYPE_CODES = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11 }
const FLOATS = new Set(['float32', 'float16', 'float64'])
/** Neutral and special numbers come more often than others. */
const FLOAT_CONSTANTS = [0, -0, 1, -1, 2, 0.5, 3, Number.POSITIVE_INFINITY, Number.NaN, 1e30]

/** A graph while it is drawn. Values have a name, an element type and a shape. */
export class Draw {
  constructor(seed) {
    this.random = generator(seed)
    this.opset = pick(OPSETS, this.random)
    this.model = OnnxModel.create({ opset: this.opset })
    this.values = []
    this.nodeCount = 0
    this.names = 0
  }

  below(count) {
    return Math.floor(this.random() * count)
  }

  chance(share) {
    return this.random() < share
  }

  pick(values) {
    return pick(values, this.random)
  }

  name(prefix) {
    return `${prefix}${this.names++}`
  }

  /** A value that was drawn, by a condition; the newest come more often. */
  value(isWanted = () => true) {
    const found = this.values.filter(isWanted)
    return found[Math.floor(found.length * Math.sqrt(this.random()))]
  }

  /** A node of one output, unless more shapes are given. */
  node(opType, inputs, result, attributes = {}, graph = this.model.graph) {
    const results = [result].flat()
    const outputs = results.map(() => this.name('v'))
    const names = inputs.map((each) => (typeof each === 'string' ? each : each.name))
    graph.addNode({ opType, inputs: names, outputs, attributes })
    this.nodeCount++
    const made = results.map((each, at) => ({ ...each, name: outputs[at] }))
    if (graph === this.model.graph)
      this.values.push(...made.filter(({ shape }) => sizeOf(shape) <= MAX_ELEMENTS))
    return made[0]
  }

  /** An initializer, or the output of a Constant. */
  constant(dtype, shape, element) {
    const size = sizeOf(shape)
    const list = Array.from({ length: size }, () => element())
    const value = tensor(dtype === 'int64' ? BigInt64Array.from(list, BigInt) : list, { dtype, shape })
    const name = this.name('k')
    if (this.chance(0.8)) this.model.graph.setInitializer(name, value)
    else
      this.model.graph.addNode({
        opType: 'Constant',
        inputs: [],
        outputs: [name],
        attributes: { value: { type: 'TENSOR', value } },
      })
    return { name, dtype, shape, isConstant: true }
  }

  longs(numbers, shape = [numbers.length]) {
    let at = 0
    return this.constant('int64', shape, () => numbers[at++])
  }

  /** A constant that may meet a value element by element, of ones and zeros more often than not. */
  operand(dtype, shape) {
    const own = this.chance(0.5) ? [] : shape.map((extent) => (this.chance(0.4) ? 1 : extent))
    const trimmed = own.slice(this.below(own.length + 1))
    const one = this.numberOf(dtype)
    return this.constant(dtype, trimmed, () => (this.chance(0.9) ? one : this.numberOf(dtype)))
  }

  numberOf(dtype) {
    if (dtype === 'bool') return this.chance(0.5)
    if (FLOATS.has(dtype)) {
      const number = this.chance(0.7) ? this.pick(FLOAT_CONSTANTS) : this.random() * 4 - 2
      return dtype === 'float16' && number === 1e30 ? 4 : number
    }
    return this.pick([0, 1, 1, 2, -1, 3])
  }
}

export function sizeOf(shape) {
  return shape.reduce((product, extent) => product * extent, 1)
}

export const int = (value) => ({ type: 'INT', value })
export const ints = (value) => ({ type: 'INTS', value })
export const float = (value) => ({ type: 'FLOAT', value })
export const codeOf = (dtype) => DTYPE_CODES[dtype]
export const DTYPES = Object.keys(DTYPE_CODES)
/** onnxruntime computes runs of nodes of float16 in float32 and rounds where a run ends, so that such values are only moved. */
export const isFloat = ({ dtype }) => dtype === 'float32' || dtype === 'float64'
export const isNumber = ({ dtype }) => dtype !== 'bool' && dtype !== 'float16'
