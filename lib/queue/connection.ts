/** Connections to Redis or Valkey, by BullMQ and ioredis: optional peer packages that users of the queue install. */
import type * as BullMq from 'bullmq'
import type * as IoRedis from 'ioredis'
import type { Redis } from 'ioredis'
import { optionalPeer } from '../bytes/remote/optional_peer.js'
import { checkObject, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** Where a queue is. */
export interface QueuePlace {
  /** `redis://[user:password@]host[:port][/db]`, or `rediss:` for TLS. */
  readonly url: string | URL
  /** Name of the queue, so that several share a server: 1 to 64 of `a-z A-Z 0-9 _ -`. Default: `tilework`. */
  readonly name?: string
}

/** The address of a queue after its check. */
export interface CheckedPlace {
  readonly name: string
  /** The URL without user and password, for messages. */
  readonly label: string
  readonly connection: IoRedis.RedisOptions
}

const DEFAULT_NAME = 'tilework'
const DEFAULT_PORT = 6379

/** Timeout of the first connection in milliseconds. A connection that is lost later is waited for without a limit. */
const CONNECT_MS = 5_000

/** How long in milliseconds a refused first connection is tried again: a server that restarts listens again in less. */
const REFUSED_MS = 2_000

/** How long in milliseconds `endAfter` waits for a server that does not answer. */
const CLOSE_MS = 3_000

/** Longest milliseconds between two attempts to connect again. */
const LONGEST_RECONNECT_MS = 2_000

/** @throws TileworkError ERR_UNSUPPORTED that says what to install */
export function loadBullMq(): typeof BullMq {
  return optionalPeer('bullmq', 'Queues of files')
}

function loadIoRedis(): typeof IoRedis {
  return optionalPeer('ioredis', 'Queues of files')
}

/** @throws TileworkError ERR_ARGUMENT, without the URL in its message: it may hold a password */
export function checkPlace(given: QueuePlace): CheckedPlace {
  checkObject(given, 'The queue is { url, name? }')
  const { url: text, name = DEFAULT_NAME } = readInput('The queue', () => ({
    url: given.url,
    name: given.name,
  }))
  if (typeof name !== 'string' || !/^[\w-]{1,64}$/.test(name)) {
    const allowed = '1 to 64 of a-z, A-Z, 0-9, _ and -'
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The name of the queue is ${valueText(name)}; it must be ${allowed}.`,
    )
  }
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : text
  if (!(url instanceof URL) || !/^rediss?:$/.test(url.protocol) || url.hostname === '') throw urlError()
  const { hostname, protocol, pathname, search, hash } = url
  const db = /^\/?$/.test(pathname) ? 0 : Number(/^\/(\d{1,5})$/.exec(pathname)?.[1])
  if (Number.isNaN(db) || search !== '' || hash !== '') throw urlError()
  // The brackets of an IPv6 address are syntax of the URL and no part of the address.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    name,
    label: `${protocol}//${url.host}${pathname}`,
    connection: {
      host,
      port: url.port === '' ? DEFAULT_PORT : Number(url.port),
      db,
      ...(url.username !== '' && { username: decoded(url.username) }),
      ...(url.password !== '' && { password: decoded(url.password) }),
      ...(protocol === 'rediss:' && { tls: { servername: host } }),
      // Commands wait until the server is back and are sent again. All commands used here can be repeated safely.
      maxRetriesPerRequest: null,
      retryStrategy: (times: number) => Math.min(100 * 2 ** Math.min(times, 10), LONGEST_RECONNECT_MS),
    },
  }
}

function urlError(): TileworkError {
  const form = 'redis://[user:password@]host[:port][/db] or rediss://…'
  return new TileworkError('ERR_ARGUMENT', `The URL of the queue is not of the form ${form}.`)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * The connections of one submitter, worker or controller. They are opened here because BullMQ would wait forever for a server
 * that does not answer; these can be cut at any time.
 */
export class Connections {
  readonly #place: CheckedPlace
  readonly #clients = new Set<Redis>()

  constructor(place: CheckedPlace) {
    this.#place = place
  }

  /**
   * Opens a connection and resolves when it is ready.
   *
   * @throws TileworkError ERR_IO with the reason why the connection failed
   */
  async open(): Promise<Redis> {
    const { Redis: Client } = loadIoRedis()
    const client = this.#keep(new Client(this.#place.connection as object))
    // BullMQ duplicates the connection for blocking commands.
    const duplicate = client.duplicate.bind(client)
    client.duplicate = (options) => this.#keep(duplicate(options))
    await untilReady(client, this.#place)
    return client
  }

  /** Cuts all connections. Pending commands fail. */
  end(): void {
    for (const client of this.#clients) client.disconnect()
    this.#clients.clear()
  }

  /** Waits for `closing`, a graceful close, for at most `CLOSE_MS`, and then cuts the connections that are still open. */
  async endAfter(closing: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS)
    })
    await Promise.race([closing.catch(() => undefined), late])
    clearTimeout(timer)
    this.end()
  }

  #keep(client: Redis): Redis {
    this.#clients.add(client)
    // Without a listener an error would end the process. `untilReady` and, later, BullMQ report it.
    client.on('error', () => undefined)
    return client
  }
}

/** Errors that another attempt would meet again. */
const LASTING = /^(WRONGPASS|NOAUTH|NOPERM)|invalid password|DB index is out of range/

async function untilReady(client: Redis, { label }: CheckedPlace): Promise<void> {
  if (client.status === 'ready') return
  const started = performance.now()
  let last: Error | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(last ?? new Error('no answer')), CONNECT_MS)
      client.once('ready', () => resolve())
      client.on('error', (error: NodeJS.ErrnoException) => {
        last = error
        const isRefused = error.code === 'ECONNREFUSED' && performance.now() - started > REFUSED_MS
        if (isRefused || LASTING.test(error.message)) reject(error)
      })
    })
  } catch (cause) {
    client.disconnect()
    throw connectionError(label, cause)
  } finally {
    clearTimeout(timer)
  }
}

export function connectionError(label: string, cause: unknown): TileworkError {
  const reason =
    cause instanceof Error && cause.message !== ''
      ? cause.message
      : String((cause as { code?: unknown })?.code ?? cause)
  return new TileworkError('ERR_IO', `The queue at ${label} cannot be used: ${reason.replace(/\.$/, '')}.`, {
    path: label,
    cause,
  })
}
