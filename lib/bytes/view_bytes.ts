/** The memory behind a typed array, DataView or ArrayBuffer of a caller. */
import { isUint8Array } from 'node:util/types'
import { TileworkError } from '../errors.js'

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as { values(this: unknown): unknown }

/**
 * The bytes of a typed array or DataView as a plain Uint8Array of fixed length: a Buffer's own `slice` would
 * otherwise leak to users, and a view that follows a resizable buffer would change its length.
 *
 * @throws TileworkError ERR_ARGUMENT for a view whose buffer was transferred or made smaller, which reads as empty,
 * and for what only looks like a view (a Proxy)
 */
export function bytesOfView(view: ArrayBufferView, what: string): Uint8Array {
  return readable(what, () => {
    // A method of typed arrays refuses such a view; its length alone cannot be told from that of an empty one.
    if (!(view instanceof DataView)) typedArray.values.call(view)
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  })
}

/** The length of a Uint8Array; undefined for anything else, also for what only looks like one (a Proxy). */
export function byteLengthOf(value: unknown): number | undefined {
  // Not by the value's own getter, which a class of the caller's may have made its own.
  return isUint8Array(value) ? (Reflect.get(typedArray, 'byteLength', value) as number) : undefined
}

/**
 * All bytes of a buffer.
 *
 * @throws TileworkError ERR_ARGUMENT for one that was transferred
 */
export function bytesOfBuffer(buffer: ArrayBuffer, what: string): Uint8Array {
  return readable(what, () => new Uint8Array(buffer))
}

function readable(what: string, read: () => Uint8Array): Uint8Array {
  try {
    return read()
  } catch (cause) {
    const message = `The memory of ${what} cannot be read: its buffer was transferred or made smaller, or it is no typed array.`
    throw new TileworkError('ERR_ARGUMENT', message, { cause })
  }
}
