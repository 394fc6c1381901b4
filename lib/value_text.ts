/** The text of a wrong value in an error message. Values come from callers and may be hostile or huge. */
import { isArrayBuffer, isDataView, isSharedArrayBuffer, isTypedArray } from 'node:util/types'

/** Longest text of a value: enough to recognise it while the message stays one line. */
const MAX_TEXT_LENGTH = 40

/**
 * Primitive values as they are written, strings in quotes, anything else by its type. Calls no method of the value, because
 * a `toString` that throws would hide what was wrong.
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

/** Buffers and views by their exact type: callers confuse them. */
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
    // Array.isArray throws for a revoked Proxy.
    return false
  }
}
