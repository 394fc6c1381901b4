/** How values are written into other files: which tensors, where in them, and how large these may be. */
import { readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { FORMAT_NAME } from '../schema.js'

export interface ExternalOptions {
  /**
   * File for the values, relative to the folder of the model. Default: the model's name with `.data` behind it. Where
   * the folder has a file of that name, a number is put behind its stem: other models may need what is there.
   */
  readonly location?: string
  /** Fewest bytes of a tensor that goes outside. Default 1024, as in the Python package onnx. */
  readonly threshold?: number
  /** Offsets are multiples of this power of two. Default: 4096 for tensors of 1 MiB and more, 64 for others. */
  readonly alignment?: number
  /** Most bytes of one file; a larger tensor has a file of its own. Default: one file, whatever its size. */
  readonly shardBytes?: number
  /** Whether each tensor tells the SHA-1 of its file, for which the values are read twice. Default false. */
  readonly checksum?: boolean
}

/** Options whose defaults are filled in. */
export interface CheckedExternal {
  readonly location: string | undefined
  readonly threshold: number
  readonly shardBytes: number
  readonly checksum: boolean
  alignmentOf(byteLength: number): number
}

const DEFAULT_THRESHOLD = 1024

/** Pages can be mapped from here on, which is worth gaps only for large tensors. */
const PAGE_BYTES = 4096
const LARGE_BYTES = 1024 * 1024

/** A cache line, and the widest vector. */
const SMALL_ALIGNMENT = 64

/** A huge page: nobody needs more, and each tensor may cost as much. */
const MAX_ALIGNMENT = 2 * 1024 * 1024

/** One line an option; the type makes a forgotten one an error of compilation. */
const OPTION_NAMES = {
  location: true,
  threshold: true,
  alignment: true,
  shardBytes: true,
  checksum: true,
} as const satisfies Record<keyof ExternalOptions, true>

/** @throws TileworkError ERR_ARGUMENT */
export function checkExternalOptions(given: ExternalOptions): CheckedExternal {
  if (typeof given !== 'object' || given === null)
    throw wrong(`external must be an object or false; it is ${valueText(given)}`)
  const options = readInput('The options of external', () => ({ ...given }))
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(OPTION_NAMES, key))
  if (unknown !== undefined) {
    const known = Object.keys(OPTION_NAMES).join(', ')
    throw wrong(`${valueText(unknown)} is no option of external; known are: ${known}`)
  }
  const { location, threshold = DEFAULT_THRESHOLD, alignment, checksum = false } = options
  if (location !== undefined && (typeof location !== 'string' || location === ''))
    throw wrong(`external.location must be a name of a file; it is ${valueText(location)}`)
  if (typeof checksum !== 'boolean')
    throw wrong(`external.checksum must be true or false; it is ${valueText(checksum)}`)
  checkBytes('threshold', threshold, 0)
  const { shardBytes = Number.MAX_SAFE_INTEGER } = options
  checkBytes('shardBytes', shardBytes, 1)
  if (alignment !== undefined) checkAlignment(alignment)
  const alignmentOf = (byteLength: number): number =>
    alignment ?? (byteLength >= LARGE_BYTES ? PAGE_BYTES : SMALL_ALIGNMENT)
  return { location, threshold, shardBytes, checksum, alignmentOf }
}

function checkBytes(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw wrong(`external.${name} must be a whole number of bytes from ${least}; it is ${valueText(value)}`)
}

function checkAlignment(value: number): void {
  if (
    Number.isSafeInteger(value) &&
    value >= 1 &&
    value <= MAX_ALIGNMENT &&
    Number.isInteger(Math.log2(value))
  )
    return
  throw wrong(`external.alignment must be a power of two up to ${MAX_ALIGNMENT}; it is ${valueText(value)}`)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`, { format: FORMAT_NAME })
}
