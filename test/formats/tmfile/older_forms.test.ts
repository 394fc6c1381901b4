/** Older forms of parameter blocks: their meaning, that a rewrite keeps them, and that an upgrade converts them. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize } from '../../../lib/index.js'
import { TmfileModel, type TmfileNode } from '../../../lib/tmfile.js'
import { nodeOfNumber, recordsOf, variable } from './tmfile_bytes.js'

const UNASSIGNED = 200

/** A file with one node whose operator has the given block, byte for byte. */
async function fileWithBlock(
  number: number,
  block: readonly (number | 'vector')[],
  vector: readonly number[] = [5, 6],
): Promise<Uint8Array> {
  const [input, output] = [variable('in'), variable('out')]
  const source = nodeOfNumber('in', 12, [], [{ ...input, role: 'input' }])
  const words = Int32Array.from(block, (entry) => (entry === 'vector' ? 0 : entry))
  const node = {
    ...nodeOfNumber('node', 12, source.outputs, [output]),
    operator: `operator ${UNASSIGNED}`,
    operatorNumber: UNASSIGNED,
    opaqueParams: block.length > 0 ? new Uint8Array(words.buffer) : null,
  } as TmfileNode
  const tensors = [...source.outputs, output]
  const graph = { nodes: [source, node], tensors, inputs: [source], outputs: [node] }
  const bytes = await serialize(new TmfileModel(graph))
  const { operator } = (await recordsOf(bytes)).graph.nodes.list[1]!
  // The vector is behind the end of the file as it was.
  const file = Buffer.concat([bytes, Buffer.from(Uint32Array.of(vector.length, ...vector).buffer)])
  file.writeUInt32LE(number, operator.offset + 4)
  for (const [at, entry] of block.entries()) {
    if (entry === 'vector') file.writeUInt32LE(bytes.length, operator.block!.offset + 4 * at)
  }
  return new Uint8Array(file)
}

const DECONVOLUTION = [8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1, -1]

describe.each([
  ['Reshape', 23, [1, 0, 'vector'], { is_mxnet: 1, reverse: 0, re_shape: [5, 6], is_onnx: 0 }],
  ['Reshape', 23, [0, -1, 40, -2, 2, 1], { is_mxnet: 0, reverse: 0, re_shape: [-1, 40], is_onnx: 0 }],
  [
    'Reshape',
    23,
    [0, 0, 0, 0, 0, 0, 1, 1, 'vector'],
    { is_mxnet: 1, reverse: 1, re_shape: [5, 6], is_onnx: 0 },
  ],
  ['Eltwise', 9, [2, 0], { type: 2, caffe_flavor: 0, shift: 0, power: 0, scale: 0 }],
  ['Deconvolution', 6, DECONVOLUTION, { kernel_h: 4, pad_h1: 1, output_pad_h0: 0, output_pad_w0: 0 }],
  ['LRN', 13, [5, 0, 0, 0, 0], { local_size: 5, bias: 0, is_onnx: 0 }],
  ['Slice', 27, [1, 'vector', 0, 0, 1], { axis: 1, slice_points: [5, 6], iscaffe: 1, step: 1 }],
  ['Slice', 27, [1, 0, 0, 0, 0, 1, 3, 9], { iscaffe: 0, ismxnet: 1, isonnx: 0, begin: 3, end: 9, step: 1 }],
  ['Slice', 27, [1, 0, 0, 0, 0, 0, 1, 3, 9], { ismxnet: 0, isonnx: 1, begin: 3, end: 9, step: 1 }],
  [
    'Convolution',
    5,
    [3, 3, 1, 1, 1, 1, 1, 8, 1, -1, 1, 1, 1, 1, 1, 1, 1, 1],
    { kernel_h: 3, group: 1, pad_w1: 1 },
  ],
  ['Pooling', 16, [0, 2, 2, 2, 2, 0, 1, 0, 0, 0, 0, 9, 9, 9, 9], { kernel_h: 2, caffe_flavor: 1, pad_w1: 0 }],
  ['FullyConnected', 11, [10, 1], { num_output: 10 }],
  ['ArgMax', 42, [2], { axis: 2, keepdims: 0 }],
  ['ArgMin', 43, [2], { axis: 2, keepdims: 0 }],
  ['Gather', 76, [1, 7], { axis: 1, indices_num: 7, is_onnx: 0 }],
  ['Resize', 54, [0x3f800000, 0x3f800000], { scale_x: 1, scale_y: 1, type: 0 }],
  ['LSTM', 34, Array.from({ length: 17 }, (_, at) => (at < 2 ? 0 : at)), { output_len: 2, mxnet_flag: 0 }],
  [
    'Split',
    29,
    [1, 2, 0, 0, 'vector'],
    { axis: 1, split_dim: 2, is_caffe: 0, is_onnx: 0, split_sizes: [5, 6] },
  ],
  ['Expand', 92, ['vector'], { ex_shape: [5, 6], dim_num: 0 }],
  [
    'SpatialTransformer',
    105,
    [1, 2, 'vector'],
    { sampler_type: 1, transformer_type: 2, shape_size: 2, ta_shape: [5, 6] },
  ],
  ['Interp', 71, [2, 0, 0, 8, 9, 1], { resize_type: 2, output_width: 8, output_height: 9 }],
  ['StridedSlice', 41, [1, 2, 3], { begin_n: 1, end_n: 2, stride_n: 3, begin_c: 0, stride_w: 0 }],
] as const)('%s in %#', (operator, number, block, params) => {
  it('has defaults for missing fields, is kept by a rewrite, and is converted by an upgrade', async () => {
    const bytes = await fileWithBlock(number, block)
    const file = await open(bytes)
    const node = file.tmfile!.graph.nodes[1]!
    expect(node.operator).toBe(operator)
    expect(node.params).toMatchObject(params)
    expect(file.findings.map(({ code }) => code)).toContain('OLDER_PARAMETERS')
    expect(Buffer.compare(await serialize(file), bytes)).toBe(0)

    const kept = await open(await serialize(file, { mode: 'canonical' }))
    expect(kept.tmfile!.graph.nodes[1]!.params).toEqual(node.params)
    expect(kept.findings.map(({ code }) => code)).toContain('OLDER_PARAMETERS')

    const upgraded = await serialize(file, { mode: 'upgrade' })
    expect((await open(upgraded)).tmfile!.graph.nodes[1]!.params).toMatchObject(params)
    expect((await check(upgraded)).map(({ code }) => code)).not.toContain('OLDER_PARAMETERS')
  })
})

it.each([
  [[0, 0, 'vector'], 1],
  [[1, 0, 'vector'], 0],
  [[0, 0, 0, 0, 0, 0, 0, 0, 'vector'], 1],
] as const)(
  'a Reshape %j of a writer that always copied extents copies them after an upgrade',
  async (block, flag) => {
    const file = await open(await fileWithBlock(23, block, [0, 6]))
    const params = { re_shape: [0, 6], is_onnx: flag }
    expect(file.tmfile!.graph.nodes[1]!.params).toMatchObject(params)
    const upgraded = await open(await serialize(file, { mode: 'upgrade' }))
    expect(upgraded.tmfile!.graph.nodes[1]!.params).toMatchObject(params)
  },
)

it('an older block that cannot represent an edit is written in the current form', async () => {
  const file = await open(await fileWithBlock(42, [2]))
  const node = file.tmfile!.graph.nodes[1]!
  Object.assign(node.params, { keepdims: 1 })
  const changed = await open(await serialize(file))
  expect(changed.tmfile!.graph.nodes[1]!.params).toEqual({ axis: 2, keepdims: 1 })
  expect(changed.findings).toEqual([])
})

it('a Split of 2019 without parameters is kept without them', async () => {
  const bytes = Buffer.from(await fileWithBlock(29, [0]))
  const { operator } = (await recordsOf(bytes)).graph.nodes.list[1]!
  bytes.writeUInt32LE(0, operator.offset + 8)
  const file = await open(bytes)
  expect(file.findings.map(({ code }) => code)).toEqual(['OLDER_PARAMETERS'])
  expect(file.tmfile!.graph.nodes[1]!.params).toMatchObject({ axis: 0, split_sizes: null })
  expect(Buffer.compare(await serialize(file), bytes)).toBe(0)
})

it('uninitialised offsets of a Caffe Split are not followed', async () => {
  const bytes = await fileWithBlock(29, [0x7fff_0000, 77, 1, 0x1234_5678])
  const file = await open(bytes)
  expect(file.findings).toEqual([])
  expect(file.tmfile!.graph.nodes[1]!.params).toMatchObject({ is_caffe: 1, split_sizes: null })
  expect(Buffer.compare(await serialize(file), bytes)).toBe(0)
  const canonical = await open(await serialize(file, { mode: 'canonical' }))
  expect(canonical.tmfile!.graph.nodes[1]!.params).toMatchObject({ axis: 0, split_dim: 0, is_caffe: 1 })
})

it.each([
  ['MatMul with parameters', 91, [0, 4], 'Expand'],
  ['Expand without', 92, [], 'MatMul'],
  ['Unsqueeze without', 88, [], 'MatMul'],
  ['Mean with', 90, [0], 'Unsqueeze'],
  ['L2Pool without', 98, [], 'L2Normalization'],
  ['LogSoftmax without', 99, [], 'ReLU1'],
  ['L2Normalization with', 101, [1], 'LogSoftmax'],
  ['Softplus with', 102, [0, 0], 'Scatter'],
  ['Reciprocal with', 103, [0, 1, 1, 1, 1], 'L2Pool'],
  ['SpatialTransformer without', 105, [], 'Where'],
] as const)('%s is named as the other one', async (_, number, block, other) => {
  const bytes = await fileWithBlock(number, block)
  const found = (await check(bytes)).find(({ code }) => code === 'OPERATOR_NUMBERING')
  expect(found?.message).toContain(`was ${other} in older files`)
  expect(Buffer.compare(await serialize(await open(bytes)), bytes)).toBe(0)
})
