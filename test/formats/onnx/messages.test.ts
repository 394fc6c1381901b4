/** Bare values, sparse tensors, detection of the message type, graph and function rules, and large files. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import type { Finding, Level } from '../../../lib/errors.js'
import { checkBytes } from '../../../lib/formats/onnx/check.js'
import { Report } from '../../../lib/formats/report.js'
import { open } from '../../../lib/index.js'
import { FILE_MESSAGES, type FileMessage, onnx } from '../../../lib/models/onnx/index.js'
import type { DenseTensor, SparseTensor } from '../../../lib/tensor/tensor.js'
import {
  type Bytes,
  field,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  raw,
  readOptions,
  sparseProto,
  tensorProto,
  varint,
} from './onnx_bytes.js'

const read = (bytes: Bytes, message?: FileMessage, level: 'lenient' | 'strict' = 'strict') =>
  onnx.read(new MemorySource(bytes), { ...readOptions(level), ...(message !== undefined && { message }) })

const one = (value: number, name = ''): Bytes => tensorProto({ dims: [1], type: 2, name, values: raw(value) })
const int64 = (...values: number[]): Bytes => field(7, join(...values.map((value) => varint(value))))

async function valuesOf(bytes: Bytes, message?: FileMessage): Promise<number[]> {
  const { tensors } = await read(bytes, message)
  const values: number[] = []
  for (const tensor of tensors) values.push(...((await (tensor as DenseTensor).toTypedArray()) as Uint8Array))
  return values
}

describe('bare values', () => {
  const sequence = join(int(2, 1), field(3, one(1)), field(3, one(2)))
  const nested = join(
    field(1, 'deep'),
    int(2, 3),
    field(5, sequence),
    field(5, join(int(2, 1), field(3, one(3)))),
  )
  const map = join(field(1, 'm'), int(2, 7), int(3, 10), int(3, 20), field(5, sequence))
  const optional = join(field(1, 'o'), int(2, 4), field(6, map))

  it('of any depth list their tensors in order', async () => {
    expect(await valuesOf(sequence)).toEqual([1, 2])
    expect(await valuesOf(nested)).toEqual([1, 2, 3])
    expect(await valuesOf(map)).toEqual([1, 2])
    expect(await valuesOf(optional, 'OptionalProto')).toEqual([1, 2])
    expect(await valuesOf(join(field(1, 'none'), int(2, 0)))).toEqual([])
  })

  it('are refused beyond the depth limit', async () => {
    let deep = join(int(2, 1), field(3, one(1)))
    for (let level = 0; level < 40; level++) deep = join(int(2, 3), field(5, deep), field(5, int(2, 1)))
    expect(await valuesOf(deep)).toEqual([1])
    const limited = { ...readOptions('lenient', {}, { depth: 30 }), message: 'SequenceProto' }
    await expect(onnx.read(new MemorySource(deep), limited)).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    for (let level = 0; level < 80; level++) deep = join(int(2, 3), field(5, deep))
    await expect(read(deep, 'SequenceProto', 'lenient')).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })
})

describe('the message type of a file', () => {
  const FILES: readonly [FileMessage, Bytes][] = [
    ['ModelProto', modelProto({ initializers: [one(1, 'a')] })],
    ['ModelProto', field(7, field(2, 'g'))],
    ['TensorProto', one(1, 'a')],
    ['SparseTensorProto', sparseProto(one(1), tensorProto({ dims: [1], type: 7, values: int64(0) }), [4])],
    ['SequenceProto', join(int(2, 1), field(3, one(1)), field(3, one(2)))],
    ['OptionalProto', join(field(1, 'x'), int(2, 0))],
    ['MapProto', join(int(2, 8), field(4, 'k'), field(5, join(int(2, 1), field(3, one(1)))))],
  ]

  it.each(FILES)('is detected as %s by its fields', async (message, bytes) => {
    const { tensors, findings } = await read(bytes)
    expect(findings).toEqual([])
    const named = await read(bytes, message)
    expect([...named.tensors].map(({ name, shape }) => [name, shape])).toEqual(
      [...tensors].map(({ name, shape }) => [name, shape]),
    )
  })

  it('is reported as ambiguous where several match, and TensorProto wins', async () => {
    // Valid as one int8 in a typed field, and as a sequence or optional of one empty sequence of tensors.
    const either = join(int(2, 3), field(5, int(2, 1)))
    const { tensors, findings } = await read(either, undefined, 'lenient')
    expect((tensors.at(0) as DenseTensor).at()).toBe(16)
    expect(findings.map(({ code, message }) => [code, message])).toEqual([
      [
        'AMBIGUOUS_MESSAGE',
        'The file could be TensorProto or SequenceProto or OptionalProto; it is read as TensorProto.',
      ],
    ])
  })

  it('is the one of the option, or an error', async () => {
    const either = join(int(2, 1), field(3, one(1)))
    expect(await valuesOf(either, 'SequenceProto')).toEqual([1])
    await expect(read(either, 'GraphProto' as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    expect(FILE_MESSAGES).toContain('MapProto')
  })

  it('may have unknown fields', async () => {
    const { tensors, findings } = await read(modelProto({ initializers: [one(4, 'a')] }, field(300, 'x')))
    expect(findings).toEqual([])
    expect([...(await (tensors.get('a') as DenseTensor).toTypedArray())]).toEqual([4])
    expect(await valuesOf(join(one(5), field(300, 'x')))).toEqual([5])
  })

  it('is detected without a file extension', async () => {
    using file = await open(modelProto({ initializers: [one(9, 'a')] }))
    expect(file.format).toBe('onnx')
    expect([...(await file.dense('a').toTypedArray())]).toEqual([9])
    await expect(open(Buffer.from('hello, this is a text'))).rejects.toMatchObject({
      code: 'ERR_UNKNOWN_FORMAT',
    })
  })
})

describe('sparse tensors', () => {
  const values = tensorProto({ dims: [3], type: 2, name: 'c', values: raw(5, 6, 7) })
  const rows = tensorProto({ dims: [3, 2], type: 7, values: int64(0, 1, 1, 0, 1, 2) })
  const linear = tensorProto({
    dims: [3],
    type: 7,
    values: field(9, Buffer.from(BigInt64Array.of(1n, 3n, 5n).buffer)),
  })

  it.each([
    ['rows', rows],
    ['row-major numbers', linear],
  ])('with %s are coordinate lists, in a model and as a bare value', async (_, indices) => {
    const message = sparseProto(values, indices, [2, 3])
    for (const bytes of [message, modelProto({ sparse: [message] })]) {
      const { tensors } = await read(bytes)
      const tensor = tensors.get('c') as SparseTensor
      expect([tensor.kind, tensor.dtype, tensor.shape, tensor.entryCount]).toEqual([
        'sparse',
        'uint8',
        [2, 3],
        3,
      ])
      expect([...(await tensor.indices())]).toEqual([0n, 1n, 1n, 0n, 1n, 2n])
      expect(await tensor.values()).toEqual(Uint8Array.of(5, 6, 7))
      const dense = await tensor.toDense({ maxBytes: 6 })
      expect([...(await dense.toTypedArray())]).toEqual([0, 5, 0, 6, 0, 7])
      const entries = []
      for await (const each of tensor.entries()) entries.push(each)
      expect(entries[1]).toEqual({ index: [1, 0], value: 6 })
      expect(await onnx.check(new MemorySource(bytes), readOptions())).toEqual([])
    }
  })

  it('need no indices without entries', async () => {
    const empty = tensorProto({ dims: [0], type: 1, name: 'c' })
    const { tensors } = await read(sparseProto(empty, undefined, [4, 4]))
    expect((tensors.at(0) as SparseTensor).entryCount).toBe(0)
  })

  it.each([
    ['beyond the shape', [0, 3, 6]],
    ['below zero', [0, 3, -1]],
  ])('with an index %s are refused when it is read', async (_, numbers) => {
    const indices = tensorProto({ dims: [3], type: 7, values: int64(...numbers) })
    const bytes = sparseProto(values, indices, [2, 3])
    const { tensors } = await read(bytes)
    await expect((tensors.at(0) as SparseTensor).indices()).rejects.toMatchObject({ code: 'ERR_COO_INDEX' })
    const findings = await onnx.check(new MemorySource(bytes), readOptions('lenient'))
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([['ERR_COO_INDEX', 'error']])
  })
})

/** Findings on the bytes alone: most nodes here have attributes and inputs that their operators do not have. */
async function findingsOf(bytes: Bytes, level: Level): Promise<Finding[]> {
  const report = new Report('onnx', level, 'collect')
  await checkBytes(new MemorySource(bytes), readOptions(level), report)
  return report.findings()
}
const codes = async (bytes: Bytes, level: Level = 'lenient') =>
  (await findingsOf(bytes, level)).map(({ code }) => code)
const messages = async (bytes: Bytes) => (await findingsOf(bytes, 'strict')).map(({ message }) => message)
/** An output x with a TypeProto. */
const typed = (type: Bytes): Bytes[] => [field(12, join(field(1, 'x'), field(2, type)))]
const node = (inputs: string[], outputs: string[], ...attributes: Bytes[]) =>
  nodeProto({ inputs, outputs, attributes })
const subgraph = (graph: Bytes): Bytes => join(field(1, 'body'), field(6, graph), int(20, 5))

describe('graphs', () => {
  it('that follow the rules have no findings', async () => {
    const inner = graphProto({ nodes: [node(['b', 'w'], ['c'])], outputs: ['c'] })
    const nodes = [node(['x', ''], ['b']), node([], ['y'], subgraph(inner))]
    const bytes = modelProto({ nodes, inputs: ['x'], outputs: ['y'], initializers: [one(1, 'w')] })
    expect(await codes(bytes, 'strict')).toEqual([])
  })

  it.each([
    ['an undefined input', { nodes: [node(['x'], ['y'])] }, ['ERR_GRAPH']],
    ['an undefined output', { outputs: ['y'] }, ['ERR_GRAPH']],
    ['a name defined twice', { nodes: [node([], ['y']), node([], ['y'])] }, ['ERR_DUPLICATE']],
    ['an initializer twice', { initializers: [one(1, 'w'), one(2, 'w')] }, ['ERR_DUPLICATE']],
    ['nodes out of order', { nodes: [node(['b'], ['y']), node([], ['b'])] }, ['ERR_GRAPH']],
    ['a cycle', { nodes: [node(['b'], ['a']), node(['a'], ['b'])] }, ['ERR_GRAPH']],
    ['a node that uses its own output', { nodes: [node(['a'], ['a'])] }, ['ERR_GRAPH']],
    [
      'an input of a subgraph that nobody makes',
      { nodes: [node([], ['y'], subgraph(graphProto({ nodes: [node(['gone'], ['z'])] })))] },
      ['ERR_GRAPH'],
    ],
  ] as const)('with %s are reported', async (_, graph, expected) => {
    expect(await codes(modelProto(graph))).toEqual(expected)
    expect(await codes(modelProto(graph), 'strict')).toEqual(expected)
  })

  it('may have an initializer as the default of an input', async () => {
    const initializers = [tensorProto({ dims: [], type: 1, name: 'x', values: raw(0, 0, 128, 63) })]
    expect(await codes(modelProto({ inputs: ['x'], initializers, outputs: ['x'] }), 'strict')).toEqual([])
  })

  it.each([
    ['without a type', [field(12, field(1, 'x'))], 'has no type'],
    ['with an empty type', [field(12, join(field(1, 'x'), field(2, '')))], 'has no member'],
    ['without an element type', typed(field(1, field(2, ''))), 'has no tensor_type.elem_type'],
    ['without a shape', typed(field(1, int(1, 1))), 'has no tensor_type.shape'],
    ['of sequences of nothing', typed(field(4, '')), 'has no sequence_type.elem_type'],
    ['of maps to nothing', typed(field(5, int(1, 7))), 'has no map_type.value_type'],
    ['of an opaque type without a name', typed(field(7, field(1, 'd'))), 'has no opaque_type.name'],
  ] as const)('with outputs %s are reported, as onnx.checker does', async (_, outputs, message) => {
    const graph = join(graphProto({ inputs: ['x'] }), ...outputs)
    expect(await messages(modelProto(graph))).toEqual([expect.stringContaining(message)])
    const inner = node([], ['y'], subgraph(join(graphProto({ nodes: [node([], ['x'])] }), ...outputs)))
    expect(await messages(modelProto({ nodes: [inner] }))).toEqual([])
  })

  it.each([
    ['input', { inputs: [''] }],
    ['output', { outputs: [''] }],
    ['initializer', { initializers: [one(1)] }],
    [
      'sparse initializer',
      { sparse: [sparseProto(one(1), tensorProto({ dims: [1], type: 7, values: int64(0) }), [1])] },
    ],
  ] as const)('with an %s without a name are reported', async (_, graph) => {
    expect(await messages(modelProto(graph))).toEqual([expect.stringContaining('has no name')])
  })

  it('whose output is a value of an outer graph are reported', async () => {
    const inner = node([], ['y'], subgraph(graphProto({ outputs: ['x'] })))
    expect(await messages(modelProto({ inputs: ['x'], nodes: [inner] }))).toEqual([
      expect.stringContaining('is a value of an outer graph'),
    ])
  })

  it('in functions are checked too', async () => {
    const body = join(field(1, 'F'), field(4, 'x'), field(5, 'y'), field(7, node(['z'], ['y'])))
    expect(await codes(modelProto({}, field(25, body)))).toEqual(['ERR_GRAPH'])
  })
})

describe('functions', () => {
  const body = (name: string, ...nodes: Bytes[]): Bytes =>
    field(25, join(field(1, name), ...nodes.map((each) => field(7, each)), field(10, 'own')))
  const call = (name: string): Bytes => join(field(4, name), field(7, 'own'))
  const within = (inner: Bytes): Bytes =>
    join(
      field(4, 'If'),
      field(5, join(field(1, 'then'), field(6, graphProto({ nodes: [inner] })), int(20, 5))),
    )
  const many = Array.from({ length: 500 }, (_, at) => body(`f${at}`, call(`f${at + 1}`)))

  it.each([
    ['call each other in a chain', many, []],
    ['call another twice', [body('f', call('g'), call('g')), body('g')], []],
    ['have names of operators of others', [body('f', field(4, 'f'))], []],
    ['call themselves', [body('f', call('f'))], ['ERR_GRAPH']],
    ['call each other', [body('f', call('g')), body('g', call('f'))], ['ERR_GRAPH']],
    ['call themselves from a subgraph', [body('f', within(call('f')))], ['ERR_GRAPH']],
    ['call each other in a cycle', [...many, body('f500', call('f0'))], ['ERR_GRAPH']],
    ['have the same key', [body('f'), body('f')], ['ERR_DUPLICATE']],
  ] as const)('that %s', async (_, functions, expected) => {
    expect(await codes(modelProto({}, ...functions))).toEqual(expected)
  })
})

describe('messages other than listed tensors are checked too', () => {
  const short = tensorProto({ dims: [4], type: 2, values: raw(1) })
  const attribute = join(field(1, 'value'), field(5, short), int(20, 4))

  it.each([
    [
      'an attribute',
      modelProto({ nodes: [nodeProto({ attributes: [attribute] })] }),
      'graph.node[0].attribute[0].t.raw_data',
    ],
    [
      'a subgraph',
      modelProto({ nodes: [nodeProto({ attributes: [field(6, graphProto({ initializers: [short] }))] })] }),
      'graph.node[0].attribute[0].g.initializer[0].raw_data',
    ],
    [
      'a function',
      modelProto({}, field(25, field(11, attribute))),
      'functions[0].attribute_proto[0].t.raw_data',
    ],
    [
      'training',
      modelProto({}, field(20, field(1, graphProto({ initializers: [short] })))),
      'training_info[0].initialization.initializer[0].raw_data',
    ],
  ])('in %s', async (_, bytes, path) => {
    const findings = await onnx.check(new MemorySource(bytes), readOptions('lenient'))
    expect(findings.map((finding) => [finding.code, finding.path])).toContainEqual(['ERR_TRUNCATED', path])
    await expect(read(bytes)).rejects.toMatchObject({ code: 'ERR_TRUNCATED', path })
    expect(await read(bytes, undefined, 'lenient')).toMatchObject({ findings: [] })
  })
})

it('names the text that is not UTF-8', async () => {
  const bad = Uint8Array.of(0x61, 0xff)
  const nodes = [
    nodeProto({}),
    join(
      field(1, 'é'),
      field(1, 'b'),
      field(1, bad),
      field(5, join(field(1, 'a'), field(13, bad), int(20, 1))),
    ),
  ]
  const bytes = modelProto({ nodes }, field(6, bad))
  const findings = await onnx.check(new MemorySource(bytes), readOptions('lenient'))
  const paths = findings.filter(({ message }) => message.includes('UTF-8')).map(({ path }) => path)
  expect(paths.sort()).toEqual([
    'doc_string',
    'graph.node[1].attribute[0].doc_string',
    'graph.node[1].input[2]',
  ])
})

describe('files beyond 2 GiB', () => {
  it('open without reading a byte of payload', async () => {
    const payload = 3 * 2 ** 30
    const head = join(int(1, payload), int(2, 2), field(8, 'w'), varint((9 << 3) | 2), varint(payload))
    const tail = field(5, one(7, 'v'))
    const size = head.length + payload
    const graphHead = join(varint((5 << 3) | 2), varint(size))
    const start = join(
      int(1, 8),
      varint((7 << 3) | 2),
      varint(graphHead.length + size + tail.length),
      graphHead,
      head,
    )
    const byteLength = start.length + payload + tail.length
    let bytesRead = 0
    const source: ByteSource = {
      byteLength,
      read: async (from, to) => {
        bytesRead += to - from
        const bytes = new Uint8Array(to - from)
        if (from < start.length) bytes.set(start.subarray(from, Math.min(to, start.length)))
        const tailStart = start.length + payload
        if (to > tailStart)
          bytes.set(
            tail.subarray(Math.max(0, from - tailStart), to - tailStart),
            Math.max(0, tailStart - from),
          )
        return bytes
      },
    }
    using file = await open(source)
    expect([...file.tensors].map(({ name, size: count }) => [name, count])).toEqual([
      ['w', payload],
      ['v', 1],
    ])
    expect([...(await file.dense('v').toTypedArray())]).toEqual([7])
    expect(bytesRead).toBeLessThan(2 ** 20)
  })
})
