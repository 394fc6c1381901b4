/** The quantized forms of a weight as lazy tensors: MatMulNBits, DequantizeLinear with blocks, GatherBlockQuantized, MatMulBnb4. */

import { decodeFloatCode } from '../../../dtype/decode.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { encodeFloatCode } from '../../../dtype/encode.js'
import { cast } from '../../../tensor/cast.js'
import { asStored, StoredTensor } from '../../../tensor/dense.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import {
  type BlockBits,
  type BlockRule,
  dequantizeLinearRule,
  gatherRule,
  matMulNBitsRule,
  packCodes,
  quantizeBlocks,
  type RoundScale,
} from './block_rules.js'
import { type Bnb4Kind, bnb4Codes } from './bnb4.js'
import { FloatReader, withWindow } from './float_window.js'
import { type Panel, type PanelCache, Panels } from './panels.js'

/** How weights become blocks. */
export interface BlockOptions {
  readonly bits: BlockBits
  readonly blockSize: number
  readonly symmetric: boolean
  readonly cache: PanelCache
}

/** Tensors that replace a weight. */
export interface BlockTensors {
  readonly codes: DenseTensor
  readonly scales: DenseTensor
  /** Absent where symmetric. */
  readonly zeroPoints?: DenseTensor
}

/** A matrix of which blocks run along `k`. */
interface Matrix {
  readonly tensor: DenseTensor
  readonly k: number
  readonly n: number
  /** True where `k` is the last axis. */
  readonly isTransposed: boolean
}

/** Names of the tensors without a suffix of their own. */
export interface BlockNames {
  readonly codes: string
  readonly scales: string
  readonly zeroPoints: string
}

/** Packed bytes of a panel, and numbers of a window, at most. */
const PANEL_BYTES = 4 * 1024 * 1024
const PANEL_WINDOW = 512 * 1024

/** The weight [K, N], or [N, K] if `isTransposed`, after dropping leading extents of 1. */
export function matrixOf(tensor: DenseTensor, isTransposed: boolean): Matrix {
  const [first = 1, last = 1] = tensor.shape.slice(-2)
  return { tensor, isTransposed, k: isTransposed ? last : first, n: isTransposed ? first : last }
}

/** MatMulNBits: codes [N, blocks, bytes of a block], scales [N, blocks], zero points [N, bytes]. */
export function matMulNBits(matrix: Matrix, options: BlockOptions, names: BlockNames): BlockTensors {
  const { k, n, tensor } = matrix
  const { bits, blockSize, symmetric, cache } = options
  const blocks = Math.ceil(k / blockSize)
  const blockBytes = (blockSize * bits) / 8
  const zeroBytes = Math.ceil((blocks * bits) / 8)
  const rule = matMulNBitsRule(bits, symmetric, roundScaleOf(tensor.dtype))
  const width = panelColumns(n, blocks * blockBytes, matrix.isTransposed ? 1 : Math.min(blockSize, k))
  const reader = new FloatReader(tensor)
  const panels = new Panels(cache, (index) => {
    const first = index * width
    return columnPanel(matrix, reader, { first, count: Math.min(width, n - first), blocks, ...options }, rule)
  })
  const half = 2 ** (bits - 1)
  return {
    codes: panels.tensor(
      { name: names.codes, dtype: 'uint8', shape: [n, blocks, blockBytes] },
      width * blocks * blockBytes,
      ({ codes }) => codes,
    ),
    scales: scalesOf(panels, names.scales, [n, blocks], width * blocks * 4, tensor.dtype),
    ...(!symmetric && {
      zeroPoints: panels.tensor(
        { name: names.zeroPoints, dtype: 'uint8', shape: [n, zeroBytes] },
        width * zeroBytes,
        ({ zeros }) => packRows(zeros, blocks, bits, half),
      ),
    }),
  }
}

function panelColumns(n: number, columnBytes: number, windowRows: number): number {
  const width = Math.floor(Math.min(PANEL_BYTES / columnBytes, PANEL_WINDOW / windowRows))
  return Math.max(1, Math.min(n, width))
}

interface ColumnPanel extends BlockOptions {
  readonly first: number
  readonly count: number
  readonly blocks: number
}

async function columnPanel(
  matrix: Matrix,
  reader: FloatReader,
  panel: ColumnPanel,
  rule: BlockRule,
): Promise<Panel> {
  const { bits, blockSize, count, blocks } = panel
  const scales = new Float32Array(count * blocks)
  const zeros = new Uint8Array(count * blocks)
  const perByte = 8 / bits
  const packed = new Uint8Array((count * blocks * blockSize) / perByte)
  const codes = new Uint8Array(count * blockSize)
  for (let block = 0; block < blocks; block++) {
    const rows = Math.min(blockSize, matrix.k - block * blockSize)
    if (rows < blockSize) codes.fill(0)
    const target = {
      codes,
      codeStart: 0,
      codeRowStride: 1,
      codeColumnStride: blockSize,
      scales,
      zeros,
      scaleStart: block,
      scaleStride: blocks,
    }
    await withBlock(matrix, reader, panel, block, rows, (numbers, start, rowStride, columnStride) => {
      const region = { start, rows, columns: count, rowStride, columnStride }
      quantizeBlocks(numbers, region, rule, target)
    })
    placeBlock(packCodes(codes, bits), packed, blockSize / perByte, block, blocks)
  }
  return { codes: packed, scales, zeros }
}

/** Copies the bytes of one block of each column behind those of the block before. */
function placeBlock(from: Uint8Array, to: Uint8Array, bytes: number, block: number, blocks: number): void {
  if (bytes % 4 !== 0) {
    for (let at = 0, place = block * bytes; at < from.length; at += bytes, place += blocks * bytes) {
      to.set(from.subarray(at, at + bytes), place)
    }
    return
  }
  const source = new Uint32Array(from.buffer, from.byteOffset, from.length / 4)
  const target = new Uint32Array(to.buffer, to.byteOffset, to.length / 4)
  const words = bytes / 4
  for (let at = 0, place = block * words; at < source.length; place += blocks * words) {
    for (let word = 0; word < words; word++, at++) target[place + word] = source[at]!
  }
}

type UseBlock = (numbers: Float32Array, start: number, rowStride: number, columnStride: number) => void

/** Reads one block of the columns of a panel. */
async function withBlock(
  { k, n, isTransposed }: Matrix,
  reader: FloatReader,
  { first, count, blockSize }: ColumnPanel,
  block: number,
  rows: number,
  use: UseBlock,
): Promise<void> {
  const begin = block * blockSize
  const [lines, length, stride] = isTransposed ? [count, rows, k] : [rows, count, n]
  const start = isTransposed ? first * k + begin : begin * n + first
  await withWindow(lines * length, async (numbers) => {
    if (length === stride) await reader.fill(start, numbers)
    else {
      for (let line = 0; line < lines; line++) {
        await reader.fill(start + line * stride, numbers.subarray(line * length, (line + 1) * length))
      }
    }
    if (isTransposed) use(numbers, 0, 1, length)
    else use(numbers, 0, length, 1)
  })
}

/** Packs each row of `length` codes to whole bytes. */
function packRows(codes: Uint8Array, length: number, bits: BlockBits, fill: number): Uint8Array {
  const rowBytes = Math.ceil((length * bits) / 8)
  const rows = codes.length / length
  const packed = new Uint8Array(rows * rowBytes)
  for (let row = 0; row < rows; row++) {
    packed.set(packCodes(codes.subarray(row * length, (row + 1) * length), bits, fill), row * rowBytes)
  }
  return packed
}

/** DequantizeLinear along axis 0 of [K, N]: codes [K, N], scales and zero points [blocks, N]. */
export function blockDequantizeLinear(
  matrix: Matrix,
  options: BlockOptions,
  names: BlockNames,
): BlockTensors {
  const { k, n } = matrix
  const { bits, blockSize, symmetric } = options
  const rule = dequantizeLinearRule(bits, symmetric, roundScaleOf(matrix.tensor.dtype))
  return rowPanels(matrix.tensor, rule, {
    ...options,
    names,
    outer: Math.ceil(k / blockSize),
    lines: (block) => Math.min(blockSize, k - block * blockSize),
    lineLength: n,
    shape: [k, n],
    scaleShape: [Math.ceil(k / blockSize), n],
    dtype: `${symmetric ? 'int' : 'uint'}${bits}`,
    isAlongLine: false,
  })
}

/** GatherBlockQuantized of 4 bits along axis 1 of [rows, K]: codes [rows, K], scales and zero points [rows, blocks]. */
export function gatherBlocks(tensor: DenseTensor, options: BlockOptions, names: BlockNames): BlockTensors {
  const [rows = 1, k = 1] = tensor.shape
  const rule = gatherRule(options.symmetric, roundScaleOf(tensor.dtype))
  return rowPanels(tensor, rule, {
    ...options,
    names,
    outer: rows,
    lines: () => 1,
    lineLength: k,
    shape: [rows, k],
    scaleShape: [rows, Math.ceil(k / options.blockSize)],
    dtype: options.symmetric ? 'int4' : 'uint4',
    isAlongLine: true,
  })
}

/** A tensor whose codes keep the order of its elements. It is read in steps of whole lines. */
interface RowPanels extends BlockOptions {
  readonly names: BlockNames
  /** Number of steps, and lines of each. */
  readonly outer: number
  readonly lines: (step: number) => number
  readonly lineLength: number
  readonly shape: readonly number[]
  readonly scaleShape: readonly number[]
  readonly dtype: Dtype
  /** True where blocks run along a line, false where one block is all lines of a step. */
  readonly isAlongLine: boolean
}

function rowPanels(tensor: DenseTensor, rule: BlockRule, given: RowPanels): BlockTensors {
  const { bits, blockSize, names, outer, lines, lineLength, scaleShape, isAlongLine, symmetric, cache } =
    given
  const reader = new FloatReader(tensor)
  const stepSize = lines(0) * lineLength
  const perStep = isAlongLine ? Math.ceil(lineLength / blockSize) : lineLength
  // A multiple of 8 steps, so that the codes of a panel end at a byte.
  const steps = Math.min(Math.ceil(outer / 8), Math.max(1, Math.floor(PANEL_WINDOW / stepSize / 8))) * 8
  const panels = new Panels(cache, (index) => {
    const first = index * steps
    const count = Math.min(steps, outer - first)
    let size = 0
    for (let step = 0; step < count; step++) size += lines(first + step) * lineLength
    return withWindow(size, async (numbers) => {
      await reader.fill(first * stepSize, numbers)
      const codes = new Uint8Array(size)
      const [scales, zeros] = [new Float32Array(count * perStep), new Uint8Array(count * perStep)]
      for (let step = 0; step < count; step++) {
        const start = step * stepSize
        const base = { codes, scales, zeros, scaleStride: 1 }
        if (!isAlongLine) {
          const region = {
            start,
            rows: lines(first + step),
            columns: lineLength,
            rowStride: lineLength,
            columnStride: 1,
          }
          const target = {
            codeStart: start,
            codeRowStride: lineLength,
            codeColumnStride: 1,
            scaleStart: step * perStep,
          }
          quantizeBlocks(numbers, region, rule, { ...base, ...target })
          continue
        }
        for (let block = 0; block < perStep; block++) {
          const begin = start + block * blockSize
          const rows = Math.min(blockSize, lineLength - block * blockSize)
          const region = { start: begin, rows, columns: 1, rowStride: 1, columnStride: 0 }
          const target = {
            codeStart: begin,
            codeRowStride: 1,
            codeColumnStride: 0,
            scaleStart: step * perStep + block,
          }
          quantizeBlocks(numbers, region, rule, { ...base, ...target })
        }
      }
      return { codes: packCodes(codes, bits), scales, zeros: packCodes(zeros, bits) }
    })
  })
  const codeBytes = (steps * stepSize * bits) / 8
  return {
    codes: panels.tensor(
      { name: names.codes, dtype: given.dtype, shape: given.shape },
      codeBytes,
      ({ codes }) => codes,
    ),
    scales: scalesOf(panels, names.scales, scaleShape, steps * perStep * 4, tensor.dtype),
    ...(!symmetric && {
      zeroPoints: panels.tensor(
        { name: names.zeroPoints, dtype: given.dtype, shape: scaleShape },
        (steps * perStep * bits) / 8,
        ({ zeros }) => zeros,
      ),
    }),
  }
}

/** MatMulBnb4: the weight as [N, K], flattened; codes two per byte, the first in the upper bits; one greatest magnitude per block. */
export function bnb4(
  matrix: Matrix,
  {
    kind,
    blockSize,
    cache,
  }: { readonly kind: Bnb4Kind; readonly blockSize: number; readonly cache: PanelCache },
  names: BlockNames,
): BlockTensors {
  const { tensor, k, n } = matrix
  const reader = new FloatReader(matrix.isTransposed ? tensor : transposed(matrix))
  const size = k * n
  const width = Math.max(1, Math.floor((4 * PANEL_WINDOW) / blockSize)) * blockSize
  const round = roundScaleOf(tensor.dtype)
  const panels = new Panels(cache, (index) => {
    const start = index * width
    return withWindow(Math.min(width, size - start), async (numbers) => {
      await reader.fill(start, numbers)
      return { ...bnb4Codes(numbers, kind, blockSize, round), zeros: new Uint8Array(0) }
    })
  })
  return {
    codes: panels.tensor(
      { name: names.codes, dtype: 'uint8', shape: [Math.ceil(size / 2)] },
      width / 2,
      ({ codes }) => codes,
    ),
    scales: scalesOf(
      panels,
      names.scales,
      [Math.ceil(size / blockSize)],
      (width / blockSize) * 4,
      tensor.dtype,
    ),
  }
}

/** The matrix [K, N] as [N, K], row-major. */
export function transposed({ tensor, k, n }: Omit<Matrix, 'isTransposed'>): DenseTensor {
  const plain = asStored(tensor)
  const flat = new StoredTensor({
    source: plain.source,
    start: plain.start,
    dtype: plain.dtype,
    shape: [k, n],
  })
  const { source, start } = asStored(reorder(flat, 'fb'))
  return new StoredTensor({ source, start, dtype: plain.dtype, shape: [n, k] })
}

function scalesOf(
  panels: Panels,
  name: string,
  shape: readonly number[],
  panelBytes: number,
  dtype: Dtype,
): DenseTensor {
  const numbers = panels.tensor(
    { name, dtype: 'float32', shape },
    panelBytes,
    ({ scales }) => new Uint8Array(scales.buffer, scales.byteOffset, scales.byteLength),
  )
  return cast(numbers, dtype)
}

/** float16 scales are rounded before they are used; those of bfloat16 afterwards, as the tool does. */
function roundScaleOf(dtype: Dtype): RoundScale {
  if (dtype !== 'float16') return (scale) => scale
  return (scale) => decodeFloatCode('float16', encodeFloatCode('float16', scale))
}

/** The same bytes as a tensor of another shape with as many elements. */
export function withShape(tensor: DenseTensor, shape: readonly number[]): DenseTensor {
  const { source, start, dtype, name } = asStored(tensor)
  return new StoredTensor({ source, start, dtype, name, shape })
}
