/** Options of the drawings of layouts, and their checks. */
import { checkOptions, readInput } from '../caller_input.js'
import { type Dtype, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { Layout, StorageOptions } from './layout.js'
import { checkParsedLayout } from './parse_layout.js'

/** Padding and dtype of the drawn storage, and the style of the text. */
export interface DrawOptions extends StorageOptions {
  /** Text only: ANSI background colours, one per channel. Default: false. */
  readonly color?: boolean
  /** Text only: columns of the terminal, 40 to 400. Default: 100. */
  readonly width?: number
}

/** Options with the canonical dtype. */
export interface CheckedDrawOptions extends DrawOptions {
  readonly dtype?: Dtype
}

/**
 * A copy of the options, read once, with the canonical dtype.
 *
 * @param call - the function that the error names
 * @throws TileworkError ERR_ARGUMENT for a layout that `parseLayout` did not return, and for unknown options; ERR_DTYPE
 */
export function checkDrawing(layout: Layout, options: DrawOptions, call: string): CheckedDrawOptions {
  checkParsedLayout(layout, call)
  checkOptions(options, call, ['dtype', 'lower', 'upper', 'color', 'width'])
  const { dtype, ...given } = readInput(`The options of ${call}`, () => ({ ...options }))
  if (given.width === undefined || typeof given.width === 'number') {
    return dtype === undefined ? given : { ...given, dtype: resolveDtype(dtype) }
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `width is ${valueText(given.width)}; it must be a number of columns`,
  )
}
