/**
 * What happens when a file breaks a rule of its format: a read throws at the first violation that its level refuses, a
 * check collects all of them. The rules are written once and know neither.
 */
import { type ErrorCode, type Finding, type FindingCode, type Level, TileworkError } from '../errors.js'

/** Where in the file a rule is broken. */
export interface Place {
  /** For example `tensors[3].dims[1]`; empty for the file as a whole. */
  readonly path: string
  /** Byte offset of the field. */
  readonly offset: number
}

/**
 * A value, or a function that makes it only for a finding that is thrown or kept: a hostile file breaks rules a million
 * times, and of most violations only the number is kept.
 */
export type Lazy<T extends string | Place> = T | (() => T)

/** Maximum number of findings kept for a file: enough for a person and a program, bounded where every record is bad. */
export const MAX_FINDINGS = 1000

/** The findings of all parts of a report. */
interface Collected {
  readonly findings: { readonly part: number; readonly finding: Finding }[]
  parts: number
  omitted: number
  omittedErrors: number
  /** True where a finding that was omitted omits a tensor. */
  omitsTensor: boolean
}

/** See `Report.mark`. */
export interface ReportMark {
  readonly kept: number
  readonly omitted: number
  readonly omittedErrors: number
  readonly omitsTensor: boolean
}

export class Report {
  readonly level: Level
  readonly #format: string
  readonly #throws: boolean
  readonly #collected: Collected
  readonly #part: number
  /** Starts every path and message of a part: the name of its file. */
  readonly #prefix: string

  /**
   * @param format - name of the format, for the errors that are thrown
   * @param within - for `forPart`
   */
  constructor(
    format: string,
    level: Level,
    mode: 'throw' | 'collect',
    within?: { readonly collected: Collected; readonly prefix: string },
  ) {
    this.#format = format
    this.level = level
    this.#throws = mode === 'throw'
    this.#collected = within?.collected ?? {
      findings: [],
      parts: 0,
      omitted: 0,
      omittedErrors: 0,
      omitsTensor: false,
    }
    this.#part = this.#collected.parts++
    this.#prefix = within?.prefix ?? ''
  }

  /** A report on one of several files: it shares findings and mode, and starts paths and messages with the file's name. */
  forPart(name: string): Report {
    const within = { collected: this.#collected, prefix: `${this.#prefix}${name}: ` }
    return new Report(this.#format, this.level, this.#throws ? 'throw' : 'collect', within)
  }

  /** Something that cannot be read safely at any level. A read ends here. */
  broken(code: ErrorCode, message: Lazy<string>, place: Lazy<Place>): void {
    if (this.#throws) {
      const { path, offset } = resolveLazy(place)
      const named = { path: this.#prefix + path, offset }
      throw new TileworkError(code, this.#prefix + resolveLazy(message), { format: this.#format, ...named })
    }
    this.#add('error', code, message, place)
  }

  /** A harmless violation of the format: strict refuses it, lenient reports `lenientCode` and continues. */
  deviation(
    code: ErrorCode,
    message: Lazy<string>,
    place: Lazy<Place>,
    lenientCode: FindingCode = code,
  ): void {
    if (this.level === 'strict') this.broken(code, message, place)
    else this.#add('warning', lenientCode, message, place)
  }

  /** A tensor that cannot be read, so that what is opened does not have it: its loss must not look like a success. */
  omission(breaks: 'a rule' | 'no rule', code: ErrorCode, message: Lazy<string>, place: Lazy<Place>): void {
    if (breaks === 'a rule' && this.level === 'strict') this.broken(code, message, place)
    else this.#add('warning', code, message, place, true)
  }

  /** Something legal that users should know of at any level. */
  note(code: FindingCode, message: Lazy<string>, place: Lazy<Place>): void {
    this.#add('warning', code, message, place)
  }

  /** The state that `restore` returns to: what is read again reports its findings again. */
  mark(): ReportMark {
    const { findings, omitted, omittedErrors, omitsTensor } = this.#collected
    return { kept: findings.length, omitted, omittedErrors, omitsTensor }
  }

  restore({ kept, ...omissions }: ReportMark): void {
    this.#collected.findings.length = kept
    Object.assign(this.#collected, omissions)
  }

  /** In file order, part by part; a last finding counts those that were omitted. */
  findings(): Finding[] {
    const sorted = this.#collected.findings
      .toSorted((one, other) => one.part - other.part || one.finding.offset - other.finding.offset)
      .map(({ finding }) => finding)
    if (this.#collected.omitted > 0) sorted.push(this.#omission())
    return sorted
  }

  #add(
    severity: Finding['severity'],
    code: FindingCode,
    message: Lazy<string>,
    place: Lazy<Place>,
    omitsTensor = false,
  ): void {
    const collected = this.#collected
    if (collected.findings.length < MAX_FINDINGS) {
      const { path, offset } = resolveLazy(place)
      const named = { path: this.#prefix + path, message: this.#prefix + resolveLazy(message) }
      const omission = omitsTensor && { omitsTensor }
      collected.findings.push({
        part: this.#part,
        finding: { severity, code, offset, ...named, ...omission },
      })
      return
    }
    collected.omitted += 1
    if (omitsTensor) collected.omitsTensor = true
    if (severity === 'error') collected.omittedErrors += 1
  }

  #omission(): Finding {
    const { omitted, omittedErrors, omitsTensor } = this.#collected
    return {
      // The severity decides the exit code of a check, so an error must not hide behind a thousand warnings.
      severity: omittedErrors > 0 ? 'error' : 'warning',
      code: 'ERR_LIMIT',
      path: '',
      offset: 0,
      message: `${omitted} more findings (${omittedErrors} of them errors) are omitted after the first ${MAX_FINDINGS}.`,
      ...(omitsTensor && { omitsTensor }),
    }
  }
}

function resolveLazy<T extends string | Place>(lazy: Lazy<T>): T {
  return typeof lazy === 'function' ? lazy() : lazy
}
