/**
 * Opens a file that another file names. The author of that file may be untrusted, so the name must not lead out of the folder:
 * neither by its text, which is checked here, nor by links, which the addon checks on the opened file.
 */
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { TileworkError } from '../errors.js'
import { outsideRoots } from './confinement.js'
import { type OpenSourceOptions, openSource, openSourceBelow } from './open_source.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'
import { isForbiddenOnWindows, isWindows } from './windows_names.js'

/** Where symbolic links may lead: only `inside` the folder, or anywhere (`follow`). */
export type SymlinkPolicy = 'inside' | 'follow'

/**
 * Whether a file may have further hard links: a second name leads out of the folder without any path showing it. Stores that
 * deduplicate files by hard links need `allow`.
 */
export type HardLinkPolicy = 'refuse' | 'allow'

export interface SiblingPolicy {
  readonly symlinks: SymlinkPolicy
  readonly hardLinks: HardLinkPolicy
}

/**
 * @param path - the file that contains the name
 * @param name - relative, with `/` between folders
 * @throws TileworkError ERR_PATH_ESCAPE, ERR_IO, ERR_FILE_CHANGED; ERR_ARGUMENT for a pipe or device
 */
export async function openSibling(
  path: string,
  name: string,
  { symlinks, hardLinks }: SiblingPolicy,
  options: OpenSourceOptions,
): Promise<ByteSource> {
  checkSiblingName(name)
  const folder = dirname(path)
  if (symlinks === 'follow') return outsideRoots(() => openSource(join(folder, name), options))
  return openSourceBelow({ folder, name, isSole: hardLinks === 'refuse' }, options)
}

/**
 * The same rules for a file to be written beside `path`: its folder lies below the folder of `path`, with links resolved.
 *
 * @throws TileworkError ERR_PATH_ESCAPE, and ERR_IO for a missing folder
 */
export async function checkNewSibling(path: string, name: string): Promise<void> {
  checkSiblingName(name)
  const folder = dirname(path)
  if (dirname(name) === '.') return
  const [realFolder, real] = await realPaths(folder, dirname(join(folder, name)))
  if (isInside(realFolder, real)) return
  const message = `${JSON.stringify(name)} lies behind a link that leads out of the folder.`
  throw new TileworkError('ERR_PATH_ESCAPE', message, { path: name })
}

async function realPaths(folder: string, named: string): Promise<[folder: string, named: string]> {
  return systemError.wrapAsync(named, () => Promise.all([realpath(folder), realpath(named)]))
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** @throws TileworkError ERR_PATH_ESCAPE for a name that may lead to another folder, or on Windows to another file or device */
export function checkSiblingName(name: string, forWindows: boolean = isWindows): void {
  const parts = name.split(/[/\\]/)
  const isSafe = parts.every((part) => part !== '' && part !== '.' && part !== '..')
  const isRelative = isSafe && !name.includes('\0') && !isAbsolute(name) && !/^[A-Za-z]:/.test(name)
  const special = forWindows ? parts.find(isForbiddenOnWindows) : undefined
  if (isRelative && special === undefined) return
  if (isRelative) {
    throw new TileworkError(
      'ERR_PATH_ESCAPE',
      `${JSON.stringify(name)} cannot be opened on Windows, where ${JSON.stringify(special)} means a device or another file.`,
      { path: name },
    )
  }
  throw new TileworkError(
    'ERR_PATH_ESCAPE',
    `${JSON.stringify(name)} must be a plain relative path below the folder of the file that names it.`,
    { path: name },
  )
}
