/**
 * Limits of shapes and layouts. The native core has the same ones, generated from this file, so the file holds
 * literal data and imports nothing.
 */

/**
 * Most axes of a shape: the limit of BTF, the highest of all formats. Products of more extents could have enough digits
 * that computing them is a denial of service.
 */
export const MAX_AXES = 255

/**
 * Most axes that the native planner takes. A shape with more is folded first: axes of extent 1 are dropped, and of
 * others a tensor has at most 52, since their product stays below 2^53.
 */
export const MAX_PLANNED_AXES = 64

/** Most digits of a storage. No layout has more; the limit keeps a hostile description cheap. */
export const MAX_DIGITS = 256

/** Most digit lists of a storage, each for its own range of one axis. Catalogued layouts have two at most. */
export const MAX_DIGIT_LISTS = 16
