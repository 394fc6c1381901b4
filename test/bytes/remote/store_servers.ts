/** Real servers of object stores for the tests, on temporary folders, where they are installed. `.ci/run` installs them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  CreateBucketCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { BlobServiceClient } from '@azure/storage-blob'
import { Storage } from '@google-cloud/storage'
import type { RemoteOptions } from '../../../lib/index.js'

export const BUCKET = 'models'

/** A store with the bucket `models`. */
export interface StoreServer {
  readonly remote: RemoteOptions
  /** Settings by which a command finds the store. */
  readonly env: Readonly<Record<string, string>>
  put(key: string, bytes: Uint8Array): Promise<void>
  /** Keys of uploads that were begun and are neither complete nor removed. */
  unfinished(): Promise<(string | undefined)[]>
  stop(): Promise<void>
}

export interface Store {
  readonly scheme: 's3' | 'gs' | 'az'
  /** The program; undefined where it is not installed. */
  readonly program: string | undefined
  /** Options under which every request is refused. */
  wrong(remote: RemoteOptions): RemoteOptions
  start(): Promise<StoreServer>
}

export const S3: Store = {
  scheme: 's3',
  program: process.env.TILEWORK_VERSITYGW,
  wrong: ({ s3 }) => ({ s3: { ...s3, credentials: { accessKeyId: 'user', secretAccessKey: 'wrong' } } }),
  async start() {
    const { port, stop } = await startServer(this.program!, (port, folder) => [
      '--access',
      'user',
      '--secret',
      'password',
      '--port',
      `127.0.0.1:${port}`,
      'posix',
      folder,
    ])
    const endpoint = `http://127.0.0.1:${port}`
    const credentials = { accessKeyId: 'user', secretAccessKey: 'password' }
    const settings = { endpoint, region: 'us-east-1', credentials }
    const client = new S3Client({ ...settings, maxAttempts: 20 })
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
    return {
      remote: { s3: settings },
      env: {
        AWS_ENDPOINT_URL: endpoint,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'user',
        AWS_SECRET_ACCESS_KEY: 'password',
      },
      async put(key, bytes) {
        await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: bytes }))
      },
      async unfinished() {
        const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
        return Uploads.map(({ Key }) => Key)
      },
      stop,
    }
  },
}

export const GCS: Store = {
  scheme: 'gs',
  program: process.env.TILEWORK_FAKE_GCS_SERVER,
  wrong: ({ gs }) => ({ gs: { ...gs, apiEndpoint: 'http://127.0.0.1:1' }, retries: 0 }),
  async start() {
    const { port, stop } = await startServer(this.program!, (port, folder) => {
      const url = `http://127.0.0.1:${port}`
      return [
        '-scheme',
        'http',
        '-host',
        '127.0.0.1',
        '-port',
        `${port}`,
        '-filesystem-root',
        folder,
        '-external-url',
        url,
      ]
    })
    const settings = { apiEndpoint: `http://127.0.0.1:${port}`, projectId: 'test' }
    const client = new Storage(settings)
    const bucket = client.bucket(BUCKET)
    await untilUp(() => client.createBucket(BUCKET))
    return {
      remote: { gs: settings },
      env: { STORAGE_EMULATOR_HOST: `${settings.apiEndpoint}/storage/v1`, GOOGLE_CLOUD_PROJECT: 'test' },
      put: (key, bytes) => bucket.file(key).save(Buffer.from(bytes), { resumable: false }),
      unfinished: async () => [],
      stop,
    }
  },
}

/** Azurite's own account, which its documentation publishes. */
const AZURITE_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

export const AZURE: Store = {
  scheme: 'az',
  program: process.env.TILEWORK_AZURITE,
  wrong: ({ az }) => ({ az: { ...az, accountKey: Buffer.from('wrong').toString('base64') } }),
  async start() {
    const { port, stop } = await startServer(this.program!, (port, folder) => [
      '--blobPort',
      `${port}`,
      '--location',
      folder,
      '--silent',
      '--skipApiVersionCheck',
    ])
    const account = 'devstoreaccount1'
    const url = `http://127.0.0.1:${port}/${account}`
    const connectionString = `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${AZURITE_KEY};BlobEndpoint=${url};`
    const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient(BUCKET)
    await untilUp(() => container.create())
    return {
      remote: { az: { account, url, accountKey: AZURITE_KEY } },
      env: { AZURE_STORAGE_CONNECTION_STRING: connectionString },
      async put(key, bytes) {
        await container.getBlockBlobClient(key).upload(bytes, bytes.byteLength)
      },
      // The store removes blocks that no list names.
      unfinished: async () => [],
      stop,
    }
  },
}

async function startServer(program: string, argsOf: (port: number, folder: string) => string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-store-'))
  const port = await freePort()
  const server = spawn(program, argsOf(port, folder), { stdio: 'ignore' })
  return { port, stop: () => stop(server, folder) }
}

async function untilUp(request: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await request()
      return
    } catch (error) {
      if (attempt === 100) throw error
      await delay(100)
    }
  }
}

async function stop(server: ChildProcess, folder: string): Promise<void> {
  const ended = new Promise((resolve) => server.once('exit', resolve))
  server.kill('SIGKILL')
  await ended
  rmSync(folder, { recursive: true, force: true })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
