/** Checks the `limits` of a caller, in one place for every format and command. */

import { readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { Limits } from './format.js'

/** One line a limit; the type makes a forgotten one an error of compilation. */
const LIMIT_NAMES = {
  tensors: true,
  headerBytes: true,
  totalBytes: true,
  depth: true,
} as const satisfies Record<keyof Limits, true>

/**
 * A copy of `limits` without the ones left out. A limit that is misspelt, or NaN, would otherwise be none without a
 * word.
 *
 * @param limits - undefined for none; each limit a number from 0, infinity for no bound
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkLimits(limits: unknown): Limits {
  if (limits === undefined) return {}
  if (typeof limits !== 'object' || limits === null) {
    throw new TileworkError('ERR_ARGUMENT', `limits must be an object; it is ${valueText(limits)}.`)
  }
  const given = readInput('limits', () => Object.entries(limits))
  return Object.fromEntries(given.filter(([, value]) => value !== undefined).map(checkLimit))
}

function checkLimit([name, value]: [string, unknown]): [string, number] {
  if (!Object.hasOwn(LIMIT_NAMES, name)) {
    const known = Object.keys(LIMIT_NAMES).join(', ')
    throw new TileworkError('ERR_ARGUMENT', `limits.${name.slice(0, 40)} is no limit; known are: ${known}.`)
  }
  if (typeof value === 'number' && value >= 0) return [name, value]
  throw new TileworkError(
    'ERR_ARGUMENT',
    `limits.${name} must be a number from 0; it is ${valueText(value)}.`,
  )
}
