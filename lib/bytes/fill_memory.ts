/**
 * Bytes of a source into memory of a caller, who may transfer it or change its length meanwhile. The addon writes buffers of
 * fixed length alone; others are filled a window at a time.
 */
import { TileworkError } from '../errors.js'
import { asyncOnlyError } from './check_range.js'
import { readInto } from './read_into.js'
import type { ByteSource } from './source.js'
import { allocateBytes } from './view_limit.js'

/** What is copied at a time into a buffer that may change its length. */
const WINDOW_BYTES = 1024 * 1024

/** True for a view whose buffer its owner may make smaller while it is open. */
export function isResizable({ buffer }: Uint8Array): boolean {
  return (buffer as { readonly resizable?: boolean }).resizable === true
}

/**
 * Fills `target` with the bytes from `start` on.
 *
 * @throws TileworkError ERR_ARGUMENT where the memory was taken away meanwhile; and as `read` of the source
 */
export async function fillMemory(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  const { byteLength } = target
  try {
    if (isResizable(target)) await fillByWindows(source, start, target)
    else await readInto(source, start, target)
  } catch (cause) {
    // What the engine says of memory that is gone does not tell whose.
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

/** As `fillMemory`, at once. @throws TileworkError ERR_ASYNC_ONLY where the source cannot; and as `fillMemory` */
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
  const message = `The target of ${byteLength} bytes was transferred or made smaller while it was filled.`
  throw new TileworkError('ERR_ARGUMENT', message, { cause })
}
