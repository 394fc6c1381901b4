/** As much of onnxruntime-node as README.md calls: a session whose output is its input. */
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

export const InferenceSession = {
  create: async () => ({ inputNames: ['x'], outputNames: ['y'], run: async ({ x }) => ({ y: x }) }),
}
