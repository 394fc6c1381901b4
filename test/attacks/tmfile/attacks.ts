/**
 * Hostile tmfiles, at least one for each unchecked assumption of the reference, with the expected error. `kind` is the
 * severity: `damaged` cannot be read at any level; `crashes` is loaded by the reference, which then crashes or computes
 * wrong results, so strict rejects it; `differs` has another meaning in the reference, and is only reported.
 */
import type { FindingCode } from '../../../lib/errors.js'
import type { FileRecords, NodeRecord } from '../../../lib/formats/tmfile/decode/records.js'
import { serialize } from '../../../lib/index.js'
import type { TmfileModel } from '../../../lib/tmfile.js'
import {
  constant,
  node,
  nodeOfNumber,
  recordsOf,
  smallModel,
  variable,
} from '../../formats/tmfile/tmfile_bytes.js'

export interface Attack {
  readonly name: string
  readonly kind: 'damaged' | 'crashes' | 'differs'
  /** Number of the rule in the table of the README beside this file. */
  readonly rule: number
  readonly reason: string
  readonly code: FindingCode
  readonly bytes: () => Promise<Uint8Array>
}

/** Changes one word of the small model of the tests. */
type Patch = (file: Buffer, records: FileRecords) => Buffer | undefined

async function patched(patch: Patch, model: TmfileModel = smallModel()): Promise<Uint8Array> {
  const bytes = await serialize(model)
  const file = Buffer.from(bytes)
  return new Uint8Array(patch(file, await recordsOf(bytes)) ?? file)
}

/** Writes a 32-bit word; negative values and float bits are allowed. */
const word = (file: Buffer, at: number, value: number): undefined => {
  file.writeUInt32LE(value >>> 0, at)
  return undefined
}

const CONVOLUTION = 3
const convolution = ({ graph }: FileRecords): NodeRecord => graph.nodes.list[CONVOLUTION]!
const block = (records: FileRecords): number => convolution(records).operator.block!.offset
const graphField =
  (position: number) =>
  ({ graph }: FileRecords): number =>
    graph.offset + position
const tensorField =
  (index: number, position: number) =>
  ({ graph }: FileRecords): number =>
    graph.tensors.list[index]!.offset + position

/** Sets the word at an offset in the file. */
const set =
  (at: (records: FileRecords) => number, value: number | ((file: Buffer) => number)): Patch =>
  (file, records) =>
    word(file, at(records), typeof value === 'number' ? value : value(file))

const beyond = (file: Buffer): number => file.length + 4

function attack(
  kind: Attack['kind'],
  rule: number,
  name: string,
  reason: string,
  code: FindingCode,
  patch: Patch,
): Attack {
  return { kind, rule, name, reason, code, bytes: () => patched(patch) }
}

/** An attack that changes the model before it is written. */
function ofModel(
  kind: Attack['kind'],
  rule: number,
  name: string,
  reason: string,
  code: FindingCode,
  change: (model: TmfileModel) => void,
): Attack {
  const bytes = (): Promise<Uint8Array> => {
    const model = smallModel()
    change(model)
    return serialize(model)
  }
  return { kind, rule, name, reason, code, bytes }
}

/** A file with a Reshape whose parameter block starts at `blockAt`. */
function reshaped(
  name: string,
  reason: string,
  code: FindingCode,
  patch: (file: Buffer, blockAt: number) => undefined,
): Attack {
  const bytes = (): Promise<Uint8Array> => {
    const model = smallModel()
    const result = variable('flat')
    model.graph.tensors.push(result)
    model.graph.nodes.push(
      node('flat', 'Reshape', [model.graph.tensors[3]!], [result], { re_shape: [1, 32] }),
    )
    return patched((file, { graph }) => patch(file, graph.nodes.list.at(-1)!.operator.block!.offset), model)
  }
  return { kind: 'damaged', rule: code === 'ERR_OFFSET_RANGE' ? 3 : 5, name, reason, code, bytes }
}

const FRAME: readonly Attack[] = [
  attack('damaged', 1, 'empty', 'an empty file', 'ERR_TRUNCATED', () => Buffer.alloc(0)),
  attack(
    'damaged',
    1,
    'short-header',
    'a header is read without a look at the length',
    'ERR_TRUNCATED',
    (file) => file.subarray(0, 11),
  ),
  attack('damaged', 1, 'cut-root', 'the file ends inside the root', 'ERR_TRUNCATED', (file) =>
    file.subarray(0, -4),
  ),
  attack('damaged', 1, 'cut-half', 'the file ends in the middle', 'ERR_OFFSET_RANGE', (file) =>
    file.subarray(0, file.length / 2),
  ),
  attack('damaged', 2, 'version-1', 'a format of 2018 with other structs', 'ERR_UNSUPPORTED', (file) => {
    file.writeUInt16LE(1, 0)
    return undefined
  }),
  attack('damaged', 2, 'version-3', 'an unknown version', 'ERR_UNSUPPORTED', (file) => {
    file.writeUInt16LE(3, 0)
    return undefined
  }),
  attack('damaged', 3, 'root-beyond', 'the root lies behind the end', 'ERR_OFFSET_RANGE', (file) =>
    word(file, 8, file.length + 1),
  ),
  attack('damaged', 3, 'root-wraps', 'root + 16 is 0 in 32 bits', 'ERR_OFFSET_RANGE', (file) =>
    word(file, 8, 0xffff_fff0),
  ),
  attack('damaged', 3, 'root-zero', 'the header is read as the root', 'ERR_OFFSET_RANGE', (file) =>
    word(file, 8, 0),
  ),
]

const OFFSETS: readonly Attack[] = [
  attack(
    'damaged',
    3,
    'subgraphs-beyond',
    'a vector behind the end',
    'ERR_OFFSET_RANGE',
    set(({ header }) => header.root + 8, beyond),
  ),
  attack(
    'damaged',
    4,
    'subgraphs-empty',
    'the first entry of an empty vector is read',
    'ERR_HEADER',
    set(({ subgraphs }) => subgraphs.offset, 0),
  ),
  attack(
    'damaged',
    3,
    'subgraph-beyond',
    'a subgraph behind the end',
    'ERR_OFFSET_RANGE',
    set(({ subgraphs }) => subgraphs.offset + 4, beyond),
  ),
  attack(
    'damaged',
    3,
    'nodes-beyond',
    'a node vector behind the end',
    'ERR_OFFSET_RANGE',
    set(graphField(20), beyond),
  ),
  attack(
    'damaged',
    3,
    'tensors-unset',
    'the header is read as a vector',
    'ERR_OFFSET_RANGE',
    set(graphField(24), 0),
  ),
  attack(
    'damaged',
    3,
    'node-beyond',
    'a node behind the end',
    'ERR_OFFSET_RANGE',
    set(({ graph }) => graph.nodes.vector.offset + 4, beyond),
  ),
  attack(
    'damaged',
    3,
    'tensor-beyond',
    'a tensor behind the end',
    'ERR_OFFSET_RANGE',
    set(({ graph }) => graph.tensors.vector.offset + 4, beyond),
  ),
  attack(
    'damaged',
    3,
    'buffer-beyond',
    'a buffer record behind the end',
    'ERR_OFFSET_RANGE',
    set(({ graph }) => graph.buffers!.vector.offset + 4, beyond),
  ),
  attack(
    'damaged',
    3,
    'operator-beyond',
    'an operator behind the end',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).offset + 12, beyond),
  ),
  attack(
    'damaged',
    3,
    'operator-unset',
    'a node without an operator',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).offset + 12, 0),
  ),
  attack(
    'damaged',
    3,
    'params-beyond',
    'parameters behind the end',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).operator.offset + 8, beyond),
  ),
  attack(
    'damaged',
    3,
    'params-cut',
    'parameters that begin in the file and end behind it',
    'ERR_TRUNCATED',
    set(
      (records) => convolution(records).operator.offset + 8,
      (file) => file.length - 8,
    ),
  ),
  attack(
    'damaged',
    3,
    'name-beyond',
    'a name record behind the end',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).offset + 16, beyond),
  ),
  attack(
    'damaged',
    3,
    'quantization-beyond',
    'quantization behind the end',
    'ERR_OFFSET_RANGE',
    set(tensorField(1, 16), beyond),
  ),
]

const COUNTS: readonly Attack[] = [
  attack(
    'damaged',
    5,
    'node-count',
    'four gigabytes of offsets',
    'ERR_LIMIT',
    set(({ graph }) => graph.nodes.vector.offset, 0xffff_ffff),
  ),
  attack(
    'damaged',
    5,
    'tensor-count',
    'a count that the file cannot hold',
    'ERR_TRUNCATED',
    set(({ graph }) => graph.tensors.vector.offset, 60_000),
  ),
  attack(
    'damaged',
    5,
    'dims-count',
    'a shape of a billion extents',
    'ERR_TRUNCATED',
    set(({ graph }) => graph.tensors.list[1]!.dims!.offset, 2 ** 30),
  ),
  attack(
    'damaged',
    5,
    'inputs-count',
    'a list of inputs that wraps',
    'ERR_TRUNCATED',
    set((records) => convolution(records).inputs!.offset, 0x4000_0001),
  ),
  attack(
    'damaged',
    6,
    'text-size',
    'a name of four gigabytes is copied',
    'ERR_LIMIT',
    set((records) => convolution(records).name!.offset, 0xffff_ffff),
  ),
  attack(
    'damaged',
    6,
    'text-cut',
    'a name that ends behind the file',
    'ERR_TRUNCATED',
    set((records) => convolution(records).name!.offset, 100_000),
  ),
  attack(
    'damaged',
    6,
    'text-beyond',
    'characters behind the end',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).name!.offset + 4, beyond),
  ),
  attack('crashes', 6, 'text-nul', 'a name that ends early in C', 'ERR_HEADER', (file, records) => {
    file.writeUInt8(0, convolution(records).name!.bytesOffset)
    return undefined
  }),
  {
    kind: 'crashes',
    rule: 6,
    name: 'model-name-nul',
    reason: 'a model name that ends early in C',
    code: 'ERR_HEADER',
    bytes: () =>
      patched(
        (file, { name }) => void file.writeUInt8(0, name!.bytesOffset),
        Object.assign(smallModel(), { name: 'model' }),
      ),
  },
  attack('crashes', 6, 'text-not-utf-8', 'bytes that are not valid UTF-8', 'ERR_HEADER', (file, records) => {
    file.writeUInt8(0xff, convolution(records).name!.bytesOffset)
    return undefined
  }),
  {
    kind: 'damaged',
    rule: 5,
    name: 'shared-structs',
    code: 'ERR_LIMIT',
    reason: 'thousands of nodes on the bytes of one: a small file becomes a large model',
    bytes: () =>
      patched((file, { graph }) => {
        const count = 20_000
        const offsets = Buffer.alloc(4 + 4 * count)
        offsets.writeUInt32LE(count, 0)
        for (let at = 0; at < count; at++)
          offsets.writeUInt32LE(graph.nodes.list[CONVOLUTION]!.offset, 4 + 4 * at)
        file.writeUInt32LE(file.length, graph.offset + 20)
        return Buffer.concat([file, offsets])
      }),
  },
]

const LINKS: readonly Attack[] = [
  attack(
    'damaged',
    7,
    'input-index',
    'a node input with an index out of range',
    'ERR_RANGE',
    set((records) => convolution(records).inputs!.offset + 4, 99),
  ),
  attack(
    'damaged',
    7,
    'output-index',
    'a node output with an index out of range',
    'ERR_RANGE',
    set((records) => convolution(records).outputs!.offset + 4, 0xffff_ffff),
  ),
  attack(
    'damaged',
    7,
    'graph-input-index',
    'a graph input with an index out of range',
    'ERR_RANGE',
    set(({ graph }) => graph.inputs!.offset + 4, 99),
  ),
  attack(
    'damaged',
    7,
    'graph-output-index',
    '65,536 is node 0 in 16 bits',
    'ERR_RANGE',
    set(({ graph }) => graph.outputs!.offset + 4, 65_536),
  ),
  attack('damaged', 8, 'buffer-index', 'a buffer index out of range', 'ERR_RANGE', set(tensorField(1, 4), 2)),
  attack(
    'damaged',
    8,
    'buffer-small',
    'a shape larger than its buffer',
    'ERR_RANGE',
    set(({ graph }) => graph.tensors.list[1]!.dims!.offset + 4, 200),
  ),
  attack(
    'damaged',
    8,
    'buffer-wraps',
    'a shape of 2^32 bytes, which is 0 in 32 bits',
    'ERR_RANGE',
    set(({ graph }) => graph.tensors.list[1]!.dims!.offset + 4, 2 ** 30),
  ),
  attack(
    'damaged',
    8,
    'buffer-past-end',
    'numbers behind the end of the file',
    'ERR_TRUNCATED',
    set(({ graph }) => graph.buffers!.list[0]!.offset, 2 ** 31),
  ),
  attack(
    'damaged',
    8,
    'constant-negative',
    'an extent of -1 makes the product negative',
    'ERR_RANGE',
    set(({ graph }) => graph.tensors.list[1]!.dims!.offset + 4, -1),
  ),
  attack(
    'damaged',
    9,
    'data-type',
    'an element size of 0, with which every size fits',
    'ERR_DTYPE',
    set(tensorField(1, 28), 9),
  ),
  attack('damaged', 9, 'tensor-type', 'an unknown role', 'ERR_VALUE', set(tensorField(1, 24), 7)),
  attack('damaged', 10, 'dims-256', 'more axes than any shape has', 'ERR_RANK', (file, { graph }) => {
    const dims = Buffer.alloc(4 + 4 * 256)
    dims.writeUInt32LE(256, 0)
    file.writeUInt32LE(file.length, graph.tensors.list[3]!.offset + 8)
    return Buffer.concat([file, dims])
  }),
  attack(
    'damaged',
    10,
    'dims-overflow',
    'more bytes than a number can count',
    'ERR_OVERFLOW',
    (file, { graph }) => {
      for (let axis = 0; axis < 4; axis++)
        word(file, graph.tensors.list[3]!.dims!.offset + 4 + 4 * axis, 2 ** 31 - 1)
      return undefined
    },
  ),
  ofModel(
    'damaged',
    11,
    'shared-buffers',
    'sixty constants of one buffer: all together fill the memory of whoever loads them',
    'ERR_LIMIT',
    ({ graph }) => {
      const weight = constant('weight', [4096], new Array<number>(4096).fill(1))
      graph.buffers.push(weight.buffer!)
      for (let at = 0; at < 60; at++) graph.tensors.push({ ...weight, name: `twin ${at}` })
    },
  ),
]

const CRASHES: readonly Attack[] = [
  attack(
    'crashes',
    12,
    'params-unset',
    'the header is read as parameters',
    'ERR_OFFSET_RANGE',
    set((records) => convolution(records).operator.offset + 8, 0),
  ),
  attack(
    'crashes',
    12,
    'buffers-unset',
    'the header is read as a vector of buffers',
    'ERR_OFFSET_RANGE',
    (file, { graph }) => {
      word(file, graph.offset + 28, 0)
      for (const tensor of graph.tensors.list) word(file, tensor!.offset + 24, 1)
      return undefined
    },
  ),
  attack(
    'crashes',
    12,
    'inputs-unset',
    'the header is read as a list of inputs',
    'ERR_OFFSET_RANGE',
    set(graphField(12), 0),
  ),
  attack(
    'crashes',
    12,
    'outputs-unset',
    'the header is read as a list of outputs',
    'ERR_OFFSET_RANGE',
    set(graphField(16), 0),
  ),
  attack(
    'crashes',
    13,
    'inputs-empty',
    'the first of no inputs is read',
    'ERR_GRAPH',
    set(({ graph }) => graph.inputs!.offset, 0),
  ),
  attack(
    'crashes',
    13,
    'outputs-empty',
    'a graph that gives nothing',
    'ERR_GRAPH',
    set(({ graph }) => graph.outputs!.offset, 0),
  ),
  attack(
    'crashes',
    13,
    'node-outputs-unset',
    'a node without a vector of outputs',
    'ERR_GRAPH',
    set((records) => convolution(records).offset + 8, 0),
  ),
  attack(
    'crashes',
    14,
    'devices-garbage',
    'a count of 2, and what memory left is followed',
    'ERR_HEADER',
    (file, { graph, subgraphs }) => {
      // An old subgraph has no field for device subgraphs.
      const moved = Buffer.concat([file.subarray(graph.offset, graph.offset + 36), Buffer.alloc(8)])
      moved.writeUInt32LE(2, 36)
      moved.writeUInt32LE(file.length, 40)
      word(file, 8, file.length + moved.length)
      const root = Buffer.from(file.subarray(subgraphs.offset + 8, subgraphs.offset + 24))
      root.writeUInt32LE(file.length + 36, 8)
      return Buffer.concat([file, moved, root])
    },
  ),
  attack(
    'damaged',
    14,
    'devices-beyond',
    'device subgraphs behind the end',
    'ERR_OFFSET_RANGE',
    (file, { graph, subgraphs }) => {
      word(file, subgraphs.offset, 2)
      return word(file, graph.offset + 36, file.length + 4)
    },
  ),
  attack(
    'crashes',
    15,
    'rank-9',
    'a ninth extent is written behind an array of eight',
    'ERR_RANK',
    (file, { graph }) => {
      const dims = Buffer.alloc(4 + 4 * 9)
      dims.writeUInt32LE(9, 0)
      for (let axis = 0; axis < 9; axis++) dims.writeUInt32LE(1, 4 + 4 * axis)
      file.writeUInt32LE(file.length, graph.tensors.list[3]!.offset + 8)
      return Buffer.concat([file, dims])
    },
  ),
  attack(
    'crashes',
    15,
    'extent-0',
    'an activation without an element',
    'ERR_RANGE',
    set(({ graph }) => graph.tensors.list[3]!.dims!.offset + 4, 0),
  ),
  attack(
    'crashes',
    15,
    'extent-negative',
    'an extent below -1',
    'ERR_RANGE',
    set(({ graph }) => graph.tensors.list[3]!.dims!.offset + 4, -7),
  ),
  attack(
    'crashes',
    15,
    'elements-wrap',
    '2^31 elements are negative in 32 bits',
    'ERR_OVERFLOW',
    set(({ graph }) => graph.tensors.list[3]!.dims!.offset + 4, 2 ** 27),
  ),
  {
    kind: 'crashes',
    rule: 16,
    name: 'absent-gigabytes',
    code: 'ERR_LIMIT',
    reason: 'weights that are not in the file are allocated by their shapes: a tiny file takes all memory',
    bytes: () =>
      patched((file, { graph }) => {
        word(file, graph.buffers!.list[0]!.offset, 0xffff_ffff)
        word(file, graph.buffers!.list[0]!.offset + 4, 0)
        return word(file, graph.tensors.list[1]!.dims!.offset + 4, 2 ** 28)
      }),
  },
  attack(
    'crashes',
    17,
    'convolution-one-input',
    'the weights are read from an input that is not there',
    'ERR_GRAPH',
    set((records) => convolution(records).inputs!.offset, 1),
  ),
  ofModel(
    'crashes',
    17,
    'convolution-flat-weights',
    'the second extent of one is read',
    'ERR_GRAPH',
    ({ graph }) => {
      graph.tensors[1]!.shape = [6]
    },
  ),
  attack(
    'crashes',
    17,
    'group-0',
    'a division by 0',
    'ERR_GRAPH',
    set((records) => block(records) + 32, 0),
  ),
  attack(
    'crashes',
    17,
    'dilation-negative',
    'a kernel that runs backwards',
    'ERR_GRAPH',
    set((records) => block(records) + 16, -1),
  ),
  attack(
    'crashes',
    17,
    'groups-do-not-divide',
    'channels that belong to no group',
    'ERR_GRAPH',
    set((records) => block(records) + 32, 3),
  ),
  ofModel(
    'crashes',
    17,
    'no-inputs',
    'the runtime reads the first input of a node that has none',
    'ERR_GRAPH',
    ({ graph }) => {
      const result = variable('sigmoid')
      graph.tensors.push(result)
      graph.nodes.push(node('sigmoid', 'Sigmoid', [], [result]))
    },
  ),
  attack(
    'crashes',
    18,
    'activation',
    'an unknown activation',
    'ERR_VALUE',
    set((records) => block(records) + 36, 3),
  ),
  attack(
    'crashes',
    18,
    'layout',
    'an order that is neither NCHW nor NHWC',
    'ERR_VALUE',
    set(graphField(4), 5),
  ),
  attack(
    'crashes',
    18,
    'activation-layout',
    'an invalid layout of an activation',
    'ERR_VALUE',
    set(tensorField(3, 20), 94),
  ),
  attack(
    'crashes',
    18,
    'pad-negative',
    'a pad of -3 is undefined',
    'ERR_VALUE',
    set((records) => block(records) + 40, -3),
  ),
  ofModel('crashes', 18, 'pooling-algorithm', 'an unknown kind of pooling', 'ERR_VALUE', ({ graph }) => {
    const result = variable('pool')
    graph.tensors.push(result)
    graph.nodes.push(node('pool', 'Pooling', [graph.tensors[3]!], [result], { alg: 2 }))
  }),
  ofModel('crashes', 18, 'attribute-type', 'an attribute of an unknown type', 'ERR_VALUE', ({ graph }) => {
    graph.nodes[CONVOLUTION]!.attributes.push({ name: 'a', value: Uint8Array.of(1), type: 9 })
  }),
]

const GRAPHS: readonly Attack[] = [
  ofModel(
    'crashes',
    19,
    'two-producers',
    'two nodes make one tensor: the runtime forgets the first',
    'ERR_GRAPH',
    ({ graph }) => {
      graph.nodes.push(node('again', 'Sigmoid', [graph.tensors[0]!], [graph.tensors[3]!]))
    },
  ),
  ofModel('crashes', 19, 'no-producer', 'an activation without a producer', 'ERR_GRAPH', ({ graph }) => {
    const [orphan, result] = [variable('orphan'), variable('result')]
    graph.tensors.push(orphan, result)
    graph.nodes.push(node('taker', 'Sigmoid', [orphan], [result]))
  }),
  ofModel(
    'crashes',
    19,
    'wrong-order',
    'a node that runs before its input is made',
    'ERR_GRAPH',
    ({ graph }) => {
      graph.nodes.reverse()
    },
  ),
  ofModel('crashes', 19, 'cycle', 'a cycle of two nodes', 'ERR_GRAPH', ({ graph }) => {
    const [one, two] = [variable('one'), variable('two')]
    graph.tensors.push(one, two)
    graph.nodes.push(node('a', 'Sigmoid', [two], [one]), node('b', 'Sigmoid', [one], [two]))
  }),
  ofModel(
    'crashes',
    20,
    'tensor-names',
    'the reference saves one of two tensors with one name',
    'ERR_DUPLICATE',
    ({ graph }) => {
      graph.tensors[2]!.name = graph.tensors[1]!.name
    },
  ),
  ofModel('crashes', 21, 'many-inputs', 'the runtime counts inputs in 8 bits', 'ERR_LIMIT', ({ graph }) => {
    const result = variable('concat')
    graph.tensors.push(result)
    const inputs = Array.from({ length: 300 }, () => graph.tensors[3]!)
    graph.nodes.push(node('concat', 'Concat', inputs, [result]))
  }),
  ofModel(
    'crashes',
    22,
    'quantization-count',
    'a different number of records than channels',
    'ERR_QUANTIZATION',
    ({ graph }) => {
      graph.tensors[1]!.quantization = quantization([1, 1, 1])
    },
  ),
  ofModel('crashes', 22, 'scale-nan', 'every number becomes NaN', 'ERR_QUANTIZATION', ({ graph }) => {
    graph.tensors[1]!.quantization = quantization([Number.NaN])
  }),
  ofModel(
    'crashes',
    22,
    'scale-negative',
    'a negative scale inverts every value',
    'ERR_QUANTIZATION',
    ({ graph }) => {
      graph.tensors[1]!.quantization = quantization([-1])
    },
  ),
  ofModel(
    'crashes',
    22,
    'zero-point',
    'a zero point that the type does not have',
    'ERR_QUANTIZATION',
    ({ graph }) => {
      Object.assign(graph.tensors[3]!, { dtype: 'uint8', quantization: quantization([1], 256) })
    },
  ),
  ...(['Region', 'DetectionPostProcess'] as const).map((operator) =>
    ofModel(
      'crashes',
      12,
      `${operator}-without-numbers`,
      'the header is read as a vector of two numbers',
      'ERR_OFFSET_RANGE',
      ({ graph }) => {
        const result = variable('boxes')
        graph.tensors.push(result)
        graph.nodes.push(node('boxes', operator, [graph.tensors[3]!], [result]))
      },
    ),
  ),
  reshaped('nested-beyond', 'a vector of parameters behind the end', 'ERR_OFFSET_RANGE', (file, blockAt) =>
    word(file, blockAt + 8, beyond(file)),
  ),
  reshaped('nested-count', 'a target of a billion extents', 'ERR_LIMIT', (file, blockAt) =>
    word(file, file.readUInt32LE(blockAt + 8), 2 ** 30),
  ),
  reshaped('nested-cut', 'a target that ends behind the file', 'ERR_TRUNCATED', (file, blockAt) =>
    word(file, file.readUInt32LE(blockAt + 8), 60_000),
  ),
  attack(
    'damaged',
    5,
    'quantization-vector-count',
    'a billion quantization records',
    'ERR_TRUNCATED',
    (file, { graph }) => {
      const vector = Buffer.alloc(4)
      vector.writeUInt32LE(2 ** 30, 0)
      word(file, graph.tensors.list[1]!.offset + 16, file.length)
      return Buffer.concat([file, vector])
    },
  ),
  ofModel(
    'crashes',
    12,
    'prior-box-without-sizes',
    'the header is read as a vector of two sizes',
    'ERR_OFFSET_RANGE',
    ({ graph }) => {
      const result = variable('prior')
      graph.tensors.push(result)
      graph.nodes.push(node('prior', 'PriorBox', [graph.tensors[3]!, graph.tensors[0]!], [result]))
    },
  ),
]

const BYTES: readonly Attack[] = [
  attack('crashes', 23, 'trailing', 'room for a second file behind the first', 'ERR_GAP', (file) =>
    Buffer.concat([file, Buffer.from('hidden')]),
  ),
  attack(
    'crashes',
    23,
    'overlap',
    'weight data that overlaps a struct',
    'ERR_OVERLAP',
    set(({ graph }) => graph.buffers!.list[0]!.offset + 4, 16),
  ),
  {
    kind: 'crashes',
    rule: 23,
    name: 'misaligned',
    code: 'ERR_MISALIGNED',
    reason: 'a misaligned struct is undefined behaviour on some machines',
    bytes: () =>
      patched((file, { header }) => {
        const moved = Buffer.concat([file, Buffer.alloc(1), file.subarray(header.root)])
        word(moved, 8, file.length + 1)
        return moved
      }),
  },
]

const DIFFERS: readonly Attack[] = [
  attack(
    'differs',
    24,
    'short-block',
    'the runtime reads past the block into the operator record',
    'OLDER_PARAMETERS',
    (file, records) => {
      const { at, operator } = { at: block(records), operator: convolution(records).operator }
      // The block starts 8 bytes later, with the bytes that follow.
      return word(file, operator.offset + 8, at + 8)
    },
  ),
  ofModel(
    'differs',
    25,
    'matmul-with-parameters',
    'number 91 was Expand for half a year',
    'OPERATOR_NUMBERING',
    ({ graph }) => {
      const result = variable('expand')
      graph.tensors.push(result)
      const expand = nodeOfNumber('expand', 91, [graph.tensors[3]!], [result])
      expand.opaqueParams = new Uint8Array(8)
      graph.nodes.push(expand)
    },
  ),
  ofModel(
    'crashes',
    25,
    'mean-with-parameters',
    'number 90 was Unsqueeze in 2020',
    'ERR_VALUE',
    ({ graph }) => {
      const result = variable('unsqueezed')
      graph.tensors.push(result)
      const mean = nodeOfNumber('unsqueezed', 90, [graph.tensors[3]!], [result])
      mean.opaqueParams = new Uint8Array(4)
      graph.nodes.push(mean)
    },
  ),
  ofModel(
    'differs',
    26,
    'minimum',
    'the converter writes it, and the runtime cannot load it',
    'OPERATOR_NOT_LOADED',
    ({ graph }) => {
      const result = variable('least')
      graph.tensors.push(result)
      graph.nodes.push(node('least', 'Minimum', [graph.tensors[3]!, graph.tensors[3]!], [result]))
    },
  ),
  attack(
    'differs',
    26,
    'unknown-operator',
    'an unknown operator number',
    'OPERATOR_UNKNOWN',
    set((records) => convolution(records).operator.offset + 4, 104),
  ),
  attack(
    'differs',
    27,
    'nhwc-saved-again',
    'an NHWC model saved by the reference has its shapes transposed twice',
    'NHWC_SAVED_AGAIN',
    set(graphField(8), 1),
  ),
  ofModel(
    'crashes',
    27,
    'nhwc-shared-buffer',
    'the loader transposes a buffer of two tensors twice',
    'ERR_OVERLAP',
    ({ graph }) => {
      Object.assign(graph, { graphLayout: 1, modelLayout: 1 })
      const twin = { ...graph.tensors[1]!, name: 'twin' }
      graph.tensors.push(twin)
      graph.nodes.push(node('twin', 'Const', [], [twin]))
    },
  ),
  ofModel(
    'crashes',
    27,
    'nhwc-reshape',
    'the loader transposes 3 or 4 dimensions and rejects other ranks',
    'ERR_GRAPH',
    ({ graph }) => {
      Object.assign(graph, { graphLayout: 1, modelLayout: 1 })
      const result = variable('flat')
      graph.tensors.push(result)
      graph.nodes.push(node('flat', 'Reshape', [graph.tensors[3]!], [result], { re_shape: [1, 2, 4, 2, 2] }))
    },
  ),
  ofModel(
    'differs',
    27,
    'nhwc-int32',
    'the shape is transposed and the values are not',
    'NHWC_NOT_TRANSPOSED',
    ({ graph }) => {
      Object.assign(graph, { graphLayout: 1, modelLayout: 1 })
      const order = { ...constant('order', [1, 1, 1, 1], [1]), dtype: 'int32' as const }
      graph.tensors.push(order)
      graph.buffers.push(order.buffer!)
      graph.nodes.push(node('order', 'Const', [], [order]))
    },
  ),
  ofModel(
    'differs',
    28,
    'resize-not-square',
    'writer and loader swap the scales',
    'RUNTIME_DIFFERS',
    ({ graph }) => {
      const result = variable('large')
      graph.tensors.push(result)
      graph.nodes.push(node('large', 'Resize', [graph.tensors[3]!], [result], { scale_x: 2, scale_y: 3 }))
    },
  ),
  ofModel('differs', 28, 'where', 'the runtime runs another operator', 'RUNTIME_DIFFERS', ({ graph }) => {
    const result = variable('chosen')
    graph.tensors.push(result)
    graph.nodes.push(node('chosen', 'Where', [graph.tensors[3]!], [result]))
  }),
  ofModel(
    'differs',
    20,
    'names-absent',
    'the reference runs it and aborts on save',
    'NAMES_ABSENT',
    ({ graph }) => {
      for (const each of [...graph.tensors, ...graph.nodes]) each.name = null
    },
  ),
]

function quantization(scales: number[], zeroPoint = 0) {
  const count = scales.length
  return {
    scales: Float32Array.from(scales),
    zeroPoints: new Int32Array(count).fill(zeroPoint),
    widths: new Int32Array(count),
  }
}

export const ATTACKS: readonly Attack[] = [
  ...FRAME,
  ...OFFSETS,
  ...COUNTS,
  ...LINKS,
  ...CRASHES,
  ...GRAPHS,
  ...BYTES,
  ...DIFFERS,
]
