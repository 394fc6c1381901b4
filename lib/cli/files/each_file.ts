/** Runs a command over several files. The most severe outcome is the exit code. */
import { exitCodeOf } from '../error_exit_codes.js'
import { EXIT, type ExitCode, worse } from '../exit_codes.js'
import { printJson, writeTexts } from '../text/printable.js'
import { type ErrorReport, errorReport, printError } from '../text/report_error.js'
import type { Terminal } from '../text/terminal.js'

export interface FileWork<Report> {
  readonly files: readonly string[]
  readonly json: boolean
  /** The report as JSON. A failure of one file does not stop the others. */
  report(file: string): Promise<Report>
  /** The report as text, in parts. */
  format(report: Report): Generator<string> | readonly string[]
  exitCode(report: Report): ExitCode
}

/**
 * Prints the report of each file. JSON is the report of a single file, or an array of reports in which a failed file has
 * `{ file, error }`.
 *
 * @throws the error of `report` for a single file, and a cancellation always
 */
export async function eachFile<Report extends object>(
  work: FileWork<Report>,
  terminal: Terminal,
): Promise<ExitCode> {
  const { files, json } = work
  const reports: (Report | { file: string; error: ErrorReport })[] = []
  let exitCode: ExitCode = EXIT.ok
  for (const file of files) {
    if (terminal.isReaderGone()) break
    try {
      const report = await work.report(file)
      exitCode = worse(exitCode, work.exitCode(report))
      if (json) reports.push(report)
      else writeTexts(work.format(report), terminal.stdout)
    } catch (error) {
      const code = exitCodeOf(error)
      if (files.length === 1 || code === EXIT.cancelled || code === EXIT.fault) throw error
      exitCode = worse(exitCode, code)
      printError(error, terminal, file)
      reports.push({ file, error: errorReport(error) })
    }
  }
  if (json) printJson(files.length === 1 ? reports[0] : reports, terminal)
  return exitCode
}
