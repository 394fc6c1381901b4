/**
 * Reads bytes of a source into memory that exists already. A caller may transfer its memory or change its length during the
 * read. The addon writes only to buffers of fixed length; resizable ones are filled window by window.
 */
import { TileworkError } from '../errors.js'
import { asyncOnlyError, lostBytesError } from './check_range.js'
import type { ByteSource } from './source.js'
import { allocateBytes } from './view_limit.js'

/** Bytes that are copied at a time into a resizable buffer. */
const WINDOW_BYTES = 1024 * 1024

/** True for a view whose buffer its owner may shrink at any time. */
export function isResizable({ buffer }: Uint8Array): boolean {
  return (buffer as { readonly resizable?: boolean }).resizable === true
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
  try {
    if (isResizable(target)) await fillByWindows(source, start, target)
    else await readInto(source, start, target)
  } catch (cause) {
    // The engine's error for detached memory does not say whose memory it was.
    checkLength(target, byteLength, cause)
    throw cause
  }
  checkLength(target, byteLength)
}

async function fillByWindows(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  for (const { at, window } of windowsOf(target.byteLength)) {
    await readInto(source, start + at, window)
    target.set(window, at)
  }
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
  for (const { at, window } of windowsOf(byteLength)) {
    target.set(source.readSync(start + at, start + at + window.byteLength), at)
  }
}

function* windowsOf(byteLength: number): Generator<{ readonly at: number; readonly window: Uint8Array }> {
  const whole = allocateBytes(Math.min(WINDOW_BYTES, byteLength))
  for (let at = 0; at < byteLength; at += WINDOW_BYTES) {
    yield { at, window: whole.subarray(0, Math.min(WINDOW_BYTES, byteLength - at)) }
  }
}

function checkLength(target: Uint8Array, byteLength: number, cause?: unknown): void {
  if (target.byteLength === byteLength) return
  const message = `the target of ${byteLength} bytes was transferred or shrunk while it was filled.`
  throw new TileworkError('ERR_ARGUMENT', message, { cause })
}
