/** Runs a command over several files: paths, and patterns that the shell did not expand. The exit code is the most severe one. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { TileworkError } from '../../index.js'
import { isPattern, matchFiles } from '../../internal.js'
import { exitCodeOf } from '../error_exit_codes.js'
import { EXIT, type ExitCode, worse } from '../exit_codes.js'
import { printJson, writeTexts } from '../text/printable.js'
import { type ErrorReport, errorReport, printError } from '../text/report_error.js'
import type { Terminal } from '../text/terminal.js'

export interface FileWork<Report> {
  /** Paths, or patterns where no file has that name. */
  readonly files: readonly string[]
  readonly json: boolean
  /** The report as JSON. A failure of one file does not stop the others. */
  report(file: string): Promise<Report>
  /** The report as text, in parts. @param isOnly - whether the command has no other file */
  format(report: Report, isOnly: boolean): Generator<string> | readonly string[]
  exitCode(report: Report): ExitCode
  /** A line for stderr after the text of several files. @param failed - number of files without a report */
  sums?(failed: number): string
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
  // A pattern gives a list even where it matches one file: the form of the output must not depend on the folder's content.
  const isOnly = files.length === 1 && !isSearched(files[0]!)
  const reports: (Report | { file: string; error: ErrorReport })[] = []
  let exitCode: ExitCode = EXIT.ok
  let tried = 0
  let failed = 0
  const fail = (error: unknown, file: string): void => {
    const code = exitCodeOf(error)
    if (isOnly || code === EXIT.cancelled || code === EXIT.fault) throw error
    exitCode = worse(exitCode, code)
    printError(error, terminal, file)
    reports.push({ file, error: errorReport(error) })
  }
  for await (const { file, error } of filesOf(files, terminal.signal)) {
    if (terminal.isReaderGone()) break
    if (error !== undefined) {
      fail(error, file)
      continue
    }
    tried++
    try {
      const report = await work.report(file)
      exitCode = worse(exitCode, work.exitCode(report))
      if (json) reports.push(report)
      else writeTexts(work.format(report, isOnly), terminal.stdout)
    } catch (cause) {
      failed++
      fail(cause, file)
    }
  }
  if (json) printJson(isOnly ? reports[0] : reports, terminal)
  else if (tried > 0 && !isOnly && work.sums) terminal.stderr.write(`${work.sums(failed)}\n`)
  return exitCode
}

/** A path that exists is never a pattern. */
function isSearched(file: string): boolean {
  return isPattern(file) && !existsSync(file)
}

/** The paths, and the sorted matches of each pattern, without repetitions. */
async function* filesOf(
  files: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<{ readonly file: string; readonly error?: unknown }> {
  const seen = new Set<string>()
  for (const file of files) {
    if (!isSearched(file)) {
      seen.add(resolve(file))
      yield { file }
      continue
    }
    const { matches, error } = await matchesOf(file, signal)
    if (error !== undefined) yield { file, error }
    for (const match of matches) {
      const path = resolve(match)
      if (!seen.has(path)) yield { file: match }
      seen.add(path)
    }
  }
}

async function matchesOf(
  pattern: string,
  signal: AbortSignal,
): Promise<{ readonly matches: readonly string[]; readonly error?: unknown }> {
  try {
    const matches = await matchFiles(pattern, { signal })
    if (matches.length > 0) return { matches }
    throw new TileworkError('ERR_ARGUMENT', `No file matches the pattern '${pattern}'.`)
  } catch (error) {
    return { matches: [], error }
  }
}
