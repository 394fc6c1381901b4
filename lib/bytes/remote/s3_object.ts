/** Objects under `s3:` URLs, by the AWS SDK with its credential chain and its settings from the environment. */
import type * as S3 from '@aws-sdk/client-s3'
import {
  bodyOf,
  Clients,
  PART_BYTES,
  type StoreAdapter,
  type StoredObject,
  type StoredRange,
  type StoreFailure,
  type StorePlace,
} from './object_store.js'
import { optionalPeer } from './optional_peer.js'
import type { CheckedRemoteOptions } from './remote_options.js'
import type { RemoteUpload } from './url_scheme.js'

/** S3 refuses more parts, and parts below 5 MiB but the last (Amazon S3 user guide, "Multipart upload limits"). */
const MAX_PARTS = 10_000

type Sdk = typeof S3
type S3Client = S3.S3Client

/** The SDK warns on stderr on each start on a Node that its later versions will not support. That is no matter of a user's. */
const QUIET = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'

function loadSdk(): Sdk {
  process.env[QUIET] ??= 'true'
  return optionalPeer('@aws-sdk/client-s3', 'URLs of s3:')
}

const clients = new Clients<S3Client>()

function clientOf({ S3Client }: Sdk, { s3, timeout }: CheckedRemoteOptions): S3Client {
  // The caller's client, known by a method: `instanceof` fails where the SDK is loaded twice.
  if (s3 && 'send' in s3) return s3 as S3Client
  // tilework repeats requests itself, because it also notices a truncated response.
  const requestHandler = { requestTimeout: timeout, connectionTimeout: timeout, throwOnRequestTimeout: true }
  return clients.get(s3, (settings) => new S3Client({ maxAttempts: 1, requestHandler, ...settings }))
}

class S3Object implements StoredObject {
  readonly #sdk: Sdk
  readonly #at: { readonly Bucket: string; readonly Key: string }
  readonly #client: S3Client
  readonly #options: CheckedRemoteOptions
  readonly #abort: { readonly abortSignal?: AbortSignal }

  constructor({ bucket, key }: StorePlace, options: CheckedRemoteOptions) {
    this.#options = options
    this.#sdk = loadSdk()
    this.#at = { Bucket: bucket, Key: key }
    this.#client = clientOf(this.#sdk, options)
    this.#abort = options.signal ? { abortSignal: options.signal } : {}
  }

  readonly #send: S3Client['send'] = (command: never) => this.#client.send(command, this.#abort)

  async get(start: number, end: number, version?: string): Promise<StoredRange> {
    const { GetObjectCommand } = this.#sdk
    const condition = version === undefined ? {} : { IfMatch: version }
    const range = { Range: `bytes=${start}-${end - 1}` }
    const answer = await this.#send(new GetObjectCommand({ ...this.#at, ...condition, ...range }))
    const body = answer.Body as NodeJS.ReadableStream | undefined
    const bytes = body ? await bodyOf(body, end - start, this.#options) : new Uint8Array(0)
    return { bytes, contentRange: answer.ContentRange, version: answer.ETag }
  }

  async length(): Promise<number | undefined> {
    const { ContentLength } = await this.#send(new this.#sdk.HeadObjectCommand(this.#at))
    return ContentLength
  }

  async put(bytes: Uint8Array): Promise<void> {
    await this.#send(new this.#sdk.PutObjectCommand({ ...this.#at, Body: bytes }))
  }

  async begin(byteLength: number): Promise<RemoteUpload> {
    const sdk = this.#sdk
    const { UploadId } = await this.#send(new sdk.CreateMultipartUploadCommand(this.#at))
    const upload = { ...this.#at, UploadId }
    const tags: string[] = []
    return {
      partBytes: Math.max(PART_BYTES, Math.ceil(byteLength / MAX_PARTS)),
      writePart: async (index, bytes) => {
        const part = { ...upload, PartNumber: index + 1, Body: bytes }
        const { ETag } = await this.#send(new sdk.UploadPartCommand(part))
        tags[index] = ETag!
      },
      commit: async () => {
        const Parts = tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }))
        await this.#send(new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }))
      },
      // Without the signal: an aborted upload must be removed too.
      abort: async () => {
        await this.#client.send(new sdk.AbortMultipartUploadCommand(upload))
      },
    }
  }
}

/** What the SDK throws. */
interface SdkError {
  readonly name?: string
  readonly message?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number }
}

/** Advice for errors in which the SDK only names what is missing. */
function adviceOf({ name, message = '' }: SdkError): string {
  if (/region is missing/i.test(message)) {
    return '; set AWS_REGION, or region in the profile or in remote: { s3: { region } }'
  }
  if (name !== 'CredentialsProviderError') return ''
  return '; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or remote: { s3: { credentials } }'
}

function failureOf(error: unknown): StoreFailure {
  const { name, message, code, $metadata } = error as SdkError
  return {
    status: $metadata?.httpStatusCode,
    // Errors about missing credentials or a missing region have no code.
    isConnection: code !== undefined || name === 'TimeoutError',
    text: `${name}: ${message}${adviceOf(error as SdkError)}`,
  }
}

export const s3Store: StoreAdapter = {
  connect: (place, options) => new S3Object(place, options),

  async *list({ bucket, key }, options) {
    const sdk = loadSdk()
    const pages = sdk.paginateListObjectsV2(
      { client: clientOf(sdk, options) },
      { Bucket: bucket, Prefix: key },
    )
    for await (const { Contents = [] } of pages) {
      for (const { Key, Size = 0 } of Contents) yield { key: Key!, byteLength: Size }
    }
  },

  failureOf,
}
