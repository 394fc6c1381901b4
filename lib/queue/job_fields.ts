/**
 * Checks of untrusted values from Redis: job data on a worker, results at the submitter. Whoever can write to the server can
 * write anything there.
 */
import { TileworkError } from '../errors.js'
import { isFields } from '../pipeline/many/manifest_line.js'
import { valueText } from '../value_text.js'

/** Whether a value is allowed, and in words what is. */
export interface FieldRule {
  readonly allowed: string
  isAllowed(value: unknown): boolean
}

/** Longest name, path or URL in UTF-16 code units: PATH_MAX of Linux. */
const MAX_TEXT_LENGTH = 4096
/** As many tensors as a command line can name. */
const MAX_LIST_LENGTH = 10_000
/** More axes than any format has. */
const MAX_AXES = 64

export const text = (maxLength = MAX_TEXT_LENGTH): FieldRule => ({
  allowed: `a text of 1 to ${maxLength} characters without NUL`,
  isAllowed: (value) => isText(value, maxLength),
})

export const oneOf = (...values: readonly unknown[]): FieldRule => ({
  allowed: values.map((value) => JSON.stringify(value)).join(' or '),
  isAllowed: (value) => values.includes(value),
})

export const flag: FieldRule = oneOf(true, false)

export const shape: FieldRule = {
  allowed: `a list of up to ${MAX_AXES} whole numbers from 0`,
  isAllowed: isShape,
}

export const integer: FieldRule = {
  allowed: 'a whole number',
  isAllowed: (value) => Number.isSafeInteger(value),
}

export const count: FieldRule = {
  allowed: 'a whole number from 0',
  isAllowed: isCount,
}

/** Names and indices of tensors. */
export const selectors: FieldRule = {
  allowed: `a list of up to ${MAX_LIST_LENGTH} names and indices`,
  isAllowed: (value) =>
    Array.isArray(value) &&
    value.length <= MAX_LIST_LENGTH &&
    value.every((each) => isCount(each) || each === '' || isText(each, MAX_TEXT_LENGTH)),
}

/** Shapes by name. */
export const namedShapes: FieldRule = {
  allowed: `an object of up to ${MAX_LIST_LENGTH} lists of whole numbers`,
  isAllowed: (value) =>
    isFields(value) && Object.keys(value).length <= MAX_LIST_LENGTH && Object.values(value).every(isShape),
}

export const either = (one: FieldRule, other: FieldRule): FieldRule => ({
  allowed: `${one.allowed}, or ${other.allowed}`,
  isAllowed: (value) => one.isAllowed(value) || other.isAllowed(value),
})

function isText(value: unknown, maxLength: number): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= maxLength && !value.includes('\0')
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isShape(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_AXES && value.every(isCount)
}

/** The rules of an object's fields; those in `required` must be there. */
export interface ObjectRules<T> {
  readonly fields: Readonly<Record<keyof T & string, FieldRule>>
  readonly required: readonly (keyof T & string)[]
}

/**
 * A copy with the allowed fields only; inherited fields are not read.
 *
 * @param what - the object in words, for errors
 * @throws TileworkError ERR_ARGUMENT
 */
export function readFields<T>(value: unknown, { fields, required }: ObjectRules<T>, what: string): T {
  if (!isFields(value))
    throw new TileworkError('ERR_ARGUMENT', `${what} is ${valueText(value)}; it must be an object.`)
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(fields, name)) continue
    const known = Object.keys(fields).join(', ')
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${what} has the unknown field ${valueText(name)}; expected: ${known}.`,
    )
  }
  const copy: Record<string, unknown> = {}
  for (const [name, rule] of Object.entries<FieldRule>(fields)) {
    if (Object.hasOwn(value, name)) copy[name] = checkField(value[name], rule, `${what}.${name}`)
    else if ((required as readonly string[]).includes(name)) {
      throw new TileworkError('ERR_ARGUMENT', `${what} has no field ${name}.`)
    }
  }
  return copy as T
}

function checkField(value: unknown, { isAllowed, allowed }: FieldRule, name: string): unknown {
  if (isAllowed(value)) return value
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be ${allowed}.`)
}
