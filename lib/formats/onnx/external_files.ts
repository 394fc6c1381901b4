/**
 * The files of external data: each is opened once, however many tensors lie in it. A location is refused where it
 * leads out of the model's folder; a file that is missing leaves its tensors without data.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import type { Budget } from './budget.js'
import { MAX_EXTERNAL_FILES, quote } from './schema.js'

interface ExternalRange {
  readonly location: string
  /** Byte offset in that file. */
  readonly start: number
  /** Byte offset of the location in the model. */
  readonly offset: number
}

/** Files that many tensors may lie in although they are not there: each is told once. */
const NOT_THERE = -1

export class ExternalFiles {
  /** The model's own file first. */
  readonly sources: ByteSource[]
  /** Those that are open, by the location that tensors name. */
  readonly byLocation = new Map<string, ByteSource>()
  readonly #numbers = new Map<string, number>()
  readonly #budget: Budget
  readonly #report: Report
  readonly #sibling: ReadOptions['sibling']

  constructor(
    own: ByteSource,
    { budget, report, sibling }: { budget: Budget; report: Report; sibling: ReadOptions['sibling'] },
  ) {
    this.sources = [own]
    this.#budget = budget
    this.#report = report
    this.#sibling = sibling
  }

  /**
   * The number of the file that has `byteLength` bytes of a tensor.
   *
   * @param path - of the tensor, for findings
   * @returns undefined where it has none, which is reported
   */
  async fileFor(
    { location, start, offset }: ExternalRange,
    byteLength: number,
    path: string,
  ): Promise<number | undefined> {
    const place = { path: `${path}.external_data`, offset }
    const known = this.#numbers.get(location)
    const number = known ?? (await this.#open(location, place))
    if (known === undefined) this.#numbers.set(location, number)
    if (number === NOT_THERE) return undefined
    const source = this.sources[number]!
    if (start + byteLength <= source.byteLength) return number
    const message = `${quote(location)} has ${source.byteLength} bytes and a tensor needs ${byteLength} at ${start}.`
    this.#report.broken('ERR_OFFSET_RANGE', message, place)
    return undefined
  }

  async #open(location: string, place: { path: string; offset: number }): Promise<number> {
    if (this.sources.length > MAX_EXTERNAL_FILES) {
      const message = `The tensors lie in more than ${MAX_EXTERNAL_FILES} files.`
      this.#report.broken('ERR_LIMIT', message, place)
      return NOT_THERE
    }
    try {
      const source = await this.#sibling(location.replace(/^(?:\.\/)+/, ''), { isSole: true })
      this.#budget.addFile(source.byteLength)
      this.byLocation.set(location, source)
      return this.sources.push(source) - 1
    } catch (error) {
      if (!(error instanceof TileworkError)) throw error
      if (error.code === 'ERR_PATH_ESCAPE') this.#report.broken(error.code, error.message, place)
      else this.#report.deviation(error.code, `${quote(location)} cannot be opened: ${error.message}`, place)
      return NOT_THERE
    }
  }
}
