/** Opens files through the addon, after a check by Node's permission model. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { hasPermissions, requirePermission } from '../native/permission.js'
import type {
  NativeFileIdentity,
  NativeInputFile,
  NativeInputOptions,
  NativeOutputFile,
} from '../native/types.js'
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
    if (typeof file === 'string') return addon.openInput(path, options)
    return addon.openInputBelow(file.folder, file.name, { ...options, isSole: file.isSole })
  })
}

/**
 * A file that will replace `path`, or the target of the links at `path`.
 *
 * @throws TileworkError ERR_IO, ERR_ARGUMENT, ERR_PERMISSION, ERR_NATIVE_LOAD
 */
export function openOutput(path: string, byteLength: number): NativeOutputFile {
  return createOutput(path, () => native().createOutput(path, byteLength))
}

/** As `openOutput`, for a file that another file names. With `isNew` the commit fails if the file exists. @throws TileworkError also ERR_PATH_ESCAPE */
export function openOutputBelow(
  { folder, name }: Pick<FileBelow, 'folder' | 'name'>,
  byteLength: number,
  isNew: boolean,
): NativeOutputFile {
  return createOutput(join(folder, name), () => native().createOutputBelow(folder, name, byteLength, isNew))
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
  return native().readOwnFile(path, mostBytes)
}

/** Removes a file if it still has this identity. @throws TileworkError ERR_IO, ERR_PERMISSION */
export function removeBelow(
  { folder, name }: Pick<FileBelow, 'folder' | 'name'>,
  identity: NativeFileIdentity,
): void {
  const path = join(folder, name)
  requirePermission('fs.write', path)
  systemError.wrap(path, () => native().removeBelow(folder, name, identity))
}
