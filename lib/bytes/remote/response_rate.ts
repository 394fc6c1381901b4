/** Fails responses that come more slowly than the caller accepts. */
import { RetryableError } from './url_scheme.js'

/** The rate is averaged over this time at least: connections start slowly. */
const FIRST_CHECK_MS = 1000

/**
 * A check for each chunk of a response; it starts now.
 *
 * @returns a function that takes the bytes of the response so far. Throws RetryableError
 */
export function rateCheck(minBytesPerSecond = 0): (received: number) => void {
  if (minBytesPerSecond === 0) return () => undefined
  const started = performance.now()
  return (received) => {
    const elapsed = performance.now() - started
    const rate = Math.floor((received * 1000) / elapsed)
    if (elapsed < FIRST_CHECK_MS || rate >= minBytesPerSecond) return
    throw new RetryableError(
      `the response came with ${rate} bytes per second; remote.minBytesPerSecond is ${minBytesPerSecond}`,
    )
  }
}
