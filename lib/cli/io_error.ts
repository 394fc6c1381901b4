/** What the operating system refused to the command line itself, in the words of tilework's errors. */
import { TileworkError } from '../index.js'

export function ioError(what: string, path: string, cause: unknown): TileworkError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TileworkError('ERR_IO', `${what}: ${reason}.`, { path, cause })
}
