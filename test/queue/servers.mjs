/** Real servers for tests of queues: Redis and an S3 gateway, each on loopback, on a free port, in a temporary folder. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'

/** The program: `TILEWORK_REDIS_SERVER`, else `redis-server` or `valkey-server` of the PATH; undefined where there is none. */
export const REDIS_PROGRAM = [process.env.TILEWORK_REDIS_SERVER, 'redis-server', 'valkey-server'].find(
  (name) => name && spawnSync(name, ['--version']).status === 0,
)

export const NO_REDIS = 'there is no redis-server; TILEWORK_REDIS_SERVER names one'

/** The S3 gateway; `.ci/run` builds it. */
export const S3_PROGRAM = process.env.TILEWORK_VERSITYGW

export const BUCKET = 'models'

/** A Redis server that may be restarted on the same port, with what it had on disk. */
export class RedisServer {
  #child
  #folder = mkdtempSync(join(tmpdir(), 'tilework-redis-'))
  #args
  port = 0

  /** @param args further arguments, such as `--requirepass x` */
  constructor(args = []) {
    this.#args = args
  }

  static async start(args) {
    const server = new RedisServer(args)
    server.port = await freePort()
    await server.start()
    return server
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`
  }

  get pid() {
    return this.#child.pid
  }

  async start() {
    const place = ['--bind', '127.0.0.1', '--port', String(this.port), '--dir', this.#folder]
    const args = [...place, '--save', '', '--appendonly', 'yes', '--loglevel', 'warning', ...this.#args]
    this.#child = spawn(REDIS_PROGRAM, args, { stdio: 'ignore' })
    await untilListening(this.port)
  }

  /** @param signal SIGTERM lets it write all it has; SIGKILL loses up to a second */
  async end(signal = 'SIGTERM') {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGCONT')
    this.#child.kill(signal)
    await ended
  }

  /** Stops it and removes its folder. */
  async stop() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.end('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** An S3 gateway with one bucket. */
export async function startS3() {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-s3-'))
  const port = await freePort()
  const args = ['--access', 'user', '--secret', 'password', '--port', `127.0.0.1:${port}`, 'posix', folder]
  const server = spawn(S3_PROGRAM, args, { stdio: 'ignore' })
  await untilListening(port)
  const credentials = { accessKeyId: 'user', secretAccessKey: 'password' }
  const endpoint = `http://127.0.0.1:${port}`
  const client = new S3Client({ endpoint, region: 'us-east-1', credentials, maxAttempts: 20 })
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
  return {
    port,
    client,
    /** For the environment of a process that asks the server at `port`. */
    environment: (at = port) => ({
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${at}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'user',
      AWS_SECRET_ACCESS_KEY: 'password',
    }),
    stop: async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * A proxy before a server that fails a share of the requests: half with status 503, the others by a cut connection, before or
 * after the server has done what was asked.
 *
 * @param random numbers from 0 to 1
 */
export async function startFaultyProxy(target, share, random) {
  const counts = { requests: 0, failed: 0 }
  const agent = new http.Agent({ keepAlive: true })
  const proxy = http.createServer((request, response) => {
    counts.requests++
    const fate = random() / share
    if (fate < 1) counts.failed++
    if (fate < 0.5) {
      request.resume()
      response
        .writeHead(503, { 'content-type': 'application/xml' })
        .end('<Error><Code>SlowDown</Code></Error>')
      return
    }
    if (fate < 0.75) {
      request.socket.destroy()
      return
    }
    const { method, url: path, headers } = request
    const forwarded = http.request(
      { host: '127.0.0.1', port: target, method, path, headers, agent },
      (answer) => {
        if (fate < 1) {
          answer.resume()
          request.socket.destroy()
          return
        }
        response.writeHead(answer.statusCode, answer.headers)
        answer.pipe(response)
      },
    )
    forwarded.on('error', () => request.socket.destroy())
    request.on('error', () => forwarded.destroy())
    request.pipe(forwarded)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    port: proxy.address().port,
    counts,
    stop: async () => {
      agent.destroy()
      proxy.closeAllConnections()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}

/** A port of loopback that nothing listens at. */
export async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** @throws Error where nothing listens after ten seconds */
async function untilListening(port) {
  for (let attempts = 0; attempts < 200; attempts++) {
    const answers = await new Promise((resolve) => {
      const request = http.get({ host: '127.0.0.1', port, timeout: 1000 }, () => resolve(true))
      // A server that is not one of HTTP answers something else, or cuts the connection.
      request.on('error', ({ code }) => resolve(code !== 'ECONNREFUSED'))
    })
    if (answers) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing listens on port ${port}`)
}
