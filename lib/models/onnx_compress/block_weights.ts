/** The quantized forms of a weight as lazy tensors: MatMulNBits, DequantizeLinear with blocks, GatherBlockQuantized, MatMulBnb4. */

import type { Dtype } from '../../dtype/dtypes.js'
import { transposed } from '../../formats/onnx/tensor/rearranged.js'
import { cast } from '../../tensor/cast.js'
import {
  type BlockBits,
  type BlockMatrix,
  type BlockResults,
  type BlockRule,
  quantizeBlocks,
  quantizeBnb4,
} from '../../tensor/number_blocks.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { packRows } from './code_packing.js'
import { FloatReader, withWindow } from './float_window.js'
import { type PanelCache, Panels } from './panels.js'

export type Bnb4Kind = 'fp4' | 'nf4'

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
  const rule = ruleOf('matmulnbits', tensor, options)
  const width = panelLines(matrix, blocks * blockBytes, blockSize)
  const reader = new FloatReader(tensor)
  const fill = matrix.isTransposed ? fillRows : fillColumns
  const panels = new Panels(cache, async (index) => {
    const first = index * width
    const count = Math.min(width, n - first)
    const panel = resultsOf(count * blocks * blockBytes, count * blocks, symmetric)
    await fill({ matrix, reader, rule, blockSize, blocks, first, count }, panel)
    return { ...panel, zeros: packRows(panel.zeros, blocks, bits, 2 ** (bits - 1)) }
  })
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
        ({ zeros }) => zeros,
      ),
    }),
  }
}

/** Lines of the result in a panel. A panel of columns reads one block of each at least. */
function panelLines({ k, n, isTransposed }: Matrix, lineBytes: number, blockSize: number): number {
  const most = isTransposed
    ? PANEL_BYTES / lineBytes
    : Math.min(PANEL_BYTES / lineBytes, PANEL_WINDOW / Math.min(blockSize, k))
  return Math.max(1, Math.min(n, Math.floor(most)))
}

function resultsOf(codeBytes: number, blocks: number, symmetric: boolean): BlockResults {
  return {
    codes: new Uint8Array(codeBytes),
    scales: new Float32Array(blocks),
    zeros: new Uint8Array(symmetric ? 0 : blocks),
  }
}

/** Lines `[first, first + count)` of the result of a matrix. */
interface PanelLines {
  readonly matrix: Matrix
  readonly reader: FloatReader
  readonly rule: BlockRule
  readonly blockSize: number
  /** Of a line. */
  readonly blocks: number
  readonly first: number
  readonly count: number
}

/** Columns of [K, N], some blocks of all columns at a time. */
async function fillColumns(lines: PanelLines, panel: BlockResults): Promise<void> {
  const { matrix, reader, rule, blockSize, blocks, first, count } = lines
  const { k, n } = matrix
  const atOnce = Math.max(1, Math.floor(PANEL_WINDOW / (count * blockSize)))
  for (let block = 0; block < blocks; block += atOnce) {
    const begin = block * blockSize
    const rows = Math.min(atOnce * blockSize, k - begin)
    await withWindow(rows * count, async (numbers) => {
      if (count === n) await reader.fill(begin * n, numbers)
      else {
        for (let row = 0; row < rows; row++) {
          await reader.fill((begin + row) * n + first, numbers.subarray(row * count, (row + 1) * count))
        }
      }
      const region = { rows, columns: count, blockSize, down: true }
      quantizeBlocks(numbers, rule, region, panel, { blocks, first: block })
    })
  }
}

/** Rows of [N, K], some whole rows at a time. */
async function fillRows(lines: PanelLines, { codes, scales, zeros }: BlockResults): Promise<void> {
  const { matrix, reader, rule, blockSize, blocks, first, count } = lines
  const { k } = matrix
  const rowBytes = codes.length / count
  const atOnce = Math.max(1, Math.floor(PANEL_WINDOW / k))
  for (let row = 0; row < count; row += atOnce) {
    const rows = Math.min(atOnce, count - row)
    await withWindow(rows * k, async (numbers) => {
      await reader.fill((first + row) * k, numbers)
      const part = {
        codes: codes.subarray(row * rowBytes, (row + rows) * rowBytes),
        scales: scales.subarray(row * blocks, (row + rows) * blocks),
        zeros: zeros.subarray(row * blocks, (row + rows) * blocks),
      }
      quantizeBlocks(numbers, rule, { rows, columns: k, blockSize, down: false }, part, { blocks, first: 0 })
    })
  }
}

/** DequantizeLinear along axis 0 of [K, N]: codes [K, N], scales and zero points [blocks, N]. */
export function blockDequantizeLinear(
  { tensor, k, n }: Matrix,
  options: BlockOptions,
  names: BlockNames,
): BlockTensors {
  const rule = ruleOf('dequantizelinear', tensor, options)
  return elementPanels(
    tensor,
    { rows: k, columns: n, blockSize: options.blockSize, down: true },
    rule,
    names,
    options,
  )
}

/** GatherBlockQuantized of 4 bits along axis 1 of [rows, K]: codes [rows, K], scales and zero points [rows, blocks]. */
export function gatherBlocks(tensor: DenseTensor, options: BlockOptions, names: BlockNames): BlockTensors {
  const [rows = 1, columns = 1] = tensor.shape
  const rule = ruleOf('gather', tensor, options)
  return elementPanels(
    tensor,
    { rows, columns, blockSize: options.blockSize, down: false },
    rule,
    names,
    options,
  )
}

/** A tensor whose codes keep the order of its elements. A panel is a number of whole rows, or of whole blocks of rows. */
function elementPanels(
  tensor: DenseTensor,
  matrix: BlockMatrix,
  rule: BlockRule,
  names: BlockNames,
  { bits, symmetric, cache }: BlockOptions,
): BlockTensors {
  const { rows, columns, blockSize, down } = matrix
  const reader = new FloatReader(tensor)
  const stepRows = down ? blockSize : 1
  // A multiple of 8 steps, so that the codes of a panel end at a byte.
  const fitting = Math.max(1, Math.floor(PANEL_WINDOW / (stepRows * columns) / 8))
  const panelRows = stepRows * 8 * Math.min(fitting, Math.ceil(rows / stepRows / 8))
  const entriesOf = (count: number): number =>
    down ? Math.ceil(count / blockSize) * columns : count * Math.ceil(columns / blockSize)
  const panels = new Panels(cache, (index) => {
    const first = index * panelRows
    const count = Math.min(panelRows, rows - first)
    const panel = resultsOf(Math.ceil((count * columns * bits) / 8), entriesOf(count), symmetric)
    return withWindow(count * columns, async (numbers) => {
      await reader.fill(first * columns, numbers)
      quantizeBlocks(numbers, rule, { ...matrix, rows: count }, panel)
      return { ...panel, zeros: packRows(panel.zeros, entriesOf(count), bits) }
    })
  })
  const dtype: Dtype = `${symmetric ? 'int' : 'uint'}${bits}`
  const entries = entriesOf(panelRows)
  const scaleShape = down ? [Math.ceil(rows / blockSize), columns] : [rows, Math.ceil(columns / blockSize)]
  return {
    codes: panels.tensor(
      { name: names.codes, dtype, shape: [rows, columns] },
      (panelRows * columns * bits) / 8,
      ({ codes }) => codes,
    ),
    scales: scalesOf(panels, names.scales, scaleShape, entries * 4, tensor.dtype),
    ...(!symmetric && {
      zeroPoints: panels.tensor(
        { name: names.zeroPoints, dtype, shape: scaleShape },
        (entries * bits) / 8,
        ({ zeros }) => zeros,
      ),
    }),
  }
}

/** float16 scales are rounded before they are used; those of bfloat16 afterwards, as the tool does. */
function ruleOf(
  formula: BlockRule['formula'],
  { dtype }: DenseTensor,
  { bits, symmetric }: BlockOptions,
): BlockRule {
  return { formula, bits, symmetric, halfScales: dtype === 'float16' }
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
  const panels = new Panels(cache, (index) => {
    const start = index * width
    return withWindow(Math.min(width, size - start), async (numbers) => {
      await reader.fill(start, numbers)
      const { codes, magnitudes } = quantizeBnb4(numbers, kind, blockSize)
      return { codes, scales: magnitudes, zeros: new Uint8Array(0) }
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
