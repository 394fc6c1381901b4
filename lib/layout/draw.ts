/** Drawings of a layout: where each element of a tensor lands in memory. */
import type { StorageOptions } from './layout.js'

/** What to draw besides the layout and the shape. */
export interface DrawOptions extends StorageOptions {
  /** Text only: ANSI background colours, one a channel. Default: false. */
  readonly color?: boolean
  /** Text only: columns of the terminal, 40 to 400. Default: 100. */
  readonly width?: number
}

export { drawLayoutSvg } from './draw_svg.js'
export { drawLayoutText } from './draw_text.js'
