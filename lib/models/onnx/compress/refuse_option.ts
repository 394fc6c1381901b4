import { TileworkError } from '../../../errors.js'

/** @param value - text of the value that was given */
export function refuseOption(call: string, option: string, value: string, allowed: string): never {
  throw new TileworkError('ERR_ARGUMENT', `${option} of ${call} is ${value}; it must be ${allowed}.`)
}
