/** Writes the models of `bench -- compress`: layers of a transformer with seeded weights, streamed from one array. */
import { save, tensor } from '../dist/index.js'
import { OnnxModel } from '../dist/onnx.js'

const HIDDEN = 1024
const INNER = 4 * HIDDEN
const VOCABULARY = 20_000

/** Numbers like those of trained weights: a sum of four uniform numbers, near a normal distribution. */
function seededNumbers(count) {
  const numbers = new Float32Array(count)
  let state = 1
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  for (let at = 0; at < count; at++) numbers[at] = (next() + next() + next() + next() - 2) * 0.05
  return numbers
}

/**
 * A table and `layers` layers of four [1024, 1024] weights, two of [1024, 4096] and back, and a LayerNormalization: 484.6 MB for
 * 8 layers. Layers take different parts of one array.
 *
 * @param {{ layers: number, external?: boolean }} options
 */
export async function writeTransformer(path, { layers, external = false }) {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  const numbers = seededNumbers(VOCABULARY * HIDDEN + 4096)
  const weight = (name, shape, offset) => {
    const size = shape.reduce((product, extent) => product * extent, 1)
    graph.setInitializer(name, tensor(numbers.subarray(offset, offset + size), { shape }))
    return name
  }
  graph.addInput('ids', { kind: 'tensor', dtype: 'int64', shape: ['n'] })
  weight('table', [VOCABULARY, HIDDEN], 0)
  graph.addNode({ opType: 'Gather', name: 'embed', inputs: ['table', 'ids'], outputs: ['x0'] })
  let value = 'x0'
  const product = (name, shape, offset, input) => {
    graph.addNode({
      opType: 'MatMul',
      name,
      inputs: [input, weight(`${name}.weight`, shape, offset)],
      outputs: [`${name}.out`],
    })
    return `${name}.out`
  }
  for (let layer = 0; layer < layers; layer++) {
    const name = (part) => `layer.${layer}.${part}`
    const norm = {
      scale: weight(name('norm.scale'), [HIDDEN], layer),
      bias: weight(name('norm.bias'), [HIDDEN], 2048 + layer),
    }
    graph.addNode({
      opType: 'LayerNormalization',
      name: name('norm'),
      inputs: [value, norm.scale, norm.bias],
      outputs: [name('normed')],
    })
    let inner = name('normed')
    for (const [at, part] of ['q', 'k', 'v', 'o'].entries())
      inner = product(name(part), [HIDDEN, HIDDEN], 7 * layer + at, inner)
    inner = product(name('up'), [HIDDEN, INNER], 7 * layer + 4, inner)
    inner = product(name('down'), [INNER, HIDDEN], 7 * layer + 5, inner)
    graph.addNode({ opType: 'Add', name: name('add'), inputs: [value, inner], outputs: [name('result')] })
    value = name('result')
  }
  graph.addOutput(value, { kind: 'tensor', dtype: 'float32', shape: ['n', HIDDEN] })
  await save(path, model, external ? { external: { location: `${path.split('/').at(-1)}_data` } } : {})
}
