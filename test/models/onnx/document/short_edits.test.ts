/** Edits of nodes and declarations whose bytes change in place; see `EditedBytes`. */
import { describe, expect, it } from 'vitest'
import { open, serialize } from '../../../../lib/index.js'
import type { Node, OnnxModel } from '../../../../lib/onnx.js'
import { field, graphProto, int, join, modelProto } from '../../../formats/onnx/onnx_bytes.js'

/** Fields that the schema does not have: a group, and one behind all known numbers. */
const GROUP = [0x9b, 0x06, 0x9c, 0x06]
const UNKNOWN = field(40, 'kept')

async function modelOf(node: Uint8Array): Promise<OnnxModel> {
  const inputs = ['a', 'b']
  return (await open(modelProto(join(graphProto({ nodes: [node], inputs, outputs: ['c'] })))))!.onnx!
}

/** The encoded node after an edit. */
async function edited(node: Uint8Array, edit: (node: Node, model: OnnxModel) => void): Promise<Buffer> {
  const model = await modelOf(node)
  edit(model.graph.nodes[0]!, model)
  const bytes = Buffer.from(await serialize(model))
  const [first] = (await open(bytes)).onnx!.graph.nodes
  expect(first!.inputs).toEqual(model.graph.nodes[0]!.inputs)
  expect(first!.outputs).toEqual(model.graph.nodes[0]!.outputs)
  const { start, end } = first!.message.origin!
  return bytes.subarray(start, end)
}

const NODE = join(UNKNOWN, field(4, 'Add'), field(1, 'a'), field(1, 'b'), field(2, 'c'), UNKNOWN)

describe('an edit of a short message', () => {
  it('keeps the other fields and their order', async () => {
    const renamed = join(UNKNOWN, field(4, 'Add'), field(1, 'x'), field(1, 'b'), field(2, 'c'), UNKNOWN)
    expect(await edited(NODE, (_, { graph }) => graph.rename('a', 'x'))).toEqual(Buffer.from(renamed))
  })

  it('keeps groups and fields of another wire type', async () => {
    const parts = [field(4, 'Add'), field(1, 'b'), field(1, 'a'), field(2, 'c'), int(1, 7), GROUP]
    const renamed = join(field(4, 'Add'), field(1, 'b'), field(1, 'x'), field(2, 'c'), int(1, 7), GROUP)
    const changed = await edited(join(...parts), (_, { graph }) => graph.rename('a', 'x'))
    expect(changed.includes(Buffer.from(int(1, 7)))).toBe(true)
    expect(changed.includes(Buffer.from(GROUP))).toBe(true)
    expect(changed).toHaveLength(renamed.byteLength)
  })

  it('puts a new field where its number belongs', async () => {
    const node = join(field(1, 'a'), field(1, 'b'), field(2, 'c'), field(4, 'Add'))
    const named = join(field(1, 'a'), field(1, 'b'), field(2, 'c'), field(3, 'n'), field(4, 'Add'))
    expect(await edited(node, (first) => Object.assign(first, { name: 'n' }))).toEqual(Buffer.from(named))
  })

  it('replaces a list whose texts have other fields in between', async () => {
    const node = join(field(1, 'a'), field(2, 'c'), field(1, 'b'), field(4, 'Add'))
    const expected = join(field(1, 'b'), field(1, 'a'), field(2, 'c'), field(4, 'Add'))
    const swap = (first: Node): unknown => Object.assign(first, { inputs: ['b', 'a'] })
    expect(await edited(node, swap)).toEqual(Buffer.from(expected))
  })

  it.each([
    ['of other scripts', '入力é'],
    ['with the replacement character', '\ufffd'],
    ['of 200 characters', 'n'.repeat(200)],
    ['longer than a short message', 'n'.repeat(5000)],
  ])('renames to a name %s and back', async (_, name) => {
    const model = await modelOf(NODE)
    const before = await serialize(model)
    model.graph.rename('a', name)
    expect(model.graph.usesOf(name)).toHaveLength(1)
    expect((await open(await serialize(model))).onnx!.graph.nodes[0]!.inputs).toEqual([name, 'b'])
    model.graph.rename(name, 'a')
    expect(await serialize(model)).toEqual(before)
  })

  it('finds and renames a name with invalid UTF-8 by the text that it reads as', async () => {
    const node = join(field(1, [0x61, 0xff]), field(2, 'c'), field(4, 'Neg'))
    const model = await modelOf(node)
    expect(model.graph.usesOf('a\ufffd')).toHaveLength(1)
    model.graph.replaceAllUses('a\ufffd', 'a')
    expect(model.graph.nodes[0]!.inputs).toEqual(['a'])
  })

  it('leaves a copy of the model as it was', async () => {
    const model = await modelOf(NODE)
    model.graph.rename('a', 'x')
    const copy = model.copy()
    model.graph.rename('x', 'y')
    expect(copy.graph.nodes[0]!.inputs).toEqual(['x', 'b'])
    copy.graph.rename('x', 'z')
    expect(model.graph.nodes[0]!.inputs).toEqual(['y', 'b'])
  })

  it('keeps attributes that were read before', async () => {
    const attribute = field(5, join(field(1, 'axis'), int(3, 1), int(20, 2)))
    const model = await modelOf(join(NODE, attribute))
    const [node] = model.graph.nodes
    const [read] = node!.attributes
    model.graph.rename('a', 'x')
    expect(node!.attribute('axis')!.value).toBe(read!.value)
    node!.setAttribute('axis', { type: 'INT', value: 5 })
    model.graph.rename('x', 'long'.repeat(10))
    const [saved] = (await open(await serialize(model))).onnx!.graph.nodes
    expect([saved!.attribute('axis')!.value, saved!.inputs[0]]).toEqual([5, 'long'.repeat(10)])
  })
})
