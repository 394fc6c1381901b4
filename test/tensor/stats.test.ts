/** stats compared with a JavaScript reference, from memory, files and user sources, for layouts with holes. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  asTensor,
  cast,
  type DenseTensor,
  type Dtype,
  open,
  reorder,
  save,
  serialize,
  setThreads,
  slice,
  sparseFromDense,
  stats,
  tensor,
  threads,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

function countsOf(values: readonly number[], start: number, width: number, bins: number): number[] {
  const counts = Array<number>(bins).fill(0)
  for (const value of values) counts[Math.floor(value / width) - start / width]!++
  return counts
}

describe('stats', () => {
  it('match the reference for random numbers', async () => {
    const numbers = fc.array(fc.float(), { minLength: 1, maxLength: 300 })
    await fc.assert(
      fc.asyncProperty(numbers, fc.integer({ min: 2, max: 40 }), async (list, bins) => {
        const found = await stats(tensor(Float32Array.from(list)), { bins })
        const finite = list.filter(Number.isFinite)
        const zeros = list.filter((value) => value === 0).length
        expect(found).toMatchObject({
          count: list.length,
          zeros,
          zeroShare: zeros / list.length,
          nans: list.filter(Number.isNaN).length,
          infinities: list.filter((value) => Math.abs(value) === Number.POSITIVE_INFINITY).length,
          min: finite.length === 0 ? null : Math.min(...finite) + 0,
          max: finite.length === 0 ? null : Math.max(...finite) + 0,
        })
        if (finite.length === 0) {
          expect([found.mean, found.histogram]).toEqual([null, null])
          return
        }
        const mean = finite.reduce((sum, value) => sum + value / finite.length, 0)
        const largest = Math.max(...finite.map(Math.abs))
        expect(Math.abs(found.mean! - mean)).toBeLessThanOrEqual(largest * 1e-9)
        const { start, width, counts } = found.histogram!
        expect(counts.length).toBeLessThanOrEqual(bins)
        expect(countsOf(finite, start, width, counts.length)).toEqual([...counts])
      }),
      { numRuns: 300 },
    )
  })

  it.each<Dtype>([
    'int4',
    'uint2',
    'bool',
    'int8',
    'uint16',
    'float16',
    'bfloat16',
    'float8_e5m2',
    'float64',
  ])('of %s', async (dtype) => {
    const values = Array.from({ length: 1001 }, (_, i) => i % 2)
    const found = await stats(tensor(values, { dtype }))
    expect(found).toMatchObject({ count: 1001, min: 0, max: 1, mean: 500 / 1001, zeros: 501 })
  })

  it('of 64-bit integers are exact', async () => {
    const values = BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n, 0n)
    expect(await stats(tensor(values))).toMatchObject({ min: values[0], max: values[1], zeros: 1, nans: 0 })
    const large = await stats(tensor(BigUint64Array.of(2n ** 64n - 1n, 2n ** 63n)))
    expect(large).toMatchObject({ min: 2n ** 63n, max: 2n ** 64n - 1n })
  })

  it.each([
    ['complex64', Float32Array],
    ['complex128', Float64Array],
  ] as const)('of %s elements by their magnitudes', async (dtype, Halves) => {
    const halves = Halves.of(3, 4, 0, -0, Number.NaN, 1, Infinity, Number.NaN, -6, 8, 1e30, 0)
    const pairs = asTensor(new Uint8Array(halves.buffer), { dtype, shape: [6] })
    const largest = halves[10]!
    const expected = { count: 6, min: 0, max: largest, zeros: 1, zeroShare: 1 / 6, nans: 1, infinities: 1 }
    const found = await stats(pairs)
    expect(found).toMatchObject(expected)
    expect(found.mean! / (largest / 4)).toBeCloseTo(1)
    await save(inFolder(`${dtype}.npy`), pairs)
    expect(await stats((await open(inFolder(`${dtype}.npy`))).dense(0))).toEqual(found)
  })

  it('of more complex elements than one window holds', async () => {
    const count = 1_100_000
    const numbers = tensor(Float32Array.from({ length: count }, (_, i) => (i % 3) - 1))
    const found = await stats(cast(numbers, 'complex64'))
    expect(found).toMatchObject({ count, min: 0, max: 1, nans: 0 })
    expect(found.zeros + found.mean! * count).toBeCloseTo(count)
  })

  it('without elements, and without finite ones', async () => {
    const empty = { count: 0, min: null, max: null, mean: null, zeroShare: 0, histogram: null }
    expect(await stats(tensor([], { dtype: 'float32' }))).toMatchObject(empty)
    const infinite = await stats(tensor([Infinity, Number.NaN], { dtype: 'float32' }))
    expect(infinite).toMatchObject({ count: 2, min: null, histogram: null, infinities: 1, nans: 1 })
  })

  it('excludes padding and elements outside a slice', async () => {
    const x = tensor(
      Float32Array.from({ length: 2 * 19 * 5 * 7 }, (_, i) => i + 1),
      { shape: [2, 19, 5, 7] },
    )
    const whole = await stats(x)
    expect(await stats(reorder(x, 'b_fs_yx_fsv16'))).toEqual(whole)
    expect(await stats(reorder(x, 'bfyx', { lower: [0, 1, 0, 2] }))).toEqual(whole)
    expect(await stats(slice(x, [{ start: 1 }]))).toMatchObject({ count: 665, min: 666, max: 1330 })
    expect(await stats(cast(x, 'float64'))).toEqual(whole)
  })

  it('is the same from memory, a file and a user source, with any number of threads', async () => {
    const values = Float32Array.from({ length: 3_000_001 }, (_, i) => Math.sin(i) * (i % 1000))
    const x = asTensor(values)
    const path = inFolder('x.npy')
    await save(path, [x])
    const file = await open(path)
    const read = await open(path, { mode: 'read' })
    const bytes = await serialize(x, { format: 'npy' })
    const own = await open({
      byteLength: bytes.byteLength,
      label: 'mine',
      read: async (start, end) => bytes.slice(start, end),
    })
    const expected = await stats(x)
    const before = threads()
    for (const count of [1, 3]) {
      setThreads(count)
      for (const source of [x, file.tensors.at(0), read.tensors.at(0), own.tensors.at(0)]) {
        expect(await stats(source as DenseTensor)).toEqual(expected)
      }
    }
    setThreads(before)
    file.close()
    read.close()
  })

  it('has finite bins for the largest numbers', async () => {
    const x = tensor([-1.7e308, 0, 1.7e308], { dtype: 'float64' })
    for (const bins of [2, 3, 64, 1024]) {
      const { start, width, counts } = (await stats(x, { bins })).histogram!
      expect([start, width].every(Number.isFinite)).toBe(true)
      expect(start).toBeLessThanOrEqual(-1.7e308)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3)
    }
  })

  it('names the option whose getter threw', async () => {
    const options = {
      get bins(): number {
        throw new Error('boo')
      },
    }
    await expect(stats(tensor([1], { dtype: 'int8' }), options)).rejects.toThrow(code('ERR_ARGUMENT'))
  })

  it('reports progress and stops on abort', async () => {
    const x = asTensor(new Float32Array(1 << 20))
    const steps: number[] = []
    await stats(x, { onBytes: (bytes) => steps.push(bytes) })
    expect(steps.reduce((a, b) => a + b, 0)).toBe(4 << 20)
    await expect(stats(x, { signal: AbortSignal.abort() })).rejects.toThrow(code('ERR_ABORTED'))
  })

  it.each<[string, () => Promise<unknown>, string]>([
    ['no tensor', () => stats(undefined as never), 'ERR_ARGUMENT'],
    ['one bin', () => stats(tensor([1], { dtype: 'int8' }), { bins: 1 }), 'ERR_ARGUMENT'],
    ['too many bins', () => stats(tensor([1], { dtype: 'int8' }), { bins: 1025 }), 'ERR_ARGUMENT'],
    ['no options', () => stats(tensor([1], { dtype: 'int8' }), null as never), 'ERR_ARGUMENT'],
    [
      'a sparse tensor',
      async () => stats(await sparseFromDense(tensor([1], { dtype: 'int8' }))),
      'ERR_UNSUPPORTED',
    ],
  ])('rejects %s', async (_, act, error) => {
    await expect(act()).rejects.toThrow(code(error))
  })
})
