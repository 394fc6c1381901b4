/** Which files of a folder other files name: such a file belongs to a model and is never replaced or removed. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { keyOfName } from '../bytes/file_identity.js'
import { RangedFileSource } from '../bytes/ranged_file.js'
import type { ByteSource } from '../bytes/source.js'

/** How the files of a format name others. */
export interface NamingFormat {
  /** Fits the names of all files that may name others. */
  readonly pattern: RegExp
  /** The names in one file, relative to its folder; undefined where it cannot be read to its end. */
  namesOf(source: ByteSource): Promise<ReadonlySet<string> | undefined>
}

/** Files of a folder that are read for their names. Folders of more models are left as they are. */
const MAX_NAMING_FILES = 1000

/** Keys of the names in all files of a folder, except one; undefined where one of them cannot be read. */
export async function keysNamedIn(
  folder: string,
  format: NamingFormat,
  except?: string,
): Promise<ReadonlySet<string> | undefined> {
  const entries = await readdir(folder).catch(() => undefined)
  const naming = entries?.filter((name) => format.pattern.test(name) && name !== except)
  if (!naming || naming.length > MAX_NAMING_FILES) return undefined
  const keys = new Set<string>()
  for (const name of naming) {
    const found = await namesAt(join(folder, name), format)
    if (!found) return undefined
    for (const each of found) keys.add(keyOfName(each))
  }
  return keys
}

/** The names in the file at a path: none where there is no file. Undefined where it cannot be read, for any reason. */
export async function namesAt(path: string, format: NamingFormat): Promise<ReadonlySet<string> | undefined> {
  let source: ByteSource | undefined
  try {
    // Folders, pipes and dangling links name nothing.
    if (!(await stat(path)).isFile()) return new Set()
    source = new RangedFileSource(path)
    return await format.namesOf(source)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? new Set() : undefined
  } finally {
    source?.close?.()
  }
}
