/** Differential test: headers read by the addon from a file equal those read by TypeScript from the same bytes in memory. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { check, type Input, open, TileworkError } from '../../../lib/index.js'
import { native } from '../../../lib/native/addon.js'
import { type Change, mutate, mutationCount } from '../../attacks/mutations.js'
import { fuzzSeed, randomNumbers } from '../../attacks/random_numbers.js'
import { field, int, join, modelProto, raw, sparseProto, tensorProto, varint } from './onnx_bytes.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(joinPath(tmpdir(), 'tilework-onnx-plain-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function written(bytes: Uint8Array): string {
  const path = joinPath(folder, 'm.onnx')
  writeFileSync(path, bytes)
  return path
}

/** Everything that the list of tensors contains. */
async function listing(input: Input, level: 'lenient' | 'strict'): Promise<unknown> {
  const findings = await check(input, { format: 'onnx', level })
  try {
    const file = await open(input, { format: 'onnx', level })
    const tensors = [...file.tensors].map(({ kind, name, dtype, shape, doc, metadata }) => ({
      kind,
      name,
      dtype,
      shape,
      doc,
      metadata: [...metadata],
    }))
    const bytes: unknown[] = []
    for (const tensor of file.tensors) {
      if (tensor.kind === 'dense' && tensor.hasData) bytes.push(await tensor.bytes().catch(refusalOf))
    }
    const byName = tensors.map(({ name }) => file.tensors.get(name)?.shape)
    file.close()
    return { findings, opened: file.findings, tensors, bytes, byName }
  } catch (error) {
    return { findings, refused: refusalOf(error) }
  }
}

function refusalOf(error: unknown): unknown {
  if (!(error instanceof TileworkError)) throw error
  const { code, path, offset, message } = error
  return { code, path, offset, message }
}

const values = (count: number, seed = 0): Uint8Array =>
  raw(...Array.from({ length: count }, (_, at) => (at + seed) & 0xff))

/** Plain tensors, with one of each kind that is not plain among them. */
function mixedInitializers(): Uint8Array[] {
  const plain = [
    tensorProto({ dims: [3], type: 1, name: 'a', values: values(12) }),
    tensorProto({ dims: [2, 3], type: 10, name: 'a.b', values: values(12, 7) }),
    join(
      tensorProto({ dims: [5], type: 22, name: 'nibbles', values: values(3) }),
      field(12, 'said'),
      int(14, 0),
    ),
    tensorProto({ dims: [], type: 7, name: 'scalar', values: values(8) }),
    tensorProto({ dims: [0, 7], type: 1, name: 'empty', values: values(0) }),
    tensorProto({ dims: [3], type: 25, name: 'int2', values: values(1) }),
  ]
  const others = [
    join(field(1, join(varint(2), varint(1))), int(2, 2), field(8, 'packed'), values(2)),
    tensorProto({ dims: [2], type: 7, name: 'typed', values: field(7, [1, 2]) }),
    tensorProto({ dims: [1], type: 8, name: 'text', values: field(6, 'x') }),
    tensorProto({ dims: [1], type: 1, name: 'twice', values: join(values(4), values(4, 1)) }),
    tensorProto({ dims: [1], type: 1, name: 'longer', values: values(5) }),
    join(tensorProto({ dims: [1], type: 3, name: 'noted', values: values(1) }), field(16, field(1, 'key'))),
    join(tensorProto({ dims: [1], type: 3, name: 'unknown', values: values(1) }), int(99, 5)),
  ]
  return [...plain, ...others.slice(0, 3), ...plain.slice(0, 4), ...others.slice(3), ...plain]
}

describe('plain tensors of a file', () => {
  it('are found by name, by index and in order, in thousands', async () => {
    const initializers = Array.from({ length: 3000 }, (_, at) =>
      tensorProto({
        dims: [1 + (at % 3)],
        type: 3,
        name: `block.${at}.weight`,
        values: values(1 + (at % 3), at),
      }),
    )
    const file = await open(written(modelProto({ initializers })), { level: 'strict' })
    expect(file.tensors.length).toBe(3000)
    expect([...file.tensors].map(({ name }) => name)).toEqual(
      initializers.map((_, at) => `block.${at}.weight`),
    )
    for (const at of [0, 1, 511, 512, 513, 2222, 2999]) {
      const tensor = file.dense(`block.${at}.weight`)
      expect(tensor.shape).toEqual([1 + (at % 3)])
      expect((await tensor.bytes())[0]).toBe(at & 0xff)
    }
    expect(file.tensors.get('block')).toBeUndefined()
    expect(file.tensors.get('block.3000.weight')).toBeUndefined()
    file.close()
  })

  it('are listed as from memory, mixed with other tensors', async () => {
    const bytes = modelProto({ initializers: mixedInitializers() })
    for (const level of ['lenient', 'strict'] as const)
      expect(await listing(written(bytes), level)).toEqual(await listing(bytes, level))
  })

  it('are found by name where names repeat, contain each other, or have non-minimal lengths', async () => {
    const one = (name: Uint8Array, count: number): Uint8Array =>
      join(int(1, count), int(2, 3), name, values(count))
    const longLength = join([8 * 8 + 2, 0x81, 0x00], [0x78])
    const initializers = [
      ...Array.from({ length: 3 }, (_, at) => one(field(8, `xx${at}`), 1)),
      one(longLength, 2),
      one(field(8, 'x'), 3),
      join(one(field(8, 'other'), 4), field(12, 'y')),
      one(join(field(8, 'y'), field(8, 'z')), 5),
      one(field(8, 'y'), 6),
      one(field(8, [0xff]), 7),
      one(field(8, '\uFFFD'), 8),
    ]
    const file = await open(written(modelProto({ initializers })))
    const found = ['x', 'y', '\uFFFD', 'z', 'x'].map((name) => file.dense(name).shape[0])
    expect(found).toEqual([2, 6, 7, 5, 2])
    file.close()
    const many = Array.from({ length: 40 }, (_, at) => one(field(8, `part.${at}`), 1))
    const withLongList = await open(
      written(modelProto({ initializers: [...many, one(field(8, 'part'), 2)] })),
    )
    expect(withLongList.dense('part').shape).toEqual([2])
    withLongList.close()
  })

  it('count against the limits', async () => {
    const path = written(modelProto({ initializers: mixedInitializers().slice(0, 6) }))
    await expect(open(path, { limits: { tensors: 5 } })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
      path: 'graph.initializer[5]',
    })
    await expect(open(path, { limits: { headerBytes: 20 } })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await expect(open(path, { limits: { totalBytes: 30 } })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    for (const tensors of [6, 6.5, 1e30]) {
      const file = await open(path, { limits: { tensors, totalBytes: 36 } })
      expect(file.tensors.length).toBe(6)
      file.close()
    }
    await expect(open(path, { limits: { tensors: 0.5 } })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })

  it('do not include sparse tensors, whose names are found beside them', async () => {
    const part = tensorProto({ dims: [1], type: 1, name: 'sparse', values: values(4) })
    const sparse = [sparseProto(part, tensorProto({ dims: [1], type: 7, values: field(7, [1]) }), [4])]
    const initializers = [tensorProto({ dims: [1], type: 1, name: 'dense', values: values(4) })]
    const file = await open(written(modelProto({ initializers, sparse })))
    expect(file.sparse('sparse').shape).toEqual([4])
    expect(file.dense('dense').shape).toEqual([1])
    file.close()
  })

  it('are read only from a file and a range inside it', () => {
    const path = written(modelProto({ initializers: mixedInitializers() }))
    const file = native().openInput(path, { mapped: false, guard: false })
    const numbers = { list: 5, dims: 1, dataType: 2, name: 8, rawData: 9, docString: 12, dataLocation: 14 }
    const rules = { ...numbers, elementBits: new Uint8Array(27), maxAxes: 8 }
    const find = (start: number, end: number, given: object = rules) =>
      native().plainTensors(file, given as typeof rules, start, end, 10)
    expect(find(0, file.byteLength)).toMatchObject({
      position: 0,
      valueBytes: 0,
      offsets: new Float64Array(0),
    })
    expect(() => find(0, file.byteLength + 1)).toThrow(expect.objectContaining({ code: 'ERR_RANGE' }))
    expect(() => find(2, 1)).toThrow(expect.objectContaining({ code: 'ERR_RANGE' }))
    expect(() => find(0, 1, { ...rules, list: 0 })).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    expect(() => find(0, 1, { ...rules, dims: 2 ** 29 })).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
    expect(() => find(0, 1, { ...rules, elementBits: 'x' })).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
    file.close(false)
    expect(() => find(0, 1)).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
  })
})

/** Valid and invalid tags, lengths and numbers of a tensor. */
const FRAGMENTS: readonly Uint8Array[] = [
  [0x08, 0x00],
  [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
  [0x08, 0x80, 0x80, 0x80, 0x00],
  [0x0a, 0x01, 0x02],
  [0x10, 0x01],
  [0x10, 0x81, 0x80, 0x80, 0x80, 0x10],
  [0x2a, 0x02, 0x10, 0x03],
  [0x2a, 0x80],
  [0x42, 0x01, 0xff],
  [0x4a, 0x04, 1, 2, 3, 4],
  [0x4a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
  [0x62, 0x00],
  [0x70, 0x00],
  [0x70, 0x80, 0x80, 0x80, 0x80, 0x10],
  [0x73, 0x74],
  [0x00],
].map((bytes) => Uint8Array.from(bytes))

const CHANGES: readonly Change[] = [
  (bytes, at, random) => {
    if (at < bytes.length) bytes[at] = random(256)
    return bytes
  },
  (bytes, at, random) => {
    const fragment = FRAGMENTS[random(FRAGMENTS.length)]!
    return new Uint8Array([...bytes.subarray(0, at), ...fragment, ...bytes.subarray(at + random(3))])
  },
  (bytes, at, random) => new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(at + random(8))]),
]

const COUNT = mutationCount(600)

it(`${COUNT} mutated models give the same result from a file and from memory`, {
  timeout: 60_000 + 60 * COUNT,
}, async () => {
  const random = randomNumbers(fuzzSeed(20_261_122))
  let tensorLists = 0
  for (let round = 0; round < COUNT; round++) {
    // Only tensors are mutated and the enclosing lengths stay valid, so most models are readable to the end.
    const initializers = mixedInitializers().map((tensor) =>
      random(16) === 0 ? mutate(tensor, CHANGES, 1, random) : tensor,
    )
    const bytes = modelProto({ initializers })
    const level = round % 4 === 0 ? 'strict' : 'lenient'
    const listed = (await listing(written(bytes), level)) as { tensors?: unknown[] }
    expect(listed).toEqual(await listing(bytes, level))
    if (listed.tensors) tensorLists += 1
  }
  expect(tensorLists).toBeGreaterThan(COUNT / 20)
  expect(tensorLists).toBeLessThan(COUNT)
})
