/**
 * Sparse tensors of TFLite: a tree whose levels are the axes, and then the axes of blocks, in any order. A level is dense, or it
 * lists the coordinates of each node. Levels are expanded one after the other, so the depth of the tree is no depth of calls.
 */
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { FileFault } from '../file_fault.js'
import { DIMENSION, MAX_RANK, SPARSITY } from './schema.js'
import type { Table, Vector } from './table.js'

/** A list of whole numbers of 1, 2 or 4 bytes. */
interface NumberList extends Vector {
  readonly width: 1 | 2 | 4
}

/** One level of the tree. */
interface Level {
  /** Distance of neighbours along it in the dense tensor, in elements. */
  readonly stride: number
  /** Number of coordinates along it. */
  readonly extent: number
  /** Absent for a dense level. */
  readonly csr?: { readonly segments: NumberList; readonly indices: NumberList }
}

export interface Sparsity {
  readonly levels: readonly Level[]
  /** Position of the parameters, for errors. */
  readonly at: number
}

const DENSE = 0
const CSR = 1
/** Widths by the number of the union. */
const WIDTHS = [undefined, 4, 2, 1] as const

/** Reads the parameters of a sparse tensor. Runs in `Pages.run`. @throws FileFault where they do not describe the shape */
export function readSparsity(table: Table, shape: readonly number[]): Sparsity {
  const refuse = (what: string): never => {
    throw new FileFault('ERR_COO_SHAPE', `The sparse tensor of shape [${shape}] ${what}.`, table.at)
  }
  const order = table.i32s(SPARSITY.traversalOrder, 2 * MAX_RANK) ?? []
  const blockMap = table.i32s(SPARSITY.blockMap, MAX_RANK) ?? []
  const dimensions = table.vector(SPARSITY.dimensions, 4)
  const count = shape.length + blockMap.length
  const isPermutation = order.length === count && new Set(order).size === count
  if (!isPermutation || order.some((level) => level < 0 || level >= count)) refuse('has levels in no order')
  if (dimensions?.count !== count)
    return refuse(`has ${dimensions?.count ?? 0} levels; its axes and blocks are ${count}`)
  const isBlocked = blockMap.every((axis, at) => shape[axis] !== undefined && blockMap.indexOf(axis) === at)
  if (!isBlocked) refuse('has blocks of other axes')
  const tables = order.map((_, index) => table.tableIn(dimensions, index))
  const sizes = blockMap.map((_, block) => {
    const level = tables[order.indexOf(shape.length + block)]!
    return level.u8(DIMENSION.format) === DENSE ? level.i32(DIMENSION.denseSize) : 0
  })
  const strides = shape.map((_, axis) =>
    shape.slice(axis + 1).reduce((product, extent) => product * extent, 1),
  )
  const levels = order.map((level, position) => {
    const axis = level < shape.length ? level : blockMap[level - shape.length]!
    const block = sizes[blockMap.indexOf(axis)] ?? 1
    if (block < 1 || shape[axis]! % block !== 0) return refuse(`has blocks of ${block} along axis ${axis}`)
    const isOuter = level < shape.length
    const extent = isOuter ? shape[axis]! / block : block
    const stride = strides[axis]! * (isOuter ? block : 1)
    return { extent, stride, ...formOf(tables[position]!, extent, refuse) }
  })
  return { levels, at: table.at }
}

function formOf(table: Table, extent: number, refuse: (what: string) => never): Pick<Level, 'csr'> {
  const format = table.u8(DIMENSION.format)
  if (format === DENSE) {
    const size = table.i32(DIMENSION.denseSize)
    return size === extent ? {} : refuse(`has a level of ${size}, where ${extent} fit`)
  }
  if (format !== CSR) return refuse(`has a level of the unknown form ${format}`)
  const segments = listOf(table, DIMENSION.segmentsType, DIMENSION.segments)
  const indices = listOf(table, DIMENSION.indicesType, DIMENSION.indices)
  return segments && indices ? { csr: { segments, indices } } : refuse('has a level without its indices')
}

function listOf(table: Table, typeField: number, field: number): NumberList | undefined {
  const width = WIDTHS[table.u8(typeField)]
  const vector = width && table.table(field)?.vector(0, width)
  return vector && { ...vector, width }
}

/**
 * Offsets of the stored values in the dense tensor, in elements. Every list is checked.
 *
 * @param count - number of stored values
 * @throws FileFault ERR_COO_INDEX, ERR_COO_SHAPE
 */
export async function denseOffsets(
  source: ByteSource,
  { levels, at }: Sparsity,
  count: number,
): Promise<Float64Array> {
  let offsets = new Float64Array(1)
  for (const level of levels) {
    const expand = level.csr ? expandCsr : expandDense
    // Each level has at least as many nodes as the one above has that lead to values, unless it is empty.
    offsets = await expand(source, offsets, level, { at, count })
  }
  if (offsets.length === count) return offsets
  throw new FileFault(
    'ERR_COO_SHAPE',
    `The sparse tensor has ${count} values and places for ${offsets.length}.`,
    at,
  )
}

interface Bounds {
  readonly at: number
  readonly count: number
}

async function expandDense(
  _: ByteSource,
  parents: Float64Array,
  { extent, stride }: Level,
  { at, count }: Bounds,
): Promise<Float64Array<ArrayBuffer>> {
  const nodes = parents.length * extent
  checkNodes(nodes, { at, count })
  const offsets = new Float64Array(nodes)
  for (let node = 0; node < nodes; node++) {
    offsets[node] = parents[Math.floor(node / extent)]! + (node % extent) * stride
  }
  return offsets
}

async function expandCsr(
  source: ByteSource,
  parents: Float64Array,
  { extent, stride, csr }: Level,
  { at, count }: Bounds,
): Promise<Float64Array<ArrayBuffer>> {
  const { segments, indices } = csr!
  const wrong = (what: string): FileFault => new FileFault('ERR_COO_INDEX', `A sparse level ${what}.`, at)
  if (segments.count !== parents.length + 1) {
    throw wrong(`has ${segments.count} segments for ${parents.length} nodes; it must have one more`)
  }
  checkNodes(indices.count, { at, count })
  const starts = await readNumbers(source, segments)
  const coordinates = await readNumbers(source, indices)
  if (starts[0] !== 0 || starts.at(-1) !== indices.count)
    throw wrong(`has segments that do not cover its ${indices.count} indices`)
  const offsets = new Float64Array(indices.count)
  for (let parent = 0; parent < parents.length; parent++) {
    const [from, to] = [starts[parent]!, starts[parent + 1]!]
    if (to < from || to > indices.count) throw wrong('has segments that go down')
    for (let node = from; node < to; node++) {
      const coordinate = coordinates[node]!
      if (coordinate < 0 || coordinate >= extent)
        throw wrong(`has the index ${coordinate}; there are ${extent}`)
      offsets[node] = parents[parent]! + coordinate * stride
    }
  }
  return offsets
}

/**
 * A node leads to a value at least, except above an empty level, of which real files have few: more nodes than values are
 * refused before they take memory.
 */
function checkNodes(nodes: number, { at, count }: Bounds): void {
  if (nodes <= count + MAX_EMPTY_NODES) return
  throw new FileFault('ERR_COO_SHAPE', `A sparse level has ${nodes} nodes for ${count} values.`, at)
}

/** Nodes of a level that lead to no value: empty rows of a matrix. */
const MAX_EMPTY_NODES = 2 ** 21

async function readNumbers(
  source: ByteSource,
  { at, count, width }: NumberList,
): Promise<Int32Array | Uint16Array | Uint8Array> {
  // A copy, so that it is aligned.
  const bytes = new Uint8Array(await source.read(at, at + count * width))
  if (width === 1) return bytes
  return width === 2 ? new Uint16Array(bytes.buffer) : new Int32Array(bytes.buffer)
}

/** The dense tensor as bytes: zeros, and the stored values at their offsets. */
export async function denseBytes(
  source: ByteSource,
  sparsity: Sparsity,
  values: { readonly start: number; readonly end: number },
  { elementBytes, byteLength }: { readonly elementBytes: number; readonly byteLength: number },
): Promise<Uint8Array> {
  const stored = await source.read(values.start, values.end)
  const offsets = await denseOffsets(source, sparsity, stored.byteLength / elementBytes)
  const dense = allocateBytes(byteLength)
  for (let value = 0; value < offsets.length; value++) {
    const from = value * elementBytes
    dense.set(stored.subarray(from, from + elementBytes), offsets[value]! * elementBytes)
  }
  return dense
}
