/** Transposes compared with elements that `at` reads one by one from the tensor itself. */
import { describe, expect, it } from 'vitest'
import {
  affine,
  asTensor,
  cast,
  concat,
  type DenseTensor,
  type Dtype,
  explain,
  materialize,
  pad,
  quantize,
  reorder,
  slice,
  stack,
  tensor,
  transpose,
} from '../../lib/index.js'

function ramp(shape: readonly number[], dtype: Dtype = 'int32'): DenseTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const modulus = dtype.endsWith('int4') ? 8 : dtype.endsWith('int8') ? 127 : 60_000
  return tensor(
    Array.from({ length: count }, (_, i) => i % modulus),
    { dtype, shape, name: 'ramp' },
  )
}

function valuesOf(array: ArrayLike<number> | ArrayLike<bigint>): unknown[] {
  return Array.from(array as ArrayLike<unknown>)
}

/** Row-major elements of the transpose, from those of the tensor. */
function model(
  values: ArrayLike<number> | ArrayLike<bigint>,
  shape: readonly number[],
  axes: readonly number[],
) {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1))
  let offsets = [0]
  for (const axis of axes) {
    offsets = offsets.flatMap((offset) =>
      Array.from({ length: shape[axis]! }, (_, i) => offset + i * strides[axis]!),
    )
  }
  return offsets.map((offset) => values[offset])
}

async function expectTransposed(given: DenseTensor, axes: readonly number[]): Promise<DenseTensor> {
  const moved = transpose(given, axes)
  const rank = axes.length
  expect(moved.shape).toEqual(axes.map((axis) => given.shape[(axis + rank) % rank]))
  expect(moved.storage.layout).toBe('row_major')
  expect([moved.dtype, moved.name]).toEqual([given.dtype, given.name])
  const positions = axes.map((axis) => (axis + rank) % rank)
  const expected = model(await given.toTypedArray(), given.shape, positions)
  expect(valuesOf(await moved.toTypedArray())).toEqual(expected)
  const owned = await materialize(moved)
  expect(valuesOf(await owned.toTypedArray())).toEqual(expected)
  return moved
}

function* permutations(rank: number): Generator<number[]> {
  if (rank === 0) yield []
  else
    for (const rest of permutations(rank - 1)) {
      for (let at = 0; at < rank; at++) yield [...rest.slice(0, at), rank - 1, ...rest.slice(at)]
    }
}

describe('transpose', () => {
  it.each([1, 2, 3, 4, 5])('moves every order of %d axes', async (rank) => {
    const shape = [2, 3, 1, 5, 4].slice(5 - rank)
    for (const axes of permutations(rank)) await expectTransposed(ramp(shape), axes)
  })

  it('reverses the axes by default, and counts negative ones from the last', async () => {
    const given = ramp([2, 3, 4])
    expect(transpose(given).shape).toEqual([4, 3, 2])
    expect(valuesOf(await transpose(given).toTypedArray())).toEqual(
      model(await given.toTypedArray(), [2, 3, 4], [2, 1, 0]),
    )
    await expectTransposed(given, [-1, 0, -2])
    expect(transpose(tensor(7, { dtype: 'float32' })).shape).toEqual([])
  })

  it.each<Dtype>(['int4', 'uint8', 'float16', 'float32', 'int64', 'float64'])(
    'moves %s, also where a tile is longer than a block of the kernels',
    async (dtype) => {
      await expectTransposed(ramp([130, 67], dtype), [1, 0])
      await expectTransposed(ramp([3, 65, 34], dtype), [0, 2, 1])
      await expectTransposed(ramp([3, 259, 514], dtype), [1, 2, 0])
    },
  )

  it('gives the bytes of a reorder to the memory order', async () => {
    const image = ramp([2, 3, 17, 33], 'float32')
    const moved = transpose(image, [0, 2, 3, 1])
    expect(await moved.bytes()).toEqual(await reorder(image, 'nhwc').bytes())
    expect(await transpose(moved, [0, 3, 1, 2]).bytes()).toEqual(await image.bytes())
  })

  it('is one plan with the slices and casts around it', async () => {
    const given = ramp([4, 6, 10], 'float32')
    const sliced = slice(given, [[1, 4], null, [9, 0, -2]])
    const moved = await expectTransposed(sliced, [2, 0, 1])
    expect(explain(moved).plans).toHaveLength(1)
    await expectTransposed(cast(sliced, 'float16'), [1, 2, 0])
    const after = slice(transpose(given, [2, 0, 1]), [[1, 8, 3], null, [0, 6, 2]])
    const expected = transpose(slice(given, [null, [0, 6, 2], [1, 8, 3]]), [2, 0, 1])
    expect(await after.toTypedArray()).toEqual(await expected.toTypedArray())
  })

  it('moves scales with their axes', async () => {
    const given = ramp([4, 6, 10], 'float32')
    const perAxis = quantize(given, 'uint8', {
      scale: [1, 2, 3, 4, 5, 6],
      zeroPoint: [1, 2, 3, 4, 5, 6],
      axis: 1,
    })
    for (const axes of permutations(3)) await expectTransposed(perAxis, axes)
    const blocked = quantize(given, 'int8', {
      scale: Array.from({ length: 4 * 6 * 5 }, (_, i) => i + 1),
      axis: 2,
      blockSize: 2,
    })
    for (const axes of permutations(3)) await expectTransposed(blocked, axes)
    await expectTransposed(affine(given, { scale: [1, 2, 3, 4], bias: [4, 3, 2, 1], axis: 0 }), [1, 0, 2])
  })

  it('moves the parts of joined tensors, and constants', async () => {
    const parts = concat([ramp([2, 3, 4]), ramp([2, 1, 4]), ramp([2, 2, 4])], { axis: 1 })
    for (const axes of permutations(3)) await expectTransposed(parts, axes)
    await expectTransposed(stack([ramp([3, 5], 'uint8'), ramp([3, 5], 'uint8')], { axis: 2 }), [2, 0, 1])
    const padded = pad(ramp([3, 6], 'int4'), [
      [1, 2],
      [4, 2],
    ])
    await expectTransposed(padded, [1, 0])
  })

  it('takes blocked tensors and any rank', async () => {
    await expectTransposed(reorder(ramp([2, 19, 5, 7], 'float32'), 'b_fs_yx_fsv16'), [0, 2, 3, 1])
    await expectTransposed(reorder(ramp([2, 3, 4]), 'column_major'), [2, 1, 0])
    await expectTransposed(ramp([2, 1, 2, 3, 1, 2, 2, 3, 1, 2]), [3, 2, 1, 0, 4, 5, 8, 7, 6, 9])
    await expectTransposed(ramp(Array(9).fill(2)), [1, 2, 3, 4, 5, 6, 7, 8, 0])
    expect(() => transpose(ramp(Array(9).fill(2)))).toThrow(
      expect.objectContaining({
        code: 'ERR_UNSUPPORTED',
        message: 'transpose would move 9 groups of axes of tensor "ramp"; the limit is 8.',
      }),
    )
  })

  it('takes empty tensors and tensors of the caller', async () => {
    await expectTransposed(ramp([2, 0, 3]), [2, 0, 1])
    await expectTransposed(asTensor(new Float32Array(6), { shape: [2, 3] }), [1, 0])
  })

  it.each([
    [[0], 'axes has 1 entries; the tensor has 2 axes.'],
    ['10', 'axes is "10"; it must be a list of axes.'],
    [[0, 0], 'axes has the axis 0 twice; it must have every axis once.'],
    [[0, 2], 'axis'],
    [[0, 0.5], 'axis'],
  ])('refuses the axes %j', (axes, message) => {
    expect(() => transpose(ramp([2, 3]), axes as number[])).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT', message: expect.stringContaining(message) }),
    )
  })
})
