/**
 * The folder of an index: which names new shards may take there, and which shards go with the index that a new one
 * replaces. Files that some index of the folder names are never written over and never removed, and where an index
 * cannot be read, nothing is known to be without an owner.
 */
import type { BigIntStats } from 'node:fs'
import { lstat, readdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RangedFileSource } from '../../bytes/ranged_file.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { Budget } from '../budget.js'
import type { ReplacedFiles } from '../format.js'
import { DEFAULT_LIMITS, INDEX_EXTENSION, MAX_SHARDS } from './schema.js'
import { readWeightMap } from './shard_index.js'

/** What follows the stem: Hugging Face's numbers, then for further generations ours. */
const SHARD_ENDING = /^-\d{5}-of-\d{5}(?:-[1-9]\d*)?\.safetensors$/

/** Variants of one model put a word between the parts: `model.safetensors.index.fp16.json`. */
const ANY_INDEX = /\.index(?:\.[^.]+)*\.json$/i

export class ShardFolder {
  readonly #path: string
  readonly #folder: string
  readonly #stem: string
  /** Keys of all entries of the folder. */
  readonly #taken: ReadonlySet<string>
  #named: Promise<ReadonlySet<string> | undefined> | undefined

  private constructor(path: string, names: readonly string[]) {
    this.#path = path
    this.#folder = dirname(path)
    this.#stem = basename(path)
      .slice(0, -INDEX_EXTENSION.length)
      .replace(/\.safetensors$/i, '')
    this.#taken = new Set(names.map(keyOf))
  }

  /**
   * @param path - of the index, which need not be there
   * @throws TileworkError ERR_IO
   */
  static async of(path: string): Promise<ShardFolder> {
    return new ShardFolder(path, await namesIn(dirname(path)))
  }

  /**
   * Names for all shards of a save: until the new index takes its name, the old one must find its own shards
   * unchanged. The first try is Hugging Face's; further ones count on behind it. Names of shards that a killed save
   * has left are free, so that they do not pile up.
   *
   * @param reusesAbandoned - false: no file has any of the names
   */
  async freeNames(count: number, reusesAbandoned = true): Promise<string[]> {
    for (let generation = 0; ; generation++) {
      const suffix = generation === 0 ? '' : `-${generation}`
      const names = Array.from(
        { length: count },
        (_, at) => `${this.#stem}-${fiveDigits(at + 1)}-of-${fiveDigits(count)}${suffix}.safetensors`,
      )
      if (await this.#areFree(names, reusesAbandoned)) return names
    }
  }

  /** True for a name under which a shard may be written. */
  async isFree(name: string): Promise<boolean> {
    return !this.has(name) || (await this.#isAbandoned(name))
  }

  has(name: string): boolean {
    return this.#taken.has(keyOf(name))
  }

  /** True when a name of the folder is the very file that is read. */
  async isSource(name: string, { label }: ByteSource): Promise<boolean> {
    if (label === undefined) return false
    const [one, other] = await Promise.all([label, join(this.#folder, name)].map(statOf))
    return isSameFile(one, other)
  }

  /**
   * The shards of the index that is to be replaced. Only plain files that are named as its shards are removed, as long
   * as they are those that are there now, and none that an index of the folder, the new one included, names by then.
   */
  async replacedShards(): Promise<ReplacedFiles> {
    const named = this.has(basename(this.#path)) ? await shardsNamedBy([this.#path]) : undefined
    const shards = await Promise.all(
      [...(named ?? [])]
        .filter((name) => this.#isShardName(name))
        .slice(0, MAX_SHARDS)
        .map(async (name) => ({ name, status: await plainFileAt(join(this.#folder, name)) })),
    )
    const names = shards.filter(({ status }) => status !== undefined).map(({ name }) => name)
    return { names, remove: () => this.#remove(shards) }
  }

  async #remove(shards: readonly { readonly name: string; readonly status: Identity }[]): Promise<void> {
    const named = shards.length > 0 ? await namedIn(this.#folder) : undefined
    if (!named) return
    for (const { name, status } of shards) {
      if (!named.has(keyOf(name))) await removeIfSame(join(this.#folder, name), status)
    }
  }

  async #areFree(names: readonly string[], reusesAbandoned: boolean): Promise<boolean> {
    const taken = names.filter((name) => this.has(name))
    if (!reusesAbandoned) return taken.length === 0
    for (const name of taken) if (!(await this.#isAbandoned(name))) return false
    return true
  }

  /** A shard that no index names: a killed save has left it. */
  async #isAbandoned(name: string): Promise<boolean> {
    if (!this.#isShardName(name)) return false
    this.#named ??= namedIn(this.#folder)
    const named = await this.#named
    if (!named || named.has(keyOf(name))) return false
    return (await plainFileAt(join(this.#folder, name)))?.nlink === 1n
  }

  #isShardName(name: string): boolean {
    return name.startsWith(this.#stem) && SHARD_ENDING.test(name.slice(this.#stem.length))
  }
}

/** Some file systems take names for one that differ in case, or in how an accent is spelled. */
function keyOf(name: string): string {
  return name.normalize('NFC').toLowerCase()
}

function fiveDigits(number: number): string {
  return String(number).padStart(5, '0')
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The writer names a missing folder better, when it opens the first file there.
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    const message = `The folder ${folder} cannot be listed: ${(error as Error).message}`
    throw new TileworkError('ERR_IO', message, { path: folder, cause: error })
  }
}

/** Keys of the names in all indexes of a folder; undefined where that cannot be known. */
async function namedIn(folder: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const indexes = (await namesIn(folder)).filter((name) => ANY_INDEX.test(name))
    const names = await shardsNamedBy(indexes.map((name) => join(folder, name)))
    return names && new Set([...names].map(keyOf))
  } catch {
    return undefined
  }
}

/** Names in the weight maps of indexes, which together may be as large as one that is opened; undefined as above. */
async function shardsNamedBy(paths: readonly string[]): Promise<ReadonlySet<string> | undefined> {
  const budget = new Budget({}, DEFAULT_LIMITS)
  const names = new Set<string>()
  for (const path of paths) {
    if (await namesNothing(path)) continue
    const weightMap = await readIndexAt(path, budget)
    if (!weightMap) return undefined
    for (const { shard } of weightMap.values()) names.add(shard)
  }
  return names
}

/** Undefined where it cannot be read, for whatever reason: its owner has not asked for it. */
async function readIndexAt(path: string, budget: Budget): ReturnType<typeof readWeightMap> {
  let source: ByteSource | undefined
  try {
    source = new RangedFileSource(path)
    return await readWeightMap(source, budget)
  } catch {
    return undefined
  } finally {
    source?.close?.()
  }
}

/** Folders, pipes and links to nowhere. */
async function namesNothing(path: string): Promise<boolean> {
  try {
    return !(await stat(path)).isFile()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

type Identity = BigIntStats | undefined

async function statOf(path: string): Promise<Identity> {
  return stat(path, { bigint: true }).catch(() => undefined)
}

/** Undefined for all else, links too: what they lead to may be another model's. */
async function plainFileAt(path: string): Promise<Identity> {
  const status = await lstat(path, { bigint: true }).catch(() => undefined)
  return status?.isFile() ? status : undefined
}

function isSameFile(one: Identity, other: Identity): boolean {
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino
}

/** Another save may have put a new file in its place. */
async function removeIfSame(path: string, before: Identity): Promise<void> {
  if (!isSameFile(before, await plainFileAt(path))) return
  // The save has succeeded; a shard too many does no harm.
  await unlink(path).catch(() => undefined)
}
