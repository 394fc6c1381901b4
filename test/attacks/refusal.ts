/** Hostile files may be refused with a TileworkError; any other error is a bug. */
import { TileworkError } from '../../lib/errors.js'

/** The error code of an action that is refused; null when it succeeds. */
export async function codeOf(action: () => Promise<unknown>): Promise<string | null> {
  try {
    await action()
    return null
  } catch (error) {
    if (error instanceof TileworkError) return error.code
    throw error
  }
}

export function expectRefusal(error: unknown): void {
  if (!(error instanceof TileworkError)) throw error
}
