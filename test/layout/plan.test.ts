/** What planReorder takes and refuses, and how. */
import { describe, expect, test } from 'vitest'
import { asTensor, cast, planReorder, reorder, slice } from '../../lib/index.js'

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
