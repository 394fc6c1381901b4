/** Blobs under `az://container/key`, by the Azure SDK. Uploads stage blocks; committing their list creates the blob. */
import { randomUUID } from 'node:crypto'
import type * as Azure from '@azure/storage-blob'
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
import type { RemoteUpload } from './url_scheme.js'

/** Azure refuses more blocks in a blob (Azure Storage, "Put Block List"). */
const MAX_BLOCKS = 50_000

type Sdk = typeof Azure
type Client = Azure.BlobServiceClient
const loadSdk = (): Sdk => optionalPeer('@azure/storage-blob', 'URLs of az:')

/** The settings of `remote.az`. What is absent comes from the environment, by the names that the tools of Azure use. */
interface AzureSettings {
  readonly connectionString?: string
  /** Name of the storage account. */
  readonly account?: string
  /** Default `https://ACCOUNT.blob.core.windows.net`. */
  readonly url?: string
  readonly accountKey?: string
  readonly sasToken?: string
  readonly credential?: Azure.StorageSharedKeyCredential | Azure.AnonymousCredential
}

const clients = new Clients<Client>()

function clientOf(sdk: Sdk, { az, timeout }: CheckedRemoteOptions): Client {
  // The caller's client, known by a method: `instanceof` fails where the SDK is loaded twice.
  if (az && 'getContainerClient' in az) return az as Client
  return clients.get(az, (settings) => newClient(sdk, settingsOf(settings), timeout))
}

function settingsOf(given: AzureSettings): AzureSettings {
  const { env } = process
  // The caller's settings are never completed from the environment: its key may belong to another account.
  if (Object.keys(given).length > 0) return given
  const settings = {
    connectionString: env.AZURE_STORAGE_CONNECTION_STRING,
    account: env.AZURE_STORAGE_ACCOUNT,
    accountKey: env.AZURE_STORAGE_KEY,
    sasToken: env.AZURE_STORAGE_SAS_TOKEN,
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value))
}

function newClient(sdk: Sdk, settings: AzureSettings, timeout: number): Client {
  const { connectionString, account, accountKey, sasToken } = settings
  // tilework repeats requests itself, because it also notices a truncated response.
  const options = { retryOptions: { maxTries: 1, tryTimeoutInMs: timeout } }
  if (connectionString !== undefined) {
    return sdk.BlobServiceClient.fromConnectionString(connectionString, options)
  }
  const url = settings.url ?? (account && `https://${account}.blob.core.windows.net`)
  if (url === undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      'az: URLs need an account: set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT, or remote: { az: { account } }.',
    )
  }
  if (sasToken !== undefined) {
    return new sdk.BlobServiceClient(`${url}?${sasToken.replace(/^\?/, '')}`, undefined, options)
  }
  if (accountKey === undefined)
    return new sdk.BlobServiceClient(url, settings.credential ?? identity(), options)
  if (account === undefined) {
    throw new TileworkError('ERR_ARGUMENT', 'remote.az.accountKey needs remote.az.account.')
  }
  return new sdk.BlobServiceClient(url, new sdk.StorageSharedKeyCredential(account, accountKey), options)
}

/** Azure's default credential chain: environment, workload identity, managed identity, `az login`. */
function identity(): Azure.AnonymousCredential {
  type Identity = { readonly DefaultAzureCredential: new () => Azure.AnonymousCredential }
  const sdk = optionalPeer<Identity>('@azure/identity', 'URLs of az: without a key or a SAS token')
  return new sdk.DefaultAzureCredential()
}

class AzureObject implements StoredObject {
  readonly #client: Azure.BlockBlobClient
  readonly #options: CheckedRemoteOptions
  readonly #abort: { readonly abortSignal?: AbortSignal }

  constructor({ bucket, key }: StorePlace, options: CheckedRemoteOptions) {
    this.#options = options
    this.#client = clientOf(loadSdk(), options).getContainerClient(bucket).getBlockBlobClient(key)
    this.#abort = options.signal ? { abortSignal: options.signal } : {}
  }

  async get(start: number, end: number, version?: string): Promise<StoredRange> {
    const { readableStreamBody, contentRange, etag } = await this.#client.download(start, end - start, {
      ...this.#abort,
      ...(version !== undefined && { conditions: { ifMatch: version } }),
    })
    return {
      bytes: await bodyOf(readableStreamBody!, end - start, this.#options),
      contentRange,
      version: etag,
    }
  }

  async length(): Promise<number | undefined> {
    return (await this.#client.getProperties(this.#abort)).contentLength
  }

  async put(bytes: Uint8Array): Promise<void> {
    await this.#client.upload(bytes, bytes.byteLength, this.#abort)
  }

  /** Blocks that were never committed are invisible. Azure deletes them after a week; no request deletes them earlier. */
  async begin(byteLength: number): Promise<RemoteUpload> {
    // A unique prefix separates the blocks of concurrent uploads. Azure requires block names of equal length within a blob.
    const upload = randomUUID()
    const names: string[] = []
    return {
      partBytes: Math.max(PART_BYTES, Math.ceil(byteLength / MAX_BLOCKS)),
      writePart: async (index, bytes) => {
        const name = Buffer.from(`${upload}-${String(index).padStart(5, '0')}`).toString('base64')
        await this.#client.stageBlock(name, bytes, bytes.byteLength, this.#abort)
        names[index] = name
      },
      commit: async () => {
        await this.#client.commitBlockList(names, this.#abort)
      },
      abort: async () => undefined,
    }
  }
}

/** What the SDK throws. */
interface AzureError {
  readonly name?: string
  /** The first line describes the error, the others the request. */
  readonly message?: string
  readonly code?: string
  readonly statusCode?: number
  readonly details?: { readonly errorCode?: string }
}

function failureOf(error: unknown): StoreFailure {
  const { name, message = '', code, statusCode, details } = error as AzureError
  const [line] = message.split('\n')
  return {
    status: statusCode,
    isConnection: code !== undefined,
    text: `${details?.errorCode ?? code ?? name}: ${line}`,
  }
}

export const azureStore: StoreAdapter = {
  connect: (place, options) => new AzureObject(place, options),

  async *list({ bucket, key }, options) {
    const container = clientOf(loadSdk(), options).getContainerClient(bucket)
    for await (const { name, properties } of container.listBlobsFlat({ prefix: key })) {
      yield { key: name, byteLength: properties.contentLength ?? 0 }
    }
  },

  failureOf,
}
