/** Packages that a user installs only for what needs them. */
import { TileworkError } from '../../errors.js'

/**
 * @param load - imports the package
 * @param use - what needs it, for the error
 * @throws TileworkError ERR_UNSUPPORTED that says what to install
 */
export async function optionalPeer<T>(name: string, use: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new TileworkError('ERR_UNSUPPORTED', `${use} need the package ${name}: npm install ${name}`, {
      cause,
    })
  }
}
