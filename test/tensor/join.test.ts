/** `concat`, `stack`, `pad` and `split`, compared with models that pick elements one by one. */
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import {
  affine,
  asLayout,
  cast,
  concat,
  type DenseTensor,
  type Dtype,
  materialize,
  open,
  pad,
  reorder,
  save,
  slice,
  split,
  stack,
  tensor,
} from '../../lib/index.js'
import { StoredTensor } from '../../lib/tensor/dense.js'
import { JoinedTensor } from '../../lib/tensor/joined.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()

function ramp(shape: readonly number[], first = 1, dtype: Dtype = 'int16', name = ''): DenseTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const values = Array.from({ length: count }, (_, i) => (first + i) % 120)
  return tensor(values, { dtype, shape, name })
}

/** The same tensor from a source that reads ranges asynchronously, as an upload or an object store. */
function ranged(given: DenseTensor): DenseTensor {
  const memory = new MemorySource(given.bytesSync())
  const source: ByteSource = {
    byteLength: memory.byteLength,
    read: (start, end) => memory.read(start, end),
  }
  return new StoredTensor({ source, start: 0, dtype: given.dtype, shape: given.shape, name: given.name })
}

const valuesOf = async (given: DenseTensor): Promise<number[]> =>
  Array.from((await given.toTypedArray()) as ArrayLike<number>, Number)

function* indicesOf(shape: readonly number[]): Generator<number[]> {
  const [extent, ...rest] = shape
  if (extent === undefined) yield []
  else for (let i = 0; i < extent; i++) for (const inner of indicesOf(rest)) yield [i, ...inner]
}

/** The values of a tensor of `shape`, by a function of the index. */
const model = (shape: readonly number[], at: (index: number[]) => number): number[] =>
  Array.from(indicesOf(shape), at)

function concatModel(parts: readonly DenseTensor[], axis: number): number[] {
  const extent = parts.reduce((sum, part) => sum + part.shape[axis]!, 0)
  return model(
    parts[0]!.shape.map((own, at) => (at === axis ? extent : own)),
    (index) => {
      let position = index[axis]!
      const part = parts.find(({ shape }) => {
        if (position < shape[axis]!) return true
        position -= shape[axis]!
        return false
      })!
      return Number(part.at(...index.map((own, at) => (at === axis ? position : own))))
    },
  )
}

describe('concat', () => {
  it.each([0, 1, 2, -1])('joins along axis %i', async (axis) => {
    const at = axis < 0 ? axis + 3 : axis
    const parts = [2, 1, 3].map((extent, n) =>
      ramp(
        [2, 3, 2].map((own, i) => (i === at ? extent : own)),
        30 * n,
      ),
    )
    const whole = concat(parts, { axis })
    expect(await valuesOf(whole)).toEqual(concatModel(parts, at))
    expect(whole.shape[at]).toBe(6)
    expect(Number(whole.at(...whole.shape.map((extent) => extent - 1)))).toBe((await valuesOf(whole)).at(-1))
  })

  it('fuses later casts, scalings, slices and reorders into its parts', async () => {
    const parts = [ramp([1, 3, 4, 5], 1, 'uint8'), ramp([2, 3, 4, 5], 50, 'uint8')]
    const scale = [1, 2, 3]
    const joined = concat(parts)
    const after = reorder(slice(affine(joined, { scale, axis: 1 }), [[2, null, -2], null, [1, 4]]), 'nhwc')
    expect(after).toBeInstanceOf(JoinedTensor)
    expect((after as JoinedTensor).recipe.parts.map(({ shape }) => shape[0])).toEqual([1, 1])
    const flat = tensor(concatModel(parts, 0), { dtype: 'uint8', shape: [3, 3, 4, 5] })
    const expected = reorder(slice(affine(flat, { scale, axis: 1 }), [[2, null, -2], null, [1, 4]]), 'nhwc')
    expect(await after.bytes()).toEqual(await expected.bytes())
    expect(after.bytesSync()).toEqual(expected.bytesSync())
  })

  it('scales each part by its own numbers along the joined axis', async () => {
    const parts = [ramp([2, 2], 1), ramp([2, 3], 7)]
    const whole = affine(concat(parts, { axis: 1 }), { scale: [1, 10, 100, 1000, 10000], axis: 1 })
    expect(await valuesOf(whole)).toEqual([1, 20, 700, 8000, 90000, 3, 40, 1000, 11000, 120000])
  })

  it('keeps a shared layout, blocked ones where parts are whole blocks', async () => {
    const blocked = (extent: number, first: number) =>
      reorder(ramp([2, extent, 2, 2], first, 'float32'), 'b_fs_yx_fsv16')
    const whole = concat([blocked(16, 1), blocked(5, 40)], { axis: 1 })
    expect(whole.storage.layout).toBe('b_fs_yx_fsv16')
    const plain = concat([ramp([2, 16, 2, 2], 1, 'float32'), ramp([2, 5, 2, 2], 40, 'float32')], { axis: 1 })
    expect(await whole.bytes()).toEqual(await reorder(plain, 'b_fs_yx_fsv16').bytes())
    const cut = concat([blocked(5, 1), blocked(16, 40)], { axis: 1 })
    expect(cut.storage.layout).toBe('row_major')
    expect(await valuesOf(cut)).toEqual(concatModel([blocked(5, 1), blocked(16, 40)], 1))
  })

  it('reads every range of its bytes', async () => {
    const parts = [
      ramp([7, 1, 3], 1),
      ranged(ramp([7, 4, 3], 30)),
      cast(ramp([7, 2, 3], 60, 'uint8'), 'int16'),
    ]
    const whole = concat(parts, { axis: 1 })
    const bytes = await whole.bytes()
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length), fc.nat(bytes.length), async (a, b) => {
        const [start, end] = [Math.min(a, b), Math.max(a, b)]
        expect(await whole.bytes({ start, end })).toEqual(bytes.slice(start, end))
      }),
      { numRuns: 200 },
    )
    expect(() => whole.bytesSync()).toThrow(expect.objectContaining({ code: 'ERR_ASYNC_ONLY' }))
  })

  it('stages short chunks and writes long ones directly', async () => {
    for (const [a, b] of [
      [3, 5],
      [40_000, 1],
      [1, 40_000],
    ] as const) {
      const rows = 80_000 / (a + b) > 100 ? 100_000 : 20
      const left = new Uint8Array(rows * a).map((_, i) => i % 251)
      const right = new Uint8Array(rows * b).map((_, i) => i % 241)
      const whole = concat(
        [
          cast(tensor(left, { shape: [rows, a] }), 'int16'),
          tensor(Int16Array.from(right), { shape: [rows, b] }),
        ],
        { axis: 1 },
      )
      const expected = new Int16Array(rows * (a + b))
      for (let row = 0; row < rows; row++) {
        expected.set(left.subarray(row * a, row * a + a), row * (a + b))
        expected.set(right.subarray(row * b, row * b + b), row * (a + b) + a)
      }
      const bytes = Buffer.from(expected.buffer)
      expect(bytes.equals(await whole.bytes())).toBe(true)
      expect(bytes.equals(whole.bytesSync())).toBe(true)
    }
  })

  it('writes files from files', async () => {
    const [a, b] = [ramp([300, 50, 40], 3, 'uint8', 'a'), ramp([200, 50, 40], 9, 'uint8', 'b')]
    const path = inFolder('parts.safetensors')
    await save(path, [a, b])
    const file = await open(path)
    const parts = [file.dense('a'), file.dense('b')]
    for (const whole of [
      concat(parts),
      affine(concat(parts), { scale: 2 }),
      stack([parts[0]!, parts[0]!], { axis: -1 }),
    ]) {
      const target = inFolder('joined.npy')
      await save(target, [whole])
      const saved = await open(target)
      const [only] = saved.tensors
      expect(only!.shape).toEqual(whole.shape)
      expect(Buffer.from(await (only as DenseTensor).bytes()).equals(await whole.bytes())).toBe(true)
      saved.close()
    }
    file.close()
  })

  it('fills memory of a caller directly where every part computes on its thread', async () => {
    const parts = [ramp([300, 50, 40], 3, 'uint8'), ramp([200, 50, 40], 9, 'uint8')]
    const onThread = (given: DenseTensor) =>
      ((given as StoredTensor).source as { fillsOnThread?: boolean }).fillsOnThread
    const whole = cast(concat(parts), 'float32')
    for (const each of [concat(parts), whole, pad(whole, [1, 1, 1]), concat([whole, whole])]) {
      expect(onThread(each)).toBe(true)
      const target = new Uint8Array(each.storage.byteLength)
      await each.copyTo(target)
      expect(Buffer.from(target.buffer).equals(each.bytesSync())).toBe(true)
    }
    expect(onThread(cast(concat([parts[0]!, ranged(parts[1]!)]), 'float32'))).not.toBe(true)
  })

  it('takes empty tensors, and a single one', async () => {
    const empty = ramp([0, 3])
    expect(await valuesOf(concat([empty, ramp([1, 3]), empty]))).toEqual([1, 2, 3])
    expect(concat([empty, empty]).shape).toEqual([0, 3])
    expect((await concat([empty, empty]).bytes()).byteLength).toBe(0)
    expect(concat([ramp([4, 0]), ramp([2, 0])]).shape).toEqual([6, 0])
    expect(await valuesOf(concat([ramp([2])]))).toEqual([1, 2])
  })

  it('names both tensors that do not agree', () => {
    const a = ramp([2, 3], 1, 'int16', 'a')
    expect(() => concat([a, ramp([2, 4], 1, 'int16', 'b')])).toThrow(
      expect.objectContaining({
        code: 'ERR_ARGUMENT',
        message:
          'tensor 1 "b" is int16 [2,4] and tensor 0 "a" is int16 [2,3]; the shapes may differ along axis 0 only.',
      }),
    )
    expect(() => concat([a, ramp([2, 3], 1, 'int8', 'c')])).toThrow(
      expect.objectContaining({
        code: 'ERR_DTYPE',
        message:
          'tensor 1 "c" is int8 [2,3] and tensor 0 "a" is int16 [2,3]; the element types must be equal.',
      }),
    )
    expect(() => concat([])).toThrow('tensors is an empty list; concat takes a list of at least one tensor.')
    expect(() => concat([a], { axis: 2 })).toThrow('axis is 2; it must be a whole number from -2 to 1.')
    expect(() => concat([ramp([])])).toThrow('axis is 0; the tensor has no axes.')
  })

  it('refuses elements below a byte whose tensors end inside a byte', async () => {
    const nibbles = (extent: number) =>
      tensor(Array(extent * 2).fill(3), { dtype: 'int4', shape: [2, extent] })
    expect(() => concat([nibbles(3), nibbles(2)], { axis: 1 })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
    expect(await valuesOf(concat([nibbles(3), nibbles(3)]))).toEqual(Array(12).fill(3))
  })
})

describe('stack', () => {
  it.each([0, 1, 2, -1])('makes a new axis at %i', async (axis) => {
    const parts = [ramp([2, 3], 1), ramp([2, 3], 40), cast(ramp([2, 3], 80, 'uint8'), 'int16')]
    const at = axis < 0 ? axis + 3 : axis
    const whole = stack(parts, { axis })
    const shape = [2, 3]
    shape.splice(at, 0, 3)
    expect(whole.shape).toEqual(shape)
    const expected = model(shape, (index) => {
      const [part] = index.splice(at, 1)
      return Number(parts[part!]!.at(...index))
    })
    expect(await valuesOf(whole)).toEqual(expected)
    expect(await valuesOf(slice(cast(whole, 'float32'), [[1, null], null, [1, null]]))).toEqual(
      await valuesOf(slice(tensor(expected, { dtype: 'float32', shape }), [[1, null], null, [1, null]])),
    )
  })

  it('stacks scalars, joined tensors and tensors in other layouts', async () => {
    expect(await valuesOf(stack([tensor(1, { dtype: 'int8' }), tensor(2, { dtype: 'int8' })]))).toEqual([
      1, 2,
    ])
    const joined = concat([ramp([1, 2]), ramp([1, 2], 3)])
    expect(await valuesOf(stack([joined, joined], { axis: 1 }))).toEqual([1, 2, 1, 2, 3, 4, 3, 4])
    const nhwc = reorder(ramp([1, 2, 2, 2]), 'nhwc')
    expect(await valuesOf(stack([nhwc, nhwc]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8])
    const scaled = affine(ramp([2, 2]), { scale: [1, 10], axis: 1 })
    expect(await valuesOf(stack([scaled, scaled], { axis: 1 }))).toEqual([1, 20, 1, 20, 3, 40, 3, 40])
  })

  it('names both tensors that do not agree', () => {
    expect(() => stack([ramp([2]), ramp([3])])).toThrow(
      'tensor 1 "" is int16 [3] and tensor 0 "" is int16 [2]; the shapes must be equal.',
    )
  })
})

describe('pad', () => {
  const padModel = (
    inner: DenseTensor,
    widths: readonly (readonly [number, number])[],
    value: number,
  ): number[] =>
    model(
      inner.shape.map((extent, axis) => extent + widths[axis]![0] + widths[axis]![1]),
      (index) => {
        const own = index.map((at, axis) => at - widths[axis]![0])
        const isIn = own.every((at, axis) => at >= 0 && at < inner.shape[axis]!)
        return isIn ? Number(inner.at(...own)) : value
      },
    )

  test('elements of one value around the tensor', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.nat(3), fc.nat(3)), { maxLength: 4 }),
        fc.integer({ min: -3, max: 3 }),
        async (axes, value) => {
          const inner = ramp(axes.map(([extent]) => extent))
          const widths = axes.map(([, before, after]) => [before, after] as const)
          const padded = pad(inner, widths, { value })
          expect(await valuesOf(padded)).toEqual(padModel(inner, widths, value))
        },
      ),
      { numRuns: 100 },
    )
  })

  it('takes one number for both ends, and missing axes', async () => {
    expect(await valuesOf(pad(ramp([1, 2]), [1]))).toEqual([0, 0, 1, 2, 0, 0])
    expect(await valuesOf(pad(ramp([2]), [[0, 1]], { value: 7 }))).toEqual([1, 2, 7])
    expect(pad(ramp([2]), [null]).shape).toEqual([2])
  })

  it('fuses with casts, scalings, slices and reorders', async () => {
    const image = asLayout(ramp([24], 1, 'uint8'), 'nhwc', [1, 3, 2, 4])
    const padded = pad(image, [0, 0, [1, 1], [0, 2]], { value: 114 })
    expect(padded.storage.layout).toBe(image.storage.layout)
    const scaled = affine(padded, { mean: [1, 2, 3], std: 2, axis: 1 })
    const flat = tensor(
      padModel(
        image,
        [
          [0, 0],
          [0, 0],
          [1, 1],
          [0, 2],
        ],
        114,
      ),
      { dtype: 'uint8', shape: padded.shape },
    )
    const expected = affine(flat, { mean: [1, 2, 3], std: 2, axis: 1 })
    expect(await valuesOf(scaled)).toEqual(await valuesOf(expected))
    expect(await valuesOf(reorder(cast(padded, 'float16'), 'nchw'))).toEqual(await valuesOf(flat))
    expect(await valuesOf(slice(padded, [null, null, [0, 1]]))).toEqual(Array(18).fill(114))
    const owned = await materialize(reorder(padded, 'b_fs_yx_fsv16'))
    expect(await valuesOf(owned)).toEqual(await valuesOf(flat))
  })

  it('refuses wrong widths and values', () => {
    expect(() => pad(ramp([2]), [1, 1])).toThrow('widths has 2 entries; the tensor has rank 1.')
    expect(() => pad(ramp([2]), [[1] as never])).toThrow(
      'widths[0] has 1 entries; a list is [before, after].',
    )
    expect(() => pad(ramp([2]), [-1])).toThrow('widths[0] is -1; it must be a whole number from 0.')
    expect(() => pad(ramp([2], 1, 'int8'), [1], { value: 300 })).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })
})

describe('split', () => {
  it('makes equal parts', async () => {
    const parts = split(ramp([2, 6]), 3, { axis: -1 })
    expect(await Promise.all(parts.map(valuesOf))).toEqual([
      [1, 2, 7, 8],
      [3, 4, 9, 10],
      [5, 6, 11, 12],
    ])
    expect(await valuesOf(concat(parts, { axis: 1 }))).toEqual(await valuesOf(ramp([2, 6])))
  })

  it('cuts at indices', async () => {
    const parts = split(ramp([5]), [2, 2, -1, 9])
    expect(await Promise.all(parts.map(valuesOf))).toEqual([[1, 2], [], [3, 4], [5], []])
  })

  it('refuses sections that it cannot make', () => {
    expect(() => split(ramp([5]), 2)).toThrow('sections is 2, which does not divide the extent 5.')
    expect(() => split(ramp([5]), 0)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    expect(() => split(ramp([5]), [0.5])).toThrow('sections[0] is 0.5; it must be a whole number.')
    expect(() => split(ramp([0]), 2 ** 30)).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
  })
})
