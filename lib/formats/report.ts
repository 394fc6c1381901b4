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

export class Report {
  readonly level: Level
  readonly #format: string
  readonly #throws: boolean
  readonly #findings: Finding[] = []
  #omitted = 0
  #omittedErrors = 0

  /** @param format - name of the format, for the errors that are thrown */
  constructor(format: string, level: Level, mode: 'throw' | 'collect') {
    this.#format = format
    this.level = level
    this.#throws = mode === 'throw'
  }

  /** Something that cannot be read safely at any level. A read ends here. */
  broken(code: ErrorCode, message: string, place: Place): void {
    if (this.#throws) throw new TileworkError(code, message, { format: this.#format, ...place })
    this.#add({ severity: 'error', code, message, ...place })
  }

  /** A rule of the format that is broken without danger: strict refuses it, lenient reports `lenientCode` and goes on. */
  deviation(code: ErrorCode, message: string, place: Place, lenientCode: FindingCode = code): void {
    if (this.level === 'strict') this.broken(code, message, place)
    else this.#add({ severity: 'warning', code: lenientCode, message, ...place })
  }

  /** Something legal that is worth a word at any level. */
  note(code: FindingCode, message: string, place: Place): void {
    this.#add({ severity: 'warning', code, message, ...place })
  }

  /** In file order; where there were too many, a last one says how many were left out. */
  findings(): Finding[] {
    const sorted = this.#findings.toSorted((one, other) => one.offset - other.offset)
    if (this.#omitted > 0) sorted.push(this.#closing())
    return sorted
  }

  #add(finding: Finding): void {
    if (this.#findings.length < MAX_FINDINGS) {
      this.#findings.push(finding)
      return
    }
    this.#omitted += 1
    if (finding.severity === 'error') this.#omittedErrors += 1
  }

  #closing(): Finding {
    return {
      // An error must not hide behind a thousand warnings: the severity decides the exit code of a check.
      severity: this.#omittedErrors > 0 ? 'error' : 'warning',
      code: 'ERR_LIMIT',
      path: '',
      offset: 0,
      message: `${this.#omitted} more findings (${this.#omittedErrors} of them errors) are left out after the first ${MAX_FINDINGS}.`,
    }
  }
}
