/**
 * Objects of cloud stores, by the SDK of each store. An adapter maps a few requests to an SDK; this file has what is the same
 * for all stores: opening objects, deciding which failures are transient, and single-request or multipart uploads.
 */
import type { Readable } from 'node:stream'
import { throwIfAborted, whenAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { CollectedBytes } from '../collected_bytes.js'
import { type CheckedRemoteOptions, checkRemoteOptions, type RemoteOptions } from './remote_options.js'
import { rateCheck } from './response_rate.js'
import { RETRYABLE_STATUS } from './retry.js'
import {
  encodedPath,
  type RemoteObject,
  type RemoteUpload,
  RetryableError,
  type UrlScheme,
  urlLabel,
} from './url_scheme.js'

/** Part size of multipart uploads, and the largest object that is uploaded by one request. A multiple of 256 KiB. */
export const PART_BYTES = 8 * 1024 ** 2

/** A range of an object's bytes, with the store's metadata. */
export interface StoredRange {
  readonly bytes: Uint8Array
  /** The header `content-range`. */
  readonly contentRange: string | undefined
  /** What identifies the version: a tag or a generation. */
  readonly version: string | undefined
}

/** An object, accessed through an SDK. Each method is one request, and throws what the SDK throws. */
export interface StoredObject {
  /** Bytes `[start, end)`, or fewer at the end of the object; of the given `version` if any. */
  get(start: number, end: number, version?: string): Promise<StoredRange>
  /** Length of the object in bytes; requested only where the first byte cannot be read, that is for empty objects. */
  length(): Promise<number | undefined>
  /** Writes the object. */
  put(bytes: Uint8Array): Promise<void>
  /** Starts a multipart upload. */
  begin(byteLength: number): Promise<RemoteUpload>
}

/** The SDK of a store. */
export interface StoreAdapter {
  /** @throws TileworkError ERR_UNSUPPORTED where the SDK is not installed */
  connect(place: StorePlace, options: CheckedRemoteOptions): StoredObject
  /** The objects whose keys start with the key of `place`. */
  list(place: StorePlace, options: CheckedRemoteOptions): AsyncIterable<ListedKey>
  /** Interprets an error of the SDK. */
  failureOf(error: unknown): StoreFailure
}

export interface ListedKey {
  readonly key: string
  readonly byteLength: number
}

export interface StoreFailure {
  /** HTTP status; undefined without a response. */
  readonly status: number | undefined
  /** Whether the connection failed, so that another attempt may succeed. */
  readonly isConnection: boolean
  /** Name and message. */
  readonly text: string
}

/** Where an object is. */
export interface StorePlace {
  readonly label: string
  /** Bucket or container. */
  readonly bucket: string
  readonly key: string
}

/** @throws TileworkError ERR_ARGUMENT for a URL that names no object, and for a wrong "%" */
function storePlace(url: URL): StorePlace {
  const place = storePrefix(url)
  if (place.key !== '') return place
  throw noObject(url)
}

/** As `storePlace`, but the key may be empty. */
function storePrefix(url: URL): StorePlace {
  const label = urlLabel(url)
  if (url.hostname === '') throw noObject(url)
  return { label, bucket: url.hostname, key: decodeKey(url.pathname.slice(1), label) }
}

function noObject(url: URL): TileworkError {
  const { protocol } = url
  const bucket = protocol === 'az:' ? 'container' : 'bucket'
  return new TileworkError(
    'ERR_ARGUMENT',
    `${urlLabel(url)} names no object; ${protocol} URLs are ${protocol}//${bucket}/key.`,
  )
}

/** The URL of a key in the bucket of another URL. */
function objectUrl(url: URL, key: string): URL {
  const object = new URL(url)
  object.pathname = `/${encodedPath(key)}`
  return object
}

/** Keys may contain any character; a URL percent-encodes some. */
function decodeKey(key: string, label: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${label} has a "%" that is not the start of an encoded byte; write %25.`,
    )
  }
}

/**
 * The bytes of a response, no more than `maxBytes`.
 *
 * @throws RetryableError for a response that is cut
 */
export async function bodyOf(
  stream: NodeJS.ReadableStream,
  maxBytes: number,
  { signal, minBytesPerSecond }: Pick<RemoteOptions, 'signal' | 'minBytesPerSecond'>,
): Promise<Uint8Array> {
  const checkRate = rateCheck(minBytesPerSecond)
  const collected = new CollectedBytes()
  const unsubscribe = signal && whenAborted(signal, () => (stream as Readable).destroy(new Error('aborted')))
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      // An error in this loop destroys the response.
      if (collected.length + chunk.byteLength > maxBytes) {
        throw new TileworkError('ERR_LIMIT', `The response is larger than the ${maxBytes} requested bytes.`)
      }
      collected.add(chunk)
      checkRate(collected.length)
    }
  } catch (error) {
    if (collected.length === 0 || error instanceof TileworkError || error instanceof RetryableError)
      throw error
    throw new RetryableError(`the response was cut: ${(error as Error).message}`, { cause: error })
  } finally {
    unsubscribe?.()
  }
  return collected.take()
}

/**
 * Caches one client per settings object, and one for the default settings: each client looks up credentials and keeps
 * connections.
 */
export class Clients<Client> {
  readonly #known = new WeakMap<object, Client>()
  readonly #default = {}

  get(settings: object | undefined, create: (settings: object) => Client): Client {
    const key = settings ?? this.#default
    const known = this.#known.get(key)
    if (known) return known
    const client = create(key)
    this.#known.set(key, client)
    return client
  }
}

/** The scheme of a store, whose adapter is loaded when a URL has the scheme. */
export function storeScheme(load: () => Promise<StoreAdapter>): UrlScheme {
  return {
    open: async (url, given, headBytes) => {
      const [adapter, place, options] = [await load(), storePlace(url), checkRemoteOptions(given)]
      return openStored(new Requests(adapter, place, options), headBytes)
    },
    create: async (url, given, byteLength) => {
      const [adapter, place, options] = [await load(), storePlace(url), checkRemoteOptions(given)]
      return createStored(new Requests(adapter, place, options), byteLength)
    },
    list: async function* (url, given) {
      const [adapter, options] = [await load(), checkRemoteOptions(given)]
      const { label, bucket, key } = storePrefix(url)
      try {
        for await (const listed of adapter.list({ label, bucket, key }, options)) {
          throwIfAborted(options.signal)
          yield { url: objectUrl(url, listed.key), byteLength: listed.byteLength }
        }
      } catch (error) {
        throw storeError(adapter, error, label)
      }
    },
  }
}

/** The requests of one object, with errors of tilework. */
class Requests {
  readonly label: string
  readonly object: StoredObject
  readonly adapter: StoreAdapter

  constructor(adapter: StoreAdapter, place: StorePlace, options: CheckedRemoteOptions) {
    this.label = place.label
    this.adapter = adapter
    this.object = adapter.connect(place, options)
  }

  /** @param ofVersion - whether the request names a version, so that "not found" means that the object has changed */
  async attempt<T>(request: (object: StoredObject) => Promise<T>, ofVersion = false): Promise<T> {
    try {
      return await request(this.object)
    } catch (error) {
      throw storeError(this.adapter, error, this.label, ofVersion)
    }
  }
}

/** Opens an object by one request for its first bytes. */
async function openStored(requests: Requests, headBytes: number): Promise<RemoteObject> {
  const { label } = requests
  const first = await requests
    .attempt((object) => object.get(0, headBytes))
    .catch((error: Error) => emptyObject(requests, error))
  const { bytes, contentRange, version } = first
  return {
    byteLength: Number(/\/(\d+)$/.exec(contentRange ?? '')?.[1] ?? bytes.byteLength),
    label,
    head: bytes,
    ...(version !== undefined && { version }),
    read: async (start, end) => {
      const range = await requests.attempt((object) => object.get(start, end, version), version !== undefined)
      if (range.bytes.byteLength === end - start) return range.bytes
      throw new RetryableError(`the response has ${range.bytes.byteLength} of ${end - start} bytes`)
    },
  }
}

/** Handles status 416: no range of an empty object is satisfiable. */
async function emptyObject(requests: Requests, error: Error): Promise<StoredRange> {
  if (requests.adapter.failureOf(error.cause ?? error).status !== 416) throw error
  if ((await requests.attempt((object) => object.length())) !== 0) throw error
  return { bytes: new Uint8Array(0), contentRange: undefined, version: undefined }
}

/** Starts an upload: multipart, or by one request for a small object. */
async function createStored(requests: Requests, byteLength: number): Promise<RemoteUpload> {
  if (byteLength <= PART_BYTES) return singleUpload(requests)
  const upload = await requests.attempt((object) => object.begin(byteLength))
  return {
    partBytes: upload.partBytes,
    ...(upload.connections !== undefined && { connections: upload.connections }),
    writePart: (index, bytes) => requests.attempt(() => upload.writePart(index, bytes)),
    commit: () => requests.attempt(() => upload.commit()),
    abort: () => requests.attempt(() => upload.abort()),
  }
}

function singleUpload(requests: Requests): RemoteUpload {
  let body: Uint8Array = new Uint8Array(0)
  return {
    partBytes: PART_BYTES,
    writePart: async (_, bytes) => {
      body = bytes
    },
    commit: () => requests.attempt((object) => object.put(body)),
    abort: async () => undefined,
  }
}

function storeError(adapter: StoreAdapter, error: unknown, label: string, ofVersion = false): Error {
  if (error instanceof TileworkError || error instanceof RetryableError) return error
  const { status, isConnection, text } = adapter.failureOf(error)
  if (status === undefined ? isConnection : RETRYABLE_STATUS.has(status)) {
    return new RetryableError(text, { cause: error })
  }
  const place = { path: label, cause: error }
  if (status === 412 || (status === 404 && ofVersion)) {
    return new TileworkError('ERR_FILE_CHANGED', `${label} has changed since it was opened.`, place)
  }
  return new TileworkError('ERR_IO', `${label}: ${text}`, place)
}
