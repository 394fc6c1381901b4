/**
 * The folder of an index: chooses names for new shards, and finds the shards of a replaced index. A file that any index
 * of the folder names is never overwritten or removed. Where an index cannot be read, every file counts as named.
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

/** Follows the stem: Hugging Face's numbers, then our number of a further generation. */
const SHARD_ENDING = /^-\d{5}-of-\d{5}(?:-[1-9]\d*)?\.safetensors$/

/** Variants of a model have a word in between: `model.safetensors.index.fp16.json`. */
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
   * @param path - of the index, which need not exist
   * @throws TileworkError ERR_IO
   */
  static async of(path: string): Promise<ShardFolder> {
    return new ShardFolder(path, await namesIn(dirname(path)))
  }

  /**
   * Names for all shards of a save. Until the new index takes its name, the old one must find its own shards unchanged.
   * The first generation has Hugging Face's names, later ones a number behind them. Shards that a killed save left are
   * overwritten, so that they do not accumulate.
   *
   * @param reusesAbandoned - false: none of the names may exist
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

  /** True when `name` in the folder is the file of the source. */
  async isSource(name: string, { label }: ByteSource): Promise<boolean> {
    if (label === undefined) return false
    const [one, other] = await Promise.all([label, join(this.#folder, name)].map(statOf))
    return isSameFile(one, other)
  }

  /**
   * The shards of the index that will be replaced. `remove` deletes only plain files with shard names that have not been
   * replaced since, and that no index of the folder names at that time, the new one included.
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

  /** A shard that no index names, left by a killed save. */
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

/** Some file systems ignore case and the Unicode normalization of names. */
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
    // The writer reports a missing folder better when it opens the first file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    const message = `The folder ${folder} cannot be listed: ${(error as Error).message}`
    throw new TileworkError('ERR_IO', message, { path: folder, cause: error })
  }
}

/** Keys of the names in all indexes of a folder; undefined where an index cannot be read. */
async function namedIn(folder: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const indexes = (await namesIn(folder)).filter((name) => ANY_INDEX.test(name))
    const names = await shardsNamedBy(indexes.map((name) => join(folder, name)))
    return names && new Set([...names].map(keyOf))
  } catch {
    return undefined
  }
}

/** Shard names in the weight maps of indexes, within the limits of one opened index; undefined as above. */
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

/** Undefined where it cannot be read, for any reason: the user did not ask for this file. */
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

/** Also true for folders, pipes and dangling links. */
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

/** Undefined for anything but a plain file. A link may lead to another model's file. */
async function plainFileAt(path: string): Promise<Identity> {
  const status = await lstat(path, { bigint: true }).catch(() => undefined)
  return status?.isFile() ? status : undefined
}

function isSameFile(one: Identity, other: Identity): boolean {
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino
}

/** Removes the file unless another save has replaced it. */
async function removeIfSame(path: string, before: Identity): Promise<void> {
  if (!isSameFile(before, await plainFileAt(path))) return
  // The save has succeeded, and a leftover shard is harmless.
  await unlink(path).catch(() => undefined)
}
