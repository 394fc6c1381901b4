/** explain(): which plans compute a tensor, and by which ways. */
import { describe, expect, it } from 'vitest'
import {
  affine,
  asLayout,
  concat,
  explain,
  pad,
  planReorder,
  reorder,
  slice,
  tensor,
} from '../../lib/index.js'

const rows = tensor(new Float32Array(100 * 90), { shape: [100, 90], name: 'rows' })
const pixels = tensor(new Uint8Array(3 * 224 * 224), { shape: [1, 224, 224, 3] })
const image = asLayout(pixels, 'byxf', [1, 3, 224, 224])

describe('a stored tensor', () => {
  it('has no plan', () => {
    expect(explain(rows)).toEqual({
      plans: [],
      text: '"rows" float32 [100,90]: 36000 bytes in row_major, read as they are stored',
    })
  })
})

describe('a computed tensor', () => {
  it('has the plan that planReorder makes', () => {
    const { plans } = explain(reorder(image, 'bfyx'))
    const plan = planReorder({ dtype: 'uint8', shape: [1, 3, 224, 224], from: 'byxf', to: 'bfyx' })
    expect(plans).toEqual([plan.explain()])
    expect(plans[0]?.ways[0]).toMatchObject({ name: 'divided pixels', share: expect.closeTo(1, 1) })
  })

  it('names base and plan, in the order in which they are used', () => {
    const lines = explain(slice(rows, [{}, { step: 2 }])).text.split('\n')
    expect(lines[0]).toMatch(/^"rows" float32 \[100,90\]: 36000 bytes/)
    expect(lines[1]).toBe('"rows" float32 [100,45]: row_major to row_major')
    expect(lines.find((line) => line.startsWith('  moves'))).toMatch(/^ {2}moves {3}\d+ % +[a-z ]+/)
  })

  it('is one plan, whatever it does', () => {
    const scaled = affine(reorder(slice(image, [{}, {}, { start: 10, end: 100 }, {}]), 'bfyx'), {
      scale: 0.5,
      dtype: 'float32',
    })
    expect(explain(scaled).plans).toHaveLength(1)
  })

  it('has the plans of all parts of a joined tensor', () => {
    const half = slice(rows, [{}, { step: 2 }])
    const joined = concat([half, slice(half, [{ end: 10 }, {}])], { axis: 0 })
    const { plans, text } = explain(
      pad(joined, [
        [1, 1],
        [0, 0],
      ]),
    )
    expect(plans.length).toBeGreaterThanOrEqual(2)
    expect(text).toContain('tensors joined along axis 0')
  })
})

describe('refused', () => {
  it.each([[undefined], [3], [{ kind: 'sparse', name: 's' }]])('%j', (value) => {
    expect(() => explain(value as never)).toThrow(/ERR_|tensor/)
  })
})
