/** `tilework worker`: converts files of a queue until it is stopped. */
import { type Command, Option } from 'commander'
import {
  type Metrics,
  type MetricsOptions,
  setMemoryBudget,
  setThreads,
  startMetrics,
  TileworkError,
} from '../../index.js'
import { startWorker, type WorkerEvent, type WorkerOptions } from '../../queue.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, type ReadChoice, readChoice } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { byteCount, wholeNumber } from '../text/parse_number.js'
import { printable, printableJson } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'
import { metricsOption } from './metrics_option.js'
import { deadlineOption } from './output_options.js'

interface WorkerFlags extends ReadChoice {
  readonly queue: string
  readonly queueName?: string
  readonly root?: readonly string[]
  readonly allowScheme?: readonly string[]
  readonly jobs?: number
  readonly threads?: number
  /** Bytes. */
  readonly memory?: number
  readonly rate?: WorkerOptions['rate']
  /** Seconds. */
  readonly lock?: number
  /** Seconds. */
  readonly grace?: number
  /** Bytes. */
  readonly maxOutput?: number
  /** Seconds. */
  readonly deadline?: number
  readonly metrics?: MetricsOptions
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  tilework worker --queue redis://queue:6379 --root /models --root /blocked --jobs 4
  tilework worker --queue rediss://user:password@queue:6380/2 --root s3://bucket/models/ --memory 2GiB

Takes files that "tilework convert … --queue URL" submits, and reads and writes only below its roots; links
are resolved first. SIGTERM or Ctrl+C stops it: files in progress may finish for --grace seconds, then they
return to the queue without a counted attempt. A second signal stops it at once; other workers take its
files when their locks expire.

After a network or disk failure a file is tried again after 1, 2, 4, … seconds; other failures are final. A
suspect file (its previous worker crashed) is converted alone, and fails with ERR_WORKER_LOST after the
third crash.`

export function addWorker(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('worker')
    .summary('convert files of a queue')
    .description('Converts the files of a queue on Redis or Valkey, until it is stopped.')
    .usage('[options] --queue URL --root DIR')
    .requiredOption('--queue <url>', 'redis://[user:password@]host[:port][/db], or rediss:// for TLS')
    .option('--queue-name <name>', 'name of the queue on that server (default: tilework)')
    .option('--root <dir>', 'read and write below this folder, or below this URL; may be repeated', collect)
    .option('--allow-scheme <name>', 'allow every URL of this scheme, such as s3; may be repeated', collect)
    .option('--jobs <n>', 'files to convert at the same time (default: 1)', wholeNumber('--jobs'))
    .option('--threads <n>', 'threads for the computations of all files together', wholeNumber('--threads'))
    .option('--memory <bytes>', 'memory budget of all files together, such as 2GiB', byteCount('--memory'))
    .addOption(
      new Option(
        '--rate <files/seconds>',
        'rate limit across all workers: files started per seconds, such as 100/1',
      ).argParser(parseRate),
    )
    .option(
      '--lock <seconds>',
      'seconds after which the files of a dead worker go to others (default: 30)',
      wholeNumber('--lock'),
    )
    .option('--grace <seconds>', 'seconds to finish files when stopped (default: 5)', wholeNumber('--grace'))
    .option('--max-output <bytes>', 'largest output (default: 1TiB)', byteCount('--max-output'))
    .addOption(deadlineOption())
    .addOption(metricsOption('the worker runs'))
  addReadOptions(command)
    .option('--json', 'print events as JSON, one per line')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: WorkerFlags) => finish(await work(flags, terminal)))
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** `100/1`: number of files, and the seconds within which that many may start. */
function parseRate(text: string): WorkerOptions['rate'] {
  const [, files, seconds = '1'] = /^(\d{1,9})(?:\/(\d{1,5}))?$/.exec(text) ?? []
  if (files !== undefined) return { files: Number(files), perMilliseconds: Number(seconds) * 1000 }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--rate is "${text}"; it must be files or files/seconds, such as 100/1.`,
  )
}

/** Serves the queue until the run is cancelled, which is its usual end. */
async function work(flags: WorkerFlags, terminal: Terminal): Promise<ExitCode> {
  const {
    queue: url,
    queueName,
    threads,
    memory,
    jobs,
    rate,
    lock,
    grace,
    maxOutput,
    deadline,
    root,
    allowScheme,
  } = flags
  if (threads !== undefined) setThreads(threads)
  if (memory !== undefined) setMemoryBudget(memory)
  const { remote, ...open } = readChoice(flags)
  const log = new WorkerLog(flags.json === true, terminal)
  const metrics = flags.metrics && (await startMetrics(flags.metrics))
  const options: WorkerOptions = {
    queue: { url, ...(queueName !== undefined && { name: queueName }) },
    roots: root ?? [],
    allowSchemes: allowScheme ?? [],
    open,
    ...(remote && { remote }),
    ...(jobs !== undefined && { jobs }),
    ...(rate && { rate }),
    ...(lock !== undefined && { lockMs: lock * 1000 }),
    ...(grace !== undefined && { graceMs: grace * 1000 }),
    ...(maxOutput !== undefined && { maxOutputBytes: maxOutput }),
    ...(deadline !== undefined && { deadline: deadline * 1000 }),
    signal: terminal.signal,
    onEvent: (event) => {
      log.add(event)
      if (metrics) countEvent(metrics, event)
    },
  }
  try {
    const worker = await startWorker(options)
    log.started()
    await worker.closed
  } finally {
    await metrics?.close()
  }
  log.ended()
  return EXIT.ok
}

/** Counts an event; a failure that is tried again is not counted as the result of the file. */
function countEvent(metrics: Metrics, event: WorkerEvent): void {
  if (event.kind === 'started') metrics.queueWaited(event.waitedMs / 1000)
  else if (event.kind === 'written') {
    metrics.fileEnded({ status: 'written', byteLength: event.byteLength }, event.ms / 1000)
  } else if (event.kind === 'failed' && !event.isRetried) {
    const error = new TileworkError(event.code, event.message)
    metrics.fileEnded({ status: 'failed', error }, event.ms / 1000)
  }
}

/** Seconds between two lines about connection problems, which occur with every attempt to reconnect. */
const TROUBLE_EVERY_SECONDS = 10

/** Prints failures and totals, or every event with `--json`. */
class WorkerLog {
  readonly #isJson: boolean
  readonly #terminal: Terminal
  #written = 0
  #failed = 0
  #returned = 0
  #bytes = 0
  #troubleAt = Number.NEGATIVE_INFINITY

  constructor(isJson: boolean, terminal: Terminal) {
    this.#isJson = isJson
    this.#terminal = terminal
  }

  started(): void {
    if (this.#isJson) this.#printJson({ kind: 'ready' })
    else this.#print('The worker is ready.')
  }

  add(event: WorkerEvent): void {
    if (event.kind === 'written') {
      this.#written++
      this.#bytes += event.byteLength
    } else if (event.kind === 'failed' && !event.isRetried) this.#failed++
    else if (event.kind === 'returned') this.#returned++
    if (this.#isJson) this.#printJson(event)
    else this.#describe(event)
  }

  #describe(event: WorkerEvent): void {
    if (event.kind === 'failed') {
      const { code, message, input, isRetried } = event
      const end = isRetried ? '; it will be tried again' : ''
      this.#print(`${code}: ${message}${message.includes(input) ? '' : ` (${input})`}${end}`)
    } else if (event.kind === 'trouble' && this.#isTimeForTrouble())
      this.#print(`The queue: ${event.message}`)
  }

  #isTimeForTrouble(): boolean {
    const seconds = performance.now() / 1000
    if (seconds - this.#troubleAt < TROUBLE_EVERY_SECONDS) return false
    this.#troubleAt = seconds
    return true
  }

  ended(): void {
    const sums = {
      written: this.#written,
      failed: this.#failed,
      returned: this.#returned,
      bytes: this.#bytes,
    }
    if (this.#isJson) this.#printJson({ summary: sums })
    else {
      const others = `${this.#failed} failed, ${this.#returned} returned to the queue`
      this.#print(`Wrote ${formatCount(this.#written, 'file')}, ${formatBytes(this.#bytes)}; ${others}.`)
    }
  }

  #print(message: string): void {
    this.#terminal.stderr.write(`tilework: ${printable(message)}\n`)
  }

  #printJson(value: object): void {
    this.#terminal.stdout.write(`${printableJson(value)}\n`)
  }
}
