/**
 * Writes the chunks of a file into a sink. A bounded number is in flight, so that one chunk is read or computed while another one
 * is written; adjacent small chunks are combined into one write.
 */
import { systemError } from '../bytes/system_error.js'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { yieldToEventLoop } from '../event_loop.js'
import type { Chunk } from './chunks.js'
import type { ProgressReport } from './progress.js'
import type { Sink } from './sink.js'

/** One chunk is read or computed, one is written, and one waits, so that neither side is idle. */
const MAX_CHUNKS_IN_FLIGHT = 3
/** Chunks up to this size are combined: a file of a million small tensors must not be a million writes. */
const MAX_COMBINED_CHUNK_BYTES = 32 * 1024
const COMBINED_WRITE_BYTES = 1024 * 1024

export interface WriteContext {
  /** Length of the whole file. */
  readonly byteLength: number
  readonly sink: Sink
  readonly progress: ProgressReport
  readonly signal: AbortSignal | undefined
  /** Non-zero when the signal has fired. Read by the threads of the addon. */
  readonly cancel: Int32Array | undefined
}

/** @throws TileworkError the first error of a source or of the sink, after all chunks in flight have settled */
export async function writeChunks(chunks: Iterable<Chunk>, context: WriteContext): Promise<void> {
  const writer = new ChunkWriter(context)
  try {
    for (const chunk of chunks) await writer.add(chunk)
    await writer.finish()
  } finally {
    await writer.settle()
  }
  writer.throwFirstError()
}

class ChunkWriter {
  readonly #context: WriteContext
  readonly #inFlight = new Set<Promise<void>>()
  /** For sinks that need writes in order: settles with the previous write. */
  #lastWrite: Promise<void> = Promise.resolve()
  #error: { readonly reason: unknown } | undefined
  /** Buffer for combined chunks, allocated with the first small chunk; many saves do not need it. */
  #combined: Uint8Array | undefined
  #combinedLength = 0
  #combinedTensors = 0
  #combinedPosition = 0
  /** End offset of the last chunk. */
  #end = 0

  constructor(context: WriteContext) {
    this.#context = context
  }

  async add(chunk: Chunk): Promise<void> {
    await yieldToEventLoop()
    throwIfAborted(this.#context.signal)
    this.#end = chunk.position + chunk.byteLength
    if (this.#end > this.#context.byteLength) throw this.#changedError()
    if (chunk.byteLength <= MAX_COMBINED_CHUNK_BYTES) await this.#combine(chunk)
    else {
      await this.flush()
      await this.#start(chunk)
    }
  }

  /** Starts the last write. @throws TileworkError ERR_ARGUMENT if the chunks do not cover the whole file */
  async finish(): Promise<void> {
    if (this.#end !== this.#context.byteLength) throw this.#changedError()
    await this.flush()
  }

  /** Writes the combined chunks. */
  async flush(): Promise<void> {
    if (!this.#combined) return
    const [bytes, tensors] = [this.#combined.subarray(0, this.#combinedLength), this.#combinedTensors]
    const position = this.#combinedPosition
    this.#combined = undefined
    this.#combinedLength = 0
    this.#combinedTensors = 0
    await this.#start({ kind: 'bytes', bytes, position, byteLength: bytes.byteLength, tensors })
  }

  /** Waits until no chunk is in flight. */
  async settle(): Promise<void> {
    await Promise.all(this.#inFlight)
  }

  throwFirstError(): void {
    if (this.#error) throw this.#error.reason
  }

  /** The error for a file whose length differs from its plan: a caller's own tensor may change its shape at any time. */
  #changedError(): TileworkError {
    const message = `A tensor changed its dtype, shape or layout while it was saved: the file was planned with ${this.#context.byteLength} bytes, but its tensors up to this one end at ${this.#end}.`
    return new TileworkError('ERR_ARGUMENT', message)
  }

  async #combine(chunk: Chunk): Promise<void> {
    if (this.#combinedLength + chunk.byteLength > COMBINED_WRITE_BYTES) await this.flush()
    if (!this.#combined) {
      this.#combinedPosition = chunk.position
      this.#combined = new Uint8Array(
        Math.min(COMBINED_WRITE_BYTES, this.#context.byteLength - chunk.position),
      )
    }
    const bytes = chunk.kind === 'bytes' ? chunk.bytes : await bytesOf(chunk, this.#context.signal)
    this.#combined.set(bytes, this.#combinedLength)
    this.#combinedLength += bytes.byteLength
    this.#combinedTensors += chunk.tensors
  }

  async #start(chunk: Chunk): Promise<void> {
    while (this.#inFlight.size >= MAX_CHUNKS_IN_FLIGHT) await Promise.race(this.#inFlight)
    this.throwFirstError()
    const before = this.#lastWrite
    const written = this.#write(chunk, before).then(() =>
      this.#context.progress.add(chunk.byteLength, chunk.tensors),
    )
    const settled = written
      .catch((reason: unknown) => {
        this.#error ??= { reason }
      })
      .finally(() => this.#inFlight.delete(settled))
    this.#inFlight.add(settled)
    this.#lastWrite = settled
  }

  async #write(chunk: Chunk, before: Promise<void>): Promise<void> {
    const { sink, signal, cancel } = this.#context
    if (sink.run && (chunk.kind === 'copied' || chunk.kind === 'computed')) return sink.run(chunk, cancel)
    const bytes = chunk.kind === 'bytes' ? chunk.bytes : await bytesOf(chunk, signal)
    if (sink.isOrdered) {
      await before
      this.throwFirstError()
    }
    return sink.write(bytes, chunk.position)
  }
}

/** The bytes of a chunk that passes through JavaScript, or is too small for a separate job of the addon. */
async function bytesOf(
  chunk: Exclude<Chunk, { kind: 'bytes' }>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  if (chunk.kind === 'produced') return untilAborted(chunk.produce(signal), signal)
  const bytes = new Uint8Array(chunk.byteLength)
  const { file, start, label } = chunk
  const end = start + bytes.byteLength
  await systemError.wrapAsync(label, async () => {
    if (chunk.kind === 'copied') file.readSync(start, bytes)
    else if (chunk.plan.runFileSync) chunk.plan.runFileSync(file, chunk.offset, bytes, start, end)
    else await chunk.plan.runFile(file, chunk.offset, bytes, start, end)
  })
  return bytes
}
