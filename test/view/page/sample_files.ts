/** Small files that have something to see in every view. */
import { asTensor, reorder, serialize, sparseFromDense, stringTensor, tensor } from '../../../lib/index.js'
import { OnnxModel } from '../../../lib/onnx.js'

/** Deterministic values around 0. */
export function wave(count: number, factor = 1): Float32Array {
  return Float32Array.from({ length: count }, (_, at) =>
    Math.fround(factor * Math.sin(at * 0.7) * Math.exp(-at / count)),
  )
}

export const MATRIX = wave(48 * 40, 2)
MATRIX[41] = Number.NaN
MATRIX[82] = Number.POSITIVE_INFINITY
export const BLOCKED = wave(2 * 19 * 3 * 4)

/** Tensors of several kinds, blocked and with NaN. */
export async function tensorsFile(): Promise<Uint8Array> {
  return serialize(
    [
      tensor(MATRIX, { shape: [48, 40], name: 'layers.0.weight' }),
      tensor(wave(40), { shape: [40], name: 'layers.0.bias' }),
      tensor(wave(3 * 24 * 32), { shape: [3, 24, 32], name: 'layers.1.weight' }),
      reorder(tensor(BLOCKED, { shape: [2, 19, 3, 4], name: 'blocked' }), 'b_fs_yx_fsv16'),
      tensor(new BigInt64Array([2n ** 60n, -5n, 7n]), { shape: [3], name: 'large' }),
      tensor([1.5, -2, 0.1], { dtype: 'float16', name: 'halves' }),
    ],
    { format: 'safetensors' },
  )
}

export async function sparseFile(): Promise<Uint8Array> {
  const values = Float32Array.from({ length: 30 * 30 }, (_, at) => (at % 31 === 0 ? at + 1 : 0))
  return serialize([await sparseFromDense(tensor(values, { shape: [30, 30] }))], { format: 'btf' })
}

/** @param scale - factor of the weights, for a second model that differs */
export async function modelFile(scale = 1): Promise<Uint8Array> {
  const model = OnnxModel.create({ opset: 17, graphName: 'sample' })
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 3, 8, 8] })
  graph.setInitializer('conv.weight', tensor(wave(8 * 3 * 3 * 3, scale), { shape: [8, 3, 3, 3] }))
  graph.setInitializer(
    'q',
    tensor(
      Int8Array.from({ length: 64 }, (_, at) => at * 4 - 128),
      { shape: [8, 8] },
    ),
  )
  graph.setInitializer('q_scale', tensor(Float32Array.of(0.5), { shape: [] }))
  graph.setInitializer('q_zero_point', tensor(Int8Array.of(3), { shape: [] }))
  graph.addNode({
    opType: 'Conv',
    name: 'conv',
    inputs: ['x', 'conv.weight'],
    outputs: ['c'],
    attributes: {
      pads: { type: 'INTS', value: [1n, 1n, 1n, 1n] },
      strides: { type: 'INTS', value: [1n, 1n] },
    },
  })
  graph.addNode({ opType: 'Relu', name: 'relu', inputs: ['c'], outputs: ['r'] })
  graph.addNode({ opType: 'Sigmoid', name: 'gate', inputs: ['c'], outputs: ['g'] })
  graph.addNode({ opType: 'Mul', name: 'mul', inputs: ['r', 'g'], outputs: ['y'] })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 8, 8, 8] })
  return serialize(model)
}

export async function textsFile(): Promise<Uint8Array> {
  return serialize([stringTensor(['a', 'ü', '<b>'], { name: 'texts' })], { format: 'onnx' })
}

/** A file of very many tensors. */
export async function manyTensors(count: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(1)
  const tensors = Array.from({ length: count }, (_, at) =>
    asTensor(bytes, { name: `layer.${at}.weight`, shape: [1] }),
  )
  return serialize(tensors, { format: 'safetensors' })
}
