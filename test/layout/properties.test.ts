/** Properties of every layout: offsets are distinct and in bounds, and every slot is an element or a hole. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hasAnyRank, type Layout, type LayoutStorage, type StorageOptions } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import { coordinates } from './coordinates.js'

/** Maximum slots of a case. Storage with large blocks is mostly holes, and testing more of them proves nothing. */
const MAX_SLOTS = 60_000
const RUNS_OF_A_NAME = 6

/** The offset of an element by the public digits alone: Horner's rule over `floor(index / weight) mod radix`. */
function hornerOffset(
  { digits, extents }: LayoutStorage,
  index: readonly number[],
  { lower = [], upper = [] }: StorageOptions,
): number {
  const before = (axis: number) => lower[axis] ?? 0
  const size = (axis: number) => before(axis) + extents[axis]! + (upper[axis] ?? 0)
  return digits!.reduce((offset, { positions, radix, weight }) => {
    const fused = positions.reduce((value, axis) => value * size(axis) + before(axis) + (index[axis] ?? 0), 0)
    return offset * radix + (Math.floor(fused / weight) % radix)
  }, 0)
}

function expectHorner(
  storage: LayoutStorage,
  index: readonly number[],
  offset: number,
  options: StorageOptions,
): void {
  if (storage.digits === undefined || hornerOffset(storage, index, options) === offset) return
  throw new Error(`extents ${storage.extents} have ${index} at ${offset}; their digits say otherwise`)
}

function expectBijection(layout: Layout, shape: readonly number[], options: StorageOptions): void {
  const storage = layout.storage(shape, options)
  const { elements } = storage
  const seen = new Set<number>()
  for (const index of coordinates(shape)) {
    const offset = layout.offsetOf(shape, index, options)
    expectHorner(storage, index, offset, options)
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

/** Sizes by kind of axis: odd and even, 1, below, at and above the blocks. */
const SIZES = [
  { channel: 1, spatial: 1 },
  { channel: 3, spatial: 2 },
  { channel: 33, spatial: 3 },
  { channel: 32, spatial: 4 },
  { channel: 17, spatial: 1 },
  { channel: 65, spatial: 5 },
]
const SAMPLES = 100

/** Shapes of a layout; the constraints of special layouts come first. */
function shapesOf(layout: Layout): number[][] {
  const isTile = layout.name.includes('winograd') && !layout.name.endsWith('_data')
  return SIZES.map(({ channel, spatial }, at) =>
    [...(layout.axes || 'bfyx')].map((letter) => {
      if (letter === 'c') return 1 + (at % 2)
      if (layout.name === 'image_2d_rgba' && 'bf'.includes(letter)) return letter === 'b' ? 1 : 3 + (at % 2)
      if (isTile && letter === 'x') return layout.name.includes('6x3') ? 8 : 4
      if (isTile && letter === 'y') return 3
      if (isTile && letter === 'o') return 16 * (1 + at)
      return 'bfoig'.includes(letter) ? channel : spatial
    }),
  )
}

/** The first and the last index, and others between them. */
function sampledIndices(shape: readonly number[]): number[][] {
  let state = 1
  const next = (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  const others = Array.from({ length: SAMPLES }, () => shape.map((extent) => next(extent)))
  return [shape.map(() => 0), shape.map((extent) => extent - 1), ...others]
}

/** Layouts whose last column has another order where X is odd, so that one list cannot describe it and the other columns. */
const WITHOUT_DIGITS = [
  'iy_xs_os_xsv2_osv8__ao32',
  'iy_xs_os_xsv2_osv16__ao32',
  'giy_xs_os_xsv2_osv8__ao32',
  'giy_xs_os_xsv2_osv16__ao32',
]

describe('the digits of a storage', () => {
  // Catches a list that is false for some element: a last column, a swizzle, a fused, aligned, 4-bit or padded axis.
  it.each([...LAYOUT_NAMES, 'row_major', 'column_major'])(
    '%s: give every offset by Horner’s rule',
    (name) => {
      const layout = parseLayout(name)
      const isFixed = layout.kind !== 'data' && !hasAnyRank(layout)
      for (const shape of shapesOf(layout)) {
        const padded = isFixed ? [] : [{ lower: shape.map((_, at) => at % 3), upper: shape.map(() => 1) }]
        for (const options of [{}, { dtype: 'int4' as const }, ...padded]) {
          const isFullyConnected = 'dtype' in options && /^os_iyx_osv(32|64)$/.test(name)
          const own = isFullyConnected ? [...shape.slice(0, 2), 1, 1] : shape
          const storage = layout.storage(own, options)
          for (const index of sampledIndices(own)) {
            expectHorner(storage, index, layout.offsetOf(own, index, options), options)
          }
        }
      }
    },
  )

  // Catches a layout that loses its list although one describes it.
  it('are missing only where X is odd and above 1, in four layouts', () => {
    const without = (isAsked: (x: number) => boolean): string[] =>
      LAYOUT_NAMES.filter((name) => {
        const layout = parseLayout(name)
        const x = layout.axes.indexOf('x')
        const asked = shapesOf(layout).filter((shape) => x < 0 || isAsked(shape[x]!))
        return asked.some((shape) => layout.storage(shape).digits === undefined)
      })
    expect(without((x) => x % 2 === 1 && x > 1)).toEqual(WITHOUT_DIGITS)
    expect(without((x) => x % 2 === 0 || x === 1)).toEqual([])
    for (const name of WITHOUT_DIGITS) {
      const layout = parseLayout(name)
      expect('digits' in layout.storage([...layout.axes].map(() => 3))).toBe(false)
    }
  })

  // Catches the digits of the other columns where the last column is the only one.
  it('are those of the last column where it is the only one', () => {
    const { digits } = parseLayout('iy_xs_os_xsv2_osv8__ao32').storage([40, 2, 3, 1])
    expect(digits!.map(({ axes, radix, weight }) => [axes, radix, weight])).toEqual([
      ['i', 2, 1],
      ['y', 3, 1],
      ['x', 1, 2],
      ['o', 2, 32],
      ['x', 2, 1],
      ['o', 32, 1],
    ])
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
        expect(storage.digits!.reduce((slots, { radix }) => slots * radix, 1)).toBe(storage.elements)
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
