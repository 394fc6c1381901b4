/**
 * Memory layouts: names, digits, offsets, reorder plans, descriptions and drawings.
 *
 * @packageDocumentation
 */
export { describeLayout } from './layout/describe.js'
export type { DrawOptions } from './layout/draw_options.js'
export { drawLayoutSvg } from './layout/draw_svg.js'
export { drawLayoutText } from './layout/draw_text.js'
export type { Digit, Layout, LayoutStorage, StorageOptions } from './layout/layout.js'
export {
  type AnyLayoutName,
  LAYOUT_NAMES,
  type LayoutAlias,
  type LayoutName,
  parseLayout,
} from './layout/parse_layout.js'
export {
  type Explanation,
  type PlacedLayout,
  type PlanReorderOptions,
  planReorder,
  type ReorderPlan,
  type RunOptions,
} from './layout/plan.js'
