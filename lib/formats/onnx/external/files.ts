/**
 * The files of external data: each is opened once, however many tensors lie in it. A location is refused where it
 * leads out of the model's folder; a file that is missing leaves its tensors without data.
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
  /** The digest that the tensor says the file has. */
  readonly checksum?: { readonly value: string; readonly offset: number }
}

/** Files that many tensors may lie in although they are not there: each is told once. */
const NOT_THERE = -1

export class ExternalFiles {
  /** The model's own file first. */
  readonly sources: ByteSource[]
  /** Those that are open, by the location that tensors name. */
  readonly byLocation = new Map<string, ByteSource>()
  /** Numbers by location, of files that are not there too. */
  readonly #numbers = new Map<string, number>()
  readonly #budget: Budget
  readonly #report: Report
  readonly #sibling: ReadOptions['sibling']
  readonly #ranges: ExternalRanges | undefined
  #hasTooMany = false

  /** @param ranges - where what is asked for is to be noted */
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
   * The number of the file that has `byteLength` bytes of a tensor.
   *
   * @param path - of the tensor, for findings
   * @returns undefined where it has none, which is reported
   */
  async fileFor(
    { location, start, offset, checksum }: ExternalPlace,
    byteLength: number,
    path: string,
  ): Promise<number | undefined> {
    const place = { path: `${path}.external_data`, offset }
    const number = await this.open(location, place)
    if (number === undefined) return undefined
    const source = this.sources[number]!
    if (start + byteLength <= source.byteLength) {
      this.#ranges?.add(path, number, start, start + byteLength, offset)
      if (checksum) this.#ranges?.addDigest({ ...checksum, file: number, path })
      return number
    }
    const message = `${quote(location)} has ${source.byteLength} bytes and a tensor needs ${byteLength} at ${start}.`
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
    // Files that are not there count too: each look costs a call to the system, and a name that is kept.
    if (this.#numbers.size >= MAX_EXTERNAL_FILES) {
      if (!this.#hasTooMany) {
        const message = `The tensors lie in more than ${MAX_EXTERNAL_FILES} files.`
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
      if (!(error instanceof TileworkError)) throw error
      if (error.code === 'ERR_PATH_ESCAPE') this.#report.broken(error.code, error.message, place)
      else this.#report.deviation(error.code, `${quote(location)} cannot be opened: ${error.message}`, place)
      return undefined
    }
  }
}

/** A location and the same behind `./` are one file. */
export function nameOfLocation(location: string): string {
  return location.replace(/^(?:\.\/)+/, '')
}
