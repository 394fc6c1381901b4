/** A real S3 server for the tests: VersityGW on a temporary folder, where it is installed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'

/** The program; `.ci/run` builds it. */
export const S3_PROGRAM = process.env.TILEWORK_VERSITYGW

export const BUCKET = 'models'

export interface S3Gateway {
  /** For the option `remote.s3`. */
  readonly settings: object
  readonly client: S3Client
  stop(): Promise<void>
}

export async function startS3(program: string): Promise<S3Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-s3-'))
  const port = await freePort()
  const args = ['--access', 'user', '--secret', 'password', '--port', `127.0.0.1:${port}`, 'posix', folder]
  const server = spawn(program, args, { stdio: 'ignore' })
  const settings = {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'user', secretAccessKey: 'password' },
  }
  const client = new S3Client({ ...settings, maxAttempts: 20 })
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
  return { settings, client, stop: () => stop(server, folder) }
}

async function stop(server: ChildProcess, folder: string): Promise<void> {
  const ended = new Promise((resolve) => server.once('exit', resolve))
  server.kill('SIGKILL')
  await ended
  rmSync(folder, { recursive: true })
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
