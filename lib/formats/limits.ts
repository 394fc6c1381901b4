/** Checks the `limits` that a caller passes, for every format and command. */

import { readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { expectedText } from '../nearest_names.js'
import { valueText } from '../value_text.js'
import type { Limits } from './format.js'

/** Limits of an open: those of the formats, and of the input itself. */
export interface InputLimits extends Limits {
  /**
   * Maximum number of bytes of a Response or a stream, which is received into memory. Default: 1 GiB. Files, Blobs and
   * sources have no such limit.
   */
  readonly inputBytes?: number
}

/** One line per limit; a missing one does not compile. */
const LIMIT_NAMES = {
  inputBytes: true,
  tensors: true,
  headerBytes: true,
  totalBytes: true,
  depth: true,
} as const satisfies Record<keyof InputLimits, true>

/**
 * A copy of `limits` without undefined values. A misspelt limit, or NaN, would otherwise silently be no limit.
 *
 * @param limits - undefined for none; each limit is a number from 0, or infinity for no bound
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkLimits(limits: unknown): InputLimits {
  if (limits === undefined) return {}
  if (typeof limits !== 'object' || limits === null) {
    throw new TileworkError('ERR_ARGUMENT', `limits is ${valueText(limits)}; it must be an object.`)
  }
  const given = readInput('limits', () => Object.entries(limits))
  return Object.fromEntries(given.filter(([, value]) => value !== undefined).map(checkLimit))
}

function checkLimit([name, value]: [string, unknown]): [string, number] {
  if (!Object.hasOwn(LIMIT_NAMES, name)) {
    const message = `unknown limit ${valueText(name)}${expectedText(name, Object.keys(LIMIT_NAMES))}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  if (typeof value === 'number' && value >= 0) return [name, value]
  throw new TileworkError(
    'ERR_ARGUMENT',
    `limits.${name} is ${valueText(value)}; it must be a number from 0.`,
  )
}
