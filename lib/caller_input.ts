/**
 * Reads arguments of callers: options, and objects whose getters or Proxy traps may throw anything. Whatever they throw
 * becomes ERR_ARGUMENT, so that callers handle one error class.
 */
import { TileworkError } from './errors.js'
import { expectedText } from './nearest_names.js'
import { valueText } from './value_text.js'

/**
 * Runs `action`, which reads an object of the caller.
 *
 * @param what - subject of the error's sentence, for example `The values`
 * @throws TileworkError what `action` throws; ERR_ARGUMENT with the cause for any other error class
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
 * @param known - names of all options; a misspelt one would be ignored without notice
 * @throws TileworkError ERR_ARGUMENT unless `options` is an object, neither null nor an array, with no other keys
 */
export function checkOptions<T extends object>(
  options: T,
  call: string,
  known: readonly (keyof T & string)[],
): void {
  // The text of an error is built where it is thrown: a call that succeeds is shorter than its text.
  if (!isObject(options)) throw objectError(`The options of ${call} are { ${known.join(', ')} }`, options)
  const unknown = readInput(`The options of ${call}`, () =>
    Object.keys(options).find((key) => !(known as readonly string[]).includes(key)),
  )
  if (unknown === undefined) return
  const message = `unknown option ${valueText(unknown)} of ${call}${expectedText(unknown, known)}`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/**
 * @param expected - start of the error's sentence: what was expected
 * @throws TileworkError ERR_ARGUMENT unless `value` is an object, neither null nor an array
 */
export function checkObject(value: unknown, expected: string): void {
  if (!isObject(value)) throw objectError(expected, value)
}

function isObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  // Throws for a revoked Proxy.
  return readInput('The object', () => !Array.isArray(value))
}

function objectError(expected: string, value: unknown): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${expected}; ${valueText(value)} was given.`)
}

/** As `instanceof`; false for a revoked Proxy, on which `instanceof` throws. */
export function isInstance<T>(value: unknown, of: { readonly prototype: T }): value is T {
  try {
    return value instanceof (of as never)
  } catch {
    return false
  }
}

/** As `Array.isArray`; false for a revoked Proxy, on which that throws. */
export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}

/** @throws TileworkError ERR_ARGUMENT unless `listener` is a function, or undefined for none */
export function checkListener(listener: unknown, name: string): void {
  if (listener === undefined || typeof listener === 'function') return
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(listener)}; it must be a function.`)
}

/** @throws TileworkError ERR_ARGUMENT unless `value` is true or false */
export function checkFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be true or false.`)
}

/** @throws TileworkError ERR_ARGUMENT for an option of these names that is neither true, false nor undefined */
export function checkFlags(options: object, names: readonly string[]): void {
  for (const name of names) {
    const value = (options as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined) checkFlag(value, name)
  }
}

/** @throws TileworkError ERR_ARGUMENT unless `value` is one of `names` */
export function checkOneOf<Name extends string>(value: unknown, name: string, names: readonly Name[]): Name {
  const found = names.find((each) => each === value)
  if (found !== undefined) return found
  const message = `${name} is ${valueText(value)}${expectedText(value, names)}`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/** @throws TileworkError ERR_ARGUMENT unless `name` is a string */
export function checkName(name: unknown): string {
  if (typeof name === 'string') return name
  throw new TileworkError('ERR_ARGUMENT', `The name of a tensor is a string; ${valueText(name)} was given.`)
}

/** @param value - text of the value that was given */
export function refuseOption(call: string, option: string, value: string, allowed: string): never {
  throw new TileworkError('ERR_ARGUMENT', `${option} of ${call} is ${value}; it must be ${allowed}.`)
}
