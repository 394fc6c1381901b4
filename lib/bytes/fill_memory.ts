/**
 * Reads bytes of a source into memory that exists already.
 *
 * A caller may transfer, shrink or drop its memory while work on it is pending, and Node-API can neither prevent that nor keep
 * the memory. So other threads touch memory only if tilework holds it alone, or if it is shared, which nobody can transfer.
 * Everything else is read and written on the thread that owns it, in slices between which the event loop runs: each slice
 * finds the memory as it is then.
 */
import { TileworkError } from '../errors.js'
import { asyncOnlyError, lostBytesError } from './check_range.js'
import type { ByteSource } from './source.js'
import { unfilledBytes } from './view_limit.js'

/** Window size of reads into a caller's memory. Two windows exist at a time. */
const WINDOW_BYTES = 4 * 1024 * 1024

/** True for memory that no thread can take away: other threads may read and write it without holding it. */
export function isPinned({ buffer }: Uint8Array): boolean {
  return buffer instanceof SharedArrayBuffer && (buffer as { readonly growable?: boolean }).growable !== true
}

/** True for a view whose buffer its owner may shrink at any time. */
function isResizable({ buffer }: Uint8Array): boolean {
  return (buffer as { readonly resizable?: boolean }).resizable === true
}

/** A source of tilework's own whose `readInto` may use only the calling thread. */
interface OnThread {
  /** True where `readInto` writes to the target on the calling thread alone, and so may get a caller's memory. */
  readonly fillsOnThread: boolean
}

/** See `OnThread`. */
export function fillsOnThread(source: ByteSource): boolean {
  return (source as Partial<OnThread>).fillsOnThread === true
}

/**
 * Fills `target`, which is tilework's own, with the bytes from offset `start`.
 *
 * @throws TileworkError as `read` of the source
 */
export async function readInto(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  if (source.readInto) return source.readInto(start, target)
  const bytes = await source.read(start, start + target.byteLength)
  if (bytes.byteLength !== target.byteLength) throw lostBytesError(source.label)
  target.set(bytes)
}

/**
 * Fills `target`, which is the caller's, with the bytes from offset `start`.
 *
 * @throws TileworkError ERR_ARGUMENT where the memory was transferred or shrunk during the read; and as `read` of the source
 */
export async function fillMemory(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  const { byteLength } = target
  const isDirect = isPinned(target) || fillsOnThread(source)
  try {
    if (isDirect) await readInto(source, start, target)
    else await fillByWindows(source, start, target)
  } catch (cause) {
    // The engine's error for detached memory does not say whose memory it was.
    checkLength(target, byteLength, cause)
    throw cause
  }
  checkLength(target, byteLength)
}

/** Reads a window while the one before it is copied. */
async function fillByWindows(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  let before: { readonly at: number; readonly window: Uint8Array } | undefined
  for (const next of windowsOf(target.byteLength, 2)) {
    const reading = readInto(source, start + next.at, next.window)
    try {
      if (before) target.set(before.window, before.at)
    } finally {
      await reading
    }
    before = next
  }
  if (before) target.set(before.window, before.at)
}

/** As `fillMemory`, synchronously. @throws TileworkError ERR_ASYNC_ONLY for a source without synchronous reads */
export function fillMemorySync(source: ByteSource, start: number, target: Uint8Array): void {
  const { byteLength } = target
  if (source.readIntoSync && !isResizable(target)) {
    source.readIntoSync(start, target)
    return
  }
  if (!source.readSync) throw asyncOnlyError(source.label)
  if (!isResizable(target)) {
    target.set(source.readSync(start, start + byteLength))
    return
  }
  for (const { at, window } of windowsOf(byteLength, 1)) {
    target.set(source.readSync(start + at, start + at + window.byteLength), at)
  }
}

/** Consecutive windows over `byteLength` bytes, in `count` buffers used round robin. */
function* windowsOf(
  byteLength: number,
  count: number,
): Generator<{ readonly at: number; readonly window: Uint8Array }> {
  const windows: Uint8Array[] = []
  for (let at = 0, turn = 0; at < byteLength; at += WINDOW_BYTES, turn = (turn + 1) % count) {
    windows[turn] ??= unfilledBytes(Math.min(WINDOW_BYTES, byteLength - at))
    const window = windows[turn]!
    yield { at, window: window.subarray(0, Math.min(WINDOW_BYTES, byteLength - at)) }
  }
}

function checkLength(target: Uint8Array, byteLength: number, cause?: unknown): void {
  if (target.byteLength === byteLength) return
  const message = `the target of ${byteLength} bytes was transferred or shrunk while it was filled.`
  throw new TileworkError('ERR_ARGUMENT', message, { cause })
}
