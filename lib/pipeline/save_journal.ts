/**
 * What a save of several files will name and remove, written down before the first file gets its name: after a kill, the next
 * save of the same target removes what is left. Only files that are listed here, or that the replaced model named, are ever
 * removed, and only while no file of the folder names them.
 */
import { closeSync, constants, fsyncSync, lstatSync, openSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type FileIdentity, type IdentifiedFile, keyOfName } from '../bytes/file_identity.js'
import { readOwnFile, removeBelow } from '../bytes/open_native.js'
import { checkSiblingName } from '../bytes/sibling.js'
import type { FormatEntry } from '../formats/format.js'
import { keysNamedIn, namesAt } from '../formats/named_files.js'
import { FORMATS } from './registry.js'

const SUFFIX = '.tilework-save'
/** A model has at most 4,096 files, each with a name of at most 4 KiB. */
const MAX_JOURNAL_BYTES = 32 * 1024 * 1024

function journalOf(path: string): string {
  return join(dirname(path), `.${basename(path)}${SUFFIX}`)
}

/** True where a save of this target was killed, or is running. */
export function hasJournal(path: string): boolean {
  try {
    return lstatSync(journalOf(path), { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Lists files in the journal of `path`. Where it cannot be written, a kill leaves them. */
export function writeJournal(path: string, files: readonly IdentifiedFile[]): void {
  if (files.length === 0) return
  const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants
  try {
    const descriptor = openSync(journalOf(path), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
    try {
      writeFileSync(descriptor, JSON.stringify({ files: files.map(toJson) }))
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // A folder or name that takes no further file.
  }
}

/** Removes the journal, except for files of which a save before this one did not know whether they are in use. */
export function endJournal(path: string, leftovers: readonly IdentifiedFile[]): void {
  if (leftovers.length > 0) writeJournal(path, leftovers)
  else {
    try {
      unlinkSync(journalOf(path))
    } catch {
      // Gone, or never written.
    }
  }
}

/** Removes what a killed save of `path` left, and returns what may still be in use. For a caller that has the folder alone. */
export async function removeLeftovers(path: string, entry: FormatEntry): Promise<readonly IdentifiedFile[]> {
  if (!hasJournal(path)) return []
  const files = readJournal(path)
  const leftovers = (await removeUnnamed(path, entry, files)) ? [] : files
  endJournal(path, leftovers)
  return leftovers
}

/** The files in the journal of `path`: none where it is not of this user or cannot be read. */
function readJournal(path: string): IdentifiedFile[] {
  try {
    const content = readOwnFile(journalOf(path), MAX_JOURNAL_BYTES)
    if (content === undefined) return []
    const { files } = JSON.parse(new TextDecoder().decode(content)) as { files: readonly JsonFile[] }
    return files.map(fromJson)
  } catch {
    // A journal that was cut short: no file had its name yet.
    return []
  }
}

/**
 * Removes those of the files that no file of their folders names.
 *
 * @param path - of the model, whatever its extension
 * @returns false where that is unknown for some of them; these stay
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

/** The names in all models of a folder and of the folders below it in which data lie. */
class Naming {
  readonly #path: string
  readonly #entry: FormatEntry
  readonly #keys = new Map<string, Promise<readonly (ReadonlySet<string> | undefined)[]>>()

  constructor(path: string, entry: FormatEntry) {
    this.#path = path
    this.#entry = entry
  }

  /** Undefined where a model cannot be read. */
  async names(name: string): Promise<boolean | undefined> {
    const parts = name.split('/')
    const answers = await Promise.all(parts.map((_, depth) => this.#namesFrom(parts, depth)))
    return answers.includes(true) ? true : answers.includes(undefined) ? undefined : false
  }

  async #namesFrom(parts: readonly string[], depth: number): Promise<boolean | undefined> {
    const folder = join(dirname(this.#path), ...parts.slice(0, depth))
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

  /** One set for each format whose files name others, and one for the model itself. */
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
