/** What a compression costs each weight: the difference between its numbers and what an engine decodes. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { roundEven } from '../../dtype/round_even.js'
import { transposed } from '../../formats/onnx/tensor/rearranged.js'
import { cast } from '../../tensor/cast.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import { type BlockBits, clipMagnitudes, quantizeBlocks, quantizeBnb4 } from '../../tensor/number_blocks.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { isStandard, mainScope, type Scope } from '../onnx/document/scope.js'
import type { Node } from '../onnx/document/types.js'
import {
  CODE_TYPES,
  type CodeType,
  codeParameters,
  codeRange,
  isSigned,
  valueRanges,
} from './code_parameters.js'
import { FloatReader, WINDOW_ELEMENTS, withWindow } from './float_window.js'
import { DEFAULT_CLIP } from './half_values.js'
import { isBlockSize } from './weight_options.js'

/** What the weights become. */
export interface WeightErrorOptions {
  /** `float16`; integers as `quantizeDynamic` or `quantizeStatic`; `blocks` and `bnb4` as `quantizeWeights`. */
  readonly form: 'float16' | 'int4' | 'uint4' | 'int8' | 'uint8' | 'int16' | 'uint16' | 'blocks' | 'bnb4'
  /** Of `blocks`. Default 4. */
  readonly bits?: 2 | 4 | 8
  /** Of `blocks` and `bnb4`. Default 32, and 64 for `bnb4`. */
  readonly blockSize?: number
  /** Of `blocks`: without zero points. Default true. */
  readonly symmetric?: boolean
  /** Of integers: one scale per column of a product, and with `static` per output channel of a convolution. Default false. */
  readonly perChannel?: boolean
  /** Of integers: as `quantizeStatic`. Default: true for types of 4 and 16 bits, which `quantizeDynamic` does not have. */
  readonly static?: boolean
  readonly reduceRange?: boolean
  readonly signal?: AbortSignal
}

export interface WeightError {
  /** Of the weight. */
  readonly name: string
  /** The first node that takes it. */
  readonly node: string
  readonly opType: string
  readonly elements: number
  /** Greatest difference, and the root of the mean of their squares. */
  readonly max: number
  readonly rms: number
  /** Signal to noise in decibels: Infinity for weights that do not change. */
  readonly sqnr: number
}

interface Settings extends Required<Omit<WeightErrorOptions, 'signal'>> {
  readonly signal: AbortSignal | undefined
}

const NAMES = [
  'form',
  'bits',
  'blockSize',
  'symmetric',
  'perChannel',
  'static',
  'reduceRange',
  'signal',
] as const
const FORMS: readonly string[] = ['float16', ...CODE_TYPES, 'blocks', 'bnb4']

/** Operators with a weight, and the input that it is. */
const WEIGHT_INPUTS: Readonly<Record<string, number>> = {
  MatMul: 1,
  Gemm: 1,
  Conv: 1,
  ConvTranspose: 1,
  Gather: 0,
}

/** The numbers of NF4, by code. */
const NF4_VALUES = Float32Array.of(
  -1,
  -0.6961928009986877,
  -0.5250730514526367,
  -0.39491748809814453,
  -0.28444138169288635,
  -0.18477343022823334,
  -0.09105003625154495,
  0,
  0.07958029955625534,
  0.16093020141124725,
  0.24611230194568634,
  0.33791524171829224,
  0.44070982933044434,
  0.5626170039176941,
  0.7229568362236023,
  1,
)

/**
 * The error that a compression makes in each float32 weight, worst signal to noise first. Reads every weight, and changes
 * nothing. Errors of weights say where a model is sensitive; what its outputs lose has to be measured by running it.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_ABORTED, and errors of reading
 */
export async function weightErrors(model: OnnxModel, options: WeightErrorOptions): Promise<WeightError[]> {
  checkModel(model, 'weightErrors')
  const settings = checkErrorOptions(options)
  const errors: WeightError[] = []
  const seen = new Set<DenseTensor>()
  for (const scope of mainScope(model).all()) {
    for (const node of scope.graph.nodes) {
      const found = weightOf(scope, node, settings)
      if (!found || seen.has(found.tensor)) continue
      seen.add(found.tensor)
      throwIfAborted(settings.signal)
      const sums = await sumsOf(found, settings)
      const elements = found.tensor.size
      errors.push({
        name: found.tensor.name,
        node: node.name,
        opType: node.opType,
        elements,
        max: sums.max,
        rms: Math.sqrt(sums.noise / elements),
        sqnr: sums.noise === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(sums.signal / sums.noise),
      })
    }
  }
  return errors.sort((one, other) => one.sqnr - other.sqnr)
}

function checkErrorOptions(options: WeightErrorOptions): Settings {
  checkOptions(options, 'weightErrors', NAMES)
  const given = readInput('The options of weightErrors', () => ({ ...options }))
  const { form, bits = 4, blockSize = form === 'bnb4' ? 64 : 32 } = given
  const { symmetric = true, perChannel = false, reduceRange = false, signal } = given
  const { static: isStatic = form !== 'int8' && form !== 'uint8' } = given
  const refuse = (option: string, value: unknown, allowed: string): never =>
    refuseOption('weightErrors', option, valueText(value), allowed)
  if (!FORMS.includes(form)) refuse('form', form, FORMS.join(', '))
  if (bits !== 2 && bits !== 4 && bits !== 8) refuse('bits', bits, '2, 4 or 8')
  if (!isBlockSize(blockSize)) refuse('blockSize', blockSize, 'a power of two from 16')
  for (const [name, value] of Object.entries({ symmetric, perChannel, static: isStatic, reduceRange })) {
    if (typeof value !== 'boolean') refuse(name, value, 'true or false')
  }
  return { form, bits, blockSize, symmetric, perChannel, static: isStatic, reduceRange, signal }
}

interface Found {
  readonly tensor: DenseTensor
  /** Whether its rows are the columns of the product. */
  readonly isTransposed: boolean
  readonly isTable: boolean
  /** The axis along which `perChannel` has scales; undefined for a weight that always has one. */
  readonly channelAxis: number | undefined
}

function weightOf(scope: Scope, node: Node, settings: Settings): Found | undefined {
  const input = WEIGHT_INPUTS[node.opType]
  if (input === undefined || !isStandard(node, node.opType)) return undefined
  const { form } = settings
  // quantizeDynamic leaves transposed convolutions.
  if (node.opType === 'ConvTranspose' && form !== 'float16' && !settings.static) return undefined
  const isBlocks = form === 'blocks' || form === 'bnb4'
  if (isBlocks && node.opType !== 'MatMul') return undefined
  const name = node.inputs[input] ?? ''
  const transpose = isBlocks ? scope.producer(name) : undefined
  const isTransposed = transpose?.opType === 'Transpose'
  const tensor = scope.constant(isTransposed ? transpose!.inputs[0]! : name)?.tensor
  if (tensor?.dtype !== 'float32' || tensor.size === 0) return undefined
  const axes = tensor.shape.length
  if (axes !== 2 && (isBlocks || axes < 2)) return undefined
  const channelAxis = channelAxisOf(node, axes, settings)
  return { tensor, isTransposed, isTable: node.opType === 'Gather', channelAxis }
}

/** `quantizeDynamic` gives convolutions one scale, `quantizeStatic` products whose weight is not a matrix; tables have one. */
function channelAxisOf(node: Node, axes: number, { static: isStatic }: Settings): number | undefined {
  if (node.opType === 'Gather') return undefined
  if (node.opType === 'Conv') return isStatic ? 0 : undefined
  if (node.opType === 'ConvTranspose') return 1
  if (node.opType === 'MatMul' && isStatic && axes !== 2) return undefined
  const hasRows = node.opType === 'Gemm' && Number(node.attribute('transB')?.value ?? 0) === 1
  return hasRows ? 0 : axes - 1
}

interface Sums {
  signal: number
  noise: number
  max: number
}

function add(sums: Sums, number: number, decoded: number): void {
  const difference = Math.abs(number - decoded)
  sums.signal += number * number
  sums.noise += difference * difference
  if (difference > sums.max) sums.max = difference
}

async function sumsOf(found: Found, settings: Settings): Promise<Sums> {
  const sums: Sums = { signal: 0, noise: 0, max: 0 }
  if (settings.form === 'blocks') await addBlocks(found, settings, sums)
  else if (settings.form === 'bnb4') await addBnb4(found, settings, sums)
  else if (settings.form === 'float16') await addHalf(found.tensor, settings, sums)
  else await addIntegers(found, settings.form, settings, sums)
  return sums
}

async function addHalf(tensor: DenseTensor, { signal }: Settings, sums: Sums): Promise<void> {
  const { min, max } = DEFAULT_CLIP.float16
  await new FloatReader(tensor).each(signal, (numbers) => {
    const clipped = numbers.slice()
    clipMagnitudes(clipped, min, max)
    const decoded = new Float32Array(numbers.length)
    cast(cast(tensorOf(clipped), 'float16'), 'float32').copyToSync(new Uint8Array(decoded.buffer))
    for (let at = 0; at < numbers.length; at++) add(sums, numbers[at]!, decoded[at]!)
  })
}

/**
 * Tables are uint8 with a zero point, whatever the weights are, because `quantizeDynamic` makes them so. The static tool makes every
 * scale along an axis symmetric, the dynamic one only those of signed types.
 */
async function addIntegers(found: Found, form: CodeType, settings: Settings, sums: Sums): Promise<void> {
  const { tensor, isTable, channelAxis } = found
  const { perChannel, reduceRange, signal } = settings
  const type = isTable ? 'uint8' : form
  const axis = perChannel ? channelAxis : undefined
  const symmetric = isSigned(type) || (axis !== undefined && settings.static)
  const rule = { type, symmetric, reduceRange: reduceRange && !isTable }
  const { low, high } = await valueRanges(tensor, axis, signal)
  const parameters = Array.from(low, (least, at) => codeParameters(least, high[at]!, rule))
  const [least, last] = codeRange(type)
  const run = axis === undefined ? 1 : elementsPerIndex(tensor, axis)
  await new FloatReader(tensor).each(signal, (numbers, start) => {
    for (let at = 0; at < numbers.length; at++) {
      const { scale, zeroPoint } = parameters[Math.floor((start + at) / run) % parameters.length]!
      const code = roundEven(Math.fround(numbers[at]! / scale)) + zeroPoint
      add(sums, numbers[at]!, (Math.min(Math.max(code, least), last) - zeroPoint) * scale)
    }
  })
}

/** Elements between neighbours along an axis. */
function elementsPerIndex({ shape }: DenseTensor, axis: number): number {
  return shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
}

/** Whole blocks of rows of [K, N], or whole rows of [N, K], at a time. */
async function addBlocks({ tensor, isTransposed }: Found, settings: Settings, sums: Sums): Promise<void> {
  const { bits, blockSize, symmetric, signal } = settings
  const [rows = 0, columns = 0] = tensor.shape
  const reader = new FloatReader(tensor)
  const rule = { formula: 'matmulnbits', bits: bits as BlockBits, symmetric, halfScales: false } as const
  const step = isTransposed ? 8 : blockSize
  const rowsAtOnce = step * Math.max(1, Math.floor(WINDOW_ELEMENTS / (step * columns)))
  for (let first = 0; first < rows; first += rowsAtOnce) {
    throwIfAborted(signal)
    const count = Math.min(rowsAtOnce, rows - first)
    const perRow = isTransposed ? Math.ceil(columns / blockSize) : columns
    const blocks = isTransposed ? count * perRow : Math.ceil(count / blockSize) * columns
    const results = {
      codes: new Uint8Array(Math.ceil((count * columns * bits) / 8)),
      scales: new Float32Array(blocks),
      zeros: new Uint8Array(symmetric ? 0 : blocks),
    }
    await withWindow(count * columns, async (numbers) => {
      await reader.fill(first * columns, numbers)
      quantizeBlocks(numbers, rule, { rows: count, columns, blockSize, down: !isTransposed }, results)
      const mask = 2 ** bits - 1
      for (let at = 0; at < numbers.length; at++) {
        const [row, column] = [Math.floor(at / columns), at % columns]
        const block = isTransposed
          ? row * perRow + Math.floor(column / blockSize)
          : Math.floor(row / blockSize) * columns + column
        const code = (results.codes[(at * bits) >> 3]! >> ((at * bits) & 7)) & mask
        const zero = symmetric ? 2 ** (bits - 1) : results.zeros[block]!
        add(sums, numbers[at]!, (code - zero) * results.scales[block]!)
      }
    })
  }
}

async function addBnb4(
  { tensor, isTransposed }: Found,
  { blockSize, signal }: Settings,
  sums: Sums,
): Promise<void> {
  const [k = 0, n = 0] = tensor.shape
  await new FloatReader(isTransposed ? tensor : transposed({ tensor, k, n })).each(signal, (numbers) => {
    const { codes, magnitudes } = quantizeBnb4(numbers, 'nf4', blockSize)
    for (let at = 0; at < numbers.length; at++) {
      const code = at % 2 === 0 ? codes[at >> 1]! >> 4 : codes[at >> 1]! & 15
      add(sums, numbers[at]!, NF4_VALUES[code]! * magnitudes[Math.floor(at / blockSize)]!)
    }
  })
}
