/**
 * Every ordered pair of catalogue layouts that shares its logical axes, at odd shapes: the native plan puts each
 * element where `offsetOf` says, and zero everywhere else. Source holes hold a pattern that must not come through.
 */
import { describe, expect, test } from 'vitest'
import type { Layout } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import { planReorder } from '../../lib/layout/plan.js'

const HOLE = 0xffff

/** Extents that leave tails in every block size; winograd and image layouts restrict some letters. */
const EXTENTS: Record<string, number> = {
  b: 3,
  f: 19,
  g: 3,
  o: 35,
  i: 5,
  v: 2,
  u: 2,
  w: 2,
  z: 2,
  y: 3,
  x: 5,
  c: 2,
}

function shapesFor(from: Layout, to: Layout): number[][] {
  const letters = [...from.axes]
  const plain = letters.map((letter) => EXTENTS[letter]!)
  const image = letters.map((letter) => ({ ...EXTENTS, b: 1, f: 3, o: 16, x: 4 })[letter]!)
  const winograd6 = letters.map((letter) => ({ ...EXTENTS, o: 16, x: 8 })[letter]!)
  return [plain, image, winograd6].filter((shape) => [from, to].every((layout) => accepts(layout, shape)))
}

function accepts(layout: Layout, shape: number[]): boolean {
  try {
    layout.storage(shape)
    return true
  } catch {
    return false
  }
}

function* coordinates(shape: readonly number[]): Generator<number[]> {
  const total = shape.reduce((product, extent) => product * extent, 1)
  for (let linear = 0; linear < total; linear++) {
    const index: number[] = []
    let remaining = linear
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index.unshift(remaining % shape[axis]!)
      remaining = Math.floor(remaining / shape[axis]!)
    }
    yield index
  }
}

const patterns = new Map<string, Uint16Array>()

/** Storage of 16-bit elements in which each logical element holds its row-major number plus one. */
function pattern(layout: Layout, shape: readonly number[], hole: number): Uint16Array {
  const key = `${layout.name} ${shape} ${hole}`
  const known = patterns.get(key)
  if (known) return known
  const storage = new Uint16Array(layout.storage(shape, { dtype: 'uint16' }).elements).fill(hole)
  let number = 0
  for (const index of coordinates(shape)) {
    storage[layout.offsetOf(shape, index, { dtype: 'uint16' })] = ++number
  }
  patterns.set(key, storage)
  return storage
}

const layouts = LAYOUT_NAMES.map(parseLayout)
const axesSets = [...new Set(layouts.map((layout) => layout.axes))]

describe.each(axesSets)('pairs with the axes %s', (axes) => {
  const group = layouts.filter((layout) => layout.axes === axes)
  test.each(group.map((layout) => [layout.name, layout] as const))('%s to all others', (_, from) => {
    let pairs = 0
    for (const to of group) {
      for (const shape of shapesFor(from, to)) {
        const source = pattern(from, shape, HOLE)
        const expected = pattern(to, shape, 0)
        const found = new Uint16Array(expected.length).fill(HOLE)
        const plan = planReorder({ dtype: 'uint16', shape, from, to })
        plan.runSync(new Uint8Array(source.buffer), new Uint8Array(found.buffer))
        expect(
          Buffer.compare(Buffer.from(found.buffer), Buffer.from(expected.buffer)),
          `${to.name} ${shape}`,
        ).toBe(0)
        pairs++
      }
    }
    expect(pairs).toBeGreaterThan(0)
  })
})

test.each([
  ['column_major', 'row_major', [0, 2, 4, 1, 3, 5]],
  ['row_major', 'column_major', [0, 3, 1, 4, 2, 5]],
] as const)('%s to %s transposes a matrix', (from, to, expected) => {
  const found = new Uint8Array(6)
  planReorder({ dtype: 'uint8', shape: [2, 3], from, to }).runSync(Uint8Array.of(0, 1, 2, 3, 4, 5), found)
  expect([...found]).toEqual(expected)
})
