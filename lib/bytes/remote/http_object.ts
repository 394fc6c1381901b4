/**
 * Objects under `https:` and `http:` URLs, read by range requests (RFC 9110, section 14). Every request is conditional on the
 * version that the first response had, by its entity tag or its last-modified time.
 */
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { finished } from 'node:stream/promises'
import { whenAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { CollectedBytes } from '../collected_bytes.js'
import { DEFAULT_INPUT_BYTES } from '../receive.js'
import { RedirectGuard } from './redirect_guard.js'
import type { CheckedRemoteOptions } from './remote_options.js'
import { rateCheck } from './response_rate.js'
import { RETRYABLE_STATUS } from './retry.js'
import { type RemoteObject, RetryableError, urlLabel } from './url_scheme.js'

/** Failures of a connection after which the next one may succeed. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
])
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Bytes of a body that nobody wants, which are read so that the connection can be used again. */
const MAX_DISCARDED_BYTES = 64 * 1024
/** As many as curl and browsers follow at most, rounded down. */
const MAX_REDIRECTS = 10

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
}

/**
 * Opens the object under a URL by one request for its first bytes.
 *
 * @throws RetryableError for a failure that may pass
 * @throws TileworkError ERR_IO; ERR_LIMIT where the server ignores ranges and the object is too long to be received whole
 */
export async function openHttpObject(
  url: URL,
  options: CheckedRemoteOptions,
  headBytes: number,
): Promise<RemoteObject> {
  const connection = new HttpConnection(url, options)
  try {
    const { status, headers, bytes } = await connection.get({ range: [0, headBytes], takesWhole: true })
    if (status === 200) return receivedObject(connection, bytes, headers)
    const byteLength = totalOf(headers, bytes, connection.label)
    return new HttpObject(connection, { byteLength, head: bytes, headers })
  } catch (error) {
    connection.close()
    throw error
  }
}

/** The object of a server that ignores ranges: the first response is the whole object. */
function receivedObject(
  connection: HttpConnection,
  bytes: Uint8Array,
  headers: IncomingHttpHeaders,
): RemoteObject {
  const { name } = new Version(headers)
  return {
    byteLength: bytes.byteLength,
    label: connection.label,
    ...(name !== undefined && { version: name }),
    read: async (start, end) => bytes.slice(start, end),
    close: () => connection.close(),
  }
}

class HttpObject implements RemoteObject {
  readonly byteLength: number
  readonly label: string
  readonly head: Uint8Array
  readonly version?: string
  readonly #connection: HttpConnection
  readonly #version: Version

  constructor(
    connection: HttpConnection,
    first: { readonly byteLength: number; readonly head: Uint8Array; readonly headers: IncomingHttpHeaders },
  ) {
    this.#connection = connection
    this.label = connection.label
    this.byteLength = first.byteLength
    this.head = first.head
    this.#version = new Version(first.headers)
    if (this.#version.name !== undefined) this.version = this.#version.name
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { label } = this
    const answer = await this.#connection.get({ range: [start, end], headers: this.#version.conditions })
    if (answer.status !== 206 || !this.#version.isSame(answer.headers)) throw changedError(label)
    if (totalOf(answer.headers, answer.bytes, label, start) !== this.byteLength) throw changedError(label)
    if (answer.bytes.byteLength === end - start) return answer.bytes
    throw new RetryableError(`the response has ${answer.bytes.byteLength} of ${end - start} bytes`)
  }

  close(): void {
    this.#connection.close()
  }
}

/** What identifies the version of an object. */
class Version {
  /** Headers that make the server respond 412 where the object has changed. */
  readonly conditions: Record<string, string>
  /** The tag, or else the time. */
  readonly name: string | undefined
  readonly #etag: string | undefined
  readonly #time: string | undefined

  constructor({ etag, 'last-modified': time }: IncomingHttpHeaders) {
    this.#etag = etag
    this.#time = time
    this.name = etag ?? time
    // A weak tag never matches If-Match (RFC 9110, section 13.1.1); it is compared here.
    if (etag !== undefined && !etag.startsWith('W/')) this.conditions = { 'if-match': etag }
    else this.conditions = time === undefined ? {} : { 'if-unmodified-since': time }
  }

  isSame({ etag, 'last-modified': time }: IncomingHttpHeaders): boolean {
    return this.#etag === undefined ? time === this.#time : etag === this.#etag
  }
}

/** Requests to one URL, and to where it redirects. */
class HttpConnection {
  readonly label: string
  readonly #options: CheckedRemoteOptions
  readonly #original: URL
  readonly #guard: RedirectGuard
  /** Agents per object, because sockets must not be shared with objects that have other redirect rules. */
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true }),
    'https:': new https.Agent({ keepAlive: true }),
  }
  /** Where the last redirect led. */
  #current: URL

  constructor(url: URL, options: CheckedRemoteOptions) {
    this.label = urlLabel(url)
    this.#options = options
    this.#original = url
    this.#current = url
    this.#guard = new RedirectGuard(url, options)
  }

  /** Requests a range; the status of the response is 206, or 200 where the server ignored the range of the first request. */
  async get(request: RangeRequest): Promise<Answer> {
    const answer = await this.#follow(request)
    // The signed target of a redirect often expires after minutes, so the original URL is tried again.
    if (answer.status < 400 || this.#current === this.#original) return this.#checked(answer)
    this.#current = this.#original
    return this.#checked(await this.#follow(request))
  }

  async #follow(request: RangeRequest): Promise<Answer> {
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const answer = await this.#send(this.#current, request)
      if (!REDIRECTS.has(answer.status)) return answer
      this.#current = withUser(
        this.#guard.target(this.#current, answer.headers.location, this.label),
        this.#original,
      )
    }
    throw new TileworkError('ERR_IO', `${this.label}: more than ${MAX_REDIRECTS} redirects.`, {
      path: this.label,
    })
  }

  #checked(answer: Answer): Answer {
    const { status, headers } = answer
    if (status === 206 || status === 200) return answer
    // The response for the first bytes of an empty object (RFC 9110, section 15.5.17).
    if (status === 416 && headers['content-range'] === 'bytes */0') {
      return { status: 200, headers, bytes: new Uint8Array(0) }
    }
    if (status === 412 || status === 416) throw changedError(this.label)
    const text = http.STATUS_CODES[status] ?? ''
    if (RETRYABLE_STATUS.has(status)) {
      throw new RetryableError(`the response has status ${status} ${text}`.trimEnd(), {
        wait: waitOf(headers),
      })
    }
    const message = `${this.label}: the response has status ${`${status} ${text}`.trimEnd()}; it must be 2xx.`
    throw new TileworkError('ERR_IO', message, { path: this.label })
  }

  #send(url: URL, range: RangeRequest): Promise<Answer> {
    const [start, end] = range.range
    const { timeout, signal, headers } = this.#options
    const isHttps = url.protocol === 'https:'
    const isOwnHost = url.host === this.#original.host
    return new Promise((resolve, reject) => {
      const request = (isHttps ? https : http).request(url, {
        agent: this.#agents[isHttps ? 'https:' : 'http:'],
        headers: {
          ...(isOwnHost && lowerCased(headers)),
          ...range.headers,
          // The bytes of the object, not of a compressed form of it.
          'accept-encoding': 'identity',
          range: `bytes=${start}-${end - 1}`,
        },
        // This option covers the DNS lookup too; `request.setTimeout` starts only when the socket is connected.
        timeout,
        ...this.#guard.connectOptions(url),
      })
      // Not by the `signal` option of a request: it adds a listener per request, and Node warns above ten.
      const unsubscribe = signal && whenAborted(signal, () => request.destroy(new Error('aborted')))
      request.on('close', () => unsubscribe?.())
      const fail = (error: Error): void => reject(retryable(error))
      request.on('error', fail)
      request.on('timeout', () => request.destroy(new RetryableError(`no data for ${timeout} ms`)))
      request.on('response', (response) => {
        receiveAnswer(response, range, this.#options).then(resolve, fail)
      })
      request.end()
    })
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }
}

/** The target of a redirect to the same server, with the user and password of the original URL. */
function withUser(target: URL, original: URL): URL {
  const isSameServer = target.origin === original.origin && target.username === '' && target.password === ''
  if (isSameServer) [target.username, target.password] = [original.username, original.password]
  return target
}

interface RangeRequest {
  /** First byte, and the one after the last. */
  readonly range: readonly [number, number]
  readonly headers?: Record<string, string>
  /** Whether a response with the whole object is accepted, from a server that ignores ranges. */
  readonly takesWhole?: boolean
}

/** Receives the body of a response with the requested range or, with `takesWhole`, the object; other bodies are discarded. */
async function receiveAnswer(
  response: IncomingMessage,
  { range: [start, end], takesWhole = false }: RangeRequest,
  options: CheckedRemoteOptions,
): Promise<Answer> {
  const { statusCode: status = 0, headers } = response
  if (status !== 206 && !(status === 200 && takesWhole)) {
    // Reading a short body to its end keeps the connection reusable; a long or endless body is not worth it.
    if (Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) <= MAX_DISCARDED_BYTES)
      response.resume()
    else response.destroy()
    return { status, headers, bytes: new Uint8Array(0) }
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    response.destroy()
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `The server sends the object with the content-encoding ${valueText(encoding)}, so its byte ranges are not ranges of the file.`,
    )
  }
  const bytes = await receiveBytes(response, status === 206 ? end - start : DEFAULT_INPUT_BYTES, options)
  const length = Number(headers['content-length'] ?? bytes.byteLength)
  if (length !== bytes.byteLength)
    throw new RetryableError(`the response has ${bytes.byteLength} of ${length} bytes`)
  return { status, headers, bytes }
}

async function receiveBytes(
  response: IncomingMessage,
  maxBytes: number,
  { minBytesPerSecond }: CheckedRemoteOptions,
): Promise<Uint8Array> {
  const announced = Number(response.headers['content-length'] ?? 0)
  const tooLong = (): TileworkError =>
    new TileworkError('ERR_LIMIT', `The response is larger than the limit of ${maxBytes} bytes.`)
  if (announced > maxBytes) {
    response.destroy()
    throw tooLong()
  }
  // Pages that the server never fills take no memory.
  const bytes = announced > 0 ? Buffer.allocUnsafeSlow(announced) : undefined
  const collected = new CollectedBytes()
  const checkRate = rateCheck(minBytesPerSecond)
  let length = 0
  // Not `for await`: its overhead per chunk exceeds the time of the copy.
  response.on('data', (chunk: Uint8Array) => {
    if (length + chunk.byteLength > (bytes?.byteLength ?? maxBytes)) {
      response.destroy(tooLong())
      return
    }
    if (bytes) bytes.set(chunk, length)
    else collected.add(chunk)
    length += chunk.byteLength
    try {
      checkRate(length)
    } catch (error) {
      response.destroy(error as Error)
    }
  })
  await finished(response)
  return bytes ? bytes.subarray(0, length) : collected.take()
}

/** The length of the object, after a check that the response is the range that starts at `start`. */
function totalOf(
  { 'content-range': text }: IncomingHttpHeaders,
  bytes: Uint8Array,
  label: string,
  start = 0,
): number {
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(text ?? '')?.map(Number) ?? []
  const isRange = first === start && last === start + bytes.byteLength - 1 && bytes.byteLength > 0
  if (isRange && Number.isSafeInteger(total) && last! < total!) return total!
  const message = `the response for the bytes from ${start} has ${bytes.byteLength} bytes and ${rangeFault(text)}.`
  throw new TileworkError('ERR_IO', `${label}: ${message}`, { path: label })
}

/** Describes what is wrong with the header `content-range` of a response. */
function rangeFault(text: string | undefined): string {
  if (text === undefined) return 'no content-range header'
  const reason = /\/\*$/.test(text)
    ? ', which lacks the length of the object'
    : '; it must be "bytes FIRST-LAST/LENGTH"'
  return `the content-range ${valueText(text)}${reason}`
}

function changedError(label: string): TileworkError {
  return new TileworkError('ERR_FILE_CHANGED', `${label} has changed since it was opened.`, { path: label })
}

/** Marks a broken connection as retryable. Unknown hosts, invalid certificates and this process's own decisions are not. */
function retryable(error: Error): Error {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined || !RETRYABLE_CODES.has(code)) return error
  // 'aborted' is all that Node reports for a truncated response.
  const message =
    error.message === 'aborted' ? 'the connection was closed before the end of the response' : error.message
  return new RetryableError(message, { cause: error })
}

/** Milliseconds of Retry-After, a number of seconds or a date; 0 without one. */
function waitOf({ 'retry-after': text }: IncomingHttpHeaders): number {
  if (text === undefined) return 0
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return wait > 0 ? wait : 0
}

/** Lower-case names, so that tilework's own headers override the caller's whatever their case. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
