/** As much of onnxruntime-node as the pages call: sessions by the name of the file, which check their input. */
import assert from 'node:assert/strict'

export class Tensor {
  constructor(type, data, dims) {
    assert.equal(
      data.length,
      dims.reduce((product, extent) => product * extent, 1),
    )
    Object.assign(this, { type, data, dims, location: 'cpu' })
  }
}

function checkInput({ type, dims }, wantedType, wantedDims) {
  assert.equal(type, wantedType)
  assert.deepEqual([...dims], wantedDims)
}

/** What each model gives for its input. */
const MODELS = {
  'style.onnx': (x) => x,
  'classifier.onnx': (x) => {
    checkInput(x, 'float32', [1, 3, 224, 224])
    return new Tensor(
      'float32',
      Float32Array.from({ length: 1000 }, (_, at) => (at === 7 ? 9 : 0)),
      [1, 1000],
    )
  },
  // One box of two classes in the middle of the picture, half as large as it, and one without a score.
  'yolo.onnx': (x) => {
    checkInput(x, 'float32', [1, 3, 640, 640])
    const rows = [320, 9, 319.5, 9, 320, 9, 213.5, 9, 0.1, 0, 0.9, 0]
    return new Tensor('float32', Float32Array.from(rows), [1, 6, 2])
  },
  'clip_vision.onnx': (x) => {
    checkInput(x, 'float32', [2, 3, 224, 224])
    return new Tensor(
      'float32',
      Float32Array.from({ length: 1024 }, (_, at) => (at % 512) + 1),
      [2, 512],
    )
  },
  'quantized.onnx': (x) => {
    checkInput(x, 'uint8', [1, 224, 224, 3])
    return new Tensor('uint8', new Uint8Array(1001), [1, 1001])
  },
}

export const InferenceSession = {
  create: async (path) => {
    const model = MODELS[path]
    assert.ok(model, `no stand-in for ${path}`)
    return { inputNames: ['x'], outputNames: ['y'], run: async ({ x }) => ({ y: model(x) }) }
  },
}
