/** The targets of a save: a path, a stream, or memory. */
import { basename, dirname, join } from 'node:path'
import type { FileIdentity } from '../bytes/file_identity.js'
import { openOutput, openOutputBelow } from '../bytes/open_native.js'
import { systemError } from '../bytes/system_error.js'
import { untilAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import type { NativeOutputFile } from '../native/types.js'
import type { Chunk } from './chunks.js'

export type NativeChunk = Extract<Chunk, { kind: 'copied' | 'computed' }>

export interface Sink {
  /** True when writes must be sequential, in file order. */
  readonly isOrdered: boolean
  /** Writes bytes at an offset of the file. The caller may reuse the memory after the promise resolves. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /**
   * Writes a chunk without passing it through JavaScript. Absent where the target does not support it; then the bytes of the
   * chunk are read and passed to `write`.
   */
  run?(chunk: NativeChunk, cancel: Int32Array | undefined): Promise<void>
  /** Flushes to disk, so that the commit is fast. Absent where it would have no effect. */
  sync?(): Promise<void>
  /** Makes the result visible. */
  commit(): Promise<void>
  /** Restores the state before the save, as far as the target allows. */
  abort(reason: unknown): Promise<void>
}

interface OutputOptions {
  readonly byteLength: number
  /** The commit fails if the name exists. */
  readonly isNew: boolean
}

/** A file that appears under its name only on commit. Errors: ERR_IO. */
export function pathSink(path: string, { byteLength, isNew }: OutputOptions): Sink {
  // A new file has no link to follow.
  if (isNew) return siblingSink(dirname(path), basename(path), { byteLength, isNew })
  return outputSink(path, openOutput(path, byteLength))
}

/** A file below a folder. */
export interface SiblingSink extends Sink {
  /** Identity of the file; available after `sync` or `commit`. */
  identity(): FileIdentity
}

/**
 * As `pathSink`, for a file below a folder.
 *
 * @throws TileworkError also ERR_PATH_ESCAPE for a name behind a link that leads out of the folder
 */
export function siblingSink(folder: string, name: string, { byteLength, isNew }: OutputOptions): SiblingSink {
  const path = join(folder, name)
  const output = openOutputBelow({ folder, name }, byteLength, isNew ? 'new' : 'any')
  return {
    ...outputSink(path, output),
    identity: () => systemError.wrap(path, () => output.identity()),
  }
}

function outputSink(path: string, output: NativeOutputFile): Sink {
  const run = (chunk: NativeChunk, cancel: Int32Array | undefined): Promise<void> => {
    const { file, start, position } = chunk
    const end = start + chunk.byteLength
    if (chunk.kind === 'copied') return output.copyFrom(file, start, end, position, cancel)
    return chunk.plan.runToFile(file, chunk.offset, output, start, end, position, cancel)
  }
  return {
    isOrdered: false,
    write: (bytes, position) => writeAll(output, path, bytes, position),
    run: (chunk, cancel) => systemError.wrapAsync(path, () => run(chunk, cancel)),
    sync: () => systemError.wrapAsync(path, () => output.sync()),
    commit: () => systemError.wrapAsync(path, () => output.commit()),
    abort: async () => output.abort(),
  }
}

/** Writes bytes that may be a caller's memory. If it is transferred during the call, the call fails or writes wrong bytes. */
async function writeAll(
  output: NativeOutputFile,
  path: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  const { byteLength } = bytes
  const isLost = (): boolean => bytes.byteLength !== byteLength
  try {
    await systemError.wrapAsync(path, () => output.write(bytes, position))
  } catch (cause) {
    throw isLost() ? lostMemoryError(path, cause) : cause
  }
  if (isLost()) throw lostMemoryError(path)
}

function lostMemoryError(path: string, cause?: unknown): TileworkError {
  const message = 'the memory of a tensor was transferred or shrunk while it was written.'
  return new TileworkError('ERR_FILE_CHANGED', message, { path, cause })
}

/** Names a stream in error messages, in place of a path. */
const STREAM = 'the stream'

/**
 * A web stream. Its queue decides how far the writer may run ahead of the reader.
 *
 * @param signal - aborts the wait for a reader that has stopped reading
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
      // A failed stream is aborted already, and its error reaches the caller through `write`. With a stuck reader this promise
      // never settles, so it is not awaited.
      writer.abort(reason).catch(() => undefined)
    },
  }
}

/** A memory target; `target` has the length of the file. */
export function memorySink(target: Uint8Array): Sink {
  return {
    isOrdered: false,
    write: async (bytes, position) => target.set(bytes, position),
    commit: async () => undefined,
    abort: async () => undefined,
  }
}
