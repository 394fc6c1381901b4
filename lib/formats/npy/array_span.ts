/** The byte range of an array (a file, or a member of an archive), and the report on its faults. */
import type { ErrorCode, FindingCode } from '../../errors.js'
import type { Place, Report } from '../report.js'

export interface ArraySpanInit {
  /** Range in the source that the array is read from, its magic number included. */
  readonly start: number
  readonly end: number
  readonly report: Report
  /** The member, for messages and paths; absent where the array is the file. */
  readonly member?: { readonly path: string; readonly name: string }
  /** The file offset of a byte of the array; `at` counts from the magic number. */
  offsetOf(at: number): number
}

/** Reports faults with a path inside the array and an offset from its magic number. */
export class ArraySpan {
  readonly start: number
  readonly end: number
  readonly #init: ArraySpanInit

  constructor(init: ArraySpanInit) {
    this.start = init.start
    this.end = init.end
    this.#init = init
  }

  broken(code: ErrorCode, message: string, path: string, at: number): void {
    this.#init.report.broken(code, this.#about(message), this.#place(path, at))
  }

  deviation(code: ErrorCode, message: string, path: string, at: number): void {
    this.#init.report.deviation(code, this.#about(message), this.#place(path, at))
  }

  note(code: FindingCode, message: string, path: string, at: number): void {
    this.#init.report.note(code, this.#about(message), this.#place(path, at))
  }

  /** Reports a type that cannot be read. The lenient level omits an archive member with it and reads the others. */
  refusedType(code: ErrorCode, message: string, path: string, at: number): void {
    if (!this.#init.member) {
      this.broken(code, message, path, at)
      return
    }
    const omission = this.#about(`${message} The array is omitted.`)
    this.#init.report.omission('a rule', code, omission, this.#place(path, at))
  }

  #about(message: string): string {
    const { member } = this.#init
    return member ? `${member.path} (${member.name}): ${message}` : message
  }

  #place(path: string, at: number): Place {
    const { member, offsetOf } = this.#init
    return { path: member ? `${member.path}.${path}` : path, offset: offsetOf(at) }
  }
}
