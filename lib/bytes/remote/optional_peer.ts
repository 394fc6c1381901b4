/** Loads optional peer packages, which users install only for the features that need them. */
import { join } from 'node:path'
import { TileworkError } from '../../errors.js'
import { codeFolders } from '../../package_root.js'

/**
 * Loads a package by `require`, which no bundler follows: it would refuse an application that does not have the package.
 *
 * @param use - what needs the package, for the error
 * @throws TileworkError ERR_UNSUPPORTED that says what to install
 */
export function optionalPeer<T>(name: string, use: string): T {
  const { createRequire } = process.getBuiltinModule('node:module')
  let missing: unknown
  for (const folder of codeFolders()) {
    try {
      return createRequire(join(folder, 'here.js'))(name) as T
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
      missing = error
    }
  }
  const message = `${use} need the package ${name}: npm install ${name}`
  throw new TileworkError('ERR_UNSUPPORTED', message, { cause: missing })
}
