/** Graph passes: what they remove, what they must keep, and that outputs keep their names. */

import { describe, expect, it } from 'vitest'
import { check, type DenseTensor, type OpenFile, open, serialize } from '../../../../lib/index.js'
import {
  constantsToInitializers,
  deduplicateInitializers,
  initializersToConstants,
  removeUnused,
} from '../../../../lib/models/onnx/edit/graph_passes.js'
import type { Graph } from '../../../../lib/onnx.js'
import {
  type Bytes,
  field,
  fixed,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  OWN_OPSET,
  raw,
  tensorProto,
  varint,
} from '../../../formats/onnx/onnx_bytes.js'

const one = (name: string, ...values: number[]): Bytes =>
  tensorProto({ dims: [values.length], type: 2, name, values: raw(...values) })
const float = (name: string, value: number): Bytes =>
  tensorProto({ dims: [], type: 1, name, values: field(9, new Uint8Array(Float32Array.of(value).buffer)) })
const attribute = (name: string, type: number, value: Bytes): Bytes =>
  join(field(1, name), value, int(20, type))
/** A node of an operator whose types nobody knows. */
const ownNode = (inputs: readonly string[], output: string): Bytes =>
  nodeProto({ inputs, outputs: [output], domain: 'own' })
const body = (graph: Bytes): Bytes => attribute('body', 5, field(6, graph))

const graphOf = ({ onnx }: OpenFile): Graph => onnx!.graph
const outputsOf = (graph: Graph): string[] => graph.nodes.flatMap(({ outputs }) => outputs)

/** Saves a model, opens it without findings, and returns its graph. */
async function reopened(file: OpenFile): Promise<OpenFile> {
  const bytes = await serialize(file)
  expect(await check(bytes, { level: 'strict' })).toEqual([])
  return open(bytes)
}

describe('removeUnused', () => {
  it('removes unused chains, also in subgraphs, and keeps inputs and names that subgraphs use', async () => {
    const inner = graphProto({
      nodes: [
        nodeProto({ inputs: ['taken'], outputs: ['in'] }),
        nodeProto({ inputs: ['lost'], outputs: ['dead'] }),
      ],
      initializers: [one('idle', 1)],
      outputs: ['in'],
    })
    const nodes = [
      nodeProto({ inputs: ['x'], outputs: ['a'] }),
      nodeProto({ inputs: ['a'], outputs: ['b'] }),
      nodeProto({ inputs: ['w'], outputs: ['taken'] }),
      nodeProto({ inputs: ['w'], outputs: ['lost'] }),
      nodeProto({ outputs: ['y', ''], attributes: [body(inner)], domain: 'own' }),
    ]
    const info = field(13, field(1, 'a'))
    const graph = join(
      graphProto({
        nodes,
        initializers: [one('w', 1), one('v', 1), float('x', 2)],
        inputs: ['x'],
        outputs: ['y'],
      }),
      info,
    )
    using file = await open(modelProto(graph, OWN_OPSET))
    expect(removeUnused(graphOf(file))).toEqual({ nodes: 4, initializers: 2 })
    using saved = await reopened(file)
    expect(outputsOf(graphOf(saved))).toEqual(['taken', 'y', ''])
    expect(graphOf(saved).initializerNames).toEqual(['w', 'x'])
    expect(graphOf(saved).valueInfo).toEqual([])
  })

  it('changes nothing where all is used, and keeps nodes without outputs', async () => {
    const bytes = modelProto({ nodes: [nodeProto({ inputs: ['w'] })], initializers: [one('w', 1)] })
    using file = await open(bytes)
    expect(removeUnused(graphOf(file))).toEqual({ nodes: 0, initializers: 0 })
    expect(file.onnx!.isChanged).toBe(false)
  })

  it('refuses a model with training', async () => {
    using file = await open(modelProto({}, field(20, field(1, graphProto({})))))
    expect(() => removeUnused(graphOf(file))).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED' }))
  })
})

describe('constants', () => {
  const constant = (output: string, value: Bytes): Bytes =>
    join(field(2, output), field(4, 'Constant'), field(5, value))
  const nodes = [
    constant('t', attribute('value', 4, field(5, one('other', 5, 6)))),
    constant('f', attribute('value_float', 1, fixed(2, new Uint8Array(Float32Array.of(-0).buffer)))),
    constant('is', attribute('value_ints', 7, field(8, join(varint(3), varint(-1))))),
    constant('s', attribute('value_string', 3, field(4, 'text'))),
    ownNode(['t', 'f', 'is', 's'], 'y'),
  ]

  it('convert to initializers and back to nodes', async () => {
    using file = await open(modelProto({ nodes, outputs: ['y'] }, OWN_OPSET))
    expect(constantsToInitializers(graphOf(file))).toBe(3)
    using saved = await reopened(file)
    expect(outputsOf(graphOf(saved))).toEqual(['s', 'y'])
    expect(await saved.dense('t').bytes()).toEqual(Uint8Array.of(5, 6))
    expect([saved.dense('f').shape, await saved.dense('f').bytes()]).toEqual([
      [],
      Uint8Array.of(0, 0, 0, 128),
    ])
    expect([...(await saved.dense('is').toTypedArray())]).toEqual([3n, -1n])
    expect(initializersToConstants(saved.onnx!, ['t', 'is'])).toBe(2)
    using back = await reopened(saved)
    expect(outputsOf(graphOf(back))).toEqual(['t', 'is', 's', 'y'])
    expect(graphOf(back).initializerNames).toEqual(['f'])
    const value = graphOf(back).nodes[0]!.attribute('value')!.value as DenseTensor
    expect(await value.bytes()).toEqual(Uint8Array.of(5, 6))
  })

  it('stay nodes where another value has their name', async () => {
    const twice = [constant('w', attribute('value', 4, field(5, one('', 1)))), nodes[0]!, nodes[0]!]
    using file = await open(modelProto({ nodes: twice, initializers: [one('w', 2)], inputs: ['x'] }))
    expect(constantsToInitializers(graphOf(file))).toBe(1)
    expect(graphOf(file).initializerNames).toEqual(['w', 't'])
    using doubled = await open(
      modelProto({ nodes: [nodes[0]!], initializers: [one('t', 2), one('v', 3), one('v', 3)] }),
    )
    expect(initializersToConstants(doubled.onnx!)).toBe(1)
    expect(graphOf(doubled).initializerNames).toEqual(['t', 'v'])
  })

  it('convert by the thousand at once', async () => {
    const count = 50_000
    const many = Array.from({ length: count }, (_, at) =>
      constant(`c${at}`, attribute('value_int', 2, int(3, at))),
    )
    using file = await open(modelProto({ nodes: many }))
    expect(constantsToInitializers(graphOf(file))).toBe(count)
    expect(initializersToConstants(file.onnx!)).toBe(count)
    expect(outputsOf(graphOf(file))[count - 1]).toBe(`c${count - 1}`)
  })

  it('stay nodes in old models, and inputs stay initializers', async () => {
    using old = await open(join(int(1, 3), field(7, graphProto({ nodes, outputs: ['y'] }))))
    expect(() => constantsToInitializers(graphOf(old))).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
    using file = await open(modelProto({ initializers: [one('x', 1)], inputs: ['x'] }))
    expect(initializersToConstants(file.onnx!)).toBe(0)
  })
})

describe('deduplicateInitializers', () => {
  it('compares bits, and keeps inputs and outputs', async () => {
    const inner = graphProto({ nodes: [nodeProto({ inputs: ['b'], outputs: ['in'] })], outputs: ['in'] })
    const initializers = [
      ...[float('a', 1), float('b', 1), float('out', 1), float('x', 1), float('c', 3)],
      ...[float('zero', 0), float('minus', -0), float('nan', Number.NaN), float('nan2', Number.NaN)],
    ]
    const nodes = [
      ownNode(['b', 'c', 'zero', 'minus', 'nan', 'nan2', 'x'], 'y'),
      nodeProto({ outputs: ['z'], attributes: [body(inner)], domain: 'own' }),
    ]
    const model = modelProto({ nodes, initializers, inputs: ['x'], outputs: ['y', 'out', 'z'] }, OWN_OPSET)
    using file = await open(model)
    expect(await deduplicateInitializers(graphOf(file))).toBe(2)
    using saved = await reopened(file)
    const graph = graphOf(saved)
    expect(graph.initializerNames).toEqual(['a', 'out', 'x', 'c', 'zero', 'minus', 'nan'])
    expect(graph.nodes[0]!.inputs).toEqual(['a', 'c', 'zero', 'minus', 'nan', 'nan', 'x'])
    const [within] = graph.nodes[1]!.attributes.flatMap(({ graphs }) => graphs)
    expect(within!.nodes[0]!.inputs).toEqual(['a'])
  })

  it('keeps initializers with quantization annotations, whose scales may differ', async () => {
    const nodes = [nodeProto({ inputs: ['a', 'b', 'c'], outputs: ['y'] })]
    const initializers = [one('a', 1, 2), one('b', 1, 2), one('c', 1, 2), one('s', 3, 3)]
    const annotation = field(14, join(field(1, 'b'), field(2, join(field(1, 'SCALE_TENSOR'), field(2, 's')))))
    const graph = join(graphProto({ nodes, initializers, outputs: ['y'] }), annotation)
    using file = await open(modelProto(graph))
    expect(await deduplicateInitializers(graphOf(file))).toBe(1)
    expect(graphOf(file).nodes[0]!.inputs).toEqual(['a', 'b', 'a'])
  })

  it('merges into no initializer whose name a subgraph hides', async () => {
    const inner = graphProto({
      nodes: [nodeProto({ inputs: ['b', 'c'], outputs: ['a'] })],
      outputs: ['a'],
    })
    const nodes = [nodeProto({ inputs: ['a', 'b', 'c'], outputs: ['y'], attributes: [body(inner)] })]
    const initializers = [one('a', 1, 2), one('b', 1, 2), one('c', 1, 2)]
    using file = await open(modelProto({ nodes, initializers, outputs: ['y'] }))
    const graph = graphOf(file)
    expect(await deduplicateInitializers(graph)).toBe(1)
    expect(graph.initializerNames).toEqual(['a', 'b'])
    expect(graph.nodes[0]!.inputs).toEqual(['a', 'b', 'b'])
    const [within] = [...graph.subgraphs()]
    expect(within!.nodes[0]!.inputs).toEqual(['b', 'b'])
  })
})
