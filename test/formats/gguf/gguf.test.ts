/** GGUF files of gguf-py and files built by hand: tensors, blocks, metadata, shards, edits, and what is written. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { GgufValue } from '../../../lib/formats.js'
import {
  type AnyTensor,
  BLOCK_DTYPES,
  type BlockTensor,
  cast,
  check,
  convert,
  dequantize,
  diff,
  type OpenGguf,
  open,
  quantize,
  save,
  serialize,
  slice,
  stats,
  tensor,
} from '../../../lib/index.js'
import { temporaryFolder } from '../../cli/temporary_folder.js'
import { thirdPartyBytes, thirdPartyPath } from '../../shared_fixtures.js'
import { ARCHITECTURE, alignmentKey, Encoder, floats, ggufFile, oneTensor } from './gguf_bytes.js'

const inFolder = temporaryFolder()
const code = (expected: string) => expect.objectContaining({ code: expected })
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

async function openGguf(input: Parameters<typeof open>[0], options = {}): Promise<OpenGguf> {
  const file = await open(input, options)
  if (file.format !== 'gguf') throw new Error(`The file is ${file.format}.`)
  return file
}

/** Fixtures of gguf-py; without them these tests are left out, and counted as skipped. */
const hasFixtures = existsSync(thirdPartyPath('gguf/types/expected.json'))
const fixture = (path: string): string => thirdPartyPath(`gguf/${path}`)
const json = <T>(path: string): T => JSON.parse(Buffer.from(thirdPartyBytes(`gguf/${path}`)).toString('utf8'))

/** Bits with every NaN as one, because their payloads depend on the instructions. */
function withOneNan(bytes: Uint8Array, dtype: 'float32' | 'float16' | 'bfloat16'): Uint8Array {
  const copy = new Uint8Array(bytes)
  const isWide = dtype === 'float32'
  const codes = isWide ? new Uint32Array(copy.buffer) : new Uint16Array(copy.buffer)
  const [infinity, nan] = {
    float32: [0x7f800000, 0x7fc00000],
    float16: [0x7c00, 0x7e00],
    bfloat16: [0x7f80, 0x7fc0],
  }[dtype] as [number, number]
  const mask = isWide ? 0x7fffffff : 0x7fff
  for (const [at, code] of codes.entries()) if ((code & mask) > infinity) codes[at] = nan
  return copy
}

/** The upper half of a float32, ties to even; a NaN keeps its sign and upper bits, and becomes quiet. */
function bfloat16Of(bits: number): number {
  const isNan = (bits & 0x7fffffff) > 0x7f800000
  if (isNan) return (bits >>> 16) | 0x40
  return Math.floor((bits + 0x7fff + ((bits >>> 16) & 1)) / 0x10000) & 0xffff
}

interface ExpectedType {
  readonly code: number
  readonly data_sha256: string
  readonly f32_sha256: string
  readonly f16_sha256: string
  readonly bf16_sha256: string
}

describe.skipIf(!hasFixtures)('files of gguf-py', () => {
  const types = hasFixtures ? Object.entries(json<Record<string, ExpectedType>>('types/expected.json')) : []

  it.each(types)('%s has the numbers of gguf-py, bit for bit', async (name, expected) => {
    using file = await openGguf(fixture(`types/${name}.gguf`), { level: 'strict' })
    const found = file.tensors.at(0)!
    expect([found.name, found.shape]).toEqual(['t', [3, 512]])
    if (found.kind === 'block') {
      expect(found.dtype).toBe(name.toLowerCase())
      expect(BLOCK_DTYPES[found.dtype].ggml).toBe(expected.code)
    }
    const hashOf = async (dtype: 'float32' | 'float16' | 'bfloat16'): Promise<string> =>
      sha256(withOneNan(await cast(found, dtype).bytes(), dtype))
    expect(await hashOf('float32')).toBe(expected.f32_sha256)
    expect(await hashOf('float16')).toBe(expected.f16_sha256)
    expect(await hashOf('bfloat16')).toBe(expected.bf16_sha256)
    const stored = found as BlockTensor
    expect(sha256(await stored.bytes())).toBe(expected.data_sha256)
  })

  it('plain integers and float64 pass through', async () => {
    using file = await openGguf(fixture('types/plain.gguf'))
    const expected = json<Record<string, { shape: number[]; values: string[] }>>('types/plain.json')
    for (const [name, { shape, values }] of Object.entries(expected)) {
      const found = file.dense(name)
      expect(found.shape).toEqual(shape)
      expect(Array.from(await found.toTypedArray(), Number)).toEqual(
        values.map((text) => (text === 'inf' ? Number.POSITIVE_INFINITY : Number(text))),
      )
    }
  })

  it.each(['metadata', 'metadata_big_endian'])('%s has every type of value, in file order', async (name) => {
    interface Entry {
      readonly key: string
      readonly type: string
      readonly items?: string
      readonly value: unknown
    }
    const { metadata } = json<{ metadata: Entry[] }>('metadata/expected.json')
    using file = await openGguf(fixture(`metadata/${name}.gguf`))
    expect(Array.from(file.gguf.metadata, ([key, value]) => ({ key, ...plainValue(value) }))).toEqual(
      metadata,
    )
    expect(await file.dense('w').toTypedArray()).toEqual(Float32Array.of(1, -2, 3))
    const saved = inFolder(`${name}.gguf`)
    file.gguf.metadata.set('test.u8.0', 9)
    await save(saved, file)
    using again = await openGguf(saved, { level: 'strict' })
    expect(again.gguf.isLittleEndian).toBe(true)
    expect(again.gguf.metadata.get('test.u8.0')).toEqual({ type: 'uint8', value: 9 })
    expect([...again.gguf.metadata].slice(2)).toEqual([...file.gguf.metadata].slice(2))
  })

  it('refuses blocks in a big-endian file, and takes them in a little-endian one', async () => {
    // 8 is q8_0: 32 elements in 34 bytes.
    const infos = [{ name: 'a', dims: [32], type: 8, offset: 0 }]
    const fields = { keys: [], infos, data: new Uint8Array(34) }
    using file = await openGguf(ggufFile(fields))
    expect(file.blocks('a').shape).toEqual([32])
    const refused = ggufFile({ ...fields, isBigEndian: true })
    const error = { code: 'ERR_UNSUPPORTED', message: expect.stringContaining('q8_0 in a big-endian file') }
    await expect(open(refused)).rejects.toMatchObject(error)
    expect(await check(refused)).toMatchObject([{ severity: 'error', ...error }])
  })

  it.each([
    ['tiny.gguf', undefined],
    ['tiny_align_128.gguf', 128],
  ])('%s is written byte for byte', async (name, alignment) => {
    using file = await openGguf(fixture('write/tiny.gguf'))
    const options = { metadata: file.gguf.metadata, ...(alignment && { alignment }) }
    const bytes = await serialize(file.tensors, { format: 'gguf', gguf: options })
    expect(Buffer.compare(bytes, thirdPartyBytes(`gguf/write/${name}`))).toBe(0)
  })

  it.each(['tiny', 'small_first'])('the shards of %s are one model, and merge to one file', async (name) => {
    using file = await openGguf(fixture(`splits/${name}-00001-of-00003.gguf`), { level: 'strict' })
    expect(file.parts.map((part) => part.name)).toEqual([
      `${name}-00002-of-00003.gguf`,
      `${name}-00003-of-00003.gguf`,
    ])
    const merged = inFolder(`${name}_merged.gguf`)
    await save(merged, file)
    expect(Buffer.compare(readFileSync(merged), thirdPartyBytes('gguf/write/tiny.gguf'))).toBe(0)
  })
})

/** Integers as text, floats as their bits. */
function plainValue(value: GgufValue): object {
  const plain = (one: unknown, type: string): unknown => {
    if (typeof one === 'boolean') return one
    const bytes = Buffer.alloc(8)
    if (type === 'float32') return bytes.subarray(0, bytes.writeFloatBE(one as number)).toString('hex')
    if (type === 'float64') return bytes.subarray(0, bytes.writeDoubleBE(one as number)).toString('hex')
    return String(one)
  }
  if (value.type !== 'array') return { type: value.type, value: plain(value.value, value.type) }
  const list = Array.from(value.value as ArrayLike<unknown>, (one) => plain(one, value.items))
  return { type: 'array', items: value.items, value: list }
}

/** A q8_0 tensor [2, 64]: rows of two blocks, with the scales 1, 2, 0.5 and -1. */
function q8Rows(): { file: Uint8Array; numbers: Float32Array } {
  const scales = [
    [0x3c00, 1],
    [0x4000, 2],
    [0x3800, 0.5],
    [0xbc00, -1],
  ] as const
  const numbers = new Float32Array(128)
  const blocks = scales.map(([half, scale], block) => {
    const bytes = Buffer.alloc(34)
    bytes.writeUInt16LE(half)
    for (let at = 0; at < 32; at++) {
      bytes.writeInt8(at * (block + 1) - 60, 2 + at)
      numbers[32 * block + at] = scale * (at * (block + 1) - 60)
    }
    return bytes
  })
  const data = Buffer.concat([...blocks, Buffer.alloc(24)])
  return { file: ggufFile({ infos: [{ name: 'w', dims: [64, 2], type: 8, offset: 0 }], data }), numbers }
}

/** Each block: a scale of float16, and 32 codes. */
function numbersOfQ80(blocks: Uint8Array): Float32Array {
  const view = new DataView(blocks.buffer, blocks.byteOffset, blocks.byteLength)
  return Float32Array.from({ length: (blocks.byteLength / 34) * 32 }, (_, at) => {
    const block = Math.floor(at / 32) * 34
    return halfValue(view.getUint16(block, true)) * view.getInt8(block + 2 + (at % 32))
  })
}

/** The number of a float16 that is neither infinite nor NaN. */
function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = (bits & 1023) / 1024
  return sign * (exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15))
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

describe('blocks', () => {
  const { file, numbers } = q8Rows()
  const blocks = async (): Promise<AnyTensor> => (await open(file)).tensors.at(0)!

  it('have numbers, ranges, slices and statistics', async () => {
    const found = (await blocks()) as BlockTensor
    expect([found.kind, found.dtype, found.shape, found.byteLength]).toEqual(['block', 'q8_0', [2, 64], 136])
    expect(await found.toTypedArray()).toEqual(numbers)
    const whole = Buffer.from(numbers.buffer)
    const lazy = dequantize(found)
    // Ranges that start and end inside blocks.
    for (const [start, end] of [
      [0, 512],
      [3, 5],
      [127, 129],
      [130, 510],
      [511, 512],
      [60, 60],
    ] as const) {
      expect(Buffer.compare(await lazy.bytes({ start, end }), whole.subarray(start, end))).toBe(0)
      expect(Buffer.compare(lazy.bytesSync({ start, end }), whole.subarray(start, end))).toBe(0)
    }
    expect(
      await slice(found, [
        [1, 2],
        [30, 35],
      ]).toTypedArray(),
    ).toEqual(numbers.slice(94, 99))
    expect(await stats(found)).toMatchObject({
      count: 128,
      max: Math.max(...numbers),
      min: Math.min(...numbers),
    })
    expect(await cast(found, 'int8').toTypedArray()).toEqual(Int8Array.from(numbers))
  })

  it('are dequantized to three types, and to no other', async () => {
    const found = (await blocks()) as BlockTensor
    expect(dequantize(found, { dtype: 'bfloat16' }).dtype).toBe('bfloat16')
    expect(await dequantize(found, { dtype: 'float16' }).toTypedArray()).toEqual(numbers)
    expect(() => dequantize(found, { dtype: 'float64' as 'float32' })).toThrow(code('ERR_DTYPE'))
    expect(() => dequantize(found, { scale: 1 } as object)).toThrow(code('ERR_ARGUMENT'))
  })

  it.each(['safetensors', 'npz', 'onnx', 'npy', 'btf'] as const)(
    'convert to %s as float32',
    async (format) => {
      const target = inFolder(`blocks.${format}`)
      await convert(file, target, { format })
      using converted = await open(target)
      expect(await converted.dense(0).toTypedArray()).toEqual(numbers)
      expect((await diff(target, file)).changed[0]?.values).toMatchObject({ equalBits: true })
    },
  )

  it('convert to float16, and stay blocks in GGUF', async () => {
    const half = inFolder('half.safetensors')
    await convert(file, half, { dtype: 'float16' })
    using converted = await open(half)
    expect([converted.dense(0).dtype, await converted.dense(0).toTypedArray()]).toEqual(['float16', numbers])
    const part = inFolder('part.gguf')
    await convert(file, part, { tensors: ['w'] })
    using kept = await open(part)
    expect(await kept.blocks('w').bytes()).toEqual(await ((await blocks()) as BlockTensor).bytes())
  })

  it('of more than two windows have their numbers, from files and from memory', async () => {
    const rows = 641
    const values = Float32Array.from({ length: rows * 2048 }, (_, at) => Math.sin(at) * (at % 97))
    const made = quantize(tensor(values, { shape: [rows, 2048], name: 'w' }), 'q8_0')
    const expected = numbersOfQ80(await made.bytes())
    const path = inFolder('large.gguf')
    await save(path, made)
    using opened = await open(path)
    using inMemory = await open(await serialize(made, { format: 'gguf' }))
    for (const found of [made, opened.blocks('w'), inMemory.blocks('w')]) {
      const kept = new Float32Array(values.length)
      await dequantize(found).toTypedArray({ out: kept })
      expect(Buffer.compare(bytesOf(kept), bytesOf(expected))).toBe(0)
      const whole = await dequantize(found).bytes()
      expect(Buffer.compare(whole, bytesOf(expected))).toBe(0)
      // Begins inside a block, ends behind the second window.
      const range = { start: 70, end: 2 ** 22 + 10 }
      const part = await dequantize(found).bytes(range)
      expect(Buffer.compare(part, bytesOf(expected).subarray(range.start, range.end))).toBe(0)
    }
  })

  it('of a source that fails in the second window fail with its error', async () => {
    const made = quantize(tensor(new Float32Array(2 ** 20), { shape: [1024, 1024], name: 'w' }), 'q8_0')
    const memory = new MemorySource(await serialize(made, { format: 'gguf' }))
    let reads = Number.POSITIVE_INFINITY
    const opened = await openGguf({
      byteLength: memory.byteLength,
      read: async (start: number, end: number) => {
        if (reads-- <= 0) throw new Error('the disk is gone')
        return memory.read(start, end)
      },
    })
    reads = 1
    await expect(dequantize(opened.blocks('w')).bytes()).rejects.toThrow('the disk is gone')
  })

  it('that the file is too short for are refused', async () => {
    await expect(open(file.slice(0, -30))).rejects.toThrow(code('ERR_TRUNCATED'))
  })
})

describe('quantizing', () => {
  interface Made {
    readonly bytes: number
    readonly sha256: string
  }
  const made = hasFixtures ? Object.entries(json<Record<string, Made>>('quantize/expected.json')) : []

  it.skipIf(!hasFixtures).each(made)('%s has the bytes of gguf-py', async (name, expected) => {
    const [type, kind] = name.toLowerCase().split('/') as [string, string]
    const values = new Float32Array(new Uint8Array(thirdPartyBytes(`gguf/quantize/in_${kind}.f32`)).buffer)
    const matrix = tensor(values, { shape: [4, 256] })
    const names: Record<string, 'float16' | 'bfloat16'> = { f16: 'float16', bf16: 'bfloat16' }
    const plain = names[type]
    const found = plain ? cast(matrix, plain) : quantize(matrix, type as 'q8_0')
    const bytes = await found.bytes()
    if (name !== 'BF16/bits') expect(sha256(bytes)).toBe(expected.sha256)
    else {
      // A cast makes one NaN of all, of which gguf-py keeps the upper bits of the payload.
      const kept = new Uint8Array(Uint16Array.from(new Uint32Array(values.buffer), bfloat16Of).buffer)
      expect(sha256(kept)).toBe(expected.sha256)
      expect(withOneNan(bytes, 'bfloat16')).toEqual(withOneNan(kept, 'bfloat16'))
    }
  })

  it('computes any range of blocks, and nothing that blocks cannot hold', async () => {
    const values = Float32Array.from({ length: 4096 }, (_, at) => Math.sin(at) * 2 ** (at % 9))
    const whole = await quantize(tensor(values, { shape: [16, 256] }), 'q4_0').bytes()
    expect(whole.byteLength).toBe((4096 / 32) * 18)
    const lazy = quantize(tensor(values, { shape: [16, 256] }), 'q4_0')
    for (const [start, end] of [
      [0, 18],
      [5, 7],
      [17, 19],
      [500, 2000],
    ] as const) {
      expect(Buffer.compare(await lazy.bytes({ start, end }), whole.subarray(start, end))).toBe(0)
    }
    const bad = (value: number) => {
      const changed = values.slice()
      changed[100] = value
      return quantize(tensor(changed, { shape: [16, 256] }), 'q8_0').bytes()
    }
    await expect(bad(Number.NaN)).rejects.toThrow(code('ERR_QUANTIZATION'))
    await expect(bad(Number.NEGATIVE_INFINITY)).rejects.toThrow(/element 100 is -Infinity/)
    // 65504 is the largest float16; 127 times 65519 still rounds to it.
    await expect(bad(65_521 * 127)).rejects.toThrow(/overflows float16/)
    expect((await bad(65_519 * 127)).byteLength).toBe(4352)
    expect(() => quantize(tensor(values, { shape: [256, 16] }), 'q8_0')).toThrow(code('ERR_LAYOUT_SHAPE'))
    expect(() => quantize(tensor(values, { shape: [16, 256] }), 'q4_k' as 'q8_0')).toThrow(code('ERR_DTYPE'))
  })

  it('convert quantizes matrices of whole blocks and keeps the rest', async () => {
    const weights = [
      tensor(
        Float32Array.from({ length: 128 }, (_, at) => at / 100),
        { shape: [2, 64], name: 'w' },
      ),
      tensor(Float32Array.of(1, 2), { name: 'norm' }),
      tensor(new Float32Array(66), { shape: [2, 33], name: 'odd' }),
      tensor(new Int32Array(64), { shape: [2, 32], name: 'ids' }),
    ]
    const source = inFolder('weights.safetensors')
    await save(source, weights, { metadata: { format: 'pt' } })
    const target = inFolder('weights.gguf')
    const { tensors } = await convert(source, target, {
      dtype: 'q8_0',
      gguf: { metadata: { 'general.architecture': 'test' } },
    })
    const types = Object.fromEntries(tensors.map(({ name, dtype }) => [name, dtype]))
    expect(types).toEqual({ w: 'q8_0', norm: 'float32', odd: 'float32', ids: 'int32' })
    expect(await check(target, { level: 'strict' })).toEqual([])
    const smaller = inFolder('smaller.gguf')
    await convert(target, smaller, { dtype: 'q4_0' })
    using file = await openGguf(smaller)
    expect(file.blocks('w').dtype).toBe('q4_0')
    expect(file.gguf.metadata.get('general.architecture')?.value).toBe('test')
    await expect(convert(source, inFolder('x.npz'), { dtype: 'q8_0' })).rejects.toThrow(
      code('ERR_UNSUPPORTED'),
    )
    await expect(convert(source, inFolder('x.gguf'), { dtype: 'q4_k' })).rejects.toThrow(code('ERR_DTYPE'))
  })
})

describe('metadata', () => {
  it('keeps what nobody changes, byte for byte, and appends new keys', async () => {
    const to = new Encoder()
    const odd = to.key(Uint8Array.of(0x6b, 0xff), 8, to.text(Uint8Array.of(0xfe, 0x41)))
    const bytes = oneTensor({ keys: [ARCHITECTURE, odd, to.key('n', 0, Uint8Array.of(7))] })
    using file = await openGguf(bytes)
    file.gguf.metadata.set('n', 8).set('general.name', 'Tiny')
    const name = to.key('general.name', 8, to.text('Tiny'))
    const keys = [ARCHITECTURE, odd, to.key('n', 0, Uint8Array.of(8)), name]
    expect(Buffer.compare(await serialize(file), oneTensor({ keys }))).toBe(0)
    file.gguf.metadata.delete('n')
    expect(Buffer.compare(await serialize(file), oneTensor({ keys: keys.filter((_, at) => at !== 2) }))).toBe(
      0,
    )
  })

  it('an unchanged file is copied, with its missing padding', async () => {
    const bytes = ggufFile({ infos: [{ name: 's', dims: [], type: 0, offset: 0 }], data: floats(5) })
    using file = await openGguf(bytes, { level: 'strict' })
    expect(Buffer.compare(await serialize(file), bytes)).toBe(0)
    file.gguf.metadata.set('a', true)
    using edited = await openGguf(await serialize(file), { level: 'strict' })
    expect(await edited.dense('s').toTypedArray()).toEqual(Float32Array.of(5))
  })

  it('a new alignment moves all tensors', async () => {
    const infos = [0, 1].map((at) => ({ name: `t${at}`, dims: [1], type: 0, offset: 32 * at }))
    const data = Buffer.concat([floats(1), Buffer.alloc(28), floats(2), Buffer.alloc(28)])
    using file = await openGguf(ggufFile({ infos, data }))
    file.gguf.metadata.set('general.alignment', { type: 'uint32', value: 64 })
    const saved = await serialize(file)
    using again = await openGguf(saved, { level: 'strict' })
    expect(again.gguf.alignment).toBe(64)
    expect(await again.dense('t1').toTypedArray()).toEqual(Float32Array.of(2))
    const moved = { infos: infos.map((info, at) => ({ ...info, offset: 64 * at })), alignment: 64 }
    const padded = Buffer.concat([floats(1), Buffer.alloc(60), floats(2), Buffer.alloc(60)])
    const expected = ggufFile({ keys: [ARCHITECTURE, alignmentKey(64)], data: padded, ...moved })
    expect(Buffer.compare(saved, expected)).toBe(0)
  })

  it.each([
    ['x', { type: 'uint8', value: 256 }, 'ERR_ARGUMENT'],
    ['x', { type: 'uint8', value: 1.5 }, 'ERR_ARGUMENT'],
    ['x', { type: 'int64', value: 2n ** 63n }, 'ERR_ARGUMENT'],
    ['x', { type: 'bool', value: 1 }, 'ERR_ARGUMENT'],
    ['x', { type: 'text', value: 'a' }, 'ERR_ARGUMENT'],
    ['x', { type: 'array', items: 'string', value: [1] }, 'ERR_ARGUMENT'],
    ['x', undefined, 'ERR_ARGUMENT'],
    ['', 1, 'ERR_ARGUMENT'],
    ['x', '\ud800', 'ERR_UNSUPPORTED'],
  ] as const)('refused value %#', async (key, value, expected) => {
    using file = await openGguf(oneTensor())
    expect(() => file.gguf.metadata.set(key, value as never)).toThrow(code(expected))
    expect(file.gguf.metadata.size).toBe(1)
  })

  it('plain values have a type', async () => {
    using file = await openGguf(oneTensor())
    const { metadata } = file.gguf
    metadata
      .set('a', 1)
      .set('b', -1)
      .set('c', 2 ** 40)
      .set('d', 0.5)
      .set('e', 5n)
      .set('f', -5n)
      .set('g', ['x'])
    metadata.set('h', Float32Array.of(1)).set('i', -0)
    const types = ['uint32', 'int32', 'int64', 'float32', 'uint64', 'int64', 'array', 'array', 'float32']
    expect([...'abcdefghi'].map((key) => metadata.typeOf(key))).toEqual(types)
    using again = await openGguf(await serialize(file))
    expect([...again.gguf.metadata]).toEqual([...metadata])
  })
})

describe('shards', () => {
  const to = new Encoder()
  const shard = (number: number, name: string, count = 2, tensors = 2): Uint8Array =>
    oneTensor({
      keys: [
        ...(number === 0 ? [ARCHITECTURE] : []),
        to.key('split.no', 2, to.number(number, 2)),
        to.key('split.count', 2, to.number(count, 2)),
        to.key('split.tensors.count', 5, to.number(tensors, 4)),
      ],
      infos: [{ name, dims: [8], type: 0, offset: 0 }],
    })
  const first = (bytes: Uint8Array) => Object.assign(new MemorySource(bytes, 'm-00001-of-00002.gguf'), {})
  const opened = (
    bytes: Uint8Array,
    other: Uint8Array | undefined,
    level: 'strict' | 'lenient' = 'lenient',
  ) =>
    openGguf(first(bytes), {
      level,
      resolve: (name: string) => (name === 'm-00002-of-00002.gguf' ? other : undefined),
    })

  it('are found by name', async () => {
    using file = await opened(shard(0, 'a'), shard(1, 'b'), 'strict')
    expect([...file.tensors].map(({ name }) => name)).toEqual(['a', 'b'])
    expect(file.tensors.get('b')?.name).toBe('b')
  })

  it('with wrong numbers, totals and names are reported', async () => {
    const codesOf = async (bytes: Uint8Array, other: Uint8Array): Promise<string[]> => {
      using file = await opened(bytes, other)
      return file.findings.map((finding) => finding.code)
    }
    expect(await codesOf(shard(0, 'a'), shard(0, 'b'))).toEqual(['ERR_VALUE'])
    expect(await codesOf(shard(0, 'a', 2, 3), shard(1, 'b'))).toEqual(['ERR_VALUE'])
    await expect(opened(shard(0, 'a'), shard(1, 'a'))).rejects.toThrow(code('ERR_DUPLICATE'))
  })

  it('that are missing are a finding, because tensors are lost', async () => {
    using file = await opened(shard(0, 'a'), undefined)
    expect(file.findings).toMatchObject([{ omitsTensor: true }])
    using alone = await openGguf(shard(0, 'a'))
    expect(alone.findings).toMatchObject([{ omitsTensor: true, code: 'ERR_IO' }])
    await expect(opened(shard(0, 'a'), undefined, 'strict')).rejects.toThrow(code('ERR_UNSUPPORTED'))
  })
})

describe('writing', () => {
  it('keeps element types and names, and refuses what the format lacks', async () => {
    const written = await serialize(
      [
        tensor(Float64Array.of(1), { name: 'd' }),
        tensor(BigInt64Array.of(-1n), { name: 'i' }),
        tensor(new Float32Array(0), { shape: [0, 3], name: 'e' }),
        tensor(Int16Array.of(1, 2), {}),
      ],
      { format: 'gguf', gguf: { metadata: { 'x.y': 3, 'general.architecture': 'a' } } },
    )
    using file = await openGguf(written, { level: 'strict' })
    expect([...file.tensors].map(({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
      ['d', 'float64', [1]],
      ['i', 'int64', [1]],
      ['e', 'float32', [0, 3]],
      ['tensor_3', 'int16', [2]],
    ])
    expect([...file.gguf.metadata.keys()]).toEqual(['general.architecture', 'x.y'])
    const refused = (one: AnyTensor, expected = 'ERR_UNSUPPORTED') =>
      expect(serialize(one, { format: 'gguf' })).rejects.toThrow(code(expected))
    await refused(tensor(Uint8Array.of(1), { name: 'u' }))
    await refused(tensor(new Float32Array(1), { shape: [1, 1, 1, 1, 1] }))
    await refused(tensor(new Float32Array(1), { name: 'n'.repeat(64) }))
    const one = tensor(new Float32Array(1), { name: 'a' })
    await expect(serialize([one, one], { format: 'gguf' })).rejects.toThrow(code('ERR_ARGUMENT'))
    await expect(serialize(one, { format: 'gguf', gguf: { alignment: 3 } })).rejects.toThrow(
      code('ERR_ARGUMENT'),
    )
  })
})

it('the header is read in few steps, and the data are not', async () => {
  const tokens = Array.from({ length: 50_000 }, (_, at) => `token ${at}`)
  const to = new Encoder()
  const texts = to.array(
    8,
    tokens.map((text) => to.text(text)),
  )
  const data = Buffer.alloc(64 * 2 ** 20)
  const infos = [{ name: 'w', dims: [data.length / 4], type: 0, offset: 0 }]
  const memory = new MemorySource(ggufFile({ keys: [ARCHITECTURE, to.key('tokens', 9, texts)], infos, data }))
  const reads: number[] = []
  const source = {
    byteLength: memory.byteLength,
    read: (start: number, end: number) => {
      reads.push(end - start)
      return memory.read(start, end)
    },
  }
  const file = await openGguf(source)
  expect(reads.length).toBeLessThan(10)
  expect(reads.reduce((sum, count) => sum + count)).toBeLessThan(4 * 2 ** 20)
  expect(file.gguf.metadata.get('tokens')?.value).toEqual(tokens)
  expect(await check(source)).toEqual([])
})
