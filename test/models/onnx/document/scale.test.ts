/** Edits of graphs of 20,000 nodes: each costs about the same as in a small graph, so the default time limits are ample. */

import { describe, expect, it } from 'vitest'
import { open, serialize } from '../../../../lib/index.js'
import { removeUnused, sortNodes } from '../../../../lib/models/onnx/edit/graph_passes.js'
import { extract, type Graph, OnnxModel, type ValueType } from '../../../../lib/onnx.js'
import { field, graphProto, join, modelProto, nodeProto } from '../../../formats/onnx/onnx_bytes.js'

const COUNT = 20_000
const WIDE: ValueType = { kind: 'tensor', dtype: 'float32', shape: ['N', 64] }

/** A chain `v0` → `v1` → …, with a ValueInfoProto for every value. */
async function chain(): Promise<OnnxModel> {
  const nodes = Array.from({ length: COUNT }, (_, at) =>
    nodeProto({ inputs: [`v${at}`], outputs: [`v${at + 1}`] }),
  )
  const values = Array.from({ length: COUNT - 1 }, (_, at) => field(13, field(1, `v${at + 1}`)))
  const graph = join(graphProto({ nodes, inputs: ['v0'], outputs: [`v${COUNT}`] }), ...values)
  return (await open(modelProto(graph))).onnx!
}

const nameAt = (at: number): string => `v${at}`

async function saved(model: OnnxModel): Promise<Graph> {
  return (await open(await serialize(model))).onnx!.graph
}

describe(`a graph of ${COUNT} nodes with value_info`, () => {
  it('renames every value', async () => {
    const model = await chain()
    for (let at = 0; at <= COUNT; at++) model.graph.rename(nameAt(at), `w${at}`)
    for (const graph of [model.graph, await saved(model)]) {
      expect(graph.nodes.map(({ inputs, outputs }) => [...inputs, ...outputs])).toEqual(
        Array.from({ length: COUNT }, (_, at) => [`w${at}`, `w${at + 1}`]),
      )
      expect(graph.valueInfo.map(({ name }) => name)).toEqual(
        Array.from({ length: COUNT - 1 }, (_, at) => `w${at + 1}`),
      )
      expect(graph.values()).toHaveLength(COUNT + 1)
    }
  })

  it('declares a type for every value', async () => {
    const model = await chain()
    for (let at = 0; at <= COUNT; at++) model.graph.setType(nameAt(at), WIDE)
    const graph = await saved(model)
    expect(graph.valueInfo).toHaveLength(COUNT - 1)
    expect([0, 1, COUNT / 2, COUNT].map((at) => graph.typeOf(nameAt(at)))).toEqual([WIDE, WIDE, WIDE, WIDE])
  })

  it('inserts a node after every node, and appends as many', async () => {
    const model = await chain()
    const { graph } = model
    for (let at = 0; at < COUNT; at++) {
      graph.addNode({ opType: 'Relu', inputs: [nameAt(at + 1)], outputs: [`r${at}`] }, 2 * at + 1)
      graph.addNode({ opType: 'Neg', inputs: [`r${at}`], outputs: [`n${at}`] })
      graph.setType(`n${at}`, WIDE)
    }
    const operators = (await saved(model)).nodes.map(({ opType }) => opType)
    expect(operators.slice(0, 2 * COUNT).filter((_, at) => at % 2 === 1)).toEqual(Array(COUNT).fill('Relu'))
    expect(operators.slice(2 * COUNT)).toEqual(Array(COUNT).fill('Neg'))
  })

  it('removes all nodes but the last, one by one', async () => {
    const model = await chain()
    const { graph } = model
    for (const node of graph.nodes.slice(0, -1)) {
      graph.replaceAllUses(node.outputs[0]!, node.inputs[0]!)
      graph.removeNode(node)
    }
    expect((await saved(model)).nodes.map(({ inputs, outputs }) => [...inputs, ...outputs])).toEqual([
      ['v0', nameAt(COUNT)],
    ])
  })

  it('sorts, and removes what is not used', async () => {
    const model = await chain()
    const { graph } = model
    const { message } = graph
    message.reorder('node', message.messages('node').reverse())
    sortNodes(graph)
    expect(graph.nodes.map(({ outputs }) => outputs[0])).toEqual(
      Array.from({ length: COUNT }, (_, at) => nameAt(at + 1)),
    )
    graph.addNode({ opType: 'Relu', inputs: ['v0'], outputs: ['unused'] })
    expect(removeUnused(graph)).toMatchObject({ nodes: 1 })
    expect(graph.values().map(({ uses }) => uses.length)).toEqual([...Array(COUNT).fill(1), 0])
  })

  it('extracts half of it', async () => {
    const half = extract(await chain(), ['v0'], [nameAt(COUNT / 2)])
    expect((await saved(half)).nodes.length).toBe(COUNT / 2)
  })
})

describe('the list of nodes', () => {
  it('takes insertions at any index', () => {
    const { graph } = OnnxModel.create()
    const expected: string[] = []
    for (let at = 0; at < 3000; at++) {
      const index = (at * 7919) % (expected.length + 1)
      graph.addNode({ opType: 'Relu', outputs: [`o${at}`] }, index)
      expected.splice(index, 0, `o${at}`)
    }
    for (let at = 0; at < 3000; at += 3) {
      graph.removeNode(graph.producerOf(`o${at}`)!)
      expected.splice(expected.indexOf(`o${at}`), 1)
    }
    expect(graph.nodes.map(({ outputs }) => outputs[0])).toEqual(expected)
  })
})
