/** Properties of every layout: offsets are distinct and in bounds, and every slot is an element or a hole. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hasAnyRank, type Layout, type StorageOptions } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import { coordinates } from './coordinates.js'

/** Maximum slots of a case. Storage with large blocks is mostly holes, and testing more of them proves nothing. */
const MAX_SLOTS = 60_000
const RUNS_OF_A_NAME = 6

function expectBijection(layout: Layout, shape: readonly number[], options: StorageOptions): void {
  const { elements } = layout.storage(shape, options)
  const seen = new Set<number>()
  for (const index of coordinates(shape)) {
    const offset = layout.offsetOf(shape, index, options)
    if (offset < 0 || offset >= elements || seen.has(offset)) {
      throw new Error(
        `${layout.name} [${shape}] puts ${index} at ${offset} of ${elements}: outside, or twice`,
      )
    }
    seen.add(offset)
    if (layout.coordinateOf(shape, offset, options)?.join() !== index.join()) {
      throw new Error(`${layout.name} [${shape}] finds another element than ${index} at ${offset}`)
    }
  }
  expect(seen.size).toBe(shape.reduce((count, extent) => count * extent, 1))
  if (elements > MAX_SLOTS) return
  for (let offset = 0; offset < elements; offset++) {
    if (!seen.has(offset) && layout.coordinateOf(shape, offset, options) !== null) {
      throw new Error(`${layout.name} [${shape}] says that the hole ${offset} is an element`)
    }
  }
}

/** Extents that satisfy the constraints of a special layout; small and odd on the other axes. */
function extentsOf(layout: Layout): fc.Arbitrary<number>[] {
  const small = layout.axes.length > 5 ? 3 : 5
  return [...layout.axes].map((letter) => {
    const channel = 'bfoig'.includes(letter)
    const extent = fc.integer({ min: 0, max: channel ? (layout.axes.length > 5 ? 9 : 19) : small })
    if (layout.name === 'nv12') return letter === 'c' ? fc.integer({ min: 1, max: 2 }) : extent
    if (layout.name === 'image_2d_rgba') {
      return letter === 'b' ? fc.constant(1) : letter === 'f' ? fc.integer({ min: 3, max: 4 }) : extent
    }
    if (!layout.name.includes('winograd') || layout.name.endsWith('_data')) return extent
    if (letter === 'x') return fc.constant(layout.name.includes('6x3') ? 8 : 4)
    if (letter === 'y') return fc.constant(3)
    return letter === 'o' ? fc.constantFrom(0, 16, 32) : extent
  })
}

function paddingOf(layout: Layout, rank: number): fc.Arbitrary<StorageOptions> {
  if (layout.kind !== 'data' && !hasAnyRank(layout)) return fc.constant({})
  const counts = fc.array(fc.integer({ min: 0, max: rank > 5 ? 1 : 2 }), { minLength: rank, maxLength: rank })
  return fc.record({ lower: counts, upper: counts }, { requiredKeys: [] })
}

describe('every layout of the catalogue', () => {
  it.each(LAYOUT_NAMES)('%s is a bijection of elements and slots', (name) => {
    const layout = parseLayout(name)
    const cases = fc.tuple(fc.tuple(...extentsOf(layout)), paddingOf(layout, layout.axes.length))
    fc.assert(
      fc.property(cases, ([shape, options]) => expectBijection(layout, shape, options)),
      { numRuns: RUNS_OF_A_NAME },
    )
  })

  it.each(['os_iyx_osv16', 'os_iyx_osv32', 'os_iyx_osv64', 'oiyx', 'os_is_yx_osv32_isv2'])(
    '%s is a bijection with 4-bit types',
    (name) => {
      const shape = fc.tuple(fc.integer({ min: 1, max: 130 }), fc.integer({ min: 1, max: 7 }))
      fc.assert(
        fc.property(shape, fc.constantFrom('int4' as const, 'uint4' as const), (extents, dtype) =>
          expectBijection(parseLayout(name), [...extents, 1, 1], { dtype }),
        ),
        { numRuns: RUNS_OF_A_NAME },
      )
    },
  )

  it.each(['row_major', 'column_major'])('%s is a bijection at any rank', (name) => {
    const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 6 })
    fc.assert(
      fc.property(
        shape.chain((extents) =>
          fc.tuple(fc.constant(extents), paddingOf(parseLayout(name), extents.length)),
        ),
        ([extents, options]) => expectBijection(parseLayout(name), extents, options),
      ),
    )
  })
})

/** Random names of the grammar: letters in any order in words, some blocked once or twice, some aligned. */
const grammarName: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('bfyx', 'bfzyx', 'oiyx', 'goiyx', 'oi', 'bf'),
    fc.infiniteStream(fc.integer({ min: 0, max: 999 })),
    fc.boolean(),
  )
  .map(([letters, stream, align]) => {
    const pick = (count: number) => stream.next().value! % count
    const left = [...letters]
    const outer: string[] = []
    const blocks: string[] = []
    while (left.length > 0) {
      const size = 1 + pick(Math.min(2, left.length))
      const word = Array.from({ length: size }, () => left.splice(pick(left.length), 1)[0]).join('')
      const levels = pick(3)
      outer.push(levels === 0 ? word : `${word}s`)
      for (let level = 0; level < levels; level++)
        blocks.push(`${word}s${level === 1 ? 'v' : 'a'}${1 + pick(5)}`)
    }
    blocks.sort(() => pick(3) - 1)
    const plain = outer.filter((word) => !word.endsWith('s') || word.length === 2).map((word) => word[0]!)
    const suffix = align && plain.length > 0 ? `__a${plain[pick(plain.length)]}${1 + pick(6)}` : ''
    return `${[...outer, ...blocks].join('_')}${suffix}`
  })

describe('random names of the grammar', () => {
  it('are bijections of elements and slots', () => {
    fc.assert(
      fc.property(grammarName, fc.infiniteStream(fc.integer({ min: 0, max: 5 })), (name, stream) => {
        const layout = parseLayout(name)
        expect(layout.name).toBe(name)
        const counts = (max: number) => [...layout.axes].map(() => Math.min(max, stream.next().value!))
        const shape = counts(4)
        const options = layout.kind === 'data' ? { lower: counts(2), upper: counts(1) } : {}
        expectBijection(layout, shape, options)
      }),
      { numRuns: 300 },
    )
  })

  it('store a dense row-major array of their digits', () => {
    fc.assert(
      fc.property(grammarName, (name) => {
        const layout = parseLayout(name)
        const storage = layout.storage([...layout.axes].map((_, axis) => 3 + axis))
        expect(storage.digits.reduce((slots, { radix }) => slots * radix, 1)).toBe(storage.elements)
      }),
    )
  })
})

describe('any other text', () => {
  it('is refused with a bounded message that shows no control characters', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 400 }),
          grammarName.map((name) => `${name}_`),
        ),
        (name) => {
          let message = ''
          try {
            parseLayout(name)
            return
          } catch (error) {
            expect(error).toMatchObject({ name: 'TileworkError', code: 'ERR_LAYOUT_NAME' })
            message = (error as Error).message
          }
          expect(message.length).toBeLessThan(3000)
          // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for control characters
          expect(message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202a-\u202e]/)
        },
      ),
    )
  })
})
