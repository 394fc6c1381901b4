/** A hostile file may be refused, in words of tilework's own; any other error is a fault. */
import { TileworkError } from '../../lib/errors.js'

/** The code with which an action is refused, null when it is not. */
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
