/** `tilework convert IN… --out-dir DIR`: many files in one process, told one by one as they end. */
import { join } from 'node:path'
import { untilAborted } from '../../cancel.js'
import { formatByName } from '../../formats/registry.js'
import { type Finding, parseLayout, TileworkError } from '../../index.js'
import { convertFiles, type Outcome } from '../../pipeline/many/convert_files.js'
import { type InputSelection, listInputs } from '../../pipeline/many/input_list.js'
import { Manifest } from '../../pipeline/many/manifest.js'
import type { Written } from '../../pipeline/many/manifest_entry.js'
import { type FilePair, pairOutputs } from '../../pipeline/many/output_paths.js'
import { settingsHash } from '../../pipeline/many/settings_hash.js'
import { takeShard } from '../../pipeline/many/shard.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { FilesTally } from '../files/files_tally.js'
import { makeFolder } from '../files/make_folder.js'
import { openInput } from '../files/open_input.js'
import { packageVersion } from '../package_version.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { FilesProgress } from '../text/files_progress.js'
import { FINDINGS_IN_NOTICE, findingNotice } from '../text/finding_line.js'
import { printable, printableJson } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { errorReport, printError } from '../text/report_error.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import { type UndoCommand, undoCommand } from '../text/undo_command.js'
import { type ConvertReport, convertFile } from './convert_file.js'
import type { ConvertChoice, ConvertOptions } from './convert_options.js'

const MANIFEST_NAME = '.tilework-manifest.jsonl'

type ManyOptions = ConvertOptions & { readonly outDir: string }

/** What is told of a file that was written: as of one that is written alone. */
interface FileWritten extends Written, Pick<ConvertReport, 'tensors' | 'findings'> {}

/** Runs `convert` over many files. */
export async function convertMany(
  paths: readonly string[],
  options: ManyOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const pairs = takeShard(await listPairs(paths, options, terminal), options.shard)
  await makeFolder(options.outDir)
  const manifest = await openManifest(pairs, options)
  const run = new ManyRun(pairs, options, terminal)
  try {
    if (manifest) run.tellUnreadable(manifest)
    await run.convert(manifest)
  } finally {
    run.stop()
    await manifest?.close()
  }
  return run.finish()
}

async function listPairs(
  paths: readonly string[],
  options: ManyOptions,
  terminal: Terminal,
): Promise<FilePair[]> {
  const { outDir, base, format } = options
  const list = listOf(paths, options, terminal)
  const selection: InputSelection = {
    names: paths.filter((path) => path !== '-'),
    outDir,
    signal: terminal.signal,
    ...(base !== undefined && { base }),
    ...(list && { list }),
  }
  // Waiting for a list that never ends must not outlast a cancellation.
  const inputs = await untilAborted(listInputs(selection), terminal.signal)
  const extension = format === undefined ? undefined : formatByName(format).extensions[0]
  return pairOutputs(inputs, {
    outDir,
    ...(extension !== undefined && { extension }),
    reserved: new Map([[manifestPath(options), 'the manifest']]),
  })
}

function listOf(
  paths: readonly string[],
  options: ManyOptions,
  { stdin }: Terminal,
): InputSelection['list'] | undefined {
  if (!options.stdin && !paths.includes('-')) {
    if (options.null) throw new TileworkError('ERR_ARGUMENT', '--null needs --stdin or the input -.')
    if (paths.length === 0)
      throw new TileworkError('ERR_ARGUMENT', 'convert needs an input: IN… --out-dir DIR.')
    return undefined
  }
  if (!stdin) throw new TileworkError('ERR_ARGUMENT', 'There is no stdin to read a list of inputs from.')
  return { chunks: stdin(), isNulEnded: options.null === true }
}

function manifestPath({ manifest, outDir }: ManyOptions): string {
  return typeof manifest === 'string' ? manifest : join(outDir, MANIFEST_NAME)
}

async function openManifest(pairs: readonly FilePair[], options: ManyOptions): Promise<Manifest | undefined> {
  if (options.manifest === false) return undefined
  // Nothing is looked up in a run that converts everything.
  const outputs = options.force ? [] : pairs.map(({ output }) => output)
  return Manifest.open(manifestPath(options), outputs)
}

/** The options that decide what bytes an output has; names of layouts in their one form. */
function settingsOf(choice: ConvertChoice): object {
  const { layout, fromLayout, shape, padLower, padUpper, fromPadLower, fromPadUpper, as } = choice
  const { tensor, format, dtype } = choice
  return {
    layout: layout && parseLayout(layout).name,
    fromLayout: fromLayout && parseLayout(fromLayout).name,
    ...{ shape, padLower, padUpper, fromPadLower, fromPadUpper, as, tensor, format, dtype },
  }
}

/** One run: converts, prints what ends, and adds it up. */
class ManyRun {
  readonly #pairs: readonly FilePair[]
  readonly #options: ManyOptions
  readonly #terminal: Terminal
  readonly #bar: Progress
  readonly #progress: FilesProgress
  readonly #tally = new FilesTally()
  #findingsTold = 0

  constructor(pairs: readonly FilePair[], options: ManyOptions, terminal: Terminal) {
    this.#pairs = pairs
    this.#options = options
    this.#terminal = terminal
    this.#bar = startProgress('Converting', terminal)
    this.#progress = new FilesProgress(this.#bar, pairs)
  }

  tellUnreadable({ path, unreadable }: Manifest): void {
    if (unreadable.length === 0) return
    const lines = `${formatCount(unreadable.length, 'line')} that cannot be read`
    this.#tell(
      `${path} has ${lines}, the first is line ${unreadable[0]}; files noted there are converted again.`,
    )
  }

  convert(manifest: Manifest | undefined): Promise<void> {
    const options = this.#options
    return convertFiles<FileWritten>(this.#pairs, {
      jobs: options.jobs ?? 1,
      keepGoing: options.keepGoing === true,
      manifest,
      settings: settingsHash(settingsOf(options), packageVersion()),
      signal: this.#terminal.signal,
      open: (path) => openInput(path, options),
      convert: async (file, pair) => {
        const { signal } = this.#terminal
        const { input, output } = pair
        const { format, byteLength, tensors, findings, undo } = await convertFile(
          file,
          { input, output, signal, onProgress: (state) => this.#progress.advance(pair, state) },
          options,
        )
        this.#tellFindings(input, findings)
        return { format, byteLength, tensors, findings, undo }
      },
      onBegin: (pair) => this.#progress.begin(pair),
      onEnd: (outcome) => this.#end(outcome),
    })
  }

  #end(outcome: Outcome<FileWritten>): void {
    this.#tally.add(outcome)
    this.#progress.end(outcome.pair)
    const { status, pair } = outcome
    if (status === 'failed') this.#bar.aside(() => printError(outcome.error, this.#terminal, pair.input))
    if (this.#options.json) this.#printLine(outcomeReport(outcome))
    // Of skipped files as well: what a run prints is all that there is to come back by, however often it was begun.
    else if (status !== 'failed' && outcome.written.undo.length > 0) {
      const commands = undoOf(outcome).map(({ command }) => `${command}\n`)
      this.#bar.aside(() => this.#terminal.stdout.write(commands.join('')))
    }
  }

  /** The first of the run by what they say: a part that was left out must not be lost in a number. */
  #tellFindings(input: string, findings: readonly Finding[]): void {
    for (const finding of findings.slice(0, FINDINGS_IN_NOTICE - this.#findingsTold)) {
      this.#findingsTold++
      this.#bar.aside(() => this.#terminal.stderr.write(`tilework: ${findingNotice(input, finding)}\n`))
    }
  }

  stop(): void {
    this.#bar.stop()
  }

  /** Tells the sums. */
  finish(): ExitCode {
    const { exitCode, done } = this.#tally
    const isCancelled = done < this.#pairs.length && this.#terminal.signal.aborted
    if (this.#options.json) this.#printLine({ summary: this.#tally.summary(isCancelled) })
    this.#tellSums()
    if (!isCancelled) return exitCode
    const message = `The command was cancelled when ${done} of ${this.#pairs.length} files were done.`
    printError(new TileworkError('ERR_ABORTED', message), this.#terminal)
    return EXIT.cancelled
  }

  #tellSums(): void {
    const { written, skipped, failed, done, bytes, failures, withFindings } = this.#tally
    const { colors, stderr, stderrIsTerminal, signal } = this.#terminal
    if (withFindings > 0) {
      this.#tell(`${formatCount(withFindings, 'input')} had findings; "tilework check" lists them.`)
    }
    if (failures.length > 0) {
      const columns = [{ title: 'failure' }, { title: 'files', align: 'right' as const }, { title: 'first' }]
      const rows = failures.map(({ code, count, first }) => [code, String(count), printable(first)])
      stderr.write(formatTable(columns, rows, colors))
    }
    const left = this.#pairs.length - done
    if (failed > 0 && left > 0 && !signal.aborted) {
      this.#tell(`Stopped at a failure; ${formatCount(left, 'file')} not begun. --keep-going goes on.`)
    }
    if (stderrIsTerminal) {
      const others = `${skipped} skipped, ${failed} failed`
      stderr.write(`Wrote ${formatCount(written, 'file')}, ${formatBytes(bytes)}; ${others}.\n`)
    }
  }

  #tell(message: string): void {
    this.#bar.aside(() => this.#terminal.stderr.write(`tilework: ${printable(message)}\n`))
  }

  /** One line, also on a terminal: a program that reads lines must be able to rely on it. */
  #printLine(value: object): void {
    this.#bar.aside(() => this.#terminal.stdout.write(`${printableJson(value)}\n`))
  }
}

function outcomeReport(outcome: Outcome<FileWritten>): object {
  const { status } = outcome
  const { input, output } = outcome.pair
  if (status === 'failed') return { input, output, status, error: errorReport(outcome.error) }
  return { input, output, status, ...outcome.written, undo: undoOf(outcome) }
}

function undoOf({ pair, written }: Exclude<Outcome<FileWritten>, { status: 'failed' }>): UndoCommand[] {
  return written.undo.map((note) => undoCommand(pair.output, note))
}
