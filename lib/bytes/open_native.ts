/** Opens files through the addon, after a check by Node's permission model; in a job of a queue, below the roots of its worker. */
import { existsSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { hasPermissions, requirePermission } from '../native/permission.js'
import type {
  NativeFileIdentity,
  NativeFolder,
  NativeInputFile,
  NativeInputOptions,
  NativeLock,
  NativeOutputFile,
  NativeTarget,
} from '../native/types.js'
import { type PlaceBelow, placeBelow } from './confinement.js'
import { systemError } from './system_error.js'

/** A file that another file names. No link leads out of the folder. */
export interface FileBelow {
  readonly folder: string
  /** Relative to the folder. */
  readonly name: string
  /** A file with several names (hard links) is refused. */
  readonly isSole: boolean
}

export function pathOfFile(file: string | FileBelow): string {
  return typeof file === 'string' ? file : join(file.folder, file.name)
}

/** @throws TileworkError ERR_IO, ERR_ARGUMENT, ERR_PERMISSION, ERR_NATIVE_LOAD; below a folder ERR_PATH_ESCAPE, ERR_FILE_CHANGED */
export function openNativeFile(file: string | FileBelow, options: NativeInputOptions): NativeInputFile {
  const path = pathOfFile(file)
  const addon = native()
  requirePermission('fs.read', path)
  return systemError.wrap(path, () => {
    if (typeof file !== 'string') {
      return addon.openInputBelow(folderAt(file.folder), file.name, { ...options, isSole: file.isSole })
    }
    const place = placeBelow(path)
    if (!place) return addon.openInput(path, options)
    return below(place, path, () => addon.openInputBelow(place.root, place.name, { ...options, ...place }))
  })
}

/** A folder for the addon: in a job of a queue, below a root of its worker. */
function folderAt(folder: string): NativeFolder {
  const place = placeBelow(folder)
  return place ? [place.root, place.name] : folder
}

/** Opens a file of a job, whose path had no links when it was checked. */
function below<T>({ root }: PlaceBelow, path: string, open: () => T): T {
  try {
    return open()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_PATH_ESCAPE') throw cause
    const message = `${path} leads out of the root ${root} of this worker: by a link, or by a second name (hard link), which the option hardLinks of the worker allows.`
    throw new TileworkError('ERR_PATH_ESCAPE', message, { path, cause })
  }
}

/**
 * A file that will replace `path`, or the target of the links at `path`.
 *
 * @throws TileworkError ERR_IO, ERR_ARGUMENT, ERR_PERMISSION, ERR_NATIVE_LOAD
 */
export function openOutput(path: string, byteLength: number): NativeOutputFile {
  return createOutput(path, () => {
    const place = placeBelow(path)
    if (!place) return native().createOutput(path, byteLength)
    return below(place, path, () => native().createOutputBelow(place.root, place.name, byteLength, 'any'))
  })
}

/** As `openOutput`, for a file that another file names. @throws TileworkError also ERR_PATH_ESCAPE */
export function openOutputBelow(
  { folder, name }: Pick<FileBelow, 'folder' | 'name'>,
  byteLength: number,
  target: NativeTarget,
): NativeOutputFile {
  return createOutput(join(folder, name), () =>
    native().createOutputBelow(folderAt(folder), name, byteLength, target),
  )
}

/** Creates a folder and those above it. @throws TileworkError ERR_IO, ERR_PERMISSION, ERR_PATH_ESCAPE */
export function createFolders(folder: string): void {
  systemError.wrap(folder, () => {
    const place = placeBelow(folder)
    if (!place) mkdirSync(folder, { recursive: true })
    else {
      requirePermission('fs.write', folder)
      native().createFolders([place.root, place.name])
    }
  })
}

/** Takes the lock of a folder if it is free. `unknown` where it has no locks. */
export function tryLockFolder(folder: string): NativeLock | 'busy' | 'unknown' {
  return native().tryLock(folderAt(folder))
}

function createOutput(path: string, create: () => NativeOutputFile): NativeOutputFile {
  native()
  requirePermission('fs.write', path)
  try {
    return systemError.wrap(path, () => {
      requireTemporaries(path)
      return create()
    })
  } catch (error) {
    throw missingFolderError(path, error) ?? error
  }
}

/** The system reports ENOENT for the file although its folder is missing. */
function missingFolderError(path: string, cause: unknown): TileworkError | undefined {
  const folder = dirname(path)
  if (!(cause instanceof TileworkError) || cause.code !== 'ERR_IO' || existsSync(folder)) return undefined
  const message = `${cause.message}; the folder ${folder} does not exist`
  // As for every ERR_IO, the cause is the error of the system.
  return new TileworkError('ERR_IO', message, { path, cause: cause.cause })
}

/** The addon writes temporary files beside the file that a link leads to. */
function requireTemporaries(path: string): void {
  // biome-ignore lint/plugin: the file and a fixed number of temporary names
  if (hasPermissions()) requirePermission('fs.write', ...native().outputPaths(path))
}

/** The content of a file that only the current user can write. @throws TileworkError ERR_PERMISSION */
export function readOwnFile(path: string, mostBytes: number): Uint8Array | undefined {
  requirePermission('fs.read', path)
  return native().readOwnFile(folderAt(dirname(path)), basename(path), mostBytes)
}

/** Removes a file, with an identity only if it still has this one. @throws TileworkError ERR_IO, ERR_PERMISSION, ERR_PATH_ESCAPE */
export function removeBelow(
  { folder, name }: Pick<FileBelow, 'folder' | 'name'>,
  identity?: NativeFileIdentity,
): void {
  const path = join(folder, name)
  requirePermission('fs.write', path)
  systemError.wrap(path, () => native().removeBelow(folderAt(folder), name, identity))
}
