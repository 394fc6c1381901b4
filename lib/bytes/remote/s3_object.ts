/** Objects under `s3:` URLs, by the AWS SDK: its chain of credentials, its settings from the environment. */
import type * as S3 from '@aws-sdk/client-s3'
import { TileworkError } from '../../errors.js'
import { RETRYABLE_STATUS } from './http_object.js'
import { optionalPeer } from './optional_peer.js'
import type { CheckedRemoteOptions } from './remote_options.js'
import { type RemoteObject, type RemoteUpload, RetryableError, urlLabel } from './url_scheme.js'

/** S3 refuses more parts, and parts below 5 MiB but the last (Amazon S3 user guide, "Multipart upload limits"). */
const MAX_PARTS = 10_000
const MIN_PART_BYTES = 8 * 1024 ** 2

/** An object that is not larger is uploaded by one request. */
const MAX_SINGLE_BYTES = MIN_PART_BYTES

type Sdk = typeof S3
type S3Client = S3.S3Client
const loadSdk = (): Sdk => optionalPeer('@aws-sdk/client-s3', 'URLs of s3:')

/** One client for all objects with the same settings: each looks for credentials and keeps connections. */
const clients = new WeakMap<object, S3Client>()
const DEFAULT_SETTINGS = {}

function clientOf({ S3Client }: Sdk, { s3 = DEFAULT_SETTINGS, timeout }: CheckedRemoteOptions): S3Client {
  // A client of the caller's; its class may have been loaded a second time.
  if ('send' in s3) return s3 as S3Client
  let client = clients.get(s3)
  if (!client) {
    // Requests are repeated by tilework, which also sees a response that is cut.
    const requestHandler = {
      requestTimeout: timeout,
      connectionTimeout: timeout,
      throwOnRequestTimeout: true,
    }
    client = new S3Client({ maxAttempts: 1, requestHandler, ...s3 })
    clients.set(s3, client)
  }
  return client
}

/** The object of a URL, and how to ask for it. */
class S3Place {
  readonly label: string
  readonly sdk: Sdk
  readonly at: { readonly Bucket: string; readonly Key: string }
  readonly #client: S3Client
  readonly #abort: { readonly abortSignal?: AbortSignal }

  constructor(sdk: Sdk, url: URL, options: CheckedRemoteOptions) {
    this.label = urlLabel(url)
    this.sdk = sdk
    const key = url.pathname.slice(1)
    if (url.hostname === '' || key === '') {
      throw new TileworkError('ERR_ARGUMENT', `${this.label} names no object; s3: URLs are s3://bucket/key.`)
    }
    this.at = { Bucket: url.hostname, Key: decodeKey(key, this.label) }
    this.#client = clientOf(sdk, options)
    this.#abort = options.signal ? { abortSignal: options.signal } : {}
  }

  readonly send: S3Client['send'] = (command: never) => this.#send(command, this.#abort)

  /** As `send`, also after the signal: what was begun must be removed. */
  readonly sendCleanup: S3Client['send'] = (command: never) => this.#send(command, {})

  async #send(command: never, abort: { readonly abortSignal?: AbortSignal }): Promise<never> {
    try {
      return await this.#client.send(command, abort)
    } catch (error) {
      throw errorOf(error, this.label)
    }
  }

  async bytes(range: string, version: { readonly IfMatch?: string }) {
    const { GetObjectCommand } = this.sdk
    const answer = await this.send(new GetObjectCommand({ ...this.at, ...version, Range: range }))
    try {
      return { ...answer, bytes: (await answer.Body?.transformToByteArray()) ?? new Uint8Array(0) }
    } catch (error) {
      throw new RetryableError(`the response was cut: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** Keys may hold any character, and a URL spells some of them with "%". */
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

/** What the SDK throws. */
interface SdkError {
  readonly name?: string
  readonly message?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number }
}

function errorOf(error: unknown, label: string): Error {
  const { name, message, code, $metadata } = error as SdkError
  const status = $metadata?.httpStatusCode
  // Without a status the connection failed; where the SDK has no credentials or no region, there is no code either.
  const hasFailed =
    status === undefined ? code !== undefined || name === 'TimeoutError' : RETRYABLE_STATUS.has(status)
  if (hasFailed) return new RetryableError(`${name}: ${message}`, { cause: error })
  const place = { path: label, cause: error }
  if (status === 412)
    return new TileworkError('ERR_FILE_CHANGED', `${label} has changed since it was opened.`, place)
  return new TileworkError('ERR_IO', `${label}: ${name}: ${message}`, place)
}

/** Opens an object by one request for its first bytes. */
export async function openS3Object(
  url: URL,
  options: CheckedRemoteOptions,
  headBytes: number,
): Promise<RemoteObject> {
  const place = new S3Place(loadSdk(), url, options)
  const first = await place
    .bytes(`bytes=0-${headBytes - 1}`, {})
    .catch((error: unknown) => emptyObject(error, place))
  const byteLength = Number(/\/(\d+)$/.exec(first.ContentRange ?? '')?.[1] ?? first.bytes.byteLength)
  const version = first.ETag === undefined ? {} : { IfMatch: first.ETag }
  return {
    byteLength,
    label: place.label,
    head: first.bytes,
    ...(first.ETag !== undefined && { version: first.ETag }),
    read: async (start, end) => (await place.bytes(`bytes=${start}-${end - 1}`, version)).bytes,
  }
}

/** No range of an empty object can be satisfied. */
async function emptyObject(error: unknown, { sdk, send, at }: S3Place): Promise<S3Answer> {
  const reason = (error as Error).cause as SdkError | undefined
  if (reason?.$metadata?.httpStatusCode !== 416) throw error
  const { ContentLength, ETag } = await send(new sdk.HeadObjectCommand(at))
  if (ContentLength !== 0) throw error
  return { bytes: new Uint8Array(0), ...(ETag !== undefined && { ETag }) }
}

interface S3Answer {
  readonly bytes: Uint8Array
  readonly ContentRange?: string | undefined
  readonly ETag?: string | undefined
}

/** Starts an upload: in parts, or for a small object by one request. */
export async function createS3Object(
  url: URL,
  options: CheckedRemoteOptions,
  byteLength: number,
): Promise<RemoteUpload> {
  const place = new S3Place(loadSdk(), url, options)
  const { sdk, at, send, sendCleanup } = place
  if (byteLength <= MAX_SINGLE_BYTES) return singleUpload(place)
  const { UploadId } = await send(new sdk.CreateMultipartUploadCommand(at))
  const upload = { ...at, UploadId }
  const tags: string[] = []
  return {
    partBytes: Math.max(MIN_PART_BYTES, Math.ceil(byteLength / MAX_PARTS)),
    writePart: async (index, bytes) => {
      const part = { ...upload, PartNumber: index + 1, Body: bytes }
      const { ETag } = await send(new sdk.UploadPartCommand(part))
      tags[index] = ETag!
    },
    commit: async () => {
      const Parts = tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }))
      await send(new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }))
    },
    abort: async () => {
      await sendCleanup(new sdk.AbortMultipartUploadCommand(upload))
    },
  }
}

function singleUpload({ sdk, at, send }: S3Place): RemoteUpload {
  let body: Uint8Array = new Uint8Array(0)
  return {
    partBytes: MAX_SINGLE_BYTES,
    writePart: async (_, bytes) => {
      body = bytes
    },
    commit: async () => {
      await send(new sdk.PutObjectCommand({ ...at, Body: body }))
    },
    abort: async () => undefined,
  }
}
