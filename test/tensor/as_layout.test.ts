/** The warning about a shape that is not the logical one. The results of asLayout are tested with each format and layout. */
import { expect, it } from 'vitest'
import { asLayout, tensor } from '../../lib/index.js'

it('warns once of the shape in memory, which scrambles the elements', async () => {
  const stored = (shape: readonly number[]) =>
    tensor(
      Uint8Array.from({ length: 12 }, (_, i) => i),
      { shape },
    )
  const warnings: string[] = []
  process.on('warning', ({ message }) => warnings.push(message))
  // Right, or no sign of a mistake: the array has another shape, or its elements have one order either way.
  asLayout(stored([1, 2, 2, 3]), 'nhwc', [1, 3, 2, 2])
  asLayout(stored([12]), 'nhwc', [1, 3, 2, 2])
  asLayout(stored([1, 12, 1, 1]), 'nhwc', [1, 12, 1, 1])
  asLayout(stored([1, 3, 2, 2]), 'nchw', [1, 3, 2, 2])
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
  asLayout(stored([1, 2, 2, 3]), 'nhwc', [1, 2, 2, 3])
  asLayout(stored([1, 2, 2, 3]), 'nhwc', [1, 2, 2, 3])
  await new Promise(setImmediate)
  expect(warnings).toEqual([
    'asLayout takes the shape in the order of the axes, bfyx, whatever the layout: [1,2,2,3] in byxf is an array of [1,2,3,2]. For an array of [1,2,2,3] it is [1,3,2,2].',
  ])
})
