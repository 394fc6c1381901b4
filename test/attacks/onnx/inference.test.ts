/** Graphs that once cost inference and compression more than their file: memory, time or the stack. */
import { describe, expect, it } from 'vitest'
import { open, serialize } from '../../../lib/index.js'
import {
  inferShapes,
  inferTypes,
  type OnnxModel,
  quantizeDynamic,
  quantizeWeights,
  setBatch,
  toFloat16,
} from '../../../lib/onnx.js'
import { type Bytes, field, int, join, raw, tensorProto } from '../../formats/onnx/onnx_bytes.js'

const VALUES = 20_000

interface NodeText {
  readonly op: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes?: readonly Bytes[]
  readonly domain?: string
}

const node = ({ op, inputs, outputs, attributes = [], domain = '' }: NodeText): Bytes =>
  join(
    ...inputs.map((name) => field(1, name)),
    ...outputs.map((name) => field(2, name)),
    field(4, op),
    ...attributes.map((attribute) => field(5, attribute)),
    field(7, domain),
  )

/** A float32 value with that many axes. */
function info(name: string, rank: number): Bytes {
  const shape = join(...Array.from({ length: rank }, () => field(1, field(2, 'N'))))
  return join(field(1, name), field(2, field(1, join(int(1, 1), field(2, shape)))))
}

function model(
  nodes: readonly Bytes[],
  inputs: readonly Bytes[],
  functions: readonly Bytes[] = [],
): Uint8Array {
  const graph = join(
    ...nodes.map((each) => field(1, each)),
    field(2, 'g'),
    ...inputs.map((each) => field(11, each)),
    field(5, tensorProto({ dims: [32, 2], name: 'w', values: raw(...new Array<number>(256).fill(0)) })),
    field(12, info('y', 1)),
  )
  const opsets = [int(2, 21), join(field(1, 'local'), int(2, 1))]
  return join(
    int(1, 10),
    field(7, graph),
    ...opsets.map((opset) => field(8, opset)),
    ...functions.map((each) => field(25, each)),
  )
}

/** Functions that call the next one, the last one the first. */
function ring(length: number): Bytes[] {
  return Array.from({ length }, (_, at) => {
    const next = { op: `F${(at + 1) % length}`, inputs: ['a'], outputs: ['b'], domain: 'local' }
    return join(field(1, `F${at}`), field(4, 'a'), field(5, 'b'), field(7, node(next)), field(10, 'local'))
  })
}

const call = node({ op: 'F0', inputs: ['x'], outputs: ['y'], domain: 'local' })
const many = (length: number): string[] => Array.from({ length }, () => 'x')

const GRAPHS: Readonly<Record<string, () => Uint8Array>> = {
  // Once 20,000 copies of a shape of 20,000 axes.
  'a thousand inputs with a thousand axes': () => {
    const equation = join(field(1, 'equation'), field(4, many(VALUES).join(',')), int(20, 3))
    return model(
      [
        node({ op: 'Einsum', inputs: many(VALUES), outputs: ['y'], attributes: [equation] }),
        node({ op: 'Max', inputs: many(VALUES), outputs: ['z'] }),
        node({ op: 'SequenceConstruct', inputs: many(VALUES), outputs: ['s'] }),
      ],
      [info('x', VALUES)],
    )
  },
  // Once each input made the list of all of them anew.
  'a node with many inputs': () =>
    model([node({ op: 'Concat', inputs: many(2 * VALUES), outputs: ['y'] })], [info('x', 1)]),
  'a graph with many inputs': () =>
    model(
      [node({ op: 'Relu', inputs: ['x'], outputs: ['y'] })],
      [info('x', 1), ...Array.from({ length: 3000 }, (_, at) => info(`x${at}`, 1))],
    ),
  // Once each replaced node made the list of all nodes anew.
  'many products with one weight': () =>
    model(
      Array.from({ length: 5000 }, (_, at) =>
        node({ op: 'MatMul', inputs: ['x', 'w'], outputs: [at === 0 ? 'y' : `y${at}`] }),
      ),
      [info('x', 2)],
    ),
  // Once a RangeError of the stack.
  'a function that calls itself': () => model([call], [info('x', 1)], ring(1)),
  'a long ring of functions': () => model([call], [info('x', 1)], ring(5000)),
}

const EDITS: Readonly<Record<string, (model: OnnxModel) => unknown>> = {
  inferTypes: (each) => inferTypes(each),
  inferShapes: (each) => inferShapes(each),
  setBatch: (each) => setBatch(each, 3),
  toFloat16: (each) => toFloat16(each),
  quantizeWeights: (each) => quantizeWeights(each),
  quantizeDynamic: (each) => quantizeDynamic(each),
}

describe.each(Object.keys(GRAPHS))('%s', (name) => {
  it.each(Object.keys(EDITS))('%s', { timeout: 60_000 }, async (edit) => {
    const file = await open(GRAPHS[name]!(), { level: 'lenient', format: 'onnx' })
    const copy = file.onnx!.copy()
    await EDITS[edit]!(copy)
    expect((await serialize(copy, { format: 'onnx' })).byteLength).toBeGreaterThan(0)
    file.close()
  })
})
