/** Lists of numbers on the command line: shapes and padding. */
import { TileworkError } from '../../index.js'

/** How a shape without axes is written, beside the empty list. */
const SCALAR = 'scalar'

/**
 * A parser for the option `flag`: whole numbers separated by commas; an empty list or `scalar` has rank 0.
 *
 * @throws TileworkError ERR_ARGUMENT (from the parser)
 */
export function numberList(flag: string): (text: string) => readonly number[] {
  return (text) => {
    const trimmed = text.trim()
    if (trimmed === '' || trimmed === SCALAR) return []
    return trimmed.split(',').map((part) => wholeNumber(part.trim(), flag, text))
  }
}

function wholeNumber(part: string, flag: string, text: string): number {
  const value = /^\d+$/.test(part) ? Number(part) : Number.NaN
  if (!Number.isSafeInteger(value)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${flag} takes whole numbers from 0 to 2^53 - 1 separated by commas, or "${SCALAR}"; "${part}" in "${text}" is none.`,
    )
  }
  return value
}

/** The inverse: a list as `--shape` takes it. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? SCALAR : shape.join(',')
}
