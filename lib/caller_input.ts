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

/** @throws TileworkError ERR_ARGUMENT unless `options` is an object; null and arrays are none */
export function checkOptions(options: unknown, call: string, form: string): void {
  const isObject = typeof options === 'object' && options !== null
  if (isObject && readInput(`The options of ${call}`, () => !Array.isArray(options))) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The options of ${call} are ${form}; ${valueText(options)} was given.`,
  )
}

/** @throws TileworkError ERR_ARGUMENT unless `name` is a string */
export function checkName(name: unknown): string {
  if (typeof name === 'string') return name
  throw new TileworkError('ERR_ARGUMENT', `The name of a tensor is a string; ${valueText(name)} was given.`)
}
