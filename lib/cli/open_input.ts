/** Opens the input of a command, and marks a failure as the input's own, for the exit code. */
import { type OpenFile, open, TileworkError } from '../index.js'

/** A failure to open an input. */
export class InputError extends Error {
  override readonly name = 'InputError'

  constructor(readonly reason: TileworkError) {
    super(reason.message, { cause: reason })
  }
}

/**
 * The file behind `path`, read leniently.
 *
 * @throws InputError around what `open` throws
 */
export async function openInput(path: string): Promise<OpenFile> {
  try {
    return await open(path)
  } catch (error) {
    if (error instanceof TileworkError) throw new InputError(error)
    throw error
  }
}
