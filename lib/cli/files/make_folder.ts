/** Makes the folder of `--out-dir`. */
import { mkdir } from 'node:fs/promises'
import { ioError } from './io_error.js'

/** @throws TileworkError ERR_IO */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true })
  } catch (cause) {
    throw ioError(`The folder ${path} could not be made`, path, cause)
  }
}
