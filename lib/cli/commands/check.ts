/** `tilework check FILE…`: reports all violations of a file format's rules. */
import { type Command, Option } from 'commander'
import { check as checkInput, type Finding, type Level } from '../../index.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { eachFile } from '../files/each_file.js'
import { addReadOptions, inputOf, type ReadChoice, readChoice } from '../files/open_input.js'
import { formatCount } from '../text/byte_count.js'
import { findingLine } from '../text/finding_line.js'
import { printable } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'

export interface CheckCommandOptions extends ReadChoice {
  readonly level?: Level
  readonly json?: boolean
}

interface CheckReport {
  readonly file: string
  readonly level: Level
  readonly findings: readonly Finding[]
}

const EXAMPLES = `
Examples:
  tilework check model.btf
  tilework check 'uploads/**/*.btf' --level strict
  curl -s https://example.org/model.onnx | tilework check -

A file may be a pattern in quotes: *, **, ?, […], {…,…}, !(…). For several files the last line, on stderr, counts them.
Exit code 1 if a finding is an error or a tensor cannot be read, 2 if the format of a file is unknown; for several files the highest.`

export function addCheck(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('check')
    .summary('find damage and format violations in files')
    .description(
      'Checks files against the rules of their format, including costly rules, and prints one line per finding: severity, code, path (unless the message has it), @offset, message.',
    )
    .argument('<files...>', 'files of any known format, patterns in quotes, or - for stdin')
    .addOption(
      new Option(
        '--level <level>',
        'lenient: only what is unsafe to read is an error; strict: every violation is an error',
      )
        .choices(['lenient', 'strict'])
        .default('lenient'),
    )
  addReadOptions(command)
    .option('--json', 'print JSON: one object for one file, an array for several or a pattern')
    .addHelpText('after', EXAMPLES)
    .action(async (files: string[], options: CheckCommandOptions) =>
      finish(await check(files, options, terminal)),
    )
}

/** Runs the command. */
export function check(
  files: readonly string[],
  options: CheckCommandOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const level = options.level ?? 'lenient'
  const counts: Counts = { clean: 0, warnings: 0, errors: 0, unreadable: 0 }
  const work = {
    files,
    json: options.json === true,
    report: async (file: string): Promise<CheckReport> => {
      const { signal } = terminal
      const findings = await checkInput(inputOf(file, terminal), { level, signal, ...readChoice(options) })
      counts[outcomeOf(findings)]++
      return { file, level, findings }
    },
    format: (report: CheckReport, isOnly: boolean) => formatReport(report, !isOnly, terminal),
    exitCode: ({ findings }: CheckReport) => EXIT_BY_OUTCOME[outcomeOf(findings)],
    sums: (failed: number) => sumsLine({ ...counts, unreadable: counts.unreadable + failed }),
  }
  return eachFile(work, terminal)
}

/** The outcome of a check of one file. */
type Outcome = 'clean' | 'warnings' | 'errors' | 'unreadable'

type Counts = Record<Outcome, number>

const EXIT_BY_OUTCOME: Readonly<Record<Outcome, ExitCode>> = {
  clean: EXIT.ok,
  warnings: EXIT.ok,
  errors: EXIT.findings,
  unreadable: EXIT.unreadable,
}

function outcomeOf(findings: readonly Finding[]): Outcome {
  if (findings.some(({ code }) => code === 'ERR_UNKNOWN_FORMAT')) return 'unreadable'
  if (findings.length === 0) return 'clean'
  // A missing shard is only a warning, because the other shards can be read; but the file is incomplete.
  const isFault = ({ severity, omitsTensor }: Finding): boolean =>
    severity === 'error' || omitsTensor === true
  return findings.some(isFault) ? 'errors' : 'warnings'
}

function sumsLine({ clean, warnings, errors, unreadable }: Counts): string {
  const files = formatCount(clean + warnings + errors + unreadable, 'file')
  return `Checked ${files}: ${clean} without findings, ${warnings} with warnings, ${errors} with errors, ${unreadable} not readable.`
}

function formatReport(
  { file, findings }: CheckReport,
  withFile: boolean,
  { colors }: Terminal,
): readonly string[] {
  const prefix = withFile ? `${printable(file)}: ` : ''
  const lines =
    findings.length === 0 ? ['no findings'] : findings.map((finding) => findingLine(finding, colors))
  return lines.map((line) => `${prefix}${line}\n`)
}
