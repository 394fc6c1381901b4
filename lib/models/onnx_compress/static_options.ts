/** Options of `quantizeStatic`, checked, and ranges of values in either of their forms. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { valueText } from '../../value_text.js'
import type { CodeType } from './code_parameters.js'
import type { OpsetOptions } from './require_opset.js'
import { STATIC_RULES } from './static_rules.js'

/** The least and greatest number that a value takes. */
export interface ValueRange {
  readonly min: number
  readonly max: number
}

/** Ranges by the name of the value. */
export type ValueRanges = Readonly<Record<string, ValueRange>>

/** What decides which nodes are quantized. */
export interface QuantizableOptions {
  /** Operators to quantize. Default: those of onnxruntime's tool. */
  readonly ops?: readonly string[]
  /** Names of nodes that stay. As for onnxruntime’s tool, a name that no node has is none to keep. */
  readonly exclude?: readonly string[]
}

export interface QuantizeStaticOptions extends QuantizableOptions, OpsetOptions {
  /**
   * Ranges of values, as `calibrate` and `readRanges` give them; those that `quantizableValues` names are needed. The JSON of
   * onnxruntime's calibration cache is taken, too.
   */
  readonly ranges: ValueRanges
  /** Element type of activations. Default `uint8`. Types of 16 bits need operator set 21. */
  readonly activationType?: 'int8' | 'uint8' | 'int16' | 'uint16'
  /**
   * Element type of weights. Default `int8`. Signed types are symmetric, unsigned ones have zero points. Types of 4 and 16 bits need
   * operator set 21.
   */
  readonly weightType?: 'int4' | 'uint4' | 'int8' | 'uint8' | 'int16' | 'uint16'
  /** One scale per output channel of a weight, which is more exact. Default false. */
  readonly perChannel?: boolean
  /** One bit less for weights and other initializers, for x86 processors without VNNI. Default false. */
  readonly reduceRange?: boolean
  readonly signal?: AbortSignal
}

export interface StaticSettings {
  readonly ranges: ReadonlyMap<string, ValueRange>
  readonly activationType: CodeType
  readonly weightType: CodeType
  readonly perChannel: boolean
  readonly reduceRange: boolean
  readonly ops: ReadonlySet<string>
  readonly excludes: ReadonlySet<string>
  readonly raiseOpset: boolean
  readonly signal: AbortSignal | undefined
}

const ACTIVATION_TYPES: readonly CodeType[] = ['int8', 'uint8', 'int16', 'uint16']
const WEIGHT_TYPES: readonly CodeType[] = ['int4', 'uint4', ...ACTIVATION_TYPES]

const NAMES = [
  'ranges',
  'activationType',
  'weightType',
  'perChannel',
  'reduceRange',
  'ops',
  'exclude',
  'raiseOpset',
  'signal',
] as const

/** @throws TileworkError ERR_ARGUMENT */
export function checkStaticOptions(options: QuantizeStaticOptions): StaticSettings {
  checkOptions(options, 'quantizeStatic', NAMES)
  const given = readInput('The options of quantizeStatic', () => ({ ...options }))
  const { activationType = 'uint8', weightType = 'int8', perChannel = false, reduceRange = false } = given
  checkType('activationType', activationType, ACTIVATION_TYPES)
  checkType('weightType', weightType, WEIGHT_TYPES)
  const { raiseOpset = false } = given
  for (const [name, value] of Object.entries({ perChannel, reduceRange, raiseOpset })) {
    if (typeof value !== 'boolean') refuse(name, value, 'true or false')
  }
  return {
    ...checkQuantizable('quantizeStatic', given),
    ranges: readInput('The ranges of quantizeStatic', () => checkRanges(given.ranges)),
    activationType,
    weightType,
    perChannel,
    reduceRange,
    raiseOpset,
    signal: given.signal,
  }
}

export function checkQuantizable(
  caller: string,
  { ops = Object.keys(STATIC_RULES), exclude = [] }: QuantizableOptions,
): Pick<StaticSettings, 'ops' | 'excludes'> {
  checkTexts(`ops of ${caller}`, ops)
  checkTexts(`exclude of ${caller}`, exclude)
  return { ops: new Set(ops), excludes: new Set(exclude) }
}

function checkType(option: string, type: CodeType, allowed: readonly CodeType[]): void {
  if (!allowed.includes(type)) refuse(option, type, `one of ${allowed.join(', ')}`)
}

/** @throws TileworkError ERR_ARGUMENT */
export function checkRanges(given: unknown): ReadonlyMap<string, ValueRange> {
  if (typeof given !== 'object' || given === null)
    refuse('ranges', given, 'an object of { min, max } by name')
  const { data } = given as { readonly data?: unknown }
  // A value may have the name "data".
  const isRange = Array.isArray(data) || isCached(data) || Object.hasOwn(Object(data), 'min')
  const entries = Object.entries(typeof data === 'object' && data !== null && !isRange ? data : given)
  return new Map(
    entries.map(([name, range]) => [
      name,
      isCached(range) ? cachedRange(name, range) : checkRange(name, range),
    ]),
  )
}

/** Entries are those of `TensorsData`, or of a dictionary of `TensorData`, which `write_calibration_table` takes as well. */
function isCached(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && ('lowest' in entry || 'highest' in entry)
}

/**
 * An entry of onnxruntime's cache, by the method of calibration: `lowest` and `highest` are numbers, or arrays of numpy as
 * `{ data: number }` or `{ data: [number] }` (`TensorData.to_dict` of its 1.32). An array of several numbers is refused.
 */
function cachedRange(name: string, entry: unknown): ValueRange {
  const numberOf = (part: 'lowest' | 'highest'): unknown => {
    const value: unknown = (entry as Record<string, unknown> | null)?.[part]
    const data = typeof value === 'object' ? (value as { readonly data?: unknown } | null)?.data : value
    return Array.isArray(data) && data.length === 1 ? data[0] : data
  }
  return checkRange(name, { min: numberOf('lowest'), max: numberOf('highest') })
}

/**
 * @param range - `{ min, max }`, or `[min, max]` as in the JSON of older versions of onnxruntime
 * @throws TileworkError ERR_ARGUMENT, with the name
 */
export function checkRange(name: string, range: unknown): ValueRange {
  const { min, max } = (Array.isArray(range) ? { min: range[0], max: range[1] } : (range ?? {})) as Record<
    string,
    unknown
  >
  if (
    typeof min === 'number' &&
    typeof max === 'number' &&
    Number.isFinite(min) &&
    min <= max &&
    max < Infinity
  )
    return { min, max }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `the range of ${valueText(name)} is ${valueText(min)} to ${valueText(max)}; it must be two finite numbers in order.`,
  )
}

function refuse(option: string, value: unknown, allowed: string): never {
  refuseOption('quantizeStatic', option, valueText(value), allowed)
}
