/**
 * The folder of an index: chooses names for new shards, and finds the shards of a replaced index. A file that any index of the
 * folder refers to is never overwritten or removed. Where an index cannot be read, every file counts as referred to.
 */
import type { BigIntStats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type IdentifiedFile, identityAt, keyOfName } from '../../bytes/file_identity.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { Budget } from '../budget.js'
import { keysNamedIn, type NamingFormat, namesAt } from '../named_files.js'
import { MAX_SHARDS, readWeightMap } from '../weight_map.js'
import { DEFAULT_LIMITS, INDEX_EXTENSION } from './schema.js'

/** Follows the stem: Hugging Face's shard numbers, then tilework's generation number if there is one. */
const SHARD_ENDING = /^-\d{5}-of-\d{5}(?:-[1-9]\d*)?\.safetensors$/

/** Variants of a model have another word in the name: `model.safetensors.index.fp16.json`. */
export const namingIndexes: NamingFormat = { pattern: /\.index(?:\.[^.]+)*\.json$/i, namesOf }

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
    this.#taken = new Set(names.map(keyOfName))
  }

  /**
   * @param path - of the index, which need not exist
   * @throws TileworkError ERR_IO
   */
  static async of(path: string): Promise<ShardFolder> {
    return new ShardFolder(path, await namesIn(dirname(path)))
  }

  /**
   * Names for all shards of a save. Until the new index replaces the old one, the old index must find its own shards unchanged, so
   * their names are not reused. The first generation has Hugging Face's names; later generations append a number. Shards that a
   * killed save left behind are overwritten, so that they do not accumulate.
   *
   * @param reusesAbandoned - whether abandoned shards may be overwritten; if false, none of the names exists yet
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

  /** Whether a shard may be written under the name. */
  async isFree(name: string): Promise<boolean> {
    return !this.has(name) || (await this.#isAbandoned(name))
  }

  has(name: string): boolean {
    return this.#taken.has(keyOfName(name))
  }

  /** True when `name` in the folder is the file of the source. */
  async isSource(name: string, { label }: ByteSource): Promise<boolean> {
    if (label === undefined) return false
    const [one, other] = await Promise.all([label, join(this.#folder, name)].map(statOf))
    return isSameFile(one, other)
  }

  /** The shards of the index that will be replaced: plain files with shard names. */
  async replacedShards(): Promise<IdentifiedFile[]> {
    const named = this.has(basename(this.#path)) ? await namesAt(this.#path, namingIndexes) : undefined
    const shards = await Promise.all(
      [...(named ?? [])]
        .filter((name) => this.#isShardName(name))
        .slice(0, MAX_SHARDS)
        .map(async (name) => ({ name, identity: await identityAt(join(this.#folder, name)) })),
    )
    return shards.filter((shard): shard is IdentifiedFile => shard.identity !== undefined)
  }

  async #areFree(names: readonly string[], reusesAbandoned: boolean): Promise<boolean> {
    const taken = names.filter((name) => this.has(name))
    if (!reusesAbandoned) return taken.length === 0
    for (const name of taken) if (!(await this.#isAbandoned(name))) return false
    return true
  }

  /** Whether the file is a shard that no index refers to, left behind by a killed save. */
  async #isAbandoned(name: string): Promise<boolean> {
    if (!this.#isShardName(name)) return false
    this.#named ??= keysNamedIn(this.#folder, namingIndexes)
    const named = await this.#named
    if (!named || named.has(keyOfName(name))) return false
    return (await identityAt(join(this.#folder, name))) !== undefined
  }

  #isShardName(name: string): boolean {
    return name.startsWith(this.#stem) && SHARD_ENDING.test(name.slice(this.#stem.length))
  }
}

function fiveDigits(number: number): string {
  return String(number).padStart(5, '0')
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A missing folder is reported, with a better message, when the writer opens the first file.
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    const message = `The folder ${folder} cannot be listed: ${(error as Error).message}`
    throw new TileworkError('ERR_IO', message, { path: folder, cause: error })
  }
}

/** Shard names in an index, within the limits of one opened index. */
async function namesOf(source: ByteSource): Promise<ReadonlySet<string> | undefined> {
  const weightMap = await readWeightMap(source, new Budget({}, DEFAULT_LIMITS))
  return weightMap && new Set([...weightMap.values()].map(({ shard }) => shard))
}

type Identity = BigIntStats | undefined

async function statOf(path: string): Promise<Identity> {
  return stat(path, { bigint: true }).catch(() => undefined)
}

function isSameFile(one: Identity, other: Identity): boolean {
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino
}
