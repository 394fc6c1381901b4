/**
 * Writes tensors, open files and models to a path, a stream or memory. A format plans the file as segments, which are
 * split into chunks, so that memory stays bounded.
 *
 * A path is written through a temporary file in the same folder, which replaces the target only when every byte is on
 * disk: a failed write leaves the old file as it was.
 */
import { existsSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { withBorrowedMemory } from '../bytes/memory_budget.js'
import type { ByteSource } from '../bytes/source.js'
import { resultBytes } from '../bytes/view_limit.js'
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted, untilAborted, withCancelFlag } from '../cancel.js'
import { TileworkError } from '../errors.js'
import type { FormatEntry, ModelFormatEntry, WritePlan } from '../formats/format.js'
import type { OnnxModel } from '../formats/onnx/index.js'
import {
  chooseFormat,
  extensionOf,
  type FormatName,
  formatByName,
  formatOfModel,
  type WriteOptions,
  writeOptionNames,
} from '../formats/registry.js'
import type { TmfileModel } from '../formats/tmfile/index.js'
import { checkTensor } from '../tensor/check_tensor.js'
import type { Tensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { chunksOf } from './chunks.js'
import { completedSaves, saveThatWrites, whileWriting } from './concurrent_saves.js'
import { type OpenedFile, type OpenFile, openedFile, pathOf } from './open.js'
import { ProgressReport, type SaveProgress } from './progress.js'
import { memorySink, pathSink, type Sink, siblingSink, streamSink } from './sink.js'
import { type WriteContext, writeChunks } from './write_chunks.js'

/** Memory that a running save takes from the budget: its chunks in flight and the buffers of its threads. */
const WORKING_BYTES = 8 * 1024 * 1024

export type SerializeOptions = {
  /**
   * Default: by the extension of the path; without an extension the format of the file that is saved; `btf` for tensors that
   * go to a stream or memory.
   */
  readonly format?: FormatName
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SaveProgress) => void
} & Partial<WriteOptions>

export type SaveOptions = SerializeOptions

/**
 * What can be saved: tensors; an open file, which is copied byte for byte in its own format; or a model, also that of an
 * open file, with all its changes.
 */
export type Saveable = OpenFile | OnnxModel | TmfileModel | Tensor | Iterable<Tensor>

/** A file that is planned but not written. */
interface PlannedFile {
  readonly plan: WritePlan
  readonly tensorsTotal: number
  /** Number of tensors in a range that is copied whole. */
  readonly tensorsOfRanges: number
}

/**
 * Saves tensors, or an open file, to a path or a stream.
 *
 * @throws TileworkError ERR_UNSUPPORTED before anything is written for what the format cannot hold; ERR_IO;
 * ERR_ABORTED; ERR_FILE_CHANGED when a source changed while it was read. The target is then as it was before.
 */
export async function save(
  target: string | URL | WritableStream<Uint8Array> | Writable,
  content: Saveable,
  given: SaveOptions = {},
): Promise<void> {
  const options = readSaveOptions(given, 'save')
  throwIfAborted(options.signal)
  const path = pathOf(target)
  if (path !== undefined) return saveToPath(path, content, options)
  const planned = await planFile(content, options, path)
  refuseSiblings(planned.plan)
  await writeFiles(() => [{ ...planned.plan, sink: openStream(target, options.signal) }], planned, options)
}

/**
 * A copy of the options, read once.
 *
 * @throws TileworkError ERR_ARGUMENT for an option that neither a save nor any writer has, and a listener that is none
 */
function readSaveOptions<Options extends SaveOptions>(given: Options, call: string): Options {
  const known = ['format', 'signal', 'onProgress', ...writeOptionNames()]
  checkOptions<Record<string, unknown>>(given, call, known)
  const options = readInput(`The options of ${call}`, () => ({ ...given }))
  checkListener(options.onProgress, 'onProgress')
  return options
}

async function saveToPath(path: string, content: Saveable, options: SaveOptions): Promise<void> {
  // An iterable may be readable only once, and the loop may plan again.
  const again =
    openedFile(content) || formatOfModel(content)
      ? content
      : listTensors(content as Tensor | Iterable<Tensor>)
  let ended = completedSaves()
  for (;;) {
    const planned = await planFile(again, options, path)
    const { siblings = [], replaced } = planned.plan
    const names = [...siblings.map(({ name }) => name), ...(replaced?.names ?? [])]
    const shards = names.map((name) => resolve(dirname(path), name))
    const isStale = shards.length > 0 && completedSaves() !== ended
    const other = saveThatWrites(shards)
    if (!other && !isStale) {
      return whileWriting(shards, () => writeFiles(() => openFiles(path, planned.plan), planned, options))
    }
    // Plan again: the names that the other save has taken are now visible in the folder.
    if (other) await untilAborted(other, options.signal)
    ended = completedSaves()
  }
}

/**
 * As `save`, into memory.
 *
 * @throws TileworkError as `save`, and ERR_VIEW_TOO_LARGE when the file does not fit one Uint8Array
 */
export async function serialize(content: Saveable, given: SerializeOptions = {}): Promise<Uint8Array> {
  const options = readSaveOptions(given, 'serialize')
  throwIfAborted(options.signal)
  const planned = await planFile(content, options, undefined)
  refuseSiblings(planned.plan)
  const bytes = resultBytes(planned.plan.byteLength)
  await writeFiles(() => [{ ...planned.plan, sink: memorySink(bytes) }], planned, options)
  return bytes
}

async function planFile(
  content: Saveable,
  options: SerializeOptions,
  path: string | undefined,
): Promise<PlannedFile> {
  const opened = openedFile(content)
  const own = opened && (content as OpenFile).format
  const model = own === undefined ? content : modelOf(content as OpenFile)
  const ownFormat = formatOfModel(model)
  const isAsRead = opened !== undefined && (await ownFormat?.load())?.isUnchanged?.(model as object) === true
  const ownPath = opened?.source.label
  if (ownFormat && !isAsRead) return planModel(model as object, ownFormat, options, { path, ownPath })
  const format = chooseFormat(options.format, path, { format: own, path: ownPath })
  if (opened && format.name === own && isUnchanged(opened, path, format, options)) {
    return unchanged(opened, content as OpenFile, format, path)
  }
  // The tensors alone would be a model without a graph.
  if (ownFormat === format) return planModel(model as object, ownFormat, options, { path, ownPath })
  const tensors = opened
    ? [...(content as OpenFile).tensors]
    : listTensors(content as Tensor | Iterable<Tensor>)
  return planTensors(tensors, format, options, path)
}

async function planTensors(
  tensors: readonly Tensor[],
  entry: FormatEntry,
  options: SerializeOptions,
  path: string | undefined,
): Promise<PlannedFile> {
  const format = await entry.load()
  const plan = await format.plan(tensors, options, path === undefined ? {} : { path })
  return { plan, tensorsTotal: tensors.length, tensorsOfRanges: 0 }
}

function modelOf(file: OpenFile): unknown {
  const property = formatByName(file.format).modelProperty
  return property === undefined ? undefined : file[property as keyof OpenFile]
}

async function planModel(
  model: object,
  own: ModelFormatEntry,
  options: SerializeOptions,
  { path, ownPath }: { readonly path: string | undefined; readonly ownPath: string | undefined },
): Promise<PlannedFile> {
  const entry = chooseFormat(options.format, path, { format: own.name as FormatName, path: ownPath })
  const ownFormat = await own.load()
  if (entry === own) {
    const plan = await ownFormat.planModel(model, options, path === undefined ? {} : { path })
    // Each range of the file holds the values of one weight; the files beside it hold the other values.
    const inFile = plan.segments.filter(({ kind }) => kind === 'range' || kind === 'tensor')
    const beside = (plan.siblings ?? []).flatMap(({ segments }) =>
      segments.filter(({ kind }) => kind === 'tensor'),
    )
    const tensorsTotal = inFile.length + beside.length
    return { plan, tensorsTotal, tensorsOfRanges: 1 }
  }
  return planTensors(ownFormat.weightsOf(model), entry, options, path)
}

/** True for a plain copy: without options of the writer, and not from a file to an index of shards or back. */
function isUnchanged(
  { source }: OpenedFile,
  path: string | undefined,
  format: FormatEntry,
  { format: _, signal, onProgress, ...writeOptions }: SerializeOptions,
): boolean {
  if (Object.values(writeOptions).some((value) => value !== undefined)) return false
  const [from, to] = [source.label, path].map((name) => extensionOf(format, name))
  return from === undefined || to === undefined || from === to
}

/**
 * Copies an open file byte for byte, and the files that it refers to. These keep their names, unless the format finds the
 * names taken.
 */
async function unchanged(
  { source, siblings }: OpenedFile,
  { tensors }: OpenFile,
  format: FormatEntry,
  path: string | undefined,
): Promise<PlannedFile> {
  const planCopy = siblings.size > 0 && path !== undefined ? (await format.load()).planCopy : undefined
  const plan = planCopy ? await planCopy(source, siblings, { path: path! }) : copyOf(source, siblings)
  return { plan, tensorsTotal: tensors.length, tensorsOfRanges: tensors.length }
}

function copyOf(source: ByteSource, siblings: ReadonlyMap<string, ByteSource>): WritePlan {
  const whole = (source: ByteSource): WritePlan => ({
    byteLength: source.byteLength,
    segments: [{ kind: 'range', source, start: 0, end: source.byteLength }],
  })
  return {
    ...whole(source),
    siblings: [...siblings].map(([name, sibling]) => ({ ...whole(sibling), name })),
  }
}

function refuseSiblings({ siblings = [] }: WritePlan): void {
  if (siblings.length === 0) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `The file refers to ${siblings.length} others beside it, such as ${siblings[0]!.name}; save it to a path.`,
  )
}

function listTensors(content: Tensor | Iterable<Tensor>): Tensor[] {
  return readInput('The content', () => {
    if (typeof content === 'object' && content !== null) {
      if (Symbol.iterator in content) return Array.from(content, (each) => checkTensor(each, 'A save'))
      if ('dtype' in content && 'shape' in content) return [checkTensor(content, 'A save')]
    }
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${valueText(content)} cannot be saved; expected a tensor, an iterable of tensors, an open file or a model.`,
    )
  })
}

function openStream(target: unknown, signal: AbortSignal | undefined): Sink {
  if (target instanceof Writable) {
    if (!target.writable) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        'The stream is not writable: it was ended or destroyed, or has failed.',
      )
    }
    return streamSink(Writable.toWeb(target) as WritableStream<Uint8Array>, signal)
  }
  if (!(target instanceof WritableStream)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The target is ${valueText(target)}; it must be a path, a file: URL or a writable stream.`,
    )
  }
  if (target.locked) throw new TileworkError('ERR_ARGUMENT', 'The stream is locked by another writer.')
  return streamSink(target, signal)
}

/** A file that is being written. */
interface OutputFile extends WritePlan {
  readonly sink: Sink
  /** Set where the file is new: it is removed again when a later file of the same save fails. */
  readonly newPath?: string
}

/** The files of a save in the order of their commits. The file that refers to the others is last. */
function openFiles(path: string, plan: WritePlan): OutputFile[] {
  const files: OutputFile[] = []
  try {
    for (const sibling of plan.siblings ?? []) {
      if (isSameName(sibling.name, basename(path))) {
        const message = `The file would take the name of ${JSON.stringify(sibling.name)}, which it refers to; save it under another name.`
        throw new TileworkError('ERR_ARGUMENT', message, { path })
      }
      const siblingPath = join(dirname(path), sibling.name)
      const isNew = !existsSync(siblingPath)
      files.push({
        ...sibling,
        sink: siblingSink(dirname(path), sibling.name, sibling.byteLength),
        ...(isNew && { newPath: siblingPath }),
      })
    }
    files.push({ ...plan, sink: pathSink(path, plan.byteLength) })
    return files
  } catch (error) {
    for (const { sink } of files) sink.abort(error)
    throw error
  }
}

/** Some file systems ignore case. */
function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

async function writeFiles(
  openAll: () => readonly OutputFile[],
  planned: PlannedFile,
  { signal, onProgress }: SerializeOptions,
): Promise<void> {
  const { plan, tensorsTotal } = planned
  const bytesTotal = [plan, ...(plan.siblings ?? [])].reduce((sum, { byteLength }) => sum + byteLength, 0)
  await withBorrowedMemory(Math.min(WORKING_BYTES, bytesTotal), signal, async () => {
    let files: readonly OutputFile[] = []
    try {
      files = openAll()
      const progress = new ProgressReport(bytesTotal, tensorsTotal, onProgress)
      await withCancelFlag(signal, (cancel) => writeContents(files, planned, { progress, signal, cancel }))
      await commitAll(files)
      await plan.replaced?.remove()
    } catch (error) {
      await Promise.all(files.map(({ sink }) => sink.abort(error)))
      throw error
    }
  })
}

async function writeContents(
  files: readonly OutputFile[],
  { tensorsOfRanges }: PlannedFile,
  context: Omit<WriteContext, 'sink' | 'byteLength'>,
): Promise<void> {
  for (const [index, { segments, sink, byteLength }] of files.entries()) {
    const isLast = index === files.length - 1
    const chunks = chunksOf(segments, {
      isNative: sink.run !== undefined,
      tensorsOfRanges: isLast ? tensorsOfRanges : 0,
    })
    await writeChunks(chunks, { ...context, sink, byteLength })
  }
}

/** Flushes all files before the first commit, so that a kill between two commits is unlikely. */
async function commitAll(files: readonly OutputFile[]): Promise<void> {
  if (files.length > 1) await Promise.all(files.map(({ sink }) => sink.sync?.()))
  const committed: OutputFile[] = []
  try {
    for (const file of files) {
      await file.sink.commit()
      committed.push(file)
    }
  } catch (error) {
    for (const { newPath } of committed) if (newPath !== undefined) rmSync(newPath, { force: true })
    throw error
  }
}
