/**
 * The 6-bit floats against ml_dtypes: all codes to every type, all codes of small types and sampled floats to them. The vectors
 * are made by test/fixtures/float6.py.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { decodeFloatCode } from '../../lib/dtype/decode.js'
import { encodeFloatCode } from '../../lib/dtype/encode.js'
import { storeCode } from '../../lib/dtype/packed_codes.js'
import {
  asTensor,
  type CastOptions,
  cast,
  concat,
  type DenseTensor,
  DTYPES,
  type Dtype,
  diff,
  materialize,
  open,
  pad,
  parseLayout,
  quantize,
  reorder,
  serialize,
  slice,
  stats,
  swapBitOrder,
  tensor,
} from '../../lib/index.js'

interface Case {
  readonly from: Dtype
  readonly to: Dtype
  readonly source: string
  readonly result: string
}

const CASES: readonly Case[] = JSON.parse(
  readFileSync(new URL('../fixtures/float6.json', import.meta.url), 'utf8'),
)
const FLOAT6 = ['float6_e2m3fn', 'float6_e3m2fn'] as const

/** A vector of the elements of a fixture. */
function stored(dtype: Dtype, hex: string): DenseTensor {
  const bytes = new Uint8Array(Buffer.from(hex, 'hex'))
  const { bits } = DTYPES[dtype]
  if (bits >= 8) return asTensor(bytes, { dtype, shape: [(bytes.length * 8) / bits] })
  const packed = new Uint8Array(Math.ceil((bytes.length * bits) / 8))
  for (const [at, code] of bytes.entries()) storeCode(bits, packed, at, code)
  return asTensor(packed, { dtype, shape: [bytes.length] })
}

describe.each<CastOptions>([{ mode: 'onnx', saturate: false }, { mode: 'spec' }])('casts, %o', (options) => {
  it.each(CASES)('$from to $to', async ({ from, to, source, result }) => {
    const given = stored(from, source)
    const found = await cast(given, to, options).toTypedArray()
    const wanted = await stored(to, result).toTypedArray()
    const values = await given.toTypedArray()
    expect(found.length).toBe(wanted.length)
    for (let i = 0; i < found.length; i++) {
      // What no mode of ours shares with ml_dtypes: float8 without saturation, small integers rounded toward zero, and the
      // double rounding of wide sources.
      const value = Number(values[i])
      const isOwn =
        options.mode === 'spec' &&
        ((Number.isNaN(value) && DTYPES[to].bits <= 6) ||
          (to.includes('int') && DTYPES[to].bits < 8 && !Number.isInteger(value)) ||
          (from === 'float64' && Math.fround(value) !== value))
      if (!isOwn && !Object.is(found[i], wanted[i]))
        expect.fail(`${value} became ${found[i]}, not ${wanted[i]}`)
    }
  })
})

describe.each(FLOAT6)('%s', (dtype) => {
  const codes = Uint8Array.from({ length: 64 }, (_, i) => i)
  const all = stored(dtype, Buffer.from(codes).toString('hex'))

  it.each(['spec', 'onnx'] as const)('NaN is -0 in mode %s, as on the page of ONNX', async (mode) => {
    const nan = asTensor(Uint32Array.of(0x7fc00000, 0xffc00000), { dtype: 'float32', shape: [2] })
    const found = await cast(nan, dtype, { mode }).bits()
    expect([...found]).toEqual(mode === 'spec' ? [32, 32] : [32, 0])
  })

  it('rounds once to what single-value encoding gives, with streamed and threaded parts', async () => {
    const count = 3_000_001
    const values = Float32Array.from({ length: count }, (_, i) => Math.sin(i) * 2 ** ((i % 23) - 16))
    const found = await cast(asTensor(values), dtype).bits()
    for (let i = 0; i < count; i += 17) {
      if (found[i] !== encodeFloatCode(dtype, values[i]!)) expect.fail(`${values[i]} became ${found[i]}`)
    }
    expect(found[count - 1]).toBe(encodeFloatCode(dtype, values[count - 1]!))
    const back = await cast(cast(asTensor(values), dtype), 'float32').toTypedArray()
    for (let i = 0; i < count; i += 17) expect(back[i]).toBe(decodeFloatCode(dtype, found[i]!))
  })

  it('casts between storages of any length, elements of two bytes included', async () => {
    for (let count = 0; count <= 70; count++) {
      const values = Array.from({ length: count }, (_, i) => decodeFloatCode(dtype, (i * 37) % 64))
      const packed = tensor(values, { dtype })
      expect(packed.storage.byteLength).toBe(Math.ceil((count * 6) / 8))
      const wide = asTensor(Float32Array.from(values))
      expect(await cast(wide, dtype).bytes()).toEqual(await packed.bytes())
      expect(await cast(packed, 'float32').toTypedArray()).toEqual(Float32Array.from(values))
      for (let i = 0; i < count; i++) expect(packed.at(i)).toBe(values[i])
    }
  })

  it('moves after a cast, and before one', async () => {
    const rows = asTensor(await all.bytes(), { dtype, shape: [8, 8] })
    const moved = reorder(cast(rows, 'float32'), 'column_major')
    const values = await all.toTypedArray()
    const expected = Float32Array.from(
      { length: 64 },
      (_, i) => values[(i % 8) * 8 + Math.floor(i / 8)] as number,
    )
    expect(await moved.bytes()).toEqual(new Uint8Array(expected.buffer))
    expect([...(await cast(await materialize(reorder(moved, 'row_major')), dtype).bits())]).toEqual([
      ...codes,
    ])
    const columns = slice(cast(rows, 'float32'), [{}, { start: 3, end: 4 }])
    expect([...(await columns.toTypedArray())]).toEqual(
      Array.from({ length: 8 }, (_, y) => values[8 * y + 3]),
    )
  })

  it('is moved by no kernel, by name', () => {
    const rows = asTensor(all.bytesSync(), { dtype, shape: [8, 8], name: 'w' })
    const message = `tensor "w" is ${dtype}, whose elements of 6 bits cannot be moved`
    expect(() => reorder(rows, 'column_major')).toThrow(message)
    expect(() => slice(rows, [{}, { start: 1 }])).toThrow(message)
    expect(() => swapBitOrder(all.bytesSync(), dtype)).toThrow('takes element types of 4 or 2 bits')
  })

  it('has storage in layouts, whose holes are zero', async () => {
    const storage = parseLayout('b_fs_yx_fsv16').storage([1, 3, 2, 2], { dtype })
    expect(storage.byteLength).toBe((16 * 4 * 6) / 8)
  })

  it('is compared, counted, padded and joined', async () => {
    const values = (await all.toTypedArray()) as Float32Array
    const found = await stats(all)
    expect(found).toMatchObject({ count: 64, min: Math.min(...values), max: Math.max(...values), zeros: 2 })
    const long = await materialize(cast(asTensor(new Float32Array(1_000_003).fill(1)), dtype))
    expect(await stats(long)).toMatchObject({ count: 1_000_003, min: 1, max: 1, mean: 1 })
    const joined = concat([all, all])
    expect([...(await joined.bits())]).toEqual([...codes, ...codes])
    const padded = pad(all, [[4, 4]], { value: 1 })
    const one = encodeFloatCode(dtype, 1)
    expect([...(await padded.bits())]).toEqual([...Array(4).fill(one), ...codes, ...Array(4).fill(one)])
  })

  it('is quantized and comes back', async () => {
    const quantized = quantize(asTensor(Float32Array.of(0.5, -2, 1e9, -1e9, 0)), dtype, { scale: 0.5 })
    const { max } = DTYPES[dtype].limits as { max: number }
    expect([...(await quantized.toTypedArray())]).toEqual([1, -4, max, -max, 0])
  })

  it.each(['onnx', 'safetensors'] as const)(
    'is the same after %s, and diff names what changed',
    async (format) => {
      const one = asTensor(await all.bytes(), { dtype, shape: [4, 16], name: 'w' })
      const changed = (await all.bytes()).slice()
      storeCode(6, changed, 37, 9)
      using a = await open(await serialize([one], { format }))
      using b = await open(
        await serialize([asTensor(changed, { dtype, shape: [4, 16], name: 'w' })], { format }),
      )
      expect([a.dense('w').dtype, a.dense('w').shape]).toEqual([dtype, [4, 16]])
      expect(await a.dense('w').bytes()).toEqual(await all.bytes())
      const differences = await diff(a, b)
      expect(JSON.stringify(differences)).toContain('"index":[2,5]')
    },
  )
})
