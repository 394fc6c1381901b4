/** Layouts whose digits are whole axes, in any order. */

/** Letters of the axes of data layouts, in logical order. */
const AXES = 'bfvuwzyx'

/** The most axes that a layout with permuted axes has: data layouts have eight letters. */
export const MAX_PERMUTED_AXES = 8

/**
 * The name of the layout that has these axes in memory, outermost first. Axes that are left out come before them, so they
 * should have one element.
 *
 * @param rank - number of axes, at most MAX_PERMUTED_AXES
 */
export function permutedLayout(order: readonly number[], rank: number): string {
  const others = [...Array(rank).keys()].filter((axis) => !order.includes(axis))
  return [...others, ...order].map((axis) => AXES[axis]!).join('')
}
