/** Tensors with more axes than the native planner accepts can be cast, reordered, sliced and saved. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  asLayout,
  cast,
  type DenseTensor,
  materialize,
  open,
  planReorder,
  quantize,
  reorder,
  save,
  slice,
  tensor,
} from '../../lib/index.js'
import { MAX_AXES, MAX_PLANNED_AXES } from '../../lib/layout/limits.js'

const RANKS = [MAX_PLANNED_AXES + 1, 200, MAX_AXES]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tilework-rank-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Extents 2, 3, 4 and 5 at the first axis, two inner axes and the last; 1 elsewhere. */
function shapeOf(rank: number): number[] {
  const shape = Array<number>(rank).fill(1)
  shape[0] = 2
  shape[20] = 3
  shape[60] = 4
  shape[rank - 1] = 5
  return shape
}

const SMALL = [2, 3, 4, 5]
const VALUES = Array.from({ length: 120 }, (_, i) => i)

function tensorOf(rank: number): DenseTensor {
  return tensor(VALUES, { dtype: 'int32', shape: shapeOf(rank) })
}

async function valuesOf(t: DenseTensor): Promise<number[]> {
  return Array.from(await t.toTypedArray(), Number)
}

describe.each(RANKS)('rank %i', (rank) => {
  const shape = shapeOf(rank)
  const small = tensor(VALUES, { dtype: 'int32', shape: SMALL })

  it('is cast, and read as a typed array', async () => {
    const half = cast(tensorOf(rank), 'float16')
    expect(half.shape).toEqual(shape)
    expect(await valuesOf(half)).toEqual(VALUES)
    expect(await half.at(...shape.map((extent) => extent - 1))).toBe(119)
  })

  it('is quantized along its last axis', async () => {
    const scale = [1, 2, 4, 8, 16]
    const codes = quantize(cast(tensorOf(rank), 'float32'), 'int8', { scale, axis: -1 })
    const expected = quantize(cast(small, 'float32'), 'int8', { scale, axis: -1 })
    expect(await valuesOf(codes)).toEqual(await valuesOf(expected))
  })

  it('is reordered to column_major and back', async () => {
    const transposed = await materialize(reorder(tensorOf(rank), 'column_major'))
    const expected = await materialize(reorder(small, 'column_major'))
    expect(await transposed.bytes()).toEqual(await expected.bytes())
    expect(await valuesOf(reorder(transposed, 'row_major'))).toEqual(VALUES)
    const bytes = Uint8Array.from(await transposed.bytes())
    const stored = tensor(new Int32Array(bytes.buffer))
    expect(await valuesOf(asLayout(stored, 'column_major', shape))).toEqual(VALUES)
  })

  it('is sliced with steps along the axes that have them', async () => {
    const ranges = shape.map((): [number, number, number] => [0, 1, 1])
    ranges[0] = [1, 2, 1]
    ranges[20] = [0, 3, 2]
    ranges[60] = [1, 4, 2]
    ranges[rank - 1] = [0, 5, 3]
    const part = slice(tensorOf(rank), ranges)
    const expected = slice(small, [ranges[0], ranges[20]!, ranges[60]!, ranges[rank - 1]!])
    expect(part.size).toBe(8)
    expect(await valuesOf(part)).toEqual(await valuesOf(expected))
    expect(await valuesOf(cast(part, 'float32'))).toEqual(await valuesOf(expected))
  })

  it('is cast, saved as BTF and opened again', async () => {
    const path = join(folder, `${rank}.btf`)
    await save(path, [cast(tensorOf(rank), 'int64')])
    const file = await open(path)
    const [opened] = file.tensors as Iterable<DenseTensor>
    expect(opened!.shape).toEqual(shape)
    expect(await valuesOf(cast(opened!, 'float32'))).toEqual(VALUES)
    file.close()
  })

  it('is padded', () => {
    const lower = shape.map((_, axis) => (axis === 1 || axis === rank - 1 ? 1 : 0))
    const smallLower = [0, 1, 0, 0, 1]
    const source = new Uint8Array(VALUES)
    const plan = planReorder({ dtype: 'u8', shape, from: 'row_major', to: { layout: 'column_major', lower } })
    const expected = planReorder({
      dtype: 'u8',
      shape: [2, 1, 3, 4, 5],
      from: 'row_major',
      to: { layout: 'column_major', lower: smallLower },
    })
    const bytes = new Uint8Array(plan.destinationBytes)
    const expectedBytes = new Uint8Array(expected.destinationBytes)
    plan.runSync(source, bytes)
    expected.runSync(source, expectedBytes)
    expect(bytes).toEqual(expectedBytes)
  })

  it('is empty', async () => {
    const empty = shape.map((extent, axis) => (axis === 20 ? 0 : axis < 64 ? 2 : extent))
    const t = tensor([], { dtype: 'int32', shape: empty })
    expect(await valuesOf(cast(t, 'float16'))).toEqual([])
    expect(await valuesOf(reorder(t, 'column_major'))).toEqual([])
    const upper = empty.map((_, axis) => (axis === 20 ? 1 : 0))
    const padded = Array<number>(rank).fill(0)
    const plan = planReorder({
      dtype: 'u8',
      shape: padded,
      from: 'row_major',
      to: { layout: 'row_major', upper: upper.map(() => 1) },
    })
    const bytes = new Uint8Array(1).fill(7)
    plan.runSync(new Uint8Array(0), bytes)
    expect(bytes).toEqual(new Uint8Array(1))
  })
})

it('a reorder that needs more axes than the planner accepts is rejected', () => {
  const rank = 100
  const shape = Array<number>(rank).fill(1)
  const upperOf = (isPadded: (axis: number) => boolean) => shape.map((_, axis) => (isPadded(axis) ? 1 : 0))
  const call = () =>
    planReorder({
      dtype: 'uint8',
      shape,
      from: { layout: 'row_major', upper: upperOf((axis) => axis < 33) },
      to: { layout: 'row_major', upper: upperOf((axis) => axis >= 33 && axis < 66) },
    })
  expect(call).toThrow(
    expect.objectContaining({
      code: 'ERR_UNSUPPORTED',
      message: 'row_major to row_major: 66 of 100 axes are longer than 1; a reorder takes at most 64',
    }),
  )
})
