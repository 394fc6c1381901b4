/** Where an array lies, as a file of its own or as a member of an archive, and where its faults are told. */
import type { ErrorCode, FindingCode } from '../../errors.js'
import type { Place, Report } from '../report.js'

export interface ArraySpanInit {
  /** From the magic on, in the source that the array is read from. */
  readonly start: number
  readonly end: number
  readonly report: Report
  /** Names the member in messages and paths; absent where the array is the file. */
  readonly member?: { readonly path: string; readonly name: string }
  /** The offset in the file of a byte of the array, counted from its magic. */
  offsetOf(at: number): number
}

/** Faults are told with a path inside the array and the byte that they are at, counted from its magic. */
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

  /** A type that cannot be read: of a member lenient leaves the array out, since others may be good. */
  refusedType(code: ErrorCode, message: string, path: string, at: number): void {
    if (this.#init.member) this.deviation(code, `${message} The array is left out.`, path, at)
    else this.broken(code, message, path, at)
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
