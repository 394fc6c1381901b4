/** Where a planned file goes, written front to back: a path, a stream, or memory. */
import { MappedFileSource } from '../bytes/mapped_file.js'
import type { ByteSource } from '../bytes/source.js'
import { systemError } from '../bytes/system_error.js'
import { native } from '../native.js'

export interface Sink {
  /** Appends bytes; they may be reused when the promise resolves. */
  write(bytes: Uint8Array): Promise<void>
  /** Appends a range of a source, without passing through JavaScript where both sides allow. */
  copy(source: ByteSource, start: number, end: number): Promise<void>
  /** Makes the result visible. */
  commit(): Promise<void>
  /** Leaves everything as it was before, as far as the target allows. */
  abort(reason: unknown): Promise<void>
}

/** A file that appears under its name, complete, on commit. Errors: ERR_IO. */
export function pathSink(path: string, byteLength: number): Sink {
  const output = systemError.wrap(path, () => native().createOutput(path, byteLength))
  let position = 0
  const write = async (bytes: Uint8Array): Promise<void> => {
    await systemError.wrapAsync(path, () => output.write(bytes, position))
    position += bytes.byteLength
  }
  return {
    write,
    copy: async (source, start, end) => {
      if (!(source instanceof MappedFileSource)) return write(await source.read(start, end))
      await systemError.wrapAsync(path, () => output.copyFrom(source.native, start, end, position))
      position += end - start
    },
    commit: () => systemError.wrapAsync(path, () => output.commit()),
    abort: async () => output.abort(),
  }
}

/** A web stream; its queue decides how far writing runs ahead of the reader. */
export function streamSink(stream: WritableStream<Uint8Array>): Sink {
  const writer = stream.getWriter()
  const write = async (bytes: Uint8Array): Promise<void> => {
    await writer.ready
    await writer.write(bytes)
  }
  return {
    write,
    copy: async (source, start, end) => write(await source.read(start, end)),
    commit: () => writer.close(),
    // A stream that failed is already aborted; its own error reaches the caller through `write`.
    abort: (reason) => writer.abort(reason).catch(() => undefined),
  }
}

/** Memory of the right length. */
export function memorySink(target: Uint8Array): Sink {
  let position = 0
  const write = async (bytes: Uint8Array): Promise<void> => {
    target.set(bytes, position)
    position += bytes.byteLength
  }
  return {
    write,
    copy: async (source, start, end) => write(await source.read(start, end)),
    commit: async () => undefined,
    abort: async () => undefined,
  }
}
