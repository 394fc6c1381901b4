/**
 * Opens a file that another file names. The name comes from whoever wrote that file, so it must not lead out of its
 * folder: not by its text, and not by links that lie there.
 */
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { type OpenSourceOptions, openSource } from './open_source.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'

/** What symbolic links may lead to: `inside` the folder only, or anywhere (`follow`). */
export type SymlinkPolicy = 'inside' | 'follow'

/**
 * @param path - the file that has the name in it
 * @param name - relative, with `/` between folders
 * @throws TileworkError ERR_PATH_ESCAPE, ERR_IO, ERR_ARGUMENT
 */
export async function openSibling(
  path: string,
  name: string,
  symlinks: SymlinkPolicy,
  options: OpenSourceOptions,
): Promise<ByteSource> {
  if (symlinks !== 'inside' && symlinks !== 'follow') {
    const message = `symlinks must be "inside" or "follow"; it is ${valueText(symlinks)}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  checkName(name)
  const folder = dirname(path)
  const named = join(folder, name)
  if (symlinks === 'follow') return openSource(named, options)
  const [realFolder, real] = await systemError.wrapAsync(named, () =>
    Promise.all([realpath(folder), realpath(named)]),
  )
  const way = relative(realFolder, real)
  if (way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way)) {
    throw new TileworkError(
      'ERR_PATH_ESCAPE',
      `${JSON.stringify(name)} is a link that leads out of its folder; symlinks: 'follow' allows it.`,
      { path: name },
    )
  }
  // What was checked is opened, not the name, which may have become a link since.
  return openSource(real, options)
}

function checkName(name: string): void {
  const parts = name.split(/[/\\]/)
  const isSafe = parts.every((part) => part !== '' && part !== '.' && part !== '..')
  if (isSafe && !name.includes('\0') && !isAbsolute(name) && !/^[A-Za-z]:/.test(name)) return
  throw new TileworkError(
    'ERR_PATH_ESCAPE',
    `${JSON.stringify(name)} must be a plain relative path below the folder of the file that names it.`,
    { path: name },
  )
}
