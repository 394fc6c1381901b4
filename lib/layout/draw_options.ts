/** What drawings of layouts take, and whether they were given it. */
import { checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { Layout, StorageOptions } from './layout.js'
import { checkParsedLayout } from './parse_layout.js'

/** What to draw besides the layout and the shape. */
export interface DrawOptions extends StorageOptions {
  /** Text only: ANSI background colours, one a channel. Default: false. */
  readonly color?: boolean
  /** Text only: columns of the terminal, 40 to 400. Default: 100. */
  readonly width?: number
}

/**
 * A copy of the options, read once.
 *
 * @param call - names the function at the start of the message
 * @throws TileworkError ERR_ARGUMENT for a layout that `parseLayout` did not give, and for options that are none
 */
export function checkDrawing(layout: Layout, options: DrawOptions, call: string): DrawOptions {
  checkParsedLayout(layout, call)
  checkOptions(options, call, ['dtype', 'lower', 'upper', 'color', 'width'])
  const given = readInput(`The options of ${call}`, () => ({ ...options }))
  if (given.width === undefined || typeof given.width === 'number') return given
  throw new TileworkError(
    'ERR_ARGUMENT',
    `width must be a number of columns; it is ${valueText(given.width)}.`,
  )
}
