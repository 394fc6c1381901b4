/**
 * Draws reorders as large as users' are: destinations of 1 KiB to 16 MiB, evenly by their logarithm. The engine chooses
 * its ways by sizes, so in half of the cases a dimension, or the product of two, is one below, at or one above a
 * threshold of native/policy/thresholds.def. A case depends only on the seed and its number.
 */
import { readFileSync } from 'node:fs'
import { LAYOUT_NAMES, parseLayout } from '../../dist/index.js'
import { reorderText } from '../../scripts/reorder_text.mjs'
import { caseSeed, generator, pick } from '../../scripts/seeded.mjs'

const DTYPES = {
  uint2: 2,
  uint4: 4,
  float6_e2m3fn: 6,
  uint8: 8,
  uint16: 16,
  uint32: 32,
  float64: 64,
  complex128: 128,
}
/** Elements of 2 and 6 bits are copied in order only. */
const MOVED = ['uint4', 'uint8', 'uint16', 'uint32', 'float64', 'complex128']
const LEAST_BYTES = 2 ** 10
const MOST_BYTES = 2 ** 24
/** Offsets of fused axes are looked up element by element: seconds for 16 MiB, which nobody has in such a layout. */
const MOST_FREE_BYTES = 2 ** 21
/** A source may have more than its destination: slices, and layouts with larger blocks. */
const MOST_SOURCE_BYTES = 2 ** 25
const STEPS = [1, 1, 2, 3, 4, 8, 9, 16, 17]
const BLOCKS = [2, 3, 4, 5, 8, 16, 24, 32, 64]
const FREE_BLOCKS = [1, ...BLOCKS, 2, 3, 4, 8, 100, 300, 1000]
/** Dimensions that image and winograd layouts require; the first entry requires none. */
const GIVEN = [{}, { b: 1, f: 3, o: 16, y: 3, x: 4 }, { b: 1, f: 4, o: 32, y: 3, x: 8 }]
const TRIES = 40
const PLAIN_AXES = ['yx', 'zyx', 'bfyx', 'bfzyx', 'bfwzyx', 'oiyx', 'goiyx']

const NAMED = LAYOUT_NAMES.map((name) => parseLayout(name))
const BY_AXES = groupByAxes()

/** Values of the thresholds that compare sizes, with their units: bytes, units, rows, columns, … */
export function readThresholds(file) {
  const rows = readFileSync(file, 'utf8').matchAll(/^TILEWORK_THRESHOLD\((\w+), ([^,]+), "(\w+)"/gm)
  return [...rows].map(([, name, value, unit]) => ({ name, value: wholeNumber(value), unit }))
}

/** A number, or one that is shifted: "16 << 10". */
function wholeNumber(text) {
  const [number, shift = 0] = text.split('<<').map(Number)
  if (!Number.isInteger(number * 2 ** shift)) throw new Error(`the value ${text} of a threshold is no number`)
  return number * 2 ** shift
}

/**
 * One case; undefined where no shape was found that fits both layouts. `line` is the input of test/native/sizes.cc.
 *
 * @returns {{ name: string, line: string } | undefined}
 */
export function sizesCase(number, seed, thresholds) {
  const own = caseSeed(seed, number)
  const random = generator(own)
  const kind = pick(KINDS, random)
  const dtype = kind.dtype ?? pick(random() < 0.05 ? ['uint2', 'float6_e2m3fn'] : MOVED, random)
  for (let i = 0; i < TRIES; i++) {
    const bytes = LEAST_BYTES * (MOST_BYTES / LEAST_BYTES) ** random()
    const threshold = random() < 0.5 ? pick(thresholds, random) : undefined
    const drawn = kind.draw({ dtype, bytes, threshold, given: GIVEN[i % GIVEN.length] }, random)
    const [source, target] = [drawn.source, drawn.target]
    if (source === undefined || target === undefined) continue
    if (target.byteLength > MOST_BYTES || source.byteLength > MOST_SOURCE_BYTES) continue
    // Some layouts pad small shapes to large ones.
    if (target.byteLength < LEAST_BYTES / 2) continue
    const line = `${number} ${own} ${reorderText(DTYPES[dtype], source, target, drawn.slice)}`
    return { name: `${drawn.name}, ${dtype} [${target.extents}]`, line }
  }
  return undefined
}

/** What users reorder, and what the grammar allows; an entry counts as often as it stands here. */
const KINDS = [
  ...repeated(8, { draw: namedCase }),
  ...repeated(2, { draw: powersCase }),
  ...repeated(2, { draw: weightsCase }),
  ...repeated(2, { dtype: 'uint8', draw: weightsCase }),
  { dtype: 'uint8', draw: imageCase },
  { dtype: 'uint32', draw: imageCase },
  { draw: paddedCase },
  { dtype: 'uint8', draw: paddedCase },
  { dtype: 'uint8', draw: croppedCase },
  { dtype: 'uint16', draw: croppedCase },
  { draw: turnedCase },
  ...repeated(3, { draw: freeCase }),
]

function repeated(count, kind) {
  return Array.from({ length: count }, () => kind)
}

function namedCase(asked, random) {
  const [from, to] = layoutPair(random)
  const shape = drawShape([...to.axes], asked, random)
  return boundCase(from, to, shape, random() < 0.3 ? drawSlice(shape, random) : undefined, asked, random)
}

/** Powers of two, whose lines share sets of a cache; and a few of each row of such a tensor. */
function powersCase(asked, random) {
  const [from, to] = layoutPair(random)
  const whole = [...to.axes].map(() => 2 ** Math.floor(random() * 12))
  if (random() < 0.5) return boundCase(from, to, whole, undefined, asked, random)
  const shape = whole.map((extent) =>
    random() < 0.5 ? extent : 1 + Math.floor(random() * Math.min(extent, 400)),
  )
  const start = whole.map((extent, axis) => Math.floor(random() * (extent - shape[axis] + 1)))
  return boundCase(from, to, shape, { shape: whole, start, step: whole.map(() => 1) }, asked, random)
}

/** A part of rows that are a multiple of a page long, transposed. */
function croppedCase(asked, random) {
  const shape = [4 + Math.floor(random() * 60), 1 + Math.floor(random() * 700)]
  const whole = [shape[0] + Math.floor(random() * 5), 4096 * (1 + Math.floor(random() * 3))]
  const start = whole.map((extent, axis) => Math.floor(random() * (extent - shape[axis] + 1)))
  return boundCase(parsed('yx'), parsed('xy'), shape, { shape: whole, start, step: [1, 1] }, asked, random)
}

/** Short rows that get padding, or lose it. */
function paddedCase(asked, random) {
  const layout = parsed('bfyx')
  const row = 1 + Math.floor(random() * 40)
  const bits = DTYPES[asked.dtype]
  const shape = [1, 1 + Math.floor(random() * 3), 1, row]
  shape[2] = Math.max(1, Math.round((asked.bytes * 8) / bits / row / shape[1]))
  const padding = { upper: [0, 0, 0, 1 + Math.floor(random() * 20)] }
  const plain = layout.storage(shape, { dtype: asked.dtype })
  const padded = layout.storage(shape, { dtype: asked.dtype, ...padding })
  const [source, target] = random() < 0.7 ? [plain, padded] : [padded, plain]
  return { name: 'bfyx with padding', source, target }
}

/** A long axis, cut short, whose blocks are further apart than its elements are, around planes that are transposed. */
function turnedCase(asked, random) {
  const inner = pick([64, 300, 1000], random)
  const blocks = 2 + Math.floor(random() * 3)
  const side = pick([16, 64, 72], random)
  const shape = [inner * (blocks - 1) + 1 + Math.floor(random() * inner), side, side]
  const digits = [
    { axes: [0], radix: inner, weight: 1 },
    { axes: [0], radix: blocks, weight: inner },
    { axes: [2], radix: side, weight: 1 },
    { axes: [1], radix: side, weight: 1 },
  ]
  const plain = parsed('zyx').storage(shape, { dtype: asked.dtype })
  const none = shape.map(() => 0)
  const pieces = [{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits }]
  const turned = storageOf(shape, { lower: none, upper: none }, pieces, DTYPES[asked.dtype])
  const [source, target] = random() < 0.7 ? [plain, turned] : [turned, plain]
  return { name: 'blocks that are turned', source, target }
}

/** Kernels of convolutions: small windows, many channels. */
function weightsCase(asked, random) {
  const named = BY_AXES.get(pick(['oiyx', 'oizyx', 'goiyx', 'goizyx', 'oiyx'], random))
  const plain = parsed(named[0].axes)
  const pair = [random() < 0.5 ? plain : pick(named, random), pick(named, random)]
  const [from, to] = random() < 0.5 ? pair : pair.reverse()
  const window = pick([1, 2, 3, 3, 3, 3, 5, 7], random)
  const channels = () =>
    Math.max(1, pick([8, 16, 32, 64, 96, 128, 256], random) + pick([0, 0, 0, -1, 1], random))
  const extents = { o: channels(), i: channels(), g: 1 + Math.floor(random() * 3) }
  const shape = [...to.axes].map((letter) => extents[letter] ?? window)
  return boundCase(from, to, shape, undefined, asked, random)
}

/** Pixels to planes, and back: crops of images of 3 and 4 channels. */
function imageCase(asked, random) {
  const [planes, pixels] = [parsed('bfyx'), parsed('byxf')]
  const side = () => 60 + Math.floor(random() * 500)
  const channels =
    asked.dtype === 'uint8' ? pick([3, 3, 4, 1], random) : 1 + Math.floor(random() * random() * 800)
  const shape = [
    1 + Math.floor(random() * 3),
    channels,
    side(),
    channels > 4 ? pick([1, 7, 28], random) : side(),
  ]
  const pair = random() < 0.8 ? [pixels, planes] : [planes, pixels]
  const whole = [shape[0], shape[1], shape[2] + 20, shape[3] + 30]
  const slice = random() < 0.5 ? { shape: whole, start: [0, 0, 7, 9], step: [1, 1, 1, 1] } : undefined
  return boundCase(...pair, shape, slice, asked, random)
}

/** Layouts that the description allows and no name has: fused axes, an end of an axis in another order. */
function freeCase(asked, random) {
  const rank = 1 + Math.floor(random() * 5)
  const bytes = Math.min(asked.bytes, MOST_FREE_BYTES)
  const shape = drawShape(Array.from('bfzyx'.slice(5 - rank)), { ...asked, bytes, given: {} }, random)
  const slice = random() < 0.4 ? drawSlice(shape, random) : undefined
  const bits = DTYPES[asked.dtype]
  // Both sides may keep the elements of one axis together.
  const together = random() < 0.25 ? rank - 1 : undefined
  return {
    name: 'free digits',
    source: freeSide(slice?.shape ?? shape, bits, together, random),
    target: freeSide(shape, bits, together, random),
    slice,
  }
}

function boundCase(from, to, shape, slice, { dtype }, random) {
  const target = stored(to, shape, dtype, random)
  const source = target && stored(from, slice?.shape ?? shape, dtype, random)
  return { name: `${from.name} > ${to.name}`, source, target, slice }
}

/** Axes alone or a few fused, each in up to three digits of any order. */
function freeSide(shape, bits, together, random) {
  const pads = () =>
    shape.map((_, axis) => (random() < 0.8 || axis === together ? 0 : Math.floor(random() * 4)))
  const lower = pads()
  const upper = pads()
  const sets = []
  const axes = shape.map((_, at) => at).filter((axis) => axis !== together)
  for (const axis of shuffledSometimes(axes, random)) {
    if (sets.length > 0 && random() < 0.25) sets.at(-1).push(axis)
    else sets.push([axis])
  }
  const digits = sets.flatMap((axes) => {
    const extent = axes.reduce((product, axis) => product * (lower[axis] + shape[axis] + upper[axis]), 1)
    const inner = []
    let weight = 1
    for (let blocks = Math.floor(random() * 3); blocks > 0; blocks--) {
      const radix = pick(FREE_BLOCKS, random)
      inner.unshift({ axes, radix, weight })
      weight *= radix
    }
    return [{ axes, radix: Math.ceil(extent / weight), weight }, ...inner]
  })
  const ordered = random() < 0.7 ? shuffled(digits, random) : digits
  if (together !== undefined) ordered.push({ axes: [together], radix: shape[together], weight: 1 })
  return storageOf(shape, { lower, upper }, piecesOf(ordered, random), bits)
}

/** As `Layout.storage` gives it, as far as a case needs it. */
function storageOf(extents, padding, pieces, bits) {
  const elements = pieces[0].digits.reduce((product, { radix }) => product * radix, 1)
  return { extents, side: { ...padding, elements, pieces }, byteLength: Math.ceil((elements * bits) / 8) }
}

/** One piece, or two where the end of an axis has the digits inside its outermost one in another order. */
function piecesOf(digits, random) {
  const most = Number.MAX_SAFE_INTEGER
  const at = digits.findIndex(
    ({ axes, radix, weight }) =>
      axes.length === 1 &&
      radix > 1 &&
      digits.every((other) => other.axes !== axes || other.weight <= weight),
  )
  if (at < 0 || random() < 0.7) return [{ axis: 0, lo: 0, hi: most, digits }]
  const { axes, radix, weight } = digits[at]
  const split = weight * (1 + Math.floor(random() * (radix - 1)))
  const last = [...digits.slice(0, at + 1), ...shuffled(digits.slice(at + 1), random)]
  return [
    { axis: axes[0], lo: 0, hi: split, digits },
    { axis: axes[0], lo: split, hi: most, digits: last },
  ]
}

function shuffledSometimes(values, random) {
  return random() < 0.2 ? shuffled(values, random) : values
}

function groupByAxes() {
  const groups = new Map()
  for (const layout of NAMED) groups.set(layout.axes, [...(groups.get(layout.axes) ?? []), layout])
  return groups
}

/** Two layouts with the same axes: named ones, orders of axes, and blocks of any size. */
function layoutPair(random) {
  const named = BY_AXES.get(pick([...BY_AXES.keys()], random))
  const first = pick(named, random)
  const kind = random()
  if (kind < 0.5) return [first, pick(named, random)]
  const axes = kind < 0.7 ? first.axes : pick(PLAIN_AXES, random)
  const other = kind < 0.7 ? first : drawnLayout(axes, random)
  const pair = [drawnLayout(axes, random) ?? other, other ?? first]
  if (pair[0].axes !== pair[1].axes) return [first, first]
  return random() < 0.5 ? pair : pair.reverse()
}

/** A layout of the grammar with these axes: an order of them, some of them in blocks. */
function drawnLayout(axes, random) {
  for (let i = 0; i < TRIES; i++) {
    const order = shuffled([...axes], random)
    const blocked = order.filter(() => random() < 0.35).slice(0, 3)
    const inner = shuffled(blocked, random).map((letter) => `${letter}sv${pick(BLOCKS, random)}`)
    const outer = order.map((letter) => (blocked.includes(letter) ? `${letter}s` : letter))
    const layout = parsed([...outer, ...inner].join('_'))
    if (layout?.axes === axes) return layout
  }
  return undefined
}

const known = new Map()

/** Undefined where the grammar has no such layout. */
function parsed(name) {
  if (!known.has(name)) {
    try {
      known.set(name, parseLayout(name))
    } catch {
      known.set(name, undefined)
    }
  }
  return known.get(name)
}

/** The layout bound to a shape, sometimes padded; undefined where it rejects the shape. */
function stored(layout, shape, dtype, random) {
  const pad = () => shape.map(() => (random() < 0.6 ? 0 : Math.floor(random() * 4)))
  const padding = layout.kind === 'data' && random() < 0.2 ? { lower: pad(), upper: pad() } : {}
  try {
    return layout.storage(shape, { dtype, ...padding })
  } catch (error) {
    if (/^ERR_(LAYOUT|OVERFLOW|DTYPE|UNSUPPORTED|RANGE)/.test(error.code ?? '')) return undefined
    throw error
  }
}

function drawShape(letters, { dtype, bytes, threshold, given }, random) {
  const bits = DTYPES[dtype]
  const shape = letters.map((letter) => given[letter] ?? smallExtent(random))
  const free = letters.map((_, axis) => axis).filter((axis) => given[letters[axis]] === undefined)
  const chosen = shuffled(free, random)
  if (threshold !== undefined) straddle(shape, chosen, bits, threshold, random)
  // One dimension takes what is left of the size: at times the same one, so that a size is met by a single loop.
  const filler = chosen.at(-1)
  if (filler !== undefined) {
    const others = shape.reduce((product, extent, axis) => (axis === filler ? product : product * extent), 1)
    const elements = (bytes * 8) / bits
    if (shape[filler] * others < elements) shape[filler] = Math.max(1, Math.round(elements / others))
  }
  return shape
}

/** One dimension, or the product of two or three, next to the threshold. */
function straddle(shape, chosen, bits, { value, unit }, random) {
  const whole = unit === 'bytes' ? Math.max(1, Math.round((value * 8) / bits)) : value
  const [a, b] = chosen
  if (a === undefined) return
  const beside = Math.max(1, whole + Math.floor(random() * 3) - 1)
  if (b !== undefined && random() < 0.5) {
    const inner = pick([2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64], random)
    shape[b] = inner
    shape[a] = Math.max(1, Math.round(whole / inner) + Math.floor(random() * 3) - 1)
  } else {
    shape[a] = beside
  }
  if (unit === 'bytes' && shape[a] > 2 ** 22) shape[a] = 1 + Math.floor(random() * 40)
}

function smallExtent(random) {
  const kind = random()
  if (kind < 0.25) return 1 + Math.floor(random() * 3)
  if (kind < 0.6)
    return Math.max(1, pick(BLOCKS, random) * (1 + Math.floor(random() * 2)) + Math.floor(random() * 3) - 1)
  return 1 + Math.floor(random() * 24)
}

/** A slice whose result has this shape: ranges, steps and reversals. */
function drawSlice(shape, random) {
  const start = []
  const step = []
  const whole = shape.map((extent) => {
    const size = random() < 0.4 ? pick(STEPS, random) : 1
    const reach = (extent - 1) * size
    const isBackwards = random() < 0.2
    const before = random() < 0.3 ? Math.floor(random() * 9) : 0
    const behind = random() < 0.3 ? Math.floor(random() * 9) : 0
    start.push(isBackwards ? before + reach : before)
    step.push(isBackwards ? -size : size)
    return before + reach + 1 + behind
  })
  return { shape: whole, start, step }
}

function shuffled(values, random) {
  const order = [...values]
  for (let i = order.length - 1; i > 0; i--) {
    const k = Math.floor(random() * (i + 1))
    ;[order[i], order[k]] = [order[k], order[i]]
  }
  return order
}
