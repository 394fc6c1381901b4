/** Protobuf's rules for repeated occurrences and unexpected encodings; Python's parser gives the same answers. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize } from '../../../lib/index.js'
import type { Attribute, Graph } from '../../../lib/onnx.js'
import {
  type Bytes,
  field,
  fixed,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  varint,
} from './onnx_bytes.js'

async function attributeOf(...fields: readonly Bytes[]): Promise<Attribute> {
  const attribute = join(field(1, 'a'), ...fields)
  const model = modelProto(graphProto({ nodes: [nodeProto({ outputs: ['y'], attributes: [attribute] })] }))
  return (await open(model)).onnx!.graph.nodes[0]!.attributes[0]!
}

async function typeOf(...typeFields: readonly Bytes[]): Promise<unknown> {
  const value = join(field(1, 'x'), ...typeFields.map((bytes) => field(2, bytes)))
  return (await open(modelProto(join(graphProto({}), field(11, value))))).onnx!.graph.typeOf('x')
}

const tensorType = (...fields: readonly Bytes[]): Bytes => field(1, join(...fields))

describe('an encoding that protobuf allows', () => {
  it('merges a graph that is given in two parts', async () => {
    const parts = ['one', 'two'].map((name) =>
      field(6, graphProto({ nodes: [nodeProto({ outputs: [name] })] })),
    )
    const { graphs } = await attributeOf(...parts, int(20, 5))
    expect(graphs.map(({ nodes }) => nodes.map(({ outputs }) => outputs[0]))).toEqual([['one', 'two']])
  })

  it('writes a merged graph as one after an edit, and as it was without', async () => {
    const parts = ['one', 'two'].map((name) =>
      field(6, graphProto({ nodes: [nodeProto({ outputs: [name] })] })),
    )
    const attribute = join(field(1, 'a'), ...parts, int(20, 5))
    const bytes = modelProto(graphProto({ nodes: [nodeProto({ outputs: ['y'], attributes: [attribute] })] }))
    const file = await open(bytes)
    expect(await serialize(file)).toEqual(bytes)
    const inner = (graph: Graph): Graph => graph.nodes[0]!.attributes[0]!.graphs[0]!
    inner(file.onnx!.graph).addNode({ opType: 'Relu', outputs: ['three'] })
    const graph = inner((await open(await serialize(file))).onnx!.graph)
    expect(graph.nodes.map(({ outputs }) => outputs[0])).toEqual(['one', 'two', 'three'])
  })

  it('merges a type and its shape', async () => {
    const dim = (extent: number): Bytes => field(2, field(1, int(1, extent)))
    const type = await typeOf(tensorType(int(1, 1), dim(3)), tensorType(dim(4)))
    expect(type).toEqual({ kind: 'tensor', dtype: 'float32', shape: [3, 4] })
  })

  it('takes the last member of a oneof, without what came before another member', async () => {
    const sequence = field(4, field(1, tensorType(int(1, 7))))
    expect(await typeOf(join(tensorType(int(1, 1)), sequence))).toMatchObject({ kind: 'sequence' })
    const again = join(tensorType(int(1, 1), field(2, [])), sequence, tensorType(int(1, 7)))
    expect(await typeOf(again)).toEqual({ kind: 'tensor', dtype: 'int64' })
  })

  it('takes the last member of a dimension', async () => {
    const dim = join(field(2, 'N'), int(1, 5))
    expect(await typeOf(tensorType(int(1, 1), field(2, field(1, dim))))).toMatchObject({ shape: [5] })
  })

  it('cuts element types to 32 bits', async () => {
    expect(await typeOf(tensorType(int(1, 2n ** 32n + 7n)))).toEqual({ kind: 'tensor', dtype: 'int64' })
  })

  it('ignores unknown enum values', async () => {
    expect((await attributeOf(int(3, 5), int(20, 2), int(20, 99))).value).toBe(5)
  })

  it('ignores a scalar written as packed, and reads packed lists', async () => {
    expect((await attributeOf(int(3, 5), field(3, varint(6)), int(20, 2))).value).toBe(5)
    expect((await attributeOf(field(8, [1, 2]), int(8, 3), int(20, 7))).value).toEqual([1, 2, 3])
  })

  it('ignores a field of another wire type, and keeps it', async () => {
    const float = fixed(2, new Uint8Array(Float32Array.of(1.5).buffer))
    expect((await attributeOf(float, int(2, 3), int(20, 1))).value).toBe(1.5)
  })
})

describe('check of an encoding that needs a rule of protobuf', () => {
  const messages = async (graph: Bytes): Promise<string[]> =>
    (await check(modelProto(graph), { level: 'strict' }))
      .filter(({ severity }) => severity === 'warning')
      .map(({ message }) => message)
  const withType = (...fields: readonly Bytes[]): Bytes =>
    join(graphProto({}), field(13, join(field(1, 'x'), ...fields.map((bytes) => field(2, bytes)))))

  it('names a message that is given in parts', async () => {
    expect(await messages(withType(tensorType(int(1, 1)), tensorType(field(2, []))))).toEqual([
      'Field 2 (type) of ValueInfoProto occurs more than once; its occurrences are merged.',
    ])
  })

  it('names a text that is given twice, and members of a oneof', async () => {
    expect(await messages(join(graphProto({}), field(10, 'one'), field(10, 'two')))).toEqual([
      'Field 10 (doc_string) of GraphProto occurs more than once; the last one counts.',
    ])
    expect(await messages(withType(join(tensorType(int(1, 1)), field(8, int(1, 1)))))).toEqual([
      'Field 8 (sparse_tensor_type) of TypeProto follows another member of its oneof, of which the last one counts.',
    ])
  })

  it('names numbers that are cut, and unknown numbers of an enum', async () => {
    expect(await messages(withType(tensorType(int(1, 2n ** 32n + 7n))))).toEqual([
      'Field 1 (elem_type) of TypeProtoTensor is 4294967303; it is read as 7.',
    ])
    const attribute = join(field(1, 'a'), int(20, 99), int(3, 5))
    expect(
      await messages(graphProto({ nodes: [nodeProto({ outputs: ['y'], attributes: [attribute] })] })),
    ).toEqual(['Field 20 (type) of AttributeProto is 99; it is read as an unknown field.'])
  })

  it('names a number that a tensor repeats', async () => {
    const external = join(int(14, 1), int(14, 0), int(1, 1), int(2, 1), field(8, 'w'), field(9, [0, 0, 0, 0]))
    expect(await messages(join(graphProto({}), field(5, external)))).toEqual([
      'Field 14 (data_location) of TensorProto occurs more than once; the last one counts.',
    ])
  })
})

describe('the header of a tensor', () => {
  it('ignores an unknown data_location, as protobuf does', async () => {
    const tensor = join(
      int(1, 1),
      int(2, 1),
      field(8, 'w'),
      field(9, new Uint8Array(Float32Array.of(2.5).buffer)),
      int(14, 0),
      int(14, 99),
    )
    const file = await open(modelProto(join(graphProto({}), field(5, tensor))))
    expect(file.tensors.get('w')!.kind === 'dense' && file.dense('w').at(0)).toBe(2.5)
  })
})
