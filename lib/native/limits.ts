/**
 * Limits that the library checks and the native core relies on. The C++ constants are generated from this file, so it
 * holds literal data and imports nothing.
 */

/** More threads than any machine that runs Node has; a mistyped count must not start a million. */
export const MAX_THREADS = 1024

/** Fewest bins of a histogram. */
export const MIN_BINS = 2

/** Most bins of a histogram: the counters of a thread fit the first-level cache. */
export const MAX_BINS = 1024

/** Bytes of a huge page. From this size on, faulting in the pages of fresh memory costs more than writing to it. */
export const HUGE_PAGE_BYTES = 2_097_152

/** Numbers per tensor in `NativePlainTensors.offsets`: offset of the values, end of the message, end of the header. */
export const PLAIN_TENSOR_NUMBERS = 3

/** Weights of one axis of a resize: those of 65,536 samples by the widest filter take 5 MiB; more are a mistake or an attack. */
export const MAX_WEIGHT_BYTES = 268_435_456

/** Rows that one step of a resize keeps: as many as the filter is high. A thread has at most two such steps. */
export const MAX_SCRATCH_BYTES = 268_435_456
