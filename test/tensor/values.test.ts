/** Conversion of values from and to tensors: large typed arrays, Float16Array, strings, bit order. */
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype, isMovable } from '../../lib/dtype/dtypes.js'
import {
  asTensor,
  cast,
  type DenseTensor,
  open,
  reorder,
  type StringTensor,
  serialize,
  slice,
  swapBitOrder,
  tensor,
} from '../../lib/index.js'

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

const UNPACKED = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => {
  const { bits, kind } = DTYPES[dtype]
  return bits > 0 && (bits < 8 || (kind === 'float' && bits < 32))
})

/** Every code of a type, repeated. */
function manyOf(dtype: Dtype, count: number): DenseTensor {
  const { bits } = DTYPES[dtype]
  const bytes = Uint8Array.from({ length: Math.ceil((count * bits) / 8) }, (_, i) =>
    bits === 16 && i % 2 === 1 ? (i >> 1) % 251 : (i * 7 + (i >> 8)) % 256,
  )
  return asTensor(bytes, { dtype, shape: [count] })
}

describe.each(UNPACKED)('%s', (dtype) => {
  // Below and above the size from which the addon decodes; odd counts end inside a byte.
  it.each([5, 4095, 4096, 70001])('%s elements equal the values of at()', async (count) => {
    const many = manyOf(dtype, count)
    const values = await many.toTypedArray()
    expect(values.length).toBe(count)
    expect(values.constructor.name).toBe(
      DTYPES[dtype].kind === 'float'
        ? 'Float32Array'
        : DTYPES[dtype].kind === 'int'
          ? 'Int8Array'
          : 'Uint8Array',
    )
    for (let i = 0; i < count; i += count > 5000 ? 7 : 1) {
      if (!Object.is(values[i], many.at(i))) expect.fail(`element ${i}: ${values[i]}, not ${many.at(i)}`)
    }
  })

  it('also for lazy and blocked tensors', async () => {
    if (!isMovable(dtype)) return
    const many = asTensor(await manyOf(dtype, 2 * 19 * 16 * 16).bytes(), { dtype, shape: [2, 19, 16, 16] })
    const part = [null, { start: 1 }]
    const expected = await slice(many, part).toTypedArray()
    const values = await many.toTypedArray()
    expect([...expected]).toEqual([...values].filter((_, i) => Math.floor(i / 256) % 19 > 0))
    expect(await slice(reorder(many, 'b_fs_yx_fsv16'), part).toTypedArray()).toEqual(expected)
    expect(await cast(cast(many, 'float64'), dtype, { saturate: false }).toTypedArray()).toEqual(values)
  })
})

const hasFloat16Array = 'Float16Array' in globalThis
if (!hasFloat16Array) console.warn(`skipped: Node ${process.version} has no Float16Array`)

describe('float16Array', () => {
  it.skipIf(!hasFloat16Array)('gives the stored numbers', async () => {
    const many = manyOf('float16', 5000)
    const found = await many.toTypedArray({ float16Array: true })
    expect(found.constructor.name).toBe('Float16Array')
    expect(new Uint8Array(found.buffer as ArrayBuffer)).toEqual(await many.bytes())
    expect([...found]).toEqual([...((await many.toTypedArray()) as Float32Array)])
    const again = tensor(found as ArrayBufferView)
    expect(again.dtype).toBe('float16')
    expect(await again.bytes()).toEqual(await many.bytes())
    const lazy = cast(tensor([0.1, 2], { dtype: 'float32' }), 'float16')
    expect((await lazy.toTypedArray({ float16Array: true }))[0]).toBe(lazy.at(0))
  })

  it.skipIf(hasFloat16Array)('is refused where there is none', async () => {
    await expect(manyOf('float16', 3).toTypedArray({ float16Array: true })).rejects.toThrow(
      code('ERR_UNSUPPORTED'),
    )
  })

  it('changes nothing for other types', async () => {
    const found = await tensor([1.5], { dtype: 'bfloat16' }).toTypedArray({ float16Array: true })
    expect(found).toEqual(Float32Array.of(1.5))
  })
})

describe('strings', () => {
  it('nested, flat and scalar', async () => {
    const nested = tensor(
      [
        ['a', 'ß'],
        ['', 'd'],
      ],
      { dtype: 'string', name: 'words' },
    )
    expect(nested).toMatchObject({ kind: 'string', dtype: 'string', shape: [2, 2], size: 4, name: 'words' })
    expect(await nested.strings()).toEqual(['a', 'ß', '', 'd'])
    expect((await nested.rawStrings())[1]).toEqual(Uint8Array.of(0xc3, 0x9f))
    expect(tensor(['a', 'b'], { dtype: 'string', shape: [2, 1] }).shape).toEqual([2, 1])
    expect(tensor('a', { dtype: 'string' }).shape).toEqual([])
  })

  it('round-trip through a file', async () => {
    const words = tensor(
      [
        ['a', 'ß'],
        ['', 'd\0e'],
      ],
      { dtype: 'string', name: 'words' },
    )
    const file = await open(await serialize([words], { format: 'onnx' }), { format: 'onnx' })
    const back = file.tensors.at(0) as StringTensor
    expect(back.shape).toEqual([2, 2])
    expect(await back.strings()).toEqual(await words.strings())
  })

  it.each<[string, () => unknown]>([
    ['a number among them', () => tensor(['a', 1] as never, { dtype: 'string' })],
    ['a ragged row', () => tensor([['a'], ['b', 'c']], { dtype: 'string' })],
    ['another shape', () => tensor(['a', 'b'], { dtype: 'string', shape: [3] })],
    ['a typed array', () => tensor(new Uint8Array(2) as never, { dtype: 'string' })],
    ['strings as numbers', () => tensor(['1'] as never, { dtype: 'float32' })],
  ])('reject %s', (_, act) => {
    expect(act).toThrow(code('ERR_ARGUMENT'))
  })
})

describe('swapBitOrder', () => {
  it('of 4-bit elements, odd counts too', async () => {
    const bytes = Uint8Array.of(0x12, 0xf8, 0x70)
    const low = asTensor(bytes, { dtype: 'int4', shape: [5], bitOrder: 'low-first' })
    const high = asTensor(bytes, { dtype: 'int4', shape: [5], bitOrder: 'high-first' })
    expect(await low.toTypedArray()).toEqual(Int8Array.of(2, 1, -8, -1, 0))
    expect(await high.toTypedArray()).toEqual(Int8Array.of(1, 2, -1, -8, 7))
    expect(swapBitOrder(await high.bytes(), 'int4')).toEqual(bytes)
    expect([...bytes]).toEqual([0x12, 0xf8, 0x70])
  })

  it('of 2-bit elements', async () => {
    const bytes = Uint8Array.of(0b00011011, 0b11000000)
    const high = asTensor(bytes, { dtype: 'uint2', shape: [5], bitOrder: 'high-first' })
    expect(await high.toTypedArray()).toEqual(Uint8Array.of(0, 1, 2, 3, 3))
    expect(swapBitOrder(swapBitOrder(bytes, 'uint2'), 'int2')).toEqual(bytes)
  })

  it.each<[string, () => unknown, string]>([
    ['bytes', () => swapBitOrder(new Uint8Array(1), 'int8'), 'ERR_DTYPE'],
    ['no bytes', () => swapBitOrder([1] as never, 'int4'), 'ERR_ARGUMENT'],
    [
      'another order',
      () => asTensor(new Uint8Array(1), { dtype: 'int4', bitOrder: 'big' as never }),
      'ERR_ARGUMENT',
    ],
    [
      'an order of whole bytes',
      () => asTensor(new Uint8Array(1), { dtype: 'int8', bitOrder: 'high-first' }),
      'ERR_DTYPE',
    ],
  ])('rejects %s', (_, act, error) => {
    expect(act).toThrow(code(error))
  })
})
