/**
 * External data files of a model, each opened once. A location outside of the model's folder is refused; tensors of a
 * missing file have no data.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { Budget } from '../../budget.js'
import type { ReadOptions } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { MAX_EXTERNAL_FILES, quote } from '../schema.js'
import type { ExternalRanges } from './ranges.js'

interface ExternalPlace {
  readonly location: string
  /** Byte offset in that file. */
  readonly start: number
  /** Byte offset of the location in the model. */
  readonly offset: number
  /** The SHA-1 that the tensor declares for the file. */
  readonly checksum?: { readonly value: string; readonly offset: number }
}

/** Number of a file that cannot be opened; it is reported for the first tensor only. */
const NOT_THERE = -1

export class ExternalFiles {
  /** The model's own file first. */
  readonly sources: ByteSource[]
  /** Open files by the location that tensors name. */
  readonly byLocation = new Map<string, ByteSource>()
  /** File numbers by location, including missing files. */
  readonly #numbers = new Map<string, number>()
  readonly #budget: Budget
  readonly #report: Report
  readonly #sibling: ReadOptions['sibling']
  readonly #ranges: ExternalRanges | undefined
  #hasTooMany = false

  /** @param ranges - collects the ranges of all tensors */
  constructor(
    own: ByteSource,
    {
      budget,
      report,
      sibling,
      ranges,
    }: {
      budget: Budget
      report: Report
      sibling: ReadOptions['sibling']
      ranges: ExternalRanges | undefined
    },
  ) {
    this.sources = [own]
    this.#budget = budget
    this.#report = report
    this.#sibling = sibling
    this.#ranges = ranges
  }

  /**
   * The number of the file that contains `byteLength` bytes of a tensor. Bytes of a missing file, which nobody can read,
   * no longer count among those of all tensors.
   *
   * @param path - of the tensor, for findings
   * @returns undefined where the file is missing or too short, which is reported
   */
  async fileFor(
    { location, start, offset, checksum }: ExternalPlace,
    byteLength: number,
    path: string,
  ): Promise<number | undefined> {
    const place = { path: `${path}.external_data`, offset }
    const number = await this.open(location, place)
    if (number === undefined) {
      this.#budget.spend('totalBytes', -byteLength)
      return undefined
    }
    const source = this.sources[number]!
    if (start + byteLength <= source.byteLength) {
      this.#ranges?.add(path, number, start, start + byteLength, offset)
      if (checksum) this.#ranges?.addDigest({ ...checksum, file: number, path })
      return number
    }
    const message = `${quote(location)} has ${source.byteLength} bytes; a tensor needs ${byteLength} bytes at offset ${start}.`
    this.#report.broken('ERR_OFFSET_RANGE', message, place)
    return undefined
  }

  /** The number of the file of a location; undefined where it cannot be opened, which is reported the first time. */
  async open(location: string, place: Place): Promise<number | undefined> {
    const name = nameOfLocation(location)
    const known = this.#numbers.get(name)
    const number = known ?? (await this.#openNew(name, location, place))
    if (number === NOT_THERE) return undefined
    this.byLocation.set(location, this.sources[number]!)
    return number
  }

  async #openNew(name: string, location: string, place: Place): Promise<number> {
    // Missing files count too: each costs a system call and a stored name.
    if (this.#numbers.size >= MAX_EXTERNAL_FILES) {
      if (!this.#hasTooMany) {
        const message = `The tensors name more than ${MAX_EXTERNAL_FILES} files; the limit is ${MAX_EXTERNAL_FILES}.`
        this.#report.broken('ERR_LIMIT', message, place)
      }
      this.#hasTooMany = true
      return NOT_THERE
    }
    const source = await this.#openFile(name, location, place)
    const number = source ? this.sources.push(source) - 1 : NOT_THERE
    this.#numbers.set(name, number)
    return number
  }

  async #openFile(name: string, location: string, place: Place): Promise<ByteSource | undefined> {
    try {
      const source = await this.#sibling(name, { isSole: true })
      this.#budget.addFile(source.byteLength)
      return source
    } catch (error) {
      // A model must not lose its values silently because of a flag.
      if (!(error instanceof TileworkError) || error.code === 'ERR_PERMISSION') throw error
      if (error.code === 'ERR_PATH_ESCAPE') this.#report.broken(error.code, error.message, place)
      else this.#report.deviation(error.code, `${quote(location)} cannot be opened: ${error.message}`, place)
      return undefined
    }
  }
}

/** The location without leading `./`, which names the same file. */
export function nameOfLocation(location: string): string {
  return location.replace(/^(?:\.\/)+/, '')
}
