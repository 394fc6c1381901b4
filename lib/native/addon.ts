/** The loaded addon, and the number of its threads. Everything else in `lib/` reaches C++ through `native()`. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { loadAddon } from './load_addon.js'
import type { NativeAddon } from './types.js'

/** More threads than any machine that runs Node has: a typing error must not start a million. */
const MAX_THREADS = 1024

let loaded: NativeAddon | undefined

/** The addon, loaded on first use. @throws TileworkError ERR_NATIVE_LOAD with the cause and advice */
export function native(): NativeAddon {
  loaded ??= loadAddon()
  return loaded
}

/** Threads that kernels use: from CPU affinity and cgroup quota, or `TILEWORK_THREADS`, or `setThreads`. */
export function threads(): number {
  return native().threads()
}

/**
 * Sets how many threads kernels use, for the whole process. Running jobs keep their number.
 *
 * @param count - from 1 to 1024
 * @throws TileworkError ERR_ARGUMENT for any other value
 */
export function setThreads(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_THREADS) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `threads is ${valueText(count)}; it must be a whole number from 1 to ${MAX_THREADS}.`,
    )
  }
  native().setThreads(count)
}
