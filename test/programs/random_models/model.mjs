/** One random model: inputs of which some extents are symbols, nodes, an If now and then, and outputs of which some are inner values. */
import { OnnxModel } from '../../../dist/onnx.js'
import { Draw, isFloat, sizeOf } from './graph.mjs'
import { OPERATORS } from './operators.mjs'

const EXTENTS = [1, 1, 2, 3, 4, 6]
const INPUT_DTYPES = ['float32', 'float32', 'float32', 'int64', 'bool', 'float16', 'float64', 'int32']
const MAX_NODES = 14
const TRIES = 60

/** @returns the model, and the shapes that its inputs have at run */
export function randomModel(seed) {
  const draw = new Draw(seed)
  const inputs = {}
  for (let count = 1 + draw.below(3); count > 0; count--) {
    const value = { name: draw.name('x'), dtype: draw.pick(INPUT_DTYPES), shape: randomShape(draw) }
    const declared = value.shape.map((extent, axis) => declaredExtent(draw, value, { extent, axis }))
    draw.model.graph.addInput(value.name, { kind: 'tensor', dtype: value.dtype, shape: declared })
    draw.values.push(value)
    inputs[value.name] = { dtype: value.dtype, shape: value.shape }
  }
  const wanted = 2 + draw.below(MAX_NODES)
  for (let tries = 0; draw.nodeCount < wanted && tries < TRIES; tries++) draw.pick(OPERATORS)(draw)
  if (draw.chance(0.25)) branches(draw)
  addOutputs(draw)
  return { model: draw.model, inputs }
}

function randomShape(draw) {
  const shape = Array.from({ length: draw.below(5) }, () => draw.pick(EXTENTS))
  return sizeOf(shape) > 200 ? shape.slice(0, 3) : shape
}

/** A number, a symbol of its own or of all extents of that size, or nothing. */
function declaredExtent(draw, { name }, { extent, axis }) {
  if (draw.chance(0.6)) return extent
  if (draw.chance(0.3)) return null
  return draw.chance(0.3) ? `N${extent}` : `${name}_${axis}`
}

/** An If whose branches use values around it. */
function branches(draw) {
  const x = draw.value(isFloat)
  if (!x) return
  const input = draw.value(({ dtype, shape }) => dtype === 'bool' && sizeOf(shape) === 1)
  const condition =
    input && draw.chance(0.5)
      ? input
      : draw.constant('bool', draw.chance(0.7) ? [] : [1], () => draw.chance(0.5))
  const branch = (opTypes) => {
    const { graph } = OnnxModel.create({ opset: draw.opset })
    let last = x.name
    for (const opType of opTypes) {
      const output = draw.name('b')
      graph.addNode({ opType, inputs: [last], outputs: [output] })
      last = output
    }
    graph.addOutput(last, { kind: 'tensor', dtype: x.dtype })
    return { type: 'GRAPH', value: graph }
  }
  const sides = [['Neg', 'Neg', 'Abs'], ['Identity'], ['Relu', 'Relu']]
  const attributes = { then_branch: branch(draw.pick(sides)), else_branch: branch(draw.pick(sides)) }
  const result = draw.node('If', [condition], x, attributes)
  if (draw.chance(0.7)) draw.node('Neg', [result], x)
}

/** What nothing uses, and some of the others. */
function addOutputs(draw) {
  const { graph } = draw.model
  const used = new Set(graph.nodes.flatMap(({ inputs }) => inputs))
  const made = draw.values.filter(({ name }) => name.startsWith('v'))
  const ends = made.filter(({ name }) => !used.has(name))
  const others = made.filter(({ name }) => used.has(name) && draw.chance(0.1))
  for (const { name, dtype, shape } of [...ends.slice(-4), ...others]) {
    const declared = draw.chance(0.5) ? { shape } : {}
    graph.addOutput(name, { kind: 'tensor', dtype, ...declared })
  }
}
