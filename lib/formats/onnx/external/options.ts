/** Options of external data: which tensors are external, how they are aligned, and how large the files may be. */
import { checkFlag, checkOneOf, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { FORMAT_NAME } from '../schema.js'

export interface ExternalOptions {
  /**
   * Data file, relative to the folder of the model. Default: `<model>.data`. If the file exists, a number is appended to
   * its stem, because other models may use it.
   */
  readonly location?: string
  /**
   * Smallest external tensor, in bytes. Default 1024, as in the Python package onnx. Lists of int32 or int64 numbers of a model, and
   * scales of Resize, stay inside below 1024 bytes whatever it is: onnx infers shapes from them, and opens no data file for that.
   */
  readonly threshold?: number
  /** Alignment of offsets, a power of two. Default: 4096 for tensors from 1 MiB on, 64 for smaller ones. */
  readonly alignment?: number
  /** Size limit of one file in bytes; a larger tensor gets its own file. Default: one file of any size. */
  readonly shardBytes?: number
  /** Stores the SHA-1 of the data file with each tensor, which reads the values twice. Default false. */
  readonly checksum?: boolean
  /**
   * True for tensors of attributes as well, such as the `value` of a `Constant`, in all graphs and functions. Default false, as in
   * the Python package onnx: initializers, and attributes that are external already.
   */
  readonly attributes?: boolean
  /**
   * `safetensors`: each data file is a safetensors file too, where each tensor has its name in the model. Default location:
   * `<model without .onnx>.safetensors`. Its values have no gaps, so `alignment` is refused; larger elements come first. Default:
   * `raw`, values only.
   */
  readonly format?: 'raw' | 'safetensors'
}

/** Options with defaults applied. */
export interface CheckedExternal {
  readonly location: string | undefined
  readonly threshold: number
  readonly shardBytes: number
  readonly checksum: boolean
  readonly attributes: boolean
  readonly format: 'raw' | 'safetensors'
  alignmentOf(byteLength: number): number
}

export const DEFAULT_THRESHOLD = 1024

/** Page alignment, so that large tensors can be mapped; for small ones the gaps cost too much. */
const PAGE_BYTES = 4096
const LARGE_BYTES = 1024 * 1024

/** Size of a cache line and of the widest vector register. */
const SMALL_ALIGNMENT = 64

/** Size of a huge page. The limit matters because each tensor may cost this much padding. */
const MAX_ALIGNMENT = 2 * 1024 * 1024

/** The type makes a missing option a compile error. */
const OPTION_NAMES = {
  location: true,
  threshold: true,
  alignment: true,
  shardBytes: true,
  checksum: true,
  attributes: true,
  format: true,
} as const satisfies Record<keyof ExternalOptions, true>

/** @throws TileworkError ERR_ARGUMENT */
export function checkExternalOptions(given: ExternalOptions): CheckedExternal {
  checkOptions(given, 'external', Object.keys(OPTION_NAMES) as (keyof ExternalOptions)[])
  const options = readInput('The options of external', () => ({ ...given }))
  const { location, threshold = DEFAULT_THRESHOLD, alignment, checksum = false, attributes = false } = options
  const { format = 'raw' } = options
  if (location !== undefined && (typeof location !== 'string' || location === ''))
    throw wrong(`external.location is ${valueText(location)}; it must be a file name`)
  checkFlag(checksum, 'external.checksum')
  checkFlag(attributes, 'external.attributes')
  checkOneOf(format, 'external.format', ['raw', 'safetensors'])
  if (format === 'safetensors' && alignment !== undefined)
    throw wrong('external.alignment cannot be chosen with the format safetensors, whose values have no gaps')
  checkBytes('threshold', threshold, 0)
  const { shardBytes = Number.MAX_SAFE_INTEGER } = options
  checkBytes('shardBytes', shardBytes, 1)
  if (alignment !== undefined) checkAlignment(alignment)
  const alignmentOf = (byteLength: number): number =>
    alignment ?? (byteLength >= LARGE_BYTES ? PAGE_BYTES : SMALL_ALIGNMENT)
  return { location, threshold, shardBytes, checksum, attributes, format, alignmentOf }
}

function checkBytes(name: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return
  throw wrong(`external.${name} is ${valueText(value)}; it must be an integer of at least ${min} bytes`)
}

function checkAlignment(value: number): void {
  if (
    Number.isSafeInteger(value) &&
    value >= 1 &&
    value <= MAX_ALIGNMENT &&
    Number.isInteger(Math.log2(value))
  )
    return
  throw wrong(`external.alignment is ${valueText(value)}; it must be a power of two up to ${MAX_ALIGNMENT}`)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`, { format: FORMAT_NAME })
}
