/**
 * Objects under `gs:` URLs, by the SDK of Google Cloud Storage. Large ones are written by a resumable upload, whose last part
 * makes the object visible and is therefore sent by `commit`.
 */
import type * as Gcs from '@google-cloud/storage'
import { TileworkError } from '../../errors.js'
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
import { ResumableUpload } from './resumable_upload.js'
import type { RemoteUpload } from './url_scheme.js'

type Sdk = typeof Gcs
const loadSdk = (): Sdk => optionalPeer('@google-cloud/storage', 'URLs of gs:')

const clients = new Clients<Gcs.Storage>()

function clientOf({ Storage }: Sdk, { gs, timeout }: CheckedRemoteOptions): Gcs.Storage {
  // The caller's client, known by a method: `instanceof` fails where the SDK is loaded twice.
  if (gs && 'bucket' in gs) return gs as Gcs.Storage
  // tilework repeats requests itself, because it also notices a truncated response.
  const ours = { timeout, retryOptions: { autoRetry: false, maxRetries: 0 } }
  return clients.get(gs, (settings) => new Storage({ ...ours, ...settings }))
}

class GcsObject implements StoredObject {
  readonly #bucket: Gcs.Bucket
  readonly #key: string
  readonly #options: CheckedRemoteOptions

  constructor({ bucket, key }: StorePlace, options: CheckedRemoteOptions) {
    this.#bucket = clientOf(loadSdk(), options).bucket(bucket)
    this.#key = key
    this.#options = options
  }

  async get(start: number, end: number, version?: string): Promise<StoredRange> {
    const file = this.#bucket.file(this.#key, version === undefined ? {} : { generation: version })
    const stream = file.createReadStream({ start, end: end - 1, validation: false, decompress: false })
    let headers: Record<string, string | undefined> = {}
    stream.on('response', (response: { toJSON(): { headers: typeof headers } }) => {
      headers = response.toJSON().headers
    })
    const bytes = await bodyOf(stream, end - start, this.#options)
    if (headers['content-encoding'] === 'gzip') {
      const message =
        'The object is stored with content-encoding gzip, so its byte ranges are not ranges of the file.'
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    return { bytes, contentRange: headers['content-range'], version: headers['x-goog-generation'] }
  }

  async length(): Promise<number | undefined> {
    const [{ size }] = await this.#bucket.file(this.#key).getMetadata()
    return Number(size)
  }

  async put(bytes: Uint8Array): Promise<void> {
    await this.#bucket.file(this.#key).save(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
      resumable: false,
      validation: false,
    })
  }

  async begin(byteLength: number): Promise<RemoteUpload> {
    const [session] = await this.#bucket.file(this.#key).createResumableUpload()
    return new ResumableUpload(session, byteLength, PART_BYTES, this.#options.signal)
  }
}

/** The SDK uses the body of the response as message, which may be a whole HTML page. */
const MAX_MESSAGE_CHARACTERS = 300

/** What the SDK throws. */
interface GcsError {
  readonly name?: string
  readonly message?: string
  /** The status, or the code of a failed connection. */
  readonly code?: number | string
  readonly response?: { readonly status?: number }
}

function failureOf(error: unknown): StoreFailure {
  const { name, message = '', code, response } = error as GcsError
  const status = Number(response?.status ?? code)
  return {
    status: Number.isInteger(status) ? status : undefined,
    isConnection: code !== undefined,
    text: `${name}: ${message.split('\n').join(' ').slice(0, MAX_MESSAGE_CHARACTERS)}`,
  }
}

export const gcsStore: StoreAdapter = {
  connect: (place, options) => new GcsObject(place, options),

  async *list({ bucket, key }, options) {
    const store = clientOf(loadSdk(), options).bucket(bucket)
    let query: object | undefined = {
      prefix: key,
      autoPaginate: false,
    }
    while (query) {
      const [files, next] = (await store.getFiles(query)) as [Gcs.File[], object | null, unknown]
      for (const { name, metadata } of files) yield { key: name, byteLength: Number(metadata.size) }
      query = next ?? undefined
    }
  },

  failureOf,
}
