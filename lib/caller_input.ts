/** Reads what a caller hands over: options, and objects whose getters or Proxy traps may throw anything. */
import { TileworkError } from './errors.js'
import { valueText } from './value_text.js'

/**
 * Runs `action`, which reads an object of the caller's.
 *
 * @param what - names the object at the start of a sentence, for example `The values`
 * @throws TileworkError as `action`; ERR_ARGUMENT with the cause for anything else that it throws
 */
export function readInput<T>(what: string, action: () => T): T {
  try {
    return action()
  } catch (cause) {
    if (cause instanceof TileworkError) throw cause
    const reason = cause instanceof Error ? cause.message : `${valueText(cause)} was thrown`
    throw new TileworkError('ERR_ARGUMENT', `${what} cannot be read: ${reason}.`, { cause })
  }
}

/**
 * @param known - all options that there are: one with another name would be passed over, and the caller not know
 * @throws TileworkError ERR_ARGUMENT unless `options` is an object with these alone; null and arrays are none
 */
export function checkOptions<T extends object>(
  options: T,
  call: string,
  known: readonly (keyof T & string)[],
): void {
  const form = `{ ${known.join(', ')} }`
  checkObject(options, `The options of ${call} are ${form}`)
  const unknown = readInput(`The options of ${call}`, () =>
    Object.keys(options).find((key) => !(known as readonly string[]).includes(key)),
  )
  if (unknown === undefined) return
  throw new TileworkError('ERR_ARGUMENT', `${valueText(unknown)} is no option of ${call}; known are ${form}.`)
}

/**
 * @param expected - the beginning of a sentence that says what was expected
 * @throws TileworkError ERR_ARGUMENT unless `value` is an object; null and arrays are none
 */
export function checkObject(value: unknown, expected: string): void {
  const isObject = typeof value === 'object' && value !== null
  if (isObject && readInput('The object', () => !Array.isArray(value))) return
  throw new TileworkError('ERR_ARGUMENT', `${expected}; ${valueText(value)} was given.`)
}

/** @throws TileworkError ERR_ARGUMENT unless `listener` is a function, or undefined for none */
export function checkListener(listener: unknown, name: string): void {
  if (listener === undefined || typeof listener === 'function') return
  throw new TileworkError('ERR_ARGUMENT', `${name} must be a function; it is ${valueText(listener)}.`)
}

/** @throws TileworkError ERR_ARGUMENT unless `name` is a string */
export function checkName(name: unknown): string {
  if (typeof name === 'string') return name
  throw new TileworkError('ERR_ARGUMENT', `The name of a tensor is a string; ${valueText(name)} was given.`)
}
