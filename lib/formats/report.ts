/**
 * What happens with a broken rule of a format: a read throws at the first that its level does not allow, a check
 * collects all. The rules themselves are written once and know neither.
 */
import { type ErrorCode, type Finding, type FindingCode, type Level, TileworkError } from '../errors.js'

/** Where in the file a rule was broken. */
export interface Place {
  /** For example `tensors[3].dims[1]`; empty for the file as a whole. */
  readonly path: string
  /** Byte offset of the field. */
  readonly offset: number
}

/** Most findings kept of a file: enough for a person and for a program, bounded where every record is bad. */
export const MAX_FINDINGS = 1000

/** What all parts of a report have found together. */
interface Collected {
  readonly findings: { readonly part: number; readonly finding: Finding }[]
  parts: number
  omitted: number
  omittedErrors: number
}

export class Report {
  readonly level: Level
  readonly #format: string
  readonly #throws: boolean
  readonly #collected: Collected
  readonly #part: number
  /** Before every path and message: the file that a part is about. */
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
    this.#collected = within?.collected ?? { findings: [], parts: 0, omitted: 0, omittedErrors: 0 }
    this.#part = this.#collected.parts++
    this.#prefix = within?.prefix ?? ''
  }

  /** A report on one of several files: same findings and mode, places and messages with the file's name before them. */
  forPart(name: string): Report {
    const within = { collected: this.#collected, prefix: `${this.#prefix}${name}: ` }
    return new Report(this.#format, this.level, this.#throws ? 'throw' : 'collect', within)
  }

  /** Something that cannot be read safely at any level. A read ends here. */
  broken(code: ErrorCode, message: string, place: Place): void {
    if (this.#throws) {
      const named = { path: this.#prefix + place.path, offset: place.offset }
      throw new TileworkError(code, this.#prefix + message, { format: this.#format, ...named })
    }
    this.#add('error', code, message, place)
  }

  /** A rule of the format that is broken without danger: strict refuses it, lenient reports `lenientCode` and goes on. */
  deviation(code: ErrorCode, message: string, place: Place, lenientCode: FindingCode = code): void {
    if (this.level === 'strict') this.broken(code, message, place)
    else this.#add('warning', lenientCode, message, place)
  }

  /** Something legal that is worth a word at any level. */
  note(code: FindingCode, message: string, place: Place): void {
    this.#add('warning', code, message, place)
  }

  /** In file order, part by part; where there were too many, a last one says how many were left out. */
  findings(): Finding[] {
    const sorted = this.#collected.findings
      .toSorted((one, other) => one.part - other.part || one.finding.offset - other.finding.offset)
      .map(({ finding }) => finding)
    if (this.#collected.omitted > 0) sorted.push(this.#closing())
    return sorted
  }

  /** A place may make its path only when it is asked. */
  #add(severity: Finding['severity'], code: FindingCode, message: string, place: Place): void {
    const collected = this.#collected
    if (collected.findings.length < MAX_FINDINGS) {
      const named = { path: this.#prefix + place.path, message: this.#prefix + message }
      collected.findings.push({
        part: this.#part,
        finding: { severity, code, offset: place.offset, ...named },
      })
      return
    }
    collected.omitted += 1
    if (severity === 'error') collected.omittedErrors += 1
  }

  #closing(): Finding {
    const { omitted, omittedErrors } = this.#collected
    return {
      // An error must not hide behind a thousand warnings: the severity decides the exit code of a check.
      severity: omittedErrors > 0 ? 'error' : 'warning',
      code: 'ERR_LIMIT',
      path: '',
      offset: 0,
      message: `${omitted} more findings (${omittedErrors} of them errors) are left out after the first ${MAX_FINDINGS}.`,
    }
  }
}
