/** What is kept of a run over many files: sums, never the reports themselves. */
import type { Outcome } from '../../pipeline/many/convert_files.js'
import type { Written } from '../../pipeline/many/manifest_entry.js'
import { EXIT, type ExitCode, exitCodeOf, worse } from '../exit_codes.js'
import { errorReport } from '../text/report_error.js'

/** The last line of the JSON. */
export interface FilesSummary {
  readonly written: number
  readonly skipped: number
  readonly failed: number
  /** Failures by error code. */
  readonly byCode: Readonly<Record<string, number>>
  /** Length of all outputs that were written. */
  readonly bytes: number
  readonly seconds: number
  /** Only when the run was cancelled before its last file was done. */
  readonly cancelled?: true
}

export interface FailureGroup {
  readonly code: string
  count: number
  /** The input that failed first. */
  readonly first: string
}

export class FilesTally {
  written = 0
  skipped = 0
  failed = 0
  bytes = 0
  /** Files with findings. */
  withFindings = 0
  /** The highest of all files. */
  exitCode: ExitCode = EXIT.ok
  readonly #groups = new Map<string, FailureGroup>()
  readonly #startedAt = performance.now()

  add(outcome: Outcome<Written & { readonly findings: readonly unknown[] }>): void {
    if (outcome.status === 'failed') this.#addFailure(outcome.pair.input, outcome.error)
    else if (outcome.status === 'skipped') this.skipped++
    else {
      this.written++
      this.bytes += outcome.written.byteLength
      if (outcome.written.findings.length > 0) this.withFindings++
    }
  }

  #addFailure(input: string, error: unknown): void {
    this.failed++
    this.exitCode = worse(this.exitCode, exitCodeOf(error))
    const { code } = errorReport(error)
    const group = this.#groups.get(code)
    if (group) group.count++
    else this.#groups.set(code, { code, count: 1, first: input })
  }

  get done(): number {
    return this.written + this.skipped + this.failed
  }

  /** The most frequent first. */
  get failures(): readonly FailureGroup[] {
    return [...this.#groups.values()].sort((one, other) => other.count - one.count)
  }

  summary(isCancelled: boolean): FilesSummary {
    const { written, skipped, failed, bytes } = this
    const byCode = Object.fromEntries(this.failures.map(({ code, count }) => [code, count]))
    const seconds = Math.round(performance.now() - this.#startedAt) / 1000
    return { written, skipped, failed, byCode, bytes, seconds, ...(isCancelled && { cancelled: true }) }
  }
}
