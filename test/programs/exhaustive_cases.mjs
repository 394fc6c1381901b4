/**
 * Generates reorders between every ordered pair of catalogue layouts with the same axes, in every element width that both
 * define, with several shapes each. Dimensions are next to multiples of the blocks, 1, or prime; layouts that support
 * padding get some. A case depends only on the seed and its number, so every case can be repeated.
 */
import { LAYOUT_NAMES, parseLayout } from '../../dist/index.js'
import { reorderText } from '../../scripts/reorder_text.mjs'
import { caseSeed, generator, pick } from '../../scripts/seeded.mjs'

const DTYPES = { uint4: 4, uint8: 8, uint16: 16, uint32: 32, float64: 64 }
const SHAPES_PER_WIDTH = 12
const PRIMES = [2, 3, 5, 7, 11, 13, 17, 31]
/** Longer than the tiles of the kernels. */
const LONG = [61, 64, 67, 127, 128, 131, 257]
/** Maximum storage elements of most cases, of some, and of a few; larger cases run no other code. */
const SIZES = [
  [0.9, 8_000],
  [0.99, 60_000],
  [1, 600_000],
]
/** Dimensions that image and winograd layouts require; the first entry requires none. */
const GIVEN = [{}, { b: 1, f: 3, o: 16, y: 3, x: 4 }, { b: 1, f: 4, o: 32, y: 3, x: 8 }]
const TRIES = 60

/** All ordered pairs of different layouts with the same axes. */
export function layoutPairs() {
  const layouts = LAYOUT_NAMES.map((name) => parseLayout(name))
  return layouts.flatMap((from) =>
    layouts.filter((to) => to !== from && to.axes === from.axes).map((to) => [from, to]),
  )
}

/** Cases are numbered from 0; some have no shape that fits both layouts. */
export function caseCount(pairs) {
  return pairs.length * Object.keys(DTYPES).length * SHAPES_PER_WIDTH
}

/**
 * One case; undefined where no shape fits both layouts in this element type. `line` is the input of
 * test/native/exhaustive.cc.
 *
 * @returns {{ name: string, bits: number, line: string } | undefined}
 */
export function caseOf(pairs, number, seed) {
  const shapeNumber = number % SHAPES_PER_WIDTH
  const quotient = Math.floor(number / SHAPES_PER_WIDTH)
  const names = Object.keys(DTYPES)
  const dtype = names[quotient % names.length]
  const [from, to] = pairs[Math.floor(quotient / names.length)]
  const random = generator(caseSeed(seed, number))
  const found = findStorages(from, to, dtype, random)
  if (found === undefined) return undefined
  // The oracle is slow, so it checks one case per pair.
  const asksOracle =
    quotient % names.length === Math.floor(quotient / names.length) % names.length && shapeNumber === 0
  const line = [
    number,
    caseSeed(seed, number),
    asksOracle ? 1 : 0,
    reorderText(DTYPES[dtype], ...found),
  ].join(' ')
  return { name: `${from.name} > ${to.name}, ${dtype} [${found[1].extents}]`, bits: DTYPES[dtype], line }
}

/** Whether a partial run contains the case. */
export function isInShare(number, seed, share) {
  return generator(caseSeed(seed, number) ^ 0x5eed)() < share
}

function findStorages(from, to, dtype, random) {
  const size = random()
  const most = SIZES.find(([share]) => size < share)[1]
  for (let i = 0; i < TRIES; i++) {
    const shape = randomShape(from, to, GIVEN[i % GIVEN.length], random)
    const sides = [from, to].map((layout) => stored(layout, shape, dtype, random))
    // Nested blocks are large for any dimension.
    const limit = i < TRIES / 2 ? most : SIZES.at(-1)[1]
    if (sides.every((side) => side !== undefined && side.elements <= limit)) return sides
  }
  return undefined
}

/** The layout bound to a shape, sometimes padded; undefined where it rejects the shape. */
function stored(layout, shape, dtype, random) {
  const pad = () => shape.map(() => (random() < 0.5 ? 0 : Math.floor(random() * 4)))
  const padding = layout.kind === 'data' && random() < 0.3 ? { lower: pad(), upper: pad() } : {}
  try {
    return layout.storage(shape, { dtype, ...padding })
  } catch (error) {
    if (error.code === 'ERR_LAYOUT_SHAPE' || error.code === 'ERR_OVERFLOW') return undefined
    throw error
  }
}

function randomShape(from, to, given, random) {
  const letters = [...from.axes]
  const long = random() < 0.5 ? pick(letters, random) : undefined
  return letters.map((letter, axis) => {
    if (given[letter] !== undefined) return given[letter]
    if (letter === long) return pick(LONG, random)
    return extentBeside(Math.max(blockOf(from, axis), blockOf(to, axis)), random)
  })
}

/** A dimension next to a multiple of the block, 1, a prime, or a small number. */
function extentBeside(block, random) {
  const multiple = block * (1 + Math.floor(random() * 2))
  const kinds = [1, multiple - 1, multiple, multiple + 1, pick(PRIMES, random), 1 + Math.floor(random() * 9)]
  return Math.max(1, pick(kinds, random))
}

const blocks = new Map()

/** Block size of an axis; 1 for an axis without blocks. */
function blockOf(layout, axis) {
  const key = `${layout.name} ${axis}`
  let block = blocks.get(key)
  if (block === undefined) {
    const shapes = GIVEN.map((given) => [...layout.axes].map((letter) => given[letter] ?? 64))
    const { digits } = shapes
      .map((shape) => stored(layout, shape, 'uint8', () => 1))
      .find((side) => side !== undefined)
    block = Math.max(
      1,
      ...digits.filter((digit) => digit.positions.includes(axis)).map(({ weight }) => weight),
    )
    blocks.set(key, block)
  }
  return block
}
