/**
 * Limits of shapes and layouts. The native core's limits are generated from this file, so it contains literal data and imports
 * nothing.
 */

/**
 * Most axes of a shape: the limit of BTF, the highest of all formats. The exact product of more sizes could have so many digits
 * that computing it is a denial of service.
 */
export const MAX_AXES = 255

/**
 * Most axes that the native planner takes. A shape with more is folded first: axes of size 1 are dropped. At most 52 others
 * remain, since the product of their sizes is below 2^53.
 */
export const MAX_PLANNED_AXES = 64

/** Most digits of a storage. No layout has more; the limit bounds the cost of a hostile description. */
export const MAX_DIGITS = 256

/** Most digit lists of a storage, each for a range of one axis. Layouts of the catalogue have at most two. */
export const MAX_DIGIT_LISTS = 16
