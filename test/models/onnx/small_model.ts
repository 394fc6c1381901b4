/** A model of one node, made with the public names. */
import { tensor } from '../../../lib/index.js'
import { OnnxModel } from '../../../lib/onnx.js'

/** `y = x + w` with `w` of two float32. */
export function addModel(): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  const type = { kind: 'tensor', dtype: 'float32', shape: [2] } as const
  model.graph.addInput('x', type)
  model.graph.setInitializer('w', tensor(Float32Array.of(1, 2)))
  model.graph.addNode({ opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] })
  model.graph.addOutput('y', type)
  return model
}
