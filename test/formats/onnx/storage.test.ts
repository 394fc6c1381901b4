/** Every element type in every ONNX storage, compared bit by bit with the original bytes. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { DTYPES, type Dtype } from '../../../lib/dtype/dtypes.js'
import { packedByteLength } from '../../../lib/dtype/packed_codes.js'
import type { Level } from '../../../lib/errors.js'
import { TYPED_FIELDS } from '../../../lib/formats/onnx/tensor/header.js'
import { onnx } from '../../../lib/models/onnx/index.js'
import type { DenseTensor, StringTensor } from '../../../lib/tensor/tensor.js'
import { randomNumbers } from '../../attacks/random_numbers.js'
import {
  type Bytes,
  field,
  fixed,
  int,
  join,
  modelProto,
  raw,
  readOptions,
  tensorProto,
  varint,
} from './onnx_bytes.js'

/** Codes, typed fields and entry sizes, from the comments of onnx.proto and independent of lib/formats/onnx/schema.ts. */
// biome-ignore format: a table is read by its lines.
const STORED: readonly [code: number, dtype: Exclude<Dtype, 'string'>, field: number, entryBytes: number, wire: 'varint' | 'fixed'][] = [
  [1, 'float32', 4, 4, 'fixed'], [2, 'uint8', 5, 1, 'varint'], [3, 'int8', 5, 1, 'varint'],
  [4, 'uint16', 5, 2, 'varint'], [5, 'int16', 5, 2, 'varint'], [6, 'int32', 5, 4, 'varint'],
  [7, 'int64', 7, 8, 'varint'], [9, 'bool', 5, 1, 'varint'], [10, 'float16', 5, 2, 'varint'],
  [11, 'float64', 10, 8, 'fixed'], [12, 'uint32', 11, 4, 'varint'], [13, 'uint64', 11, 8, 'varint'],
  [14, 'complex64', 4, 4, 'fixed'], [15, 'complex128', 10, 8, 'fixed'], [16, 'bfloat16', 5, 2, 'varint'],
  [17, 'float8_e4m3fn', 5, 1, 'varint'], [18, 'float8_e4m3fnuz', 5, 1, 'varint'],
  [19, 'float8_e5m2', 5, 1, 'varint'], [20, 'float8_e5m2fnuz', 5, 1, 'varint'],
  [21, 'uint4', 5, 1, 'varint'], [22, 'int4', 5, 1, 'varint'], [23, 'float4_e2m1fn', 5, 1, 'varint'],
  [24, 'float8_e8m0fnu', 5, 1, 'varint'], [25, 'uint2', 5, 1, 'varint'], [26, 'int2', 5, 1, 'varint'],
  [27, 'float6_e2m3fn', 5, 1, 'varint'], [28, 'float6_e3m2fn', 5, 1, 'varint'],
]

/** Random elements; unused bits of the last byte are zero, booleans 0 or 1. */
function randomElements(dtype: Dtype, count: number, seed: number): Bytes {
  const random = randomNumbers(seed + 1)
  const bytes = Uint8Array.from({ length: packedByteLength(dtype, count) }, () =>
    random(dtype === 'bool' ? 2 : 256),
  )
  const { bits } = DTYPES[dtype]
  const used = (count * bits) % 8
  if (bits < 8 && used > 0) bytes[bytes.length - 1]! &= 2 ** used - 1
  return bytes
}

/** Entries of a typed field, each as its bytes on the wire. */
function entriesOf(
  elements: Bytes,
  dtype: Dtype,
  count: number,
  entryBytes: number,
  wire: 'varint' | 'fixed',
): Bytes[] {
  // Of float6 an entry is one element.
  if (DTYPES[dtype].bits === 6) {
    const bitsOf = (byte: number): string => byte.toString(2).padStart(8, '0')
    const stream = [...elements].reverse().map(bitsOf).join('')
    const end = stream.length
    return Array.from({ length: count }, (_, i) =>
      varint(Number.parseInt(stream.slice(end - 6 * i - 6, end - 6 * i), 2)),
    )
  }
  const entries: Bytes[] = []
  for (let at = 0; at < elements.length; at += entryBytes) {
    const bytes = elements.subarray(at, at + entryBytes)
    const value = bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
    const isSigned = DTYPES[dtype].kind === 'int' && DTYPES[dtype].bits >= 8
    entries.push(wire === 'fixed' ? bytes : varint(isSigned ? BigInt.asIntN(8 * entryBytes, value) : value))
  }
  return entries
}

const unpacked = (number: number, entries: readonly Bytes[], wire: 'varint' | 'fixed'): Bytes =>
  join(
    ...entries.map((bytes) => (wire === 'fixed' ? fixed(number, bytes) : join(varint(number << 3), bytes))),
  )

const SHAPES = [[], [0], [3, 0, 2], [7], [3, 5], [2, 3, 4]].map((shape) => ({ shape }))

describe.each(['lenient', 'strict'] as const)('%s', (level: Level) => {
  describe.each(STORED)('code %i, %s', (code, dtype, number, entryBytes, wire) => {
    it.each(SHAPES)('of shape $shape', async ({ shape }) => {
      const count = shape.reduce((size, extent) => size * extent, 1)
      const elements = randomElements(dtype, count, code * 100 + count)
      const entries = entriesOf(elements, dtype, count, entryBytes, wire)
      const half = Math.floor(entries.length / 2)
      const storages: Record<string, Bytes> = {
        raw: raw(...elements),
        packed: field(number, join(...entries)),
        unpacked: unpacked(number, entries, wire),
        'two runs': join(
          field(number, join(...entries.slice(0, half))),
          field(number, join(...entries.slice(half))),
        ),
        mixed: join(
          unpacked(number, entries.slice(0, half), wire),
          field(number, join(...entries.slice(half))),
        ),
      }
      for (const [storage, values] of Object.entries(storages)) {
        const message = tensorProto({ dims: shape, type: code, name: 'w', values })
        for (const bytes of [message, modelProto({ initializers: [message] })]) {
          const { tensors, findings } = await onnx.read(new MemorySource(bytes), readOptions(level))
          expect(findings, storage).toEqual([])
          expect(tensors.length).toBe(1)
          const tensor = tensors.get('w') as DenseTensor
          expect([tensor.dtype, tensor.shape, tensor.hasData]).toEqual([dtype, shape, true])
          expect(await tensor.bytes(), storage).toEqual(elements)
          expect(tensor.bytesSync(), storage).toEqual(elements)
          expect(await onnx.check(new MemorySource(bytes), readOptions(level)), storage).toEqual([])
        }
      }
      const external = { location: 'w.bin', offset: '3', length: String(elements.length) }
      const outside = modelProto({
        initializers: [tensorProto({ dims: shape, type: code, name: 'w', external })],
      })
      const folder = { 'w.bin': join([9, 9, 9], elements, [9]) }
      const { tensors, findings } = await onnx.read(new MemorySource(outside), readOptions(level, folder))
      expect(findings).toEqual([])
      expect(await (tensors.at(0) as DenseTensor).bytes()).toEqual(elements)
    })
  })
})

it('keeps the low bits of entries that are too large, as the Python package onnx does', async () => {
  const values = field(5, join(varint(300), varint(-1), varint(-2)))
  const bytes = tensorProto({ dims: [3], type: 3, values })
  const { tensors } = await onnx.read(new MemorySource(bytes), readOptions())
  expect([...(await (tensors.at(0) as DenseTensor).toTypedArray())]).toEqual([44, -1, -2])
})

it.each([
  ['float6_e2m3fn', 27],
  ['float6_e3m2fn', 28],
] as const)('%s has the bytes of the example of onnx.proto, and one code per entry', async (_, code) => {
  const entries = join(...[4, 40, 31, 31, 33].map((value) => varint(value)))
  const stored = tensorProto({ dims: [5], type: code, values: raw(0x04, 0xfa, 0x7d, 0x21) })
  const typed = tensorProto({ dims: [5], type: code, values: field(5, entries) })
  for (const bytes of [stored, typed]) {
    const { tensors } = await onnx.read(new MemorySource(bytes), readOptions())
    expect([...(await (tensors.at(0) as DenseTensor).bits())]).toEqual([4, 40, 31, 31, 33])
  }
  for (const [values, fault] of [
    [entries.subarray(1), 'ERR_TRUNCATED'],
    [join(entries, varint(0)), 'ERR_GAP'],
  ] as const) {
    const bytes = tensorProto({ dims: [5], type: code, values: field(5, values) })
    expect(await onnx.check(new MemorySource(bytes), readOptions('strict'))).toMatchObject([{ code: fault }])
  }
})

it('knows every typed field by its number', () => {
  const numbers = Object.values(TYPED_FIELDS).map((each) => each.number)
  expect(new Set(STORED.map(([, , number]) => number))).toEqual(new Set(numbers))
})

describe('strings', () => {
  const texts = ['', 'Zürich', 'a\0b', '日本']
  const bytes = tensorProto({
    dims: [2, 2],
    type: 8,
    name: 's',
    values: join(...texts.map((text) => field(6, text))),
  })

  it('are read in order, empty ones and NUL included', async () => {
    const { tensors } = await onnx.read(new MemorySource(bytes), readOptions())
    const tensor = tensors.get('s') as StringTensor
    expect([tensor.kind, tensor.shape, tensor.hasData]).toEqual(['string', [2, 2], true])
    expect(await tensor.strings()).toEqual(texts)
    expect((await tensor.rawStrings()).map((each) => Buffer.from(each).toString())).toEqual(texts)
  })

  it('keep their bytes where they are not UTF-8', async () => {
    const bad = tensorProto({ dims: [1], type: 8, values: field(6, [0xff, 0x41]) })
    const { tensors } = await onnx.read(new MemorySource(bad), readOptions())
    const tensor = tensors.at(0) as StringTensor
    await expect(tensor.strings()).rejects.toMatchObject({ code: 'ERR_DTYPE' })
    expect(await tensor.rawStrings()).toEqual([Uint8Array.of(0xff, 0x41)])
    const findings = await onnx.check(new MemorySource(bad), readOptions('lenient'))
    expect(findings.map(({ code }) => code)).toEqual(['ERR_DTYPE'])
  })
})

describe('a tensor header', () => {
  it('gives the doc string and metadata', async () => {
    const about = join(field(12, 'weights of the first layer'), field(16, join(field(1, 'k'), field(2, 'v'))))
    const bytes = join(tensorProto({ dims: [1], type: 2, values: raw(7), name: 'w' }), about)
    const { tensors } = await onnx.read(new MemorySource(bytes), readOptions())
    const tensor = tensors.at(0)!
    expect([tensor.doc, [...tensor.metadata]]).toEqual(['weights of the first layer', [['k', 'v']]])
  })

  it('of a segment gives a tensor without data', async () => {
    const bytes = tensorProto({
      dims: [4],
      type: 2,
      values: join(field(3, join(int(1, 0), int(2, 2))), raw(1, 2)),
    })
    const { tensors, findings } = await onnx.read(new MemorySource(bytes), readOptions())
    expect(findings.map(({ code }) => code)).toEqual(['ERR_UNSUPPORTED'])
    const tensor = tensors.at(0) as DenseTensor
    expect([tensor.shape, tensor.hasData]).toEqual([[4], false])
    await expect(tensor.bytes()).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    expect(() => tensor.bytesSync()).toThrow(expect.objectContaining({ code: 'ERR_NO_DATA' }))
  })

  it('may contain unknown fields and groups', async () => {
    const unknown = join(
      int(77, 5),
      field(99, 'x'),
      fixed(98, new Uint8Array(8)),
      [0xa3, 0x06],
      int(1, 3),
      [0xa4, 0x06],
    )
    const bytes = join(unknown, tensorProto({ dims: [2], type: 2, values: raw(1, 2) }), unknown)
    const options = { ...readOptions(), message: 'TensorProto' }
    const { tensors, findings } = await onnx.read(new MemorySource(bytes), options)
    expect(findings).toEqual([])
    expect(await (tensors.at(0) as DenseTensor).bytes()).toEqual(Uint8Array.of(1, 2))
  })
})
