/** Drawings of a layout: where each element of a tensor lands in memory. */
export type { DrawOptions } from './draw_options.js'
export { drawLayoutSvg } from './draw_svg.js'
export { drawLayoutText } from './draw_text.js'
