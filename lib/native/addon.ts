/** The loaded addon, and the number of its threads. Everything else in `lib/` reaches C++ through `native()`. */
import { ERROR_CODES, TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { MAX_THREADS } from './limits.js'
import { loadAddon } from './load_addon.js'
import type { NativeAddon } from './types.js'

let loaded: NativeAddon | undefined

/** The addon, loaded on first use. @throws TileworkError ERR_NATIVE_LOAD with the cause and advice */
export function native(): NativeAddon {
  loaded ??= checkCodes(loadAddon())
  return loaded
}

/** An addon of another version may report errors that this library has no code for, so it is refused at once. */
function checkCodes(addon: NativeAddon): NativeAddon {
  const codes: readonly string[] | undefined = addon.errorCodes
  const unknown = codes?.filter((code) => !Object.hasOwn(ERROR_CODES, code))
  if (unknown?.length === 0) return addon
  const found =
    unknown === undefined ? 'it lists no error codes' : `it has the unknown codes ${unknown.join(', ')}`
  throw new TileworkError(
    'ERR_NATIVE_LOAD',
    `The native addon is of another version of tilework: ${found}. ` +
      'In a checkout run "npm run build:all"; in an application reinstall tilework.',
  )
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
