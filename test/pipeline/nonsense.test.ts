/** Arguments that are none: always a TileworkError, never a bare TypeError and never silence. */
import { describe, expect, test } from 'vitest'
import {
  check,
  type DenseTensor,
  open,
  planReorder,
  reorder,
  save,
  serialize,
  slice,
  sparseFromDense,
  TileworkError,
  tensor,
} from '../../lib/index.js'

const NONSENSE: readonly unknown[] = [
  undefined,
  null,
  0,
  Number.NaN,
  -1,
  '',
  'x',
  [],
  {},
  () => 0,
  Symbol('s'),
]
const small = tensor([1, 2, 3], { dtype: 'int8' }) as DenseTensor
const bytes = await serialize(small)
const never = { code: expect.stringMatching(/^ERR_/) }

async function errorOf(action: () => unknown): Promise<unknown> {
  try {
    await action()
    return undefined
  } catch (error) {
    return error
  }
}

describe.each(NONSENSE.map((value) => [value]))('%s', (value) => {
  const calls: readonly [string, () => unknown][] = [
    ['open', () => open(value as never)],
    ['check', () => check(value as never)],
    ['options of open', () => open(bytes, value as never)],
    ['level', () => open(bytes, { level: value as never })],
    ['mode', () => open(bytes, { mode: value as never })],
    ['format', () => open(bytes, { format: value as never })],
    ['limits', () => open(bytes, { limits: value as never })],
    ['a limit', () => open(bytes, { limits: { tensors: value as never } })],
    // A text is a path, and a good one.
    ['target of save', () => typeof value === 'string' || save(value as never, small)],
    ['content of save', () => serialize(value as never)],
    ['signal', () => serialize(small, { signal: value as never })],
    ['reorder', () => reorder(value as never, 'bfyx')],
    ['layout', () => reorder(small, value as never)],
    ['slice', () => slice(value as never, [])],
    ['ranges', () => slice(small, value as never)],
    ['a range', () => slice(small, [value as never])],
    ['planReorder', () => planReorder(value as never)],
    ['shape', () => planReorder({ dtype: 'int8', shape: value as never, from: 'bfyx', to: 'byxf' })],
    ['a side', () => planReorder({ dtype: 'int8', shape: [1], from: value as never, to: 'byxf' })],
    [
      'a buffer',
      () =>
        planReorder({ dtype: 'int8', shape: [1], from: 'bfyx', to: 'byxf' }).run(
          value as never,
          new Uint8Array(1),
        ),
    ],
    ['copyTo', () => small.copyTo(value as never)],
    ['a start', () => small.copyTo(new Uint8Array(1), { start: value as never })],
    ['bytes', () => small.bytes(value as never)],
    ['close', async () => (await open(bytes)).close(value as never)],
  ]
  test.each(calls)('%s', async (_, action) => {
    const error = await errorOf(action)
    if (error !== undefined) {
      expect(error).toBeInstanceOf(TileworkError)
      expect(error).toMatchObject(never)
    }
  })
})

test.each([
  ['gopher://example.com/x.btf', 'ERR_ARGUMENT'],
  // On Windows a share of a server, which is not there.
  ['file://server/x.btf', process.platform === 'win32' ? 'ERR_IO' : 'ERR_ARGUMENT'],
])('save to %s', async (url, code) => {
  await expect(save(new URL(url), small)).rejects.toMatchObject({ code })
  await expect(open(new URL(url))).rejects.toMatchObject({ code })
})

describe('a tensor by its kind', () => {
  test('is found by name and by index', async () => {
    const file = await open(await serialize([small, await sparseFromDense(small, { name: 'other' })]))
    expect(file.dense(0).shape).toEqual([3])
    expect(file.dense('0').name).toBe('0')
    expect(file.sparse(-1).entryCount).toBe(3)
    expect(() => file.dense('1')).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED' }))
    expect(() => file.sparse(5)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    expect(() => file.dense(null as never)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })
})

describe('what would pass in silence', () => {
  test('an unknown option', async () => {
    await expect(open(bytes, { levle: 'strict' } as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    expect(() => slice(small, [{ stop: 3 } as never])).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
    await expect(open(bytes, { guard: 'yes' as never })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  test('an unknown extension', async () => {
    await expect(save('x.safetensor', small)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })
})
