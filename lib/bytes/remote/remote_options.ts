/** How remote objects are read and written. */
import { checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { checkDeadline } from '../../deadline.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'

/**
 * Where redirects may lead: only to the host of the URL; also to other hosts whose addresses are all public; or anywhere,
 * loopback and private networks included.
 */
export type RedirectPolicy = 'same-host' | 'public' | 'any'

export interface RemoteOptions {
  /** Headers of each HTTP request, such as `authorization`. A redirect to another host does not get them. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Default `same-host`: a server must not choose which other hosts this process contacts. Model hubs that redirect to a
   * content delivery network need `public`.
   */
  readonly redirects?: RedirectPolicy
  /**
   * `public` refuses hosts of `https:` and `http:` URLs that have an address on this machine or in a private network, for
   * URLs that others have chosen. Default `any`.
   */
  readonly addresses?: 'any' | 'public'
  /** Milliseconds without a byte after which a request has failed. Default 30,000. */
  readonly timeout?: number
  /**
   * Milliseconds for all requests of an `open` together, waits between them included; after that ERR_LIMIT. Reads of the open file
   * are not limited. Default: none.
   */
  readonly deadline?: number
  /** Bytes per second, averaged from the first second on, below which a response has failed. Default: none. */
  readonly minBytesPerSecond?: number
  /** How often a request is repeated after a transient failure: 408, 425, 429, 5xx, a broken connection. Default 5. */
  readonly retries?: number
  /** Parallel requests for one object. Default 6, as in browsers. */
  readonly connections?: number
  /** Bytes of the block cache of each object. Default 64 MiB. */
  readonly cacheBytes?: number
  /** Aborts all requests of the open file with ERR_ABORTED. */
  readonly signal?: AbortSignal
  /** An `S3Client` of `@aws-sdk/client-s3`, or its settings, such as `region`, `endpoint`, `credentials`. */
  readonly s3?: object
  /** A `Storage` of `@google-cloud/storage`, or its settings, such as `projectId`, `keyFilename`, `apiEndpoint`. */
  readonly gs?: object
  /**
   * A `BlobServiceClient` of `@azure/storage-blob`, or `{ connectionString }`, or `{ account }` with `accountKey`, `sasToken`
   * or a `credential` and where necessary the `url` of the service.
   */
  readonly az?: object
}

/** Options with their defaults. */
export interface CheckedRemoteOptions extends RemoteOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly redirects: RedirectPolicy
  readonly addresses: 'any' | 'public'
  readonly timeout: number
  readonly retries: number
  readonly connections: number
  readonly cacheBytes: number
}

const DEFAULTS = {
  headers: {},
  redirects: 'same-host',
  addresses: 'any',
  timeout: 30_000,
  retries: 5,
  connections: 6,
  cacheBytes: 64 * 1024 ** 2,
} as const satisfies RemoteOptions

/** Upper bounds beyond any real use: a larger number is probably in the wrong unit. */
const UPPER_BOUNDS = {
  // setTimeout takes 31 bits.
  timeout: 2 ** 31 - 1,
  retries: 100,
  connections: 256,
  cacheBytes: Number.MAX_SAFE_INTEGER,
}

const NAMES: readonly (keyof RemoteOptions)[] = [
  ...(Object.keys(DEFAULTS) as (keyof RemoteOptions)[]),
  'deadline',
  'minBytesPerSecond',
  'signal',
  's3',
  'gs',
  'az',
]

/** @throws TileworkError ERR_ARGUMENT; ERR_ABORTED for a signal that has fired */
export function checkRemoteOptions(given: RemoteOptions = {}): CheckedRemoteOptions {
  checkOptions(given, 'remote', NAMES)
  const options = readInput('The options of remote', () => ({
    ...DEFAULTS,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  })) as CheckedRemoteOptions
  throwIfAborted(options.signal)
  for (const [name, max] of Object.entries(UPPER_BOUNDS)) {
    const value = options[name as keyof typeof UPPER_BOUNDS]
    const min = name === 'retries' || name === 'cacheBytes' ? 0 : 1
    if (Number.isInteger(value) && value >= min && value <= max) continue
    throw wrong(`remote.${name}`, value, `a whole number from ${min} to ${max}`)
  }
  checkDeadline('remote.deadline', options.deadline)
  const { minBytesPerSecond: rate = 0 } = options
  if (!Number.isSafeInteger(rate) || rate < 0)
    throw wrong('remote.minBytesPerSecond', rate, 'a whole number from 0')
  if (!['same-host', 'public', 'any'].includes(options.redirects)) {
    throw wrong('remote.redirects', options.redirects, '"same-host", "public" or "any"')
  }
  if (!['any', 'public'].includes(options.addresses)) {
    throw wrong('remote.addresses', options.addresses, '"any" or "public"')
  }
  for (const name of ['s3', 'gs', 'az'] as const) checkObject(name, options[name] ?? {})
  checkObject('headers', options.headers)
  for (const [name, value] of Object.entries(options.headers)) {
    // node:http refuses other characters itself; a value of another type would become "[object Object]".
    if (typeof value !== 'string') throw wrong(`remote.headers[${valueText(name)}]`, value, 'a string')
  }
  return options
}

function checkObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw wrong(`remote.${name}`, value, 'an object')
}

function wrong(name: string, value: unknown, expected: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be ${expected}.`)
}
