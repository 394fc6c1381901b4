/**
 * Writes the pieces of a file into a sink: a bounded number of them under way, so that one is read or computed while
 * another is written, and small neighbours gathered into one write.
 */
import { systemError } from '../bytes/system_error.js'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { yieldToEventLoop } from '../event_loop.js'
import type { Piece } from './pieces.js'
import type { ProgressReport } from './progress.js'
import type { Sink } from './sink.js'

/** Pieces under way: one is read or computed, one is written, one waits, so that none of the two is ever idle. */
const PIECES_UNDER_WAY = 3
/** Pieces up to this size are gathered: a file of a million small tensors must not be a million writes. */
const SMALL_BYTES = 32 * 1024
const GATHERED_BYTES = 1024 * 1024

export interface WriteContext {
  /** Length of the whole file. */
  readonly byteLength: number
  readonly sink: Sink
  readonly progress: ProgressReport
  readonly signal: AbortSignal | undefined
  /** Non-zero when the signal has fired; for the addon's threads. */
  readonly cancel: Int32Array | undefined
}

/** @throws TileworkError whatever a source or the sink throws first; nothing is under way any more then */
export async function writePieces(pieces: Iterable<Piece>, context: WriteContext): Promise<void> {
  const writer = new PieceWriter(context)
  try {
    for (const piece of pieces) await writer.add(piece)
    await writer.finish()
  } finally {
    await writer.settle()
  }
  writer.throwFirstError()
}

class PieceWriter {
  readonly #context: WriteContext
  readonly #underWay = new Set<Promise<void>>()
  /** For sinks that take writes in order: the end of the last one. */
  #lastWrite: Promise<void> = Promise.resolve()
  #error: { readonly reason: unknown } | undefined
  /** Made when the first small piece comes; most saves of few tensors need little of it, or none. */
  #gathered: Uint8Array | undefined
  #gatheredLength = 0
  #gatheredTensors = 0
  #gatheredPosition = 0
  /** End of the last piece. */
  #end = 0

  constructor(context: WriteContext) {
    this.#context = context
  }

  async add(piece: Piece): Promise<void> {
    await yieldToEventLoop()
    throwIfAborted(this.#context.signal)
    this.#end = piece.position + piece.byteLength
    if (this.#end > this.#context.byteLength) throw this.#changedError()
    if (piece.byteLength <= SMALL_BYTES) await this.#gather(piece)
    else {
      await this.flush()
      await this.#start(piece)
    }
  }

  /** Starts the last write. @throws TileworkError ERR_ARGUMENT when the pieces are not the whole file */
  async finish(): Promise<void> {
    if (this.#end !== this.#context.byteLength) throw this.#changedError()
    await this.flush()
  }

  /** Writes what was gathered. */
  async flush(): Promise<void> {
    if (!this.#gathered) return
    const [bytes, tensors] = [this.#gathered.subarray(0, this.#gatheredLength), this.#gatheredTensors]
    const position = this.#gatheredPosition
    this.#gathered = undefined
    this.#gatheredLength = 0
    this.#gatheredTensors = 0
    await this.#start({ kind: 'bytes', bytes, position, byteLength: bytes.byteLength, tensors })
  }

  /** Waits until nothing is under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  throwFirstError(): void {
    if (this.#error) throw this.#error.reason
  }

  /** Tensors of a user's own may say another shape whenever they are asked. */
  #changedError(): TileworkError {
    const message = `A tensor changed its type, shape or layout while it was saved: the file was planned with ${this.#context.byteLength} bytes, and the tensors up to this one end at ${this.#end}.`
    return new TileworkError('ERR_ARGUMENT', message)
  }

  async #gather(piece: Piece): Promise<void> {
    if (this.#gatheredLength + piece.byteLength > GATHERED_BYTES) await this.flush()
    if (!this.#gathered) {
      this.#gatheredPosition = piece.position
      this.#gathered = new Uint8Array(Math.min(GATHERED_BYTES, this.#context.byteLength - piece.position))
    }
    const bytes = piece.kind === 'bytes' ? piece.bytes : await bytesOf(piece, this.#context.signal)
    this.#gathered.set(bytes, this.#gatheredLength)
    this.#gatheredLength += bytes.byteLength
    this.#gatheredTensors += piece.tensors
  }

  async #start(piece: Piece): Promise<void> {
    while (this.#underWay.size >= PIECES_UNDER_WAY) await Promise.race(this.#underWay)
    this.throwFirstError()
    const before = this.#lastWrite
    const written = this.#write(piece, before).then(() =>
      this.#context.progress.add(piece.byteLength, piece.tensors),
    )
    const settled = written
      .catch((reason: unknown) => {
        this.#error ??= { reason }
      })
      .finally(() => this.#underWay.delete(settled))
    this.#underWay.add(settled)
    this.#lastWrite = settled
  }

  async #write(piece: Piece, before: Promise<void>): Promise<void> {
    const { sink, signal, cancel } = this.#context
    if (sink.run && (piece.kind === 'copied' || piece.kind === 'computed')) return sink.run(piece, cancel)
    const bytes = piece.kind === 'bytes' ? piece.bytes : await bytesOf(piece, signal)
    if (sink.isOrdered) {
      await before
      this.throwFirstError()
    }
    return sink.write(bytes, piece.position)
  }
}

/** The bytes of a piece that passes through JavaScript, or is too small to be worth a job of its own. */
async function bytesOf(
  piece: Exclude<Piece, { kind: 'bytes' }>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  if (piece.kind === 'produced') return untilAborted(piece.produce(signal), signal)
  const bytes = new Uint8Array(piece.byteLength)
  const { file, start, label } = piece
  const end = start + bytes.byteLength
  await systemError.wrapAsync(label, async () => {
    if (piece.kind === 'copied') file.readSync(start, bytes)
    else if (piece.plan.runFileSync) piece.plan.runFileSync(file, piece.offset, bytes, start, end)
    else await piece.plan.runFile(file, piece.offset, bytes, start, end)
  })
  return bytes
}
