/** What the operating system refused to the command line itself, in the words of tilework's errors. */
import { systemError } from '../../bytes/system_error.js'
import { TileworkError } from '../../index.js'

export function ioError(what: string, path: string, cause: unknown): TileworkError {
  return new TileworkError('ERR_IO', `${what}: ${systemError.reason(path, cause)}.`, { path, cause })
}
