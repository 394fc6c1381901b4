/** The memory of a caller's typed array, DataView or ArrayBuffer. */
import { isUint8Array } from 'node:util/types'
import { TileworkError } from '../errors.js'

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as { values(this: unknown): unknown }

/**
 * The bytes of a typed array or DataView as a plain Uint8Array of fixed length. A Buffer would leak its own `slice` to
 * callers, and a view that tracks a resizable buffer would change its length.
 *
 * @throws TileworkError ERR_ARGUMENT for a view whose buffer was transferred or shrunk, which reads as empty, and for an object
 * that imitates a view (a Proxy)
 */
export function bytesOfView(view: ArrayBufferView, what: string): Uint8Array {
  return readable(what, () => {
    // A method of typed arrays throws for a detached view; its length 0 alone could be that of an empty view.
    if (!(view instanceof DataView)) typedArray.values.call(view)
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  })
}

/** The length of a Uint8Array; undefined for anything else, also for an object that imitates one (a Proxy). */
export function byteLengthOf(value: unknown): number | undefined {
  // The engine's getter: a subclass of the caller may override its own.
  return isUint8Array(value) ? (Reflect.get(typedArray, 'byteLength', value) as number) : undefined
}

/**
 * All bytes of a buffer.
 *
 * @throws TileworkError ERR_ARGUMENT for a buffer that was transferred
 */
export function bytesOfBuffer(buffer: ArrayBuffer, what: string): Uint8Array {
  return readable(what, () => new Uint8Array(buffer))
}

function readable(what: string, read: () => Uint8Array): Uint8Array {
  try {
    return read()
  } catch (cause) {
    const message = `the memory of ${what} cannot be read: its buffer was transferred or shrunk, or it is not a typed array.`
    throw new TileworkError('ERR_ARGUMENT', message, { cause })
  }
}
