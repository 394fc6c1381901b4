/** Layouts of any shape: the element in each slot, the offsets of a plane, and how a reorder runs. */
import { DTYPES, type Dtype, resolveDtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { drawnStorage } from '../../layout/drawn_storage.js'
import type { Layout, StorageOptions } from '../../layout/layout.js'
import { blocksOf, digitName } from '../../layout/memory_rows.js'
import { coordinateInStorage, offsetInStorage } from '../../layout/offset.js'
import { LAYOUT_NAMES, parseLayout } from '../../layout/parse_layout.js'
import { planReorder } from '../../layout/plan.js'
import type { BoundLayout, LayoutFacts, PlaneOffsets } from '../protocol.js'
import type { Parameters } from './parameters.js'
import { indexInTensor, planeOf, rangeOf } from './plane.js'

/** Slots or elements in one answer. */
const MAX_CELLS = 4096
/** Most slots of a row of the drawing. */
const ROW_SLOTS = 32

export function listLayouts(): LayoutFacts[] {
  return LAYOUT_NAMES.map((name) => factsOf(parseLayout(name)))
}

function factsOf({ name, kind, axes, order }: Layout): LayoutFacts {
  return { name, kind, axes, order }
}

/** The layout of a request, bound to its shape. */
interface Bound {
  readonly layout: Layout
  readonly shape: readonly number[]
  readonly dtype: Dtype
  readonly options: StorageOptions
}

function boundOf(parameters: Parameters): Bound {
  const layout = parseLayout(parameters.text('name'))
  const shape = parameters.list('shape')
  const dtype = resolveDtype(parameters.text('dtype', 'uint8'))
  const [lower, upper] = [parameters.list('lower', []), parameters.list('upper', [])]
  const options = { dtype, ...(lower.length > 0 && { lower }), ...(upper.length > 0 && { upper }) }
  return { layout, shape, dtype, options }
}

export function boundLayout(parameters: Parameters): BoundLayout {
  const { layout, shape, dtype, options } = boundOf(parameters)
  const storage = drawnStorage(layout, shape, options)
  const { elements, byteLength, digits, extents } = storage
  const start = parameters.whole('start', 0, elements, 0)
  const count = Math.min(parameters.whole('count', 0, MAX_CELLS, 1024), elements - start)
  const cells = Array.from({ length: count }, (_, at) =>
    coordinateInStorage(storage, extents.length, start + at),
  )
  const { onednnTag, aliases, notes } = layout
  return {
    ...factsOf(layout),
    ...(onednnTag !== undefined && { onednnTag }),
    ...{ aliases, notes, shape: extents, dtype, elements, byteLength },
    logicalElements: extents.reduce((all, extent) => all * extent, 1),
    ...(storage.commonDigits === digits.length && {
      digits: digits.map(({ radix }, at) => ({ text: digitName(storage, at), radix })),
    }),
    rowLength: rowLengthOf(digits.map(({ radix }) => radix)),
    blockLength: blocksOf(storage).slots,
    ...{ start, cells },
  }
}

/** The product of the innermost digits that fit into a row; a part of the innermost digit where it alone is too long. */
function rowLengthOf(radices: readonly number[]): number {
  let length = 1
  for (const radix of [...radices].reverse()) {
    if (length * radix > ROW_SLOTS) return length === 1 ? ROW_SLOTS : length
    length *= radix
  }
  return length
}

export function planeOffsets(parameters: Parameters): PlaneOffsets {
  const { layout, shape, options } = boundOf(parameters)
  const storage = layout.storage(shape, options)
  const plane = planeOf(storage.extents, parameters)
  const [rows, columns] = [
    rangeOf(parameters, 'rows', plane.rows),
    rangeOf(parameters, 'columns', plane.columns),
  ]
  const [height, width] = [rows[1] - rows[0], columns[1] - columns[0]]
  if (height * width > MAX_CELLS) {
    const message = `${height * width} elements are requested; at most ${MAX_CELLS} are allowed.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const offsets = Array.from({ length: height * width }, (_, at) =>
    offsetInStorage(
      storage,
      storage.extents.length,
      indexInTensor(plane, rows[0] + Math.floor(at / width), columns[0] + (at % width)),
    ),
  )
  return { rows: height, columns: width, offsets }
}

/** How a reorder between two layouts runs on this machine. */
export function explainReorder(parameters: Parameters): { readonly text: string } {
  const dtype = resolveDtype(parameters.text('dtype', 'uint8'))
  const shape = parameters.list('shape')
  const [from, to] = [parseLayout(parameters.text('from')), parseLayout(parameters.text('to'))]
  return { text: planReorder({ dtype, shape, from, to }).explain().text }
}

export function listDtypes(): readonly string[] {
  return Object.keys(DTYPES)
}
