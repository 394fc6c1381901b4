/** Where a planned file goes: a path, a stream, or memory. */
import { systemError } from '../bytes/system_error.js'
import { untilAborted } from '../cancel.js'
import { native } from '../native/addon.js'
import type { Piece } from './pieces.js'

export type NativePiece = Extract<Piece, { kind: 'copied' | 'computed' }>

export interface Sink {
  /** True when writes must come one after the other, in file order. */
  readonly isOrdered: boolean
  /** Writes bytes at a place of the file; they may be reused when the promise resolves. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /**
   * Writes a piece without passing it through JavaScript. Absent where the target cannot; then the bytes of
   * the piece are read and written.
   */
  run?(piece: NativePiece, cancel: Int32Array | undefined): Promise<void>
  /** Puts what was written on disk, so that a commit has little left to do. Absent where nothing is gained. */
  sync?(): Promise<void>
  /** Makes the result visible. */
  commit(): Promise<void>
  /** Leaves everything as it was before, as far as the target allows. */
  abort(reason: unknown): Promise<void>
}

/** A file that appears under its name, complete, on commit. Errors: ERR_IO. */
export function pathSink(path: string, byteLength: number): Sink {
  const output = systemError.wrap(path, () => native().createOutput(path, byteLength))
  const run = (piece: NativePiece, cancel: Int32Array | undefined): Promise<void> => {
    const { file, start, position } = piece
    const end = start + piece.byteLength
    if (piece.kind === 'copied') return output.copyFrom(file, start, end, position, cancel)
    return piece.plan.runToFile(file, piece.offset, output, start, end, position, cancel)
  }
  return {
    isOrdered: false,
    write: (bytes, position) => systemError.wrapAsync(path, () => output.write(bytes, position)),
    run: (piece, cancel) => systemError.wrapAsync(path, () => run(piece, cancel)),
    sync: () => systemError.wrapAsync(path, () => output.sync()),
    commit: () => systemError.wrapAsync(path, () => output.commit()),
    abort: async () => output.abort(),
  }
}

/** Names a stream in errors, which have no path then. */
const STREAM = 'the stream'

/**
 * A web stream; its queue decides how far writing runs ahead of the reader.
 *
 * @param signal - ends the wait for a reader who takes nothing more
 */
export function streamSink(stream: WritableStream<Uint8Array>, signal: AbortSignal | undefined): Sink {
  const writer = systemError.wrap(STREAM, () => stream.getWriter())
  return {
    isOrdered: true,
    write: (bytes) =>
      systemError.wrapAsync(STREAM, async () => {
        await untilAborted(writer.ready, signal)
        await untilAborted(writer.write(bytes), signal)
      }),
    commit: () => systemError.wrapAsync(STREAM, () => untilAborted(writer.close(), signal)),
    abort: async (reason) => {
      // A stream that failed is already aborted; its own error reaches the caller through `write`. One whose reader
      // is stuck never answers, so nobody waits for it.
      writer.abort(reason).catch(() => undefined)
    },
  }
}

/** Memory of the right length. */
export function memorySink(target: Uint8Array): Sink {
  return {
    isOrdered: false,
    write: async (bytes, position) => target.set(bytes, position),
    commit: async () => undefined,
    abort: async () => undefined,
  }
}
