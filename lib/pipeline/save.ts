/**
 * Writes tensors to a path, a stream or memory. A format plans the file as segments; here the segments are
 * written in order, tensors window by window, so that memory stays bounded by a window a call.
 *
 * A path is written through a temporary in the same folder, which is renamed over the target only when every byte
 * is on disk: a failed write leaves the old file as it was.
 */
import { constants } from 'node:buffer'
import { Writable } from 'node:stream'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import type { WritePlan, WriteSegment } from '../formats/format.js'
import { chooseFormat, type FormatName, type WriteOptionsOf } from '../formats/registry.js'
import { throwIfAborted } from '../layout/plan.js'
import { storageReader } from '../tensor/storage_reader.js'
import type { DenseTensor, Tensor } from '../tensor/tensor.js'
import { type OpenFile, pathOf, sources } from './open.js'
import { memorySink, pathSink, type Sink, streamSink } from './sink.js'

/** What tensors without a file are written as when nothing says otherwise. */
const DEFAULT_FORMAT: FormatName = 'btf'

/** Bytes that are read, reordered and written at a time: large enough to make call costs vanish, small beside memory. */
export const WINDOW_BYTES = 8 * 1024 * 1024

export interface SaveProgress {
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly tensorsDone: number
  readonly tensorsTotal: number
}

export type SerializeOptions = {
  /** Default: the format of the file that is saved, else `btf`. For a path its extension goes first. */
  readonly format?: FormatName
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SaveProgress) => void
} & Partial<WriteOptionsOf<FormatName>>

export type SaveOptions = SerializeOptions

/** What can be saved: tensors, or an open file, which is written unchanged, byte for byte, in its own format. */
export type Saveable = OpenFile | Tensor | Iterable<Tensor>

/** A file that is planned but not written. */
interface PlannedFile {
  readonly plan: WritePlan
  readonly tensorsTotal: number
}

/**
 * Saves tensors, or an open file, to a path or a stream.
 *
 * @throws TileworkError ERR_UNSUPPORTED before anything is written for what the format cannot hold; ERR_IO;
 * ERR_ABORTED; ERR_FILE_CHANGED when a source changed under the read. The target is then as it was before.
 */
export async function save(
  target: string | URL | WritableStream<Uint8Array> | Writable,
  content: Saveable,
  options: SaveOptions = {},
): Promise<void> {
  throwIfAborted(options.signal)
  const planned = await planFile(content, options, pathOf(target))
  await writeAll(planned, openSink(target, planned.plan.byteLength), options)
}

/**
 * As `save`, into memory.
 *
 * @throws TileworkError as `save`, and ERR_VIEW_TOO_LARGE when the file does not fit one Uint8Array
 */
export async function serialize(content: Saveable, options: SerializeOptions = {}): Promise<Uint8Array> {
  throwIfAborted(options.signal)
  const planned = await planFile(content, options, undefined)
  const { byteLength } = planned.plan
  if (byteLength > constants.MAX_LENGTH) {
    throw new TileworkError(
      'ERR_VIEW_TOO_LARGE',
      `The file has ${byteLength} bytes and one Uint8Array has at most ${constants.MAX_LENGTH}; save it to a path.`,
    )
  }
  const bytes = new Uint8Array(byteLength)
  await writeAll(planned, memorySink(bytes), options)
  return bytes
}

async function planFile(
  content: Saveable,
  options: SerializeOptions,
  path: string | undefined,
): Promise<PlannedFile> {
  const source = sources.get(content as OpenFile)
  const own = source && (content as OpenFile).format
  const format = chooseFormat(options.format, path, own ?? DEFAULT_FORMAT)
  if (source && format.name === own) return unchanged(source, content as OpenFile)
  const tensors = source
    ? [...(content as OpenFile).tensors]
    : listTensors(content as Tensor | Iterable<Tensor>)
  return { plan: await format.plan(tensors, options), tensorsTotal: tensors.length }
}

function unchanged(source: ByteSource, file: OpenFile): PlannedFile {
  const segments: WriteSegment[] = [{ kind: 'range', source, start: 0, end: source.byteLength }]
  return { plan: { byteLength: source.byteLength, segments }, tensorsTotal: file.tensors.length }
}

function listTensors(content: Tensor | Iterable<Tensor>): Tensor[] {
  if (typeof content === 'object' && content !== null) {
    if (Symbol.iterator in content) return [...content]
    if ('dtype' in content && 'shape' in content) return [content]
  }
  throw new TileworkError('ERR_ARGUMENT', 'Only tensors, lists of tensors and open files can be saved.')
}

function openSink(target: string | URL | WritableStream<Uint8Array> | Writable, byteLength: number): Sink {
  const path = pathOf(target)
  if (path !== undefined) return pathSink(path, byteLength)
  if (target instanceof Writable) return streamSink(Writable.toWeb(target) as WritableStream<Uint8Array>)
  if (target instanceof WritableStream) return streamSink(target)
  throw new TileworkError('ERR_ARGUMENT', 'The target must be a path, a file: URL or a writable stream.')
}

async function writeAll(planned: PlannedFile, sink: Sink, options: SerializeOptions): Promise<void> {
  const progress = new ProgressReport(planned, options.onProgress)
  try {
    for (const segment of planned.plan.segments) {
      throwIfAborted(options.signal)
      await writeSegment(segment, sink, progress, options.signal)
    }
    throwIfAborted(options.signal)
    await sink.commit()
  } catch (error) {
    await sink.abort(error)
    throw error
  }
}

async function writeSegment(
  segment: WriteSegment,
  sink: Sink,
  progress: ProgressReport,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (segment.kind === 'bytes') {
    await sink.write(segment.bytes)
    progress.add(segment.bytes.byteLength)
    return
  }
  if (segment.kind === 'range') {
    await writeWindows(segment.start, segment.end, signal, async (start, end) => {
      await sink.copy(segment.source, start, end)
      progress.add(end - start)
    })
    progress.finishAll()
    return
  }
  await writeTensor(segment.tensor, sink, progress, signal)
  progress.finishTensor()
}

async function writeTensor(
  tensor: DenseTensor,
  sink: Sink,
  progress: ProgressReport,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { byteLength } = tensor.storage
  if (byteLength === 0) return
  const reader = await storageReader(tensor)
  await writeWindows(0, byteLength, signal, async (start, end) => {
    if (reader.range)
      await sink.copy(reader.range.source, reader.range.start + start, reader.range.start + end)
    else await sink.write(await reader.read(start, end))
    progress.add(end - start)
  })
}

async function writeWindows(
  start: number,
  end: number,
  signal: AbortSignal | undefined,
  write: (start: number, end: number) => Promise<void>,
): Promise<void> {
  for (let at = start; at < end; at += WINDOW_BYTES) {
    throwIfAborted(signal)
    await write(at, Math.min(end, at + WINDOW_BYTES))
  }
}

class ProgressReport {
  #bytesDone = 0
  #tensorsDone = 0
  readonly #planned: PlannedFile
  readonly #listener: ((progress: SaveProgress) => void) | undefined

  constructor(planned: PlannedFile, listener: ((progress: SaveProgress) => void) | undefined) {
    this.#planned = planned
    this.#listener = listener
  }

  add(bytes: number): void {
    this.#bytesDone += bytes
    this.#report()
  }

  finishTensor(): void {
    this.#tensorsDone = Math.min(this.#tensorsDone + 1, this.#planned.tensorsTotal)
    this.#report()
  }

  finishAll(): void {
    this.#tensorsDone = this.#planned.tensorsTotal
    this.#report()
  }

  #report(): void {
    this.#listener?.({
      bytesDone: this.#bytesDone,
      bytesTotal: this.#planned.plan.byteLength,
      tensorsDone: this.#tensorsDone,
      tensorsTotal: this.#planned.tensorsTotal,
    })
  }
}
