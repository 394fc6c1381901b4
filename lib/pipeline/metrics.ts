/**
 * Metrics of a run or a worker for Prometheus, in the text exposition format 0.0.4, served on loopback while the process runs.
 */
import type { AddressInfo } from 'node:net'
import { checkObject, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** The address at which metrics are served. */
export interface MetricsOptions {
  /** 0 to 65,535; 0 means any free port. */
  readonly port: number
  /** Address to listen on. Default 127.0.0.1; other machines need `0.0.0.0` or `::`, and there is no authentication. */
  readonly host?: string
}

/** The outcome of a file. */
export interface MeteredFile {
  readonly status: 'written' | 'skipped' | 'failed'
  /** Length of its output in bytes. */
  readonly byteLength?: number
  /** Error of a failed file, counted by code. */
  readonly error?: unknown
}

/** Counts of this process that Prometheus may read at `url`. */
export interface Metrics {
  readonly url: string
  /** Counts a finished file and its duration. */
  fileEnded(file: MeteredFile, seconds: number): void
  /** Counts the time that a file waited in the queue before it was started. */
  queueWaited(seconds: number): void
  /** Sets the number of files of the run that are not finished. */
  filesLeft(count: number): void
  /** The metrics as text. */
  text(): string
  close(): Promise<void>
}

/** Upper bounds of the buckets of a histogram in seconds: from a small file to hours in a queue. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200]

/**
 * Starts a server for `GET /metrics`, which does not keep the process alive.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_IO where the port is taken
 */
export async function startMetrics(given: MetricsOptions): Promise<Metrics> {
  checkObject(given, 'The options of startMetrics are { port, host? }')
  const { port, host } = readInput('The options of startMetrics', () => ({
    port: given.port,
    host: given.host ?? '127.0.0.1',
  }))
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `port is ${valueText(port)}; it must be a whole number from 0 to 65535.`,
    )
  }
  if (typeof host !== 'string' || host === '') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `host is ${valueText(host)}; it must be an address such as "127.0.0.1".`,
    )
  }
  const counts = new Counts()
  const { createServer } = await import('node:http')
  const server = createServer(({ method, url }, response) => {
    const isKnown = (method === 'GET' || method === 'HEAD') && url?.replace(/\?.*/s, '') === '/metrics'
    response.writeHead(isKnown ? 200 : 404, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    response.end(isKnown && method === 'GET' ? counts.text() : undefined)
  })
  server.unref()
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ message }: Error) =>
      reject(new TileworkError('ERR_IO', `Metrics cannot be served at ${host}, port ${port}: ${message}`)),
    )
    server.listen(port, host, resolve)
  })
  const { address, port: opened } = server.address() as AddressInfo
  return Object.assign(counts, {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${opened}/metrics`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      // A response in progress may finish within a second.
      const timer = setTimeout(() => server.closeAllConnections(), 1000)
      await closed
      clearTimeout(timer)
    },
  })
}

class Counts implements Omit<Metrics, 'url' | 'close'> {
  readonly #files = new Map([
    ['written', 0],
    ['skipped', 0],
    ['failed', 0],
  ])
  readonly #failures = new Map<string, number>()
  readonly #seconds = new Histogram()
  readonly #waits = new Histogram()
  #bytes = 0
  #left = 0

  fileEnded({ status, byteLength = 0, error }: MeteredFile, seconds: number): void {
    count(this.#files, status)
    this.#seconds.observe(seconds)
    if (status === 'written') this.#bytes += byteLength
    if (status === 'failed')
      count(this.#failures, error instanceof TileworkError ? error.code : 'ERR_INTERNAL')
  }

  queueWaited(seconds: number): void {
    this.#waits.observe(seconds)
  }

  filesLeft(left: number): void {
    this.#left = left
  }

  text(): string {
    const { user, system } = process.cpuUsage()
    return [
      ...family(
        'tilework_files_total',
        'counter',
        'Finished files by status.',
        labelled('status', this.#files),
      ),
      ...family(
        'tilework_failures_total',
        'counter',
        'Failed files by error code.',
        labelled('code', this.#failures),
      ),
      ...family('tilework_written_bytes_total', 'counter', 'Bytes of outputs.', [['', this.#bytes]]),
      ...family('tilework_files_left', 'gauge', 'Files of the run that are not finished.', [
        ['', this.#left],
      ]),
      ...family('tilework_file_seconds', 'histogram', 'Seconds per file.', this.#seconds.samples()),
      ...family(
        'tilework_queue_wait_seconds',
        'histogram',
        'Seconds that a file waited in the queue.',
        this.#waits.samples(),
      ),
      ...family('process_cpu_seconds_total', 'counter', 'User and system time.', [
        ['', (user + system) / 1e6],
      ]),
      ...family('process_resident_memory_bytes', 'gauge', 'Resident memory.', [
        ['', process.memoryUsage.rss()],
      ]),
      '',
    ].join('\n')
  }
}

class Histogram {
  readonly #counts = BUCKETS.map(() => 0)
  #count = 0
  #sum = 0

  observe(value: number): void {
    this.#count++
    this.#sum += value
    for (const [index, bound] of BUCKETS.entries()) if (value <= bound) this.#counts[index]!++
  }

  samples(): Sample[] {
    return [
      ...BUCKETS.map((bound, index): Sample => [`_bucket{le="${bound}"}`, this.#counts[index]!]),
      ['_bucket{le="+Inf"}', this.#count],
      ['_sum', this.#sum],
      ['_count', this.#count],
    ]
  }
}

/** A sample: the suffix of the metric name with its labels, and the value. */
type Sample = readonly [suffix: string, value: number]

function family(name: string, type: string, help: string, samples: readonly Sample[]): string[] {
  const lines = samples.map(([suffix, value]) => `${name}${suffix} ${value}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines]
}

function labelled(label: string, counts: ReadonlyMap<string, number>): Sample[] {
  return [...counts].map(([value, count]) => [`{${label}="${value}"}`, count])
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
