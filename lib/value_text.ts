/** A caller's wrong value in words, for the message of an error. */
import { isArrayBuffer, isDataView, isSharedArrayBuffer, isTypedArray } from 'node:util/types'

/** Longest text of a value: enough to recognise it, and a message stays one line. */
const MAX_TEXT_LENGTH = 40

/**
 * Numbers and the like as they are written, strings in quotes, anything else by its type. Calls nothing of the value's
 * own, because a `toString` that throws would hide what was wrong.
 */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, MAX_TEXT_LENGTH))
  if (typeof value === 'bigint') return `${value}n`.slice(0, MAX_TEXT_LENGTH)
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
    return String(value).slice(0, MAX_TEXT_LENGTH)
  }
  if (typeof value === 'function') return 'a function'
  return isArray(value) ? 'an array' : memoryText(value)
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object

/** Buffers and views by their type, which callers take for one another. */
function memoryText(value: object): string {
  if (isTypedArray(value)) {
    const name = Reflect.get(typedArray, Symbol.toStringTag, value) as string
    return name.startsWith('I') ? `an ${name}` : `a ${name}`
  }
  if (isDataView(value)) return 'a DataView'
  if (isArrayBuffer(value)) return 'an ArrayBuffer'
  return isSharedArrayBuffer(value) ? 'a SharedArrayBuffer' : 'an object'
}

function isArray(value: object): boolean {
  try {
    return Array.isArray(value)
  } catch {
    // A revoked Proxy cannot even be asked that.
    return false
  }
}
