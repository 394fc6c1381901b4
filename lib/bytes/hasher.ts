/**
 * SHA-256 of long byte streams on worker threads, so that hashing does not block the JavaScript thread. Node has no
 * incremental hash that runs on its thread pool: `crypto.subtle.digest` needs all bytes at once.
 *
 * Buffers are transferred to the worker and back, never copied. The caller passes bytes and not a path, because the path may
 * name another file by the time the worker opens it.
 */
import { createHash, type Hash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { TileworkError } from '../errors.js'

/**
 * Shorter streams are hashed on the calling thread, which takes less than a few milliseconds. Starting a worker takes
 * about 30 ms.
 */
export const WORKER_THRESHOLD_BYTES = 4 * 1024 * 1024

/** One buffer is filled while the other one is hashed. */
const BUFFERS_PER_STREAM = 2

/** One worker hashes about 1.5 GB/s, so a few of them keep up with any disk. */
const MAX_WORKERS = Math.max(1, Math.min(4, availableParallelism() - 1))

/** A SHA-256 in progress. Request a buffer, fill it, push it, and repeat. */
export interface Hasher {
  /** A buffer of `chunkBytes`, owned by the caller until `push`. Waits until one is free. */
  buffer(): Promise<Uint8Array<ArrayBuffer>>
  /** Appends the first `length` bytes of the buffer. */
  push(buffer: Uint8Array<ArrayBuffer>, length: number): void
  /** Hexadecimal hash of all pushed bytes. The hasher cannot be used afterwards. */
  digest(): Promise<string>
  /** Closes the hasher without a result. May be called after `digest`. */
  close(): void
}

/**
 * @param totalBytes - expected length of the stream, which decides where it is hashed
 * @param chunkBytes - length of the buffers
 */
export function createHasher(totalBytes: number, chunkBytes: number): Hasher {
  if (totalBytes < WORKER_THRESHOLD_BYTES) return new LocalHasher(chunkBytes)
  const worker = leastBusyWorker()
  return worker ? new WorkerHasher(worker, chunkBytes) : new LocalHasher(chunkBytes)
}

class LocalHasher implements Hasher {
  readonly #hash: Hash = createHash('sha256')
  readonly #buffer: Uint8Array<ArrayBuffer>

  constructor(chunkBytes: number) {
    this.#buffer = new Uint8Array(chunkBytes)
  }

  async buffer(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#buffer
  }

  push(buffer: Uint8Array<ArrayBuffer>, length: number): void {
    this.#hash.update(buffer.subarray(0, length))
  }

  async digest(): Promise<string> {
    return this.#hash.digest('hex')
  }

  close(): void {}
}

/** From the hasher to its worker: a chunk to append, or the end of the stream. */
type Request =
  | { readonly id: number; readonly chunk: Uint8Array<ArrayBuffer>; readonly length: number }
  | { readonly id: number; readonly end: 'digest' | 'close' }

/** From the worker: a buffer that is free again, or the hash. */
type Reply =
  | { readonly id: number; readonly chunk: Uint8Array<ArrayBuffer> }
  | { readonly id: number; readonly digest: string }

/** The program of a worker, as text and not as a file so that it also works inside a user's bundle. */
const WORKER_PROGRAM = `
const { createHash } = require('node:crypto')
const { parentPort } = require('node:worker_threads')
const hashes = new Map()
parentPort.on('message', ({ id, chunk, length, end }) => {
  if (end === 'close') {
    hashes.delete(id)
    return
  }
  if (!hashes.has(id)) hashes.set(id, createHash('sha256'))
  const hash = hashes.get(id)
  if (end === 'digest') {
    hashes.delete(id)
    parentPort.postMessage({ id, digest: hash.digest('hex') })
    return
  }
  hash.update(chunk.subarray(0, length))
  parentPort.postMessage({ id, chunk }, [chunk.buffer])
})`

/** A thread that hashes several streams. It keeps the process alive only while it has one. */
class HashWorker {
  readonly #worker: Worker
  readonly #streams = new Map<number, WorkerHasher>()
  #lastId = 0

  constructor() {
    // No flags of the process: --import, for example, would run the user's program here.
    this.#worker = new Worker(WORKER_PROGRAM, { eval: true, execArgv: [], name: 'tilework hashing' })
    this.#worker.unref()
    this.#worker.on('message', (reply: Reply) => this.#streams.get(reply.id)?.receive(reply))
    this.#worker.on('error', (error) => this.#fail(error))
    this.#worker.on('exit', () => this.#fail(new Error('the worker thread has ended')))
  }

  get streams(): number {
    return this.#streams.size
  }

  add(hasher: WorkerHasher): number {
    if (this.#streams.size === 0) this.#worker.ref()
    this.#streams.set(++this.#lastId, hasher)
    return this.#lastId
  }

  remove(id: number): void {
    if (!this.#streams.delete(id)) return
    if (this.#streams.size === 0) this.#worker.unref()
  }

  post(request: Request): void {
    this.#worker.postMessage(request, 'chunk' in request ? [request.chunk.buffer] : [])
  }

  #fail(cause: unknown): void {
    const index = workers.indexOf(this)
    if (index !== -1) workers.splice(index, 1)
    for (const hasher of [...this.#streams.values()]) hasher.fail(cause)
  }
}

/** Workers are started on demand and kept: a run over many files has one stream per file. */
const workers: HashWorker[] = []

/** Undefined where the runtime allows no threads, for example by Node's permission model. */
function leastBusyWorker(): HashWorker | undefined {
  const idle = workers.find(({ streams }) => streams === 0)
  if (idle) return idle
  if (workers.length < MAX_WORKERS) {
    try {
      const worker = new HashWorker()
      workers.push(worker)
      return worker
    } catch {
      return undefined
    }
  }
  return workers.toSorted((one, other) => one.streams - other.streams)[0]
}

/** `resolve` and `reject` of a promise. */
interface Waiting<T> {
  resolve(value: T): void
  reject(error: unknown): void
}

class WorkerHasher implements Hasher {
  readonly #worker: HashWorker
  readonly #id: number
  readonly #chunkBytes: number
  readonly #free: Uint8Array<ArrayBuffer>[] = []
  #created = 0
  #bufferWaiting: Waiting<Uint8Array<ArrayBuffer>> | undefined
  #digestWaiting: Waiting<string> | undefined
  #failure: TileworkError | undefined

  constructor(worker: HashWorker, chunkBytes: number) {
    this.#worker = worker
    this.#chunkBytes = chunkBytes
    this.#id = worker.add(this)
  }

  async buffer(): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#failure) throw this.#failure
    const free = this.#free.pop()
    if (free) return free
    if (this.#created < BUFFERS_PER_STREAM) {
      this.#created++
      return new Uint8Array(this.#chunkBytes)
    }
    return new Promise((resolve, reject) => {
      this.#bufferWaiting = { resolve, reject }
    })
  }

  push(buffer: Uint8Array<ArrayBuffer>, length: number): void {
    this.#worker.post({ id: this.#id, chunk: buffer, length })
  }

  async digest(): Promise<string> {
    if (this.#failure) throw this.#failure
    this.#worker.post({ id: this.#id, end: 'digest' })
    return new Promise((resolve, reject) => {
      this.#digestWaiting = { resolve, reject }
    })
  }

  close(): void {
    this.#worker.post({ id: this.#id, end: 'close' })
    this.#worker.remove(this.#id)
  }

  receive(reply: Reply): void {
    if ('digest' in reply) {
      this.#worker.remove(this.#id)
      this.#digestWaiting?.resolve(reply.digest)
      return
    }
    const waiting = this.#bufferWaiting
    this.#bufferWaiting = undefined
    if (waiting) waiting.resolve(reply.chunk)
    else this.#free.push(reply.chunk)
  }

  fail(cause: unknown): void {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const failure = new TileworkError('ERR_IO', `Hashing failed: ${reason}.`, { cause })
    this.#failure = failure
    this.#worker.remove(this.#id)
    this.#bufferWaiting?.reject(failure)
    this.#digestWaiting?.reject(failure)
  }
}
