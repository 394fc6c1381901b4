/**
 * The journal of a multi-file save: which files it will create and remove, written before the first commit. After a kill, the
 * next save of the same target removes leftover files. Only files that are listed in the journal, or to which the replaced
 * model referred, are ever removed, and only if no file of the folder refers to them.
 */
import { lstatSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type FileIdentity, type IdentifiedFile, keyOfName } from '../bytes/file_identity.js'
import { openOutputBelow, readOwnFile, removeBelow } from '../bytes/open_native.js'
import { checkSiblingName } from '../bytes/sibling.js'
import type { FormatEntry } from '../formats/format.js'
import { keysNamedIn, namesAt } from '../formats/named_files.js'
import type { NativeOutputFile } from '../native/types.js'
import { FORMATS } from './registry.js'

const SUFFIX = '.tilework-save'
/** Largest journal: a model has at most 4,096 files, each with a name of at most 4 KiB. */
const MAX_JOURNAL_BYTES = 32 * 1024 * 1024

function journalOf(path: string): string {
  return join(dirname(path), `.${basename(path)}${SUFFIX}`)
}

function placeOfJournal(path: string): { readonly folder: string; readonly name: string } {
  return { folder: dirname(path), name: basename(journalOf(path)) }
}

/** True if a save of this target was killed or is running. */
export function hasJournal(path: string): boolean {
  try {
    return lstatSync(journalOf(path), { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Writes the journal of `path`. If it cannot be written, files are left over after a kill. */
export async function writeJournal(path: string, files: readonly IdentifiedFile[]): Promise<void> {
  if (files.length === 0) return
  const content = Buffer.from(JSON.stringify({ files: files.map(toJson) }))
  let journal: NativeOutputFile | undefined
  try {
    journal = openOutputBelow(placeOfJournal(path), content.byteLength, 'own')
    await journal.write(content, 0)
    await journal.commit()
  } catch {
    // The folder is not writable or full, or the name is too long. Left to garbage collection, the temporary file would
    // outlive the save.
    journal?.abort()
  }
}

/** Removes the journal, or reduces it to `leftovers`, files that may still be in use. */
export async function endJournal(path: string, leftovers: readonly IdentifiedFile[]): Promise<void> {
  if (leftovers.length > 0) await writeJournal(path, leftovers)
  else {
    try {
      removeBelow(placeOfJournal(path))
    } catch {
      // The journal is gone already, or was never written.
    }
  }
}

/** Removes files of a killed save of `path`; returns those that may still be in use. The caller must have locked the folder. */
export async function removeLeftovers(path: string, entry: FormatEntry): Promise<readonly IdentifiedFile[]> {
  if (!hasJournal(path)) return []
  const files = readJournal(path)
  const leftovers = (await removeUnnamed(path, entry, files)) ? [] : files
  await endJournal(path, leftovers)
  return leftovers
}

/** The files in the journal of `path`; none if it belongs to another user or cannot be read. */
function readJournal(path: string): IdentifiedFile[] {
  try {
    const content = readOwnFile(journalOf(path), MAX_JOURNAL_BYTES)
    if (content === undefined) return []
    const { files } = JSON.parse(new TextDecoder().decode(content)) as { files: readonly JsonFile[] }
    return files.map(fromJson)
  } catch {
    // A truncated journal: no file was committed yet.
    return []
  }
}

/**
 * Removes the given files to which no file of their folders refers.
 *
 * @param path - path of the model, with any extension
 * @returns false if for some files this is unknown; these are kept
 */
export async function removeUnnamed(
  path: string,
  entry: FormatEntry,
  files: readonly IdentifiedFile[],
): Promise<boolean> {
  const naming = new Naming(path, entry)
  let isComplete = true
  for (const { name, identity } of files) {
    const isNamed = await naming.names(name)
    if (isNamed === undefined) isComplete = false
    if (isNamed !== false) continue
    try {
      removeBelow({ folder: dirname(path), name }, identity)
    } catch {
      isComplete = false
    }
  }
  return isComplete
}

/** Collects the names to which the models of a folder, and of its subfolders with data files, refer. */
class Naming {
  readonly #path: string
  readonly #entry: FormatEntry
  readonly #keys = new Map<string, Promise<readonly (ReadonlySet<string> | undefined)[]>>()

  constructor(path: string, entry: FormatEntry) {
    this.#path = path
    this.#entry = entry
  }

  /** Whether a model refers to `name`; undefined if a model cannot be read. */
  async names(name: string): Promise<boolean | undefined> {
    const parts = name.split('/')
    const answers = await Promise.all(parts.map((_, depth) => this.#namesFrom(parts, depth)))
    return answers.includes(true) ? true : answers.includes(undefined) ? undefined : false
  }

  async #namesFrom(parts: readonly string[], depth: number): Promise<boolean | undefined> {
    const folder = join(dirname(this.#path), parts.slice(0, depth).join('/'))
    let keys = this.#keys.get(folder)
    if (!keys) {
      keys = this.#keysIn(folder, depth === 0)
      this.#keys.set(folder, keys)
    }
    const key = keyOfName(parts.slice(depth).join('/'))
    const found = await keys
    if (found.some((each) => each?.has(key))) return true
    return found.includes(undefined) ? undefined : false
  }

  /** One set per format whose files refer to others, and one for the model itself. */
  async #keysIn(folder: string, isOwn: boolean): Promise<readonly (ReadonlySet<string> | undefined)[]> {
    const entries = (Object.values(FORMATS) as readonly FormatEntry[]).filter(({ namesFiles }) => namesFiles)
    const keys = await Promise.all(
      entries.map(async (entry) => keysNamedIn(folder, (await entry.load()).naming!)),
    )
    const { naming } = isOwn ? await this.#entry.load() : {}
    if (!naming) return keys
    const own = await namesAt(this.#path, naming)
    return [...keys, own && new Set([...own].map(keyOfName))]
  }
}

interface JsonFile {
  readonly name: string
  readonly identity: Readonly<Record<keyof FileIdentity, string>>
}

function toJson({ name, identity }: IdentifiedFile): JsonFile {
  const { device, inode, size, modified } = identity
  const numbers = { device: `${device}`, inode: `${inode}`, size: `${size}`, modified: `${modified}` }
  return { name, identity: numbers }
}

function fromJson({ name, identity }: JsonFile): IdentifiedFile {
  checkSiblingName(name)
  const { device, inode, size, modified } = identity
  const numbers = {
    device: BigInt(device),
    inode: BigInt(inode),
    size: BigInt(size),
    modified: BigInt(modified),
  }
  return { name, identity: numbers }
}
