/**
 * What happens with a broken rule: a read throws at the first that its level does not allow, a check collects all.
 * The rules themselves are written once and know neither.
 *
 * A rule hands over how to say it, not the words: a hostile file breaks rules a million times, and of most only the
 * number is kept.
 */
import { type ErrorCode, type Finding, type FindingCode, type Level, TileworkError } from '../../errors.js'
import { FORMAT_NAME, MAX_FINDINGS } from './schema.js'

/** What is wrong, and where in the file. */
export interface Description {
  /** One sentence with the value and the limit. */
  readonly message: string
  /** For example `tensors[3].dims[1]`; empty for the file as a whole. */
  readonly path: string
  /** Byte offset of the field. */
  readonly offset: number
}

/** Makes the words for a finding that is kept or thrown. */
export type Describe = () => Description

export class Report {
  readonly level: Level
  readonly #throws: boolean
  readonly #findings: Finding[] = []
  #omitted = 0
  #omittedErrors = 0

  constructor(level: Level, mode: 'throw' | 'collect') {
    this.level = level
    this.#throws = mode === 'throw'
  }

  /** Something that cannot be read safely at any level. A read ends here. */
  broken(code: ErrorCode, describe: Describe): void {
    if (this.#throws) {
      const { message, path, offset } = describe()
      throw new TileworkError(code, message, { format: FORMAT_NAME, path, offset })
    }
    this.#add('error', code, describe)
  }

  /** A rule of the format that is broken without danger: strict refuses it, lenient reports `lenientCode` and goes on. */
  deviation(code: ErrorCode, describe: Describe, lenientCode: FindingCode = code): void {
    if (this.level === 'strict') this.broken(code, describe)
    else this.#add('warning', lenientCode, describe)
  }

  /** Something legal that is worth a word at any level. */
  note(code: FindingCode, describe: Describe): void {
    this.#add('warning', code, describe)
  }

  /** In file order; where there were too many, a last one says how many were left out. */
  findings(): Finding[] {
    const sorted = this.#findings.toSorted((one, other) => one.offset - other.offset)
    if (this.#omitted > 0) sorted.push(this.#closing())
    return sorted
  }

  #add(severity: Finding['severity'], code: FindingCode, describe: Describe): void {
    if (this.#findings.length < MAX_FINDINGS) {
      this.#findings.push({ severity, code, ...describe() })
      return
    }
    this.#omitted += 1
    if (severity === 'error') this.#omittedErrors += 1
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
