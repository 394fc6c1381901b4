/** The arguments that planReorder accepts and refuses, with the errors. */
import { describe, expect, test } from 'vitest'
import {
  asTensor,
  cast,
  type PlanReorderOptions,
  parseLayout,
  planReorder,
  type RunOptions,
  reorder,
  slice,
  TileworkError,
} from '../../lib/index.js'

describe('an empty tensor', () => {
  const FAR = 2 ** 40

  test.each([[[0, FAR, FAR]], [[FAR, 0, FAR]], [[FAR, FAR, 0]]])(
    'of shape %j is reordered to nothing',
    (shape) => {
      for (const [from, to] of [
        ['row_major', 'column_major'],
        ['column_major', 'row_major'],
        ['bfyx', 'b_fs_yx_fsv16'],
      ] as const) {
        const plan = planReorder({ dtype: 'uint8', shape, from, to })
        expect([plan.sourceBytes, plan.destinationBytes]).toEqual([0, 0])
        plan.runSync(new Uint8Array(0), new Uint8Array(0))
      }
    },
  )

  test('with huge extents is sliced, reordered and cast', async () => {
    const empty = asTensor(new Uint8Array(0), { shape: [0, FAR, FAR] })
    const part = slice(empty, [null, { start: 1, step: 2 }, { step: -1 }])
    expect(part.shape).toEqual([0, FAR / 2, FAR])
    const numbers = await cast(reorder(part, 'column_major'), 'float32').toTypedArray()
    expect(numbers).toEqual(new Float32Array(0))
  })
})

const ASKED = { dtype: 'float32', shape: [2, 3, 4, 5], from: 'bfyx', to: 'b_fs_yx_fsv16' } as const
const plan = (options: object) => planReorder({ ...ASKED, ...options } as PlanReorderOptions)

const refused = (action: () => unknown, ...words: (string | RegExp)[]) => {
  let error: unknown
  try {
    action()
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(TileworkError)
  expect(error).toMatchObject({ code: 'ERR_ARGUMENT' })
  for (const word of words) expect((error as Error).message).toMatch(word)
}

function throwError(): never {
  throw new RangeError('a trap')
}

function throwing(): object {
  return new Proxy({}, { get: throwError, ownKeys: throwError })
}

function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

describe('options of planReorder', () => {
  test('that are unknown are refused by name', () => {
    refused(
      () => plan({ thraeds: 4 }),
      'unknown option "thraeds" of planReorder; expected one of: dtype, shape, from, to, as.',
    )
    refused(() => plan({ from: { layout: 'bfyx', loewr: [1, 1, 1, 1] } }), '"loewr"', 'lower, upper')
    refused(() => plan({ as: 'bad' }), 'as is "bad"')
    refused(() => plan({ as: null }), 'as is null')
    refused(() => planReorder(5 as never), '5 was given')
  })

  test('that cannot be read are refused', () => {
    for (const wrong of [throwing(), revoked()]) {
      refused(() => planReorder(wrong as PlanReorderOptions))
      for (const name of ['shape', 'from', 'to', 'as']) refused(() => plan({ [name]: wrong }))
    }
    for (const name of ['dtype', 'shape', 'from', 'to', 'as']) {
      const options = Object.defineProperty({ ...ASKED }, name, { enumerable: true, get: throwError })
      refused(() => planReorder(options), 'a trap')
    }
    refused(() => plan({ shape: revoked([1]) }))
  })

  test('with an object that is not a layout are refused', () => {
    refused(
      () => plan({ from: { storage: () => 7 } }),
      'the layout is an object; it must be a name or a layout from parseLayout',
    )
    refused(() => plan({ from: { ...parseLayout('bfyx'), storage: () => 7 } }), 'bfyx')
    refused(() => plan({ from: { layout: throwing() } }), 'a trap')
  })

  test('padding without a count for each axis is refused, also by layouts of any rank', () => {
    for (const layout of ['bfyx', 'row_major', 'column_major']) {
      for (const side of ['lower', 'upper']) {
        refused(() => plan({ from: { layout, [side]: [1] } }), `${side} has 1 counts; the shape has 4 axes`)
        const tensor = asTensor(new Uint8Array(120), { shape: [2, 3, 4, 5] })
        refused(() => reorder(tensor, layout, { [side]: [1] }), `${side} has 1 counts; the shape has 4 axes`)
      }
    }
    const named = plan({ shape: [2, 3], from: { layout: 'row_major', lower: [0, 1] }, to: 'bfyx' })
    expect(named.sourceBytes).toBe(2 * 4 * 4)
  })

  test('lists that are too long are refused before they are iterated', () => {
    const grows = new Proxy([1, 2], {
      get: (_, key) => (key === 'length' ? 2 ** 32 - 1 : 1),
      getOwnPropertyDescriptor: () => ({ value: 1, configurable: true, enumerable: true }),
    })
    const bfyx = parseLayout('bfyx')
    for (const list of [new Array(2 ** 32 - 1), grows]) {
      refused(() => plan({ shape: list }), 'the limit is 255')
      refused(() => plan({ to: { layout: 'bfyx', upper: list } }), 'the limit is 255')
      refused(() => bfyx.storage(list), 'the limit is 255')
      refused(() => bfyx.offsetOf(list, [0, 0, 0, 0]), 'the limit is 255')
      refused(() => bfyx.offsetOf([1, 1, 1, 1], list), 'the limit is 255')
      refused(() => bfyx.coordinateOf([1, 1, 1, 1], 0, { lower: list }), 'the limit is 255')
      const tensor = asTensor(new Uint8Array(4), { shape: [2, 2] })
      refused(() => reorder(tensor, 'column_major', { lower: list }), 'the limit is 255')
    }
  })
})

describe('a slice', () => {
  test('by ranges that cannot be read is refused', () => {
    const tensor = asTensor(new Uint8Array(4), { shape: [2, 2] })
    const range = Object.defineProperty({}, 'start', { enumerable: true, get: throwError })
    refused(() => slice(tensor, [range]), 'a trap')
    refused(() => slice(tensor, [throwing()]), 'a trap')
    refused(() => slice(tensor, revoked([]) as never))
    refused(() => slice(throwing() as never, []), 'a trap')
  })
})

describe('buffers of a run', () => {
  const bytes = plan({}).sourceBytes
  const run = (source: unknown, destination: unknown, options?: unknown) =>
    plan({}).run(source as Uint8Array, destination as Uint8Array, options as RunOptions)

  test.each<[string, () => unknown, string]>([
    ['null', () => null, 'null;'],
    ['a list', () => [1], 'an array;'],
    ['a Float32Array of too few bytes', () => new Float32Array(1), 'a typed array of 4 bytes; it must be a '],
    ['an ArrayBuffer', () => new ArrayBuffer(bytes), 'an ArrayBuffer;'],
    ['a Proxy', () => new Proxy(new Uint8Array(bytes), {}), 'an object;'],
    ['an object with the prototype of Uint8Array', () => Object.create(Uint8Array.prototype), 'an object;'],
    [
      'too few bytes',
      () => new Uint8Array(bytes - 1),
      `a typed array of ${bytes - 1} bytes; it must be a typed array of `,
    ],
  ])('that are %s', async (_, make, words) => {
    const { sourceBytes, destinationBytes } = plan({})
    const [source, destination] = [new Uint8Array(sourceBytes), new Uint8Array(destinationBytes)]
    refused(() => plan({}).runSync(make() as Uint8Array, destination), `the source is ${words}`, ' bytes')
    refused(() => plan({}).runSync(source, make() as Uint8Array), `the destination is ${words}`, ' bytes')
    await expect(run(make(), destination)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    await expect(run(source, make())).rejects.toThrow(words)
  })

  test('may be typed arrays of any element type, and parts of larger ones', async () => {
    const floats = planReorder({ dtype: 'float32', shape: [1, 3, 2, 2], from: 'nhwc', to: 'nchw' })
    const source = Float32Array.from({ length: 13 }, (_, at) => at).subarray(1)
    const expected = Float32Array.of(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12)
    const shared = new Float32Array(new SharedArrayBuffer(48))
    for (const destination of [new Float32Array(12), shared, new DataView(new ArrayBuffer(48))]) {
      for (const run of [() => floats.runSync(source, destination), () => floats.run(source, destination)]) {
        new Uint8Array(destination.buffer).fill(0)
        await run()
        expect(new Float32Array(destination.buffer)).toEqual(expected)
      }
    }
    const apart = new Float32Array(23)
    refused(() => floats.runSync(apart.subarray(0, 12), apart.subarray(11)), 'overlap')
  })

  test('with unknown or unreadable options', async () => {
    const { sourceBytes, destinationBytes } = plan({})
    const getter = Object.defineProperty({}, 'signal', { enumerable: true, get: throwError })
    for (const wrong of [{ singal: undefined }, 5, null, throwing(), getter, { signal: null }]) {
      const result = run(new Uint8Array(sourceBytes), new Uint8Array(destinationBytes), wrong)
      await expect(result).rejects.toBeInstanceOf(TileworkError)
      await expect(result).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })
})

test('the notes and aliases of a layout are frozen', () => {
  const { notes, aliases } = parseLayout('b_fs_yx_fsv16')
  expect(() => (notes as string[]).push('x')).toThrow(TypeError)
  expect(() => (aliases as string[]).push('x')).toThrow(TypeError)
  expect(plan({}).explain().notes).not.toContain('x')
})
