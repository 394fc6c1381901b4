/** `tilework convert IN… --out-dir DIR`: many files in one process, each reported when it is finished. */
import {
  type ConvertInput,
  type ConvertInputs,
  type ConvertManyProgress,
  type ConvertResult,
  convertMany as convertFiles,
  type FileOutcome,
  type Finding,
  type ManifestDamage,
  startMetrics,
  type TensorLosses,
  TileworkError,
} from '../../index.js'
import { readPathList } from '../../internal.js'
import type { ConvertQueuedOptions, QueueStall } from '../../queue.js'
import { exitCodeOf } from '../error_exit_codes.js'
import { EXIT, type ExitCode, worse } from '../exit_codes.js'
import { inputError } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { FINDINGS_IN_NOTICE, findingNotice } from '../text/finding_line.js'
import { lossesLine } from '../text/losses_line.js'
import { printable, printableJson } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { rawItemsLine } from '../text/raw_items_line.js'
import { errorReport, printError } from '../text/report_error.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import {
  type ConvertFlags,
  libraryOptions,
  selectsTensors,
  undoCommands,
  writtenExitCode,
} from './convert_options.js'
import { UndoFile } from './undo_file.js'

type ManyFlags = ConvertFlags & { readonly outDir: string }

/** Runs `convert` over many files. */
export async function convertMany(
  paths: readonly string[],
  flags: ManyFlags,
  terminal: Terminal,
): Promise<ExitCode> {
  const inputs = inputsOf(paths, flags, terminal)
  const { outDir, base, jobs, keepGoing, shard, manifest, force } = flags
  const undo = flags.undo === undefined ? undefined : new UndoFile(flags.undo, flags)
  const report = new ManyReport(flags, terminal, undo)
  const metrics = flags.metrics && (await startMetrics(flags.metrics))
  try {
    const { open, ...changes } = libraryOptions(flags)
    const options = {
      ...changes,
      outDir,
      ...(base !== undefined && { base }),
      ...(keepGoing !== undefined && { keepGoing }),
      ...(shard && { shard }),
      ...(manifest !== undefined && { manifest }),
      ...(force !== undefined && { force }),
      signal: terminal.signal,
      onFile: (outcome: FileOutcome, seconds: number) => {
        metrics?.fileEnded(outcome, seconds)
        report.fileEnded(outcome)
      },
      onProgress: (progress: ConvertManyProgress) => {
        metrics?.filesLeft(progress.files - doneOf(progress))
        report.update(progress)
      },
      onDamagedManifest: ({ path, lines }: ManifestDamage) => report.damagedManifest(path, lines),
    }
    if (flags.queue !== undefined) await convertByWorkers(inputs, options, flags, report)
    else {
      await convertFiles(inputs, {
        ...options,
        ...(open && { open }),
        ...(jobs !== undefined && { jobs }),
      })
    }
  } catch (error) {
    if (!report.hasReported(error)) throw error
  } finally {
    report.stop()
    undo?.close()
    await metrics?.close()
  }
  return report.finish()
}

/** Drops the options for opening inputs, which each worker sets itself. */
async function convertByWorkers(
  inputs: ConvertInputs,
  options: Omit<ConvertQueuedOptions, 'queue'>,
  { queue: url = '', queueName, attempts, priority }: ConvertFlags,
  report: ManyReport,
): Promise<void> {
  const { convertQueued } = await import('../../queue.js')
  await convertQueued(inputs, {
    ...options,
    queue: { url, ...(queueName !== undefined && { name: queueName }) },
    ...(attempts !== undefined && { attempts }),
    ...(priority !== undefined && { priority }),
    onStall: (reason) => report.stalled(reason),
  })
}

/** The inputs: the arguments, then the list on stdin if requested. */
function inputsOf(
  paths: readonly string[],
  { stdin: isList, null: isNulEnded }: ManyFlags,
  { stdin }: Terminal,
): Iterable<ConvertInput> | AsyncIterable<ConvertInput> {
  if (!isList && !paths.includes('-')) {
    if (isNulEnded) throw new TileworkError('ERR_ARGUMENT', '--null needs --stdin or the input -.')
    if (paths.length === 0) {
      throw new TileworkError('ERR_ARGUMENT', 'convert needs an input: IN… --out-dir DIR.')
    }
    return paths
  }
  if (!stdin)
    throw new TileworkError('ERR_ARGUMENT', 'The list of inputs needs stdin, which is not available.')
  const list = readPathList(stdin(), { nul: isNulEnded === true })
  return concatenate(
    paths.filter((path) => path !== '-'),
    list,
  )
}

async function* concatenate(
  paths: readonly string[],
  list: AsyncIterable<ConvertInput>,
): AsyncGenerator<ConvertInput> {
  yield* paths
  yield* list
}

/** Prints each finished file, and the totals at the end. */
class ManyReport {
  readonly #flags: ManyFlags
  readonly #terminal: Terminal
  readonly #undo: UndoFile | undefined
  readonly #bar: Progress
  readonly #startedAt = performance.now()
  #progress: ConvertManyProgress | undefined
  #exitCode: ExitCode = EXIT.ok
  #lastError: unknown
  #filesWithFindings = 0
  #findingsPrinted = 0
  #undoCommands = 0
  #droppedGraphs = 0
  #filesWithLosses = 0
  #saysRawItems = false

  constructor(flags: ManyFlags, terminal: Terminal, undo: UndoFile | undefined) {
    this.#flags = flags
    this.#terminal = terminal
    this.#undo = undo
    this.#bar = startProgress('Converting', terminal)
  }

  update(progress: ConvertManyProgress): void {
    this.#progress = progress
    this.#bar.update(progress, `${doneOf(progress)} of ${progress.files} files`)
  }

  stalled(reason: QueueStall): void {
    this.#print(
      reason === 'paused'
        ? 'the queue is paused; "tilework queue resume --queue URL" lets workers take files.'
        : 'no worker is connected to the queue; "tilework worker --queue URL --root DIR" starts one.',
    )
  }

  damagedManifest(path: string, lines: readonly number[]): void {
    const count = `${formatCount(lines.length, 'line')} that cannot be read`
    this.#print(
      `${path} has ${count}, the first is line ${lines[0]}; the files of these lines are converted again.`,
    )
  }

  fileEnded(outcome: FileOutcome): void {
    const { input, output } = outcome
    if (outcome.status === 'failed') this.#fileFailed(outcome)
    else if (outcome.status === 'written' && outcome.findings.length > 0) {
      this.#filesWithFindings++
      this.#printFindings(input, outcome.findings)
    }
    if (outcome.status === 'written') {
      this.#exitCode = worse(this.#exitCode, writtenExitCode(outcome.findings, this.#flags))
      if (outcome.droppedNodes > 0) this.#droppedGraphs++
      this.#printLosses(input, outcome.losses)
      if (!this.#saysRawItems) this.#printRawItems(output, outcome)
    }
    if (this.#flags.json) this.#printLine(outcomeJson(outcome))
    // Skipped files are included, so that every run writes all undo commands.
    if (outcome.status !== 'failed' && outcome.undo.length > 0) {
      this.#undoCommands += outcome.undo.length
      this.#undo?.add(undoCommands(output, outcome.undo))
    }
  }

  #fileFailed(outcome: FileOutcome & { readonly status: 'failed' }): void {
    const failure = failureOf(outcome)
    this.#lastError = outcome.error
    this.#exitCode = worse(this.#exitCode, exitCodeOf(failure))
    this.#bar.aside(() => printError(failure, this.#terminal, outcome.input))
  }

  /** Prints the first findings of the run in full: an omitted tensor must not disappear in a count. */
  #printFindings(input: string, findings: readonly Finding[]): void {
    for (const finding of findings.slice(0, FINDINGS_IN_NOTICE - this.#findingsPrinted)) {
      this.#findingsPrinted++
      this.#bar.aside(() => this.#terminal.stderr.write(`tilework: ${findingNotice(input, finding)}\n`))
    }
  }

  /** Prints the losses of the first files; the other files are only counted. */
  #printLosses(input: string, losses: readonly TensorLosses[]): void {
    const line = lossesLine(input, losses)
    if (line === undefined) return
    this.#filesWithLosses++
    if (this.#filesWithLosses > FINDINGS_IN_NOTICE) return
    this.#bar.aside(() => this.#terminal.stderr.write(`tilework: ${line}\n`))
  }

  /** Once: the files of a run have the same dtypes mostly. */
  #printRawItems(output: string, { format, tensors }: ConvertResult): void {
    const line = rawItemsLine(output, format, tensors)
    if (line === undefined) return
    this.#saysRawItems = true
    this.#print(line)
  }

  /** True where an error is reported already with its file, or will be reported by `finish`. */
  hasReported(error: unknown): boolean {
    return this.#progress !== undefined && (error === this.#lastError || this.#isCancelled())
  }

  #isCancelled(): boolean {
    const { signal } = this.#terminal
    return signal.aborted && this.#progress !== undefined && doneOf(this.#progress) < this.#progress.files
  }

  stop(): void {
    this.#bar.stop()
  }

  /** Prints the totals. */
  finish(): ExitCode {
    if (!this.#progress) return this.#exitCode
    const isCancelled = this.#isCancelled()
    const { written, skipped, failed, files, byteLength, failures } = this.#progress
    if (this.#flags.json) {
      const byCode = Object.fromEntries(failures.map(({ code, count }) => [code, count]))
      const seconds = Math.round(performance.now() - this.#startedAt) / 1000
      const cancelled = isCancelled && { cancelled: true }
      this.#printLine({
        summary: { written, skipped, failed, byCode, bytes: byteLength, seconds, ...cancelled },
      })
    }
    this.#printSums(this.#progress)
    if (!isCancelled) return this.#exitCode
    const message = `The command was cancelled when ${written + skipped + failed} of ${files} files were done.`
    printError(new TileworkError('ERR_ABORTED', message), this.#terminal)
    return EXIT.cancelled
  }

  #printSums(progress: ConvertManyProgress): void {
    const { written, skipped, failed, byteLength, failures } = progress
    const { colors, stderr, stderrIsTerminal, signal } = this.#terminal
    if (this.#filesWithFindings > 0) {
      this.#print(
        `${formatCount(this.#filesWithFindings, 'input')} had findings; "tilework check" lists them.`,
      )
    }
    if (this.#filesWithLosses > FINDINGS_IN_NOTICE) {
      this.#print(`${formatCount(this.#filesWithLosses, 'input')} lost values by the cast.`)
    }
    if (this.#droppedGraphs > 0 && !selectsTensors(this.#flags)) {
      const isOne = this.#droppedGraphs === 1
      this.#print(
        isOne
          ? '1 input was a model; its output holds the weights and not the graph.'
          : `${this.#droppedGraphs} inputs were models; their outputs hold the weights and not the graphs.`,
      )
    }
    this.#printUndo()
    if (failures.length > 0) {
      const columns = [{ title: 'failure' }, { title: 'files', align: 'right' as const }, { title: 'first' }]
      const rows = failures.map(({ code, count, first }) => [code, String(count), printable(first)])
      stderr.write(formatTable(columns, rows, colors))
    }
    const left = progress.files - doneOf(progress)
    if (failed > 0 && left > 0 && !signal.aborted) {
      this.#print(`Stopped at a failure; ${formatCount(left, 'file')} not started. --keep-going continues.`)
    }
    // Printed without a terminal too, for the logs of nightly runs. With --json the summary is on stdout.
    if (!this.#flags.quiet && (stderrIsTerminal || !this.#flags.json)) {
      const others = `${skipped} skipped, ${failed} failed`
      stderr.write(`Wrote ${formatCount(written, 'file')}, ${formatBytes(byteLength)}; ${others}.\n`)
    }
  }

  /** Prints where the undo commands are; they are too many to print. */
  #printUndo(): void {
    if (this.#flags.json) return
    const note = this.#undo?.emptyNote()
    if (note !== undefined) this.#print(note)
    if (this.#undoCommands === 0) return
    const commands = formatCount(this.#undoCommands, 'command')
    if (this.#undo) {
      if (this.#terminal.stderrIsTerminal) this.#print(`${this.#undo.path} has ${commands} to undo the run.`)
    } else if (this.#flags.manifest === false) {
      this.#print(`The ${commands} that undo the run are not stored anywhere; --undo FILE writes them.`)
    } else if (this.#terminal.stderrIsTerminal) {
      this.#print(`The manifest stores how to undo the run; a run with --undo FILE writes ${commands}.`)
    }
  }

  #print(message: string): void {
    this.#bar.aside(() => this.#terminal.stderr.write(`tilework: ${printable(message)}\n`))
  }

  /** One line, also on a terminal: programs read JSON line by line. */
  #printLine(value: object): void {
    this.#bar.aside(() => this.#terminal.stdout.write(`${printableJson(value)}\n`))
  }
}

function doneOf({ written, skipped, failed }: ConvertManyProgress): number {
  return written + skipped + failed
}

/** The error of a file, as an InputError where the file could not be opened. */
function failureOf({ input, stage, error }: FileOutcome & { readonly status: 'failed' }): unknown {
  return stage === 'open' ? inputError(error, input) : error
}

function outcomeJson(outcome: FileOutcome): object {
  const { input, output, status } = outcome
  if (outcome.status === 'failed') return { input, output, status, error: errorReport(failureOf(outcome)) }
  return { ...outcome, undo: undoCommands(output, outcome.undo) }
}
