/**
 * Casts compared with JavaScript arithmetic and the encoder of single values: every code of every type up to 8 bits, and
 * each seventh of 16 bits, to every type, in all orders with slices and reorders, from memory, files and user sources.
 */
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype } from '../../lib/dtype/dtypes.js'
import { encodeAll } from '../../lib/dtype/encode.js'
import {
  asLayout,
  asTensor,
  type ByteSource,
  type CastOptions,
  cast,
  type DenseTensor,
  dequantize,
  materialize,
  open,
  planReorder,
  reorder,
  save,
  serialize,
  slice,
  tensor,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

const REAL = (Object.keys(DTYPES) as Dtype[]).filter(
  (dtype) => !['complex', 'string'].includes(kindOf(dtype)),
)
const SMALL = REAL.filter((dtype) => DTYPES[dtype].bits <= 16)

function kindOf(dtype: Dtype): string {
  return DTYPES[dtype].kind
}

/** Between two codes of 16 bits that are cast: all low bits come up. TILEWORK_EVERY_CODE=1 casts all, which takes two minutes. */
const STRIDE = process.env.TILEWORK_EVERY_CODE === '1' ? 1 : 7

/** All codes of a type of up to 8 bits, each seventh of 16 bits and the last one, a sample of values of a wider type. */
function allOf(dtype: Dtype): DenseTensor {
  const { bits, kind } = DTYPES[dtype]
  if (bits > 16) {
    const numbers = [
      0, 1, -1, 0.5, 1.5, 2.5, 100, 127.5, -129, 300, 65504, 65519, 65520, 1e6, 1e10, -1e20, 1e-7,
    ]
    const isFloat = kind === 'float'
    const held = isFloat
      ? [...numbers, Number.NaN, -0, 1e300]
      : numbers.filter((n) => n % 1 === 0 && inRange(n, dtype))
    return tensor(bits === 64 && !isFloat ? held.map(BigInt) : held, { dtype })
  }
  if (bits === 16) {
    const chosen = Uint16Array.from({ length: Math.ceil(2 ** 16 / STRIDE) }, (_, at) => at * STRIDE)
    const ends = Uint16Array.of(
      ...chosen,
      0x7bff,
      0x7c00,
      0x7fff,
      0x8000,
      0xfbff,
      0xfc00,
      0xffff,
      0x7f80,
      0xff80,
    )
    return asTensor(new Uint8Array(ends.buffer), { dtype, shape: [ends.length] })
  }
  const count = 2 ** bits
  const codes = new Uint8Array(Math.max(1, (count * bits) / 8))
  for (let i = 0; i < count; i++) codes[(i * bits) >> 3]! |= i << ((i * bits) & 7)
  return asTensor(codes, { dtype, shape: [count] })
}

function inRange(value: number, dtype: Dtype): boolean {
  const { min, max } = DTYPES[dtype].limits!
  return value >= min && value <= max
}

/** The expected result of a cast, in JavaScript arithmetic. */
function expectedOf(value: number | bigint | boolean, from: Dtype, to: Dtype): number | bigint | boolean {
  const { bits, kind } = DTYPES[to]
  if (kind === 'bool') return Number(value) !== 0
  if (kind === 'float') return typeof value === 'boolean' ? Number(value) : value
  const exact = kindOf(from) === 'float' ? wholeOf(Number(value), to) : BigInt(value)
  return kind === 'int' ? BigInt.asIntN(bits, exact) : BigInt.asUintN(bits, exact)
}

function wholeOf(value: number, to: Dtype): bigint {
  if (DTYPES[to].bits < 8) return Number.isFinite(value) ? BigInt(evenOf(value)) : 0n
  if (Number.isNaN(value)) return 0n
  const { min, max } = DTYPES[to].limits!
  if (value <= Number(min)) return BigInt(min)
  return value >= Number(max) ? BigInt(max) : BigInt(Math.trunc(value))
}

function evenOf(value: number): number {
  const low = Math.floor(value)
  const fraction = value - low
  return fraction > 0.5 || (fraction === 0.5 && low % 2 !== 0) ? low + 1 : low
}

function valuesOf(t: DenseTensor): (number | bigint | boolean)[] {
  return Array.from({ length: t.size }, (_, i) => t.at(i))
}

describe.each(SMALL)('every %s', (from) => {
  const source = allOf(from)
  const values = valuesOf(source)

  it.each(REAL.filter((to) => to !== from))('as %s', async (to) => {
    for (const saturate of [true, false]) {
      const expected = values.map((value) => expectedOf(value, from, to))
      const bytes = encodeAll(to, expected, { saturate })
      const found = cast(source, to, { saturate })
      // JavaScript numbers do not expose the sign and payload of NaN.
      expect(valuesEqual(found, asTensor(bytes, { dtype: to, shape: source.shape })), `${saturate}`).toBe(
        true,
      )
      expect((await found.bytes()).length).toBe(bytes.length)
    }
  })
})

/** Equal bytes are equal values; other bytes may be, as those of NaN. */
function valuesEqual(one: DenseTensor, other: DenseTensor): boolean {
  const bytes = one.bytesSync()
  if (Buffer.compare(bytes, other.bytesSync()) === 0) return true
  const owned = asTensor(bytes, { dtype: one.dtype, shape: one.shape })
  for (let i = 0; i < one.size; i++) {
    if (!Object.is(owned.at(i), other.at(i)))
      expect.fail(`element ${i} is ${owned.at(i)}, not ${other.at(i)}`)
  }
  return true
}

describe.each(REAL.filter((dtype) => !SMALL.includes(dtype)))('%s', (from) => {
  const source = allOf(from)
  const values = valuesOf(source)

  it.each(REAL.filter((to) => to !== from))('as %s', (to) => {
    const expected = values.map((value) => expectedOf(value, from, to))
    const bytes = encodeAll(to, expected)
    expect(valuesEqual(cast(source, to), asTensor(bytes, { dtype: to, shape: source.shape }))).toBe(true)
  })
})

const SHAPE = [2, 19, 5, 7]
const COUNT = 2 * 19 * 5 * 7
const counting = (): DenseTensor =>
  tensor(
    Float32Array.from({ length: COUNT }, (_, i) => (i - 300) / 8),
    { shape: SHAPE, name: 'w' },
  )

/** An asynchronous user source. */
function ownSource(bytes: Uint8Array): ByteSource {
  return {
    byteLength: bytes.byteLength,
    label: 'a source of my own',
    read: async (start, end) => bytes.slice(start, end),
  }
}

describe('fused', () => {
  it('gives the same bytes in any order with reorder and slice', async () => {
    const base = counting()
    const part = [null, { start: 1, end: 18, step: 2 }, { start: -1, step: -1 }]
    const expected = await reorder(
      await materialize(cast(await materialize(slice(base, part)), 'int8')),
      'b_fs_yx_fsv16',
    ).bytes()
    const orders = [
      reorder(cast(slice(base, part), 'int8'), 'b_fs_yx_fsv16'),
      cast(reorder(slice(base, part), 'b_fs_yx_fsv16'), 'int8'),
      reorder(slice(cast(base, 'int8'), part), 'b_fs_yx_fsv16'),
      cast(slice(reorder(base, 'b_fs_yx_fsv16'), part), 'int8'),
    ]
    for (const lazy of orders) {
      expect(lazy.dtype).toBe('int8')
      expect(await lazy.bytes()).toEqual(expected)
      expect(lazy.bytesSync({ start: 5, end: 77 })).toEqual(expected.slice(5, 77))
    }
  })

  it('a second cast rounds again', async () => {
    const twice = cast(cast(counting(), 'int8'), 'float32')
    const values = await twice.toTypedArray()
    expect(values).toEqual(
      Float32Array.from({ length: COUNT }, (_, i) => Math.min(127, Math.trunc((i - 300) / 8)) + 0),
    )
    expect(twice.at(0, 0, 0, 1)).toBe(Math.trunc(-299 / 8))
  })

  it.each<[Dtype, Dtype]>([
    ['float32', 'bfloat16'],
    ['float32', 'uint4'],
    ['int8', 'float64'],
    ['uint4', 'float32'],
    ['float8_e8m0fnu', 'float32'],
  ])('%s to %s: the same from memory, a file, a user source, and through a save', async (from, to) => {
    const base = await materialize(
      cast(
        tensor(
          Float32Array.from({ length: 1001 }, (_, i) => i % 13),
          {},
        ),
        from,
      ),
    )
    const shaped = asTensor(await base.bytes(), { dtype: from, shape: [7, 11, 13] })
    const expected = await materialize(reorder(cast(shaped, to), 'bfzyx', {}))
    const path = inFolder(`${from}_${to}.safetensors`)
    const isStorable = DTYPES[from].safetensors !== undefined
    if (isStorable) await save(path, [shaped])
    const bytes = await shaped.bytes()
    const file = isStorable ? await open(path) : undefined
    const read = file ? await open(path, { mode: 'read' }) : undefined
    const own = asTensor({ dtype: from, shape: [7, 11, 13], bytes: async () => bytes })
    const sources = [shaped, own, file?.tensors.at(0), read?.tensors.at(0)].filter((t) => t !== undefined)
    for (const source of sources) {
      const lazy = reorder(cast(source as DenseTensor, to), 'bfzyx')
      expect(await lazy.bytes()).toEqual(await expected.bytes())
      if (DTYPES[to].safetensors === undefined) continue
      const saved = await open(await serialize(cast(source as DenseTensor, to), { format: 'safetensors' }))
      expect(await (saved.tensors.at(0) as DenseTensor).toTypedArray()).toEqual(await expected.toTypedArray())
      const output = inFolder(`out_${from}_${to}.safetensors`)
      await save(output, [cast(source as DenseTensor, to)])
      const again = await open(output)
      expect(await (again.tensors.at(0) as DenseTensor).toTypedArray()).toEqual(await expected.toTypedArray())
      await again.close()
    }
    await file?.close()
    await read?.close()
  })

  it('holes are zero, also where the source type has no zero', async () => {
    const scales = asTensor(new Uint8Array(COUNT).fill(0x7f), { dtype: 'float8_e8m0fnu', shape: SHAPE })
    const bytes = await reorder(cast(scales, 'float32'), 'b_fs_yx_fsv16').bytes()
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)
    expect(values.filter((value) => value === 1).length).toBe(COUNT)
    expect(values.filter((value) => value !== 1 && value !== 0).length).toBe(0)
  })

  it('at and toTypedArray use the new type', async () => {
    const half = cast(tensor([1 / 3, -0, 70000], { dtype: 'float64' }), 'float16')
    expect([half.at(0), half.at(1), half.at(2)]).toEqual([0.333251953125, -0, Number.POSITIVE_INFINITY])
    expect(await half.toTypedArray()).toEqual(Float32Array.of(0.333251953125, -0, Number.POSITIVE_INFINITY))
    const packed = cast(tensor([1, 2, 3, -1, 5], { dtype: 'int32' }), 'int4')
    expect(await packed.bytes()).toEqual(Uint8Array.of(0x21, 0xf3, 0x05))
    expect(packed.at(3)).toBe(-1)
    expect(await cast(packed, 'int2').toTypedArray()).toEqual(Int8Array.of(1, -2, -1, -1, 1))
    expect(await cast(cast(packed, 'int2'), 'int64').toTypedArray()).toEqual(
      BigInt64Array.of(1n, -2n, -1n, -1n, 1n),
    )
  })

  it('2-bit elements can be reordered once they are wider, and be narrowed again without a move', async () => {
    const packed = asTensor(Uint8Array.of(0b11100100, 0b1001), { dtype: 'uint2', shape: [2, 3], name: 'q' })
    const wide = cast(packed, 'uint8')
    const rows = await wide.toTypedArray()
    expect(rows).toEqual(Uint8Array.of(0, 1, 2, 3, 1, 2))
    const columns = reorder(wide, 'column_major')
    expect(await columns.bytes()).toEqual(Uint8Array.of(0, 3, 1, 1, 2, 2))
    expect(columns.bytesSync()).toEqual(Uint8Array.of(0, 3, 1, 1, 2, 2))
    const reversed = slice(wide, [null, { step: -1 }])
    expect([reversed.at(0, 0), reversed.at(1, 2)]).toEqual([2, 3])
    expect(await cast(reversed, 'float32').toTypedArray()).toEqual(Float32Array.of(2, 1, 0, 2, 1, 3))
    const scaled = slice(dequantize(packed, { scale: [1, 2, 4], axis: 1 }), [{ start: 1 }, { start: 1 }])
    expect(await reorder(scaled, 'column_major').toTypedArray()).toEqual(Float32Array.of(2, 8))
    expect(await cast(columns, 'uint2').bytes()).toEqual(Uint8Array.of(0b01011100, 0b1010))
    const stored = asLayout(
      asTensor(await packed.bytes(), { dtype: 'uint2', shape: [6] }),
      'column_major',
      [2, 3],
    )
    expect(await cast(stored, 'uint8').toTypedArray()).toEqual(Uint8Array.of(0, 2, 1, 1, 3, 2))
    expect(() => reorder(packed, 'column_major')).toThrow(
      'tensor "q" is uint2, whose elements of 2 bits cannot be moved',
    )
    expect(() => slice(cast(columns, 'uint2'), [{ start: 1 }])).toThrow(
      '"q" is uint2, whose elements of 2 bits cannot be moved',
    )
  })

  it('complex to complex casts each part; complex to real is rejected', async () => {
    const pairs = asTensor(new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer), { dtype: 'complex64' })
    expect(await cast(pairs, 'complex128').toTypedArray()).toEqual(Float64Array.of(1, 2, 3, 4))
    expect(await cast(tensor([5], { dtype: 'int8' }), 'complex64').toTypedArray()).toEqual(
      Float32Array.of(5, 0),
    )
    expect(() => cast(pairs, 'float32')).toThrow(code('ERR_DTYPE'))
  })

  it('a cast to the same type returns the tensor itself', () => {
    const base = counting()
    expect(cast(base, 'float32')).toBe(base)
  })

  it('keeps the name of the tensor', () => {
    expect(cast(counting(), 'int8')).toMatchObject({ name: 'w', shape: SHAPE, dtype: 'int8' })
  })

  it('a large tensor is split over threads', async () => {
    const values = Float32Array.from({ length: 3_000_001 }, (_, i) => (i % 4001) - 2000)
    const found = await cast(asTensor(values), 'int16').toTypedArray()
    expect(found.length).toBe(values.length)
    for (let i = 0; i < values.length; i++) if (found[i] !== values[i]) expect.fail(`element ${i}`)
  })
})

describe('refuses', () => {
  it.each<[string, () => unknown, string]>([
    ['an unknown type', () => cast(counting(), 'float33' as Dtype), 'ERR_DTYPE'],
    ['strings', () => cast(counting(), 'string'), 'ERR_UNSUPPORTED'],
    ['a missing tensor', () => cast(undefined as unknown as DenseTensor, 'int8'), 'ERR_ARGUMENT'],
    [
      'an unknown mode',
      () => cast(counting(), 'int8', { mode: 'numpy' } as unknown as CastOptions),
      'ERR_ARGUMENT',
    ],
    ['an unknown option', () => cast(counting(), 'int8', { modus: 'onnx' } as CastOptions), 'ERR_ARGUMENT'],
    [
      'a rounding that is not a string',
      () => cast(counting(), 'int8', { round: 1 } as unknown as CastOptions),
      'ERR_ARGUMENT',
    ],
    [
      'a saturation that is not a boolean',
      () => cast(counting(), 'int8', { saturate: 1 } as unknown as CastOptions),
      'ERR_ARGUMENT',
    ],
    [
      'a reorder of 2-bit elements',
      () =>
        reorder(cast(asTensor(new Uint8Array(16), { dtype: 'int8', shape: [1, 2, 2, 4] }), 'int2'), 'byxf'),
      'ERR_UNSUPPORTED',
    ],
  ])('%s', (_, act, error) => {
    expect(act).toThrow(code(error))
  })

  it('an asynchronous source only in synchronous calls', async () => {
    const bytes = new Uint8Array(Float32Array.of(1, 2).buffer)
    const file = await open(
      ownSource(await serialize(asTensor(bytes, { dtype: 'float32' }), { format: 'npy' })),
    )
    const lazy = cast(file.tensors.at(0) as DenseTensor, 'int8')
    expect(() => lazy.bytesSync()).toThrow(code('ERR_ASYNC_ONLY'))
    expect(await lazy.toTypedArray()).toEqual(Int8Array.of(1, 2))
  })
})

it('a chain over the limit is rejected when it is built; the part below the limit can be read', async () => {
  const chain = (length: number): DenseTensor => {
    let x: DenseTensor = tensor([1, 2.5], { dtype: 'float32' })
    for (let at = 0; at < length; at++) x = cast(x, at % 2 === 0 ? 'float16' : 'float32')
    return x
  }
  const longest = chain(1000)
  expect([...(await longest.toTypedArray())]).toEqual([1, 2.5])
  expect(() => cast(longest, 'float16')).toThrow(code('ERR_LIMIT'))
  expect([...(await cast(await materialize(longest), 'float16').toTypedArray())]).toEqual([1, 2.5])
})

it('a plan without casts is unaffected', () => {
  const plan = planReorder({ dtype: 'float32', shape: [2, 3], from: 'row_major', to: 'row_major' })
  expect(plan.explain().kind).toBe('identity')
})
