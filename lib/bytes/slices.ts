/** Processes a caller's memory on the calling thread, in slices between which the event loop runs. */
import { throwIfAborted } from '../cancel.js'
import { yieldToEventLoop } from '../event_loop.js'

/** Result bytes of a slice: a few milliseconds of work, which the addon's threads share. */
export const SLICE_BYTES = 4 * 1024 * 1024

/**
 * Calls `work` for each slice of `[start, end)`, `size` bytes or less.
 *
 * @throws TileworkError ERR_ABORTED between two slices; and what `work` throws
 */
export async function inSlices(
  start: number,
  end: number,
  size: number,
  work: (from: number, to: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  for (let from = start; from < end; from += size) {
    await yieldToEventLoop()
    throwIfAborted(signal)
    work(from, Math.min(end, from + size))
  }
}
