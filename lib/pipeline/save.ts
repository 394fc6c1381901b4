/**
 * Writes tensors, open files and models to a path, a stream or memory. A format plans the file as segments, which are
 * split into chunks, so that memory stays bounded.
 *
 * A path is written through a temporary file in the same folder, which replaces the target only when every byte is on
 * disk: a failed write leaves the old file as it was.
 */
import { devNull } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { Allowance } from '../bytes/allowance.js'
import type { IdentifiedFile } from '../bytes/file_identity.js'
import { withBorrowedMemory } from '../bytes/memory_budget.js'
import {
  type CheckedRemoteOptions,
  checkRemoteOptions,
  type RemoteOptions,
} from '../bytes/remote/remote_options.js'
import { siblingUrl } from '../bytes/remote/schemes.js'
import type { ByteSource } from '../bytes/source.js'
import { resultBytes } from '../bytes/view_limit.js'
import { checkFlags, checkListener, checkOptions, isInstance, readInput } from '../caller_input.js'
import { throwIfAborted, withCancelFlag } from '../cancel.js'
import { TileworkError } from '../errors.js'
import type { FormatEntry, ModelFormatEntry, WritePlan, WriteSegment } from '../formats/format.js'
import type { GgufModel } from '../formats/gguf/index.js'
import { LazyTensorList, mapTensors, type Tensors } from '../formats/tensor_list.js'
import type { OnnxModel } from '../models/onnx/index.js'
import type { OpenvinoModel } from '../models/openvino/index.js'
import type { TmfileModel } from '../models/tmfile/index.js'
import { withoutBlocks } from '../tensor/block_tensor.js'
import { checkTensor } from '../tensor/check_tensor.js'
import type { AnyTensor, Tensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { chunksOf } from './chunks.js'
import { withFolder } from './folder_lock.js'
import { type OpenedFile, type OpenFile, openedFile, pathOf, remoteUrlOf } from './open.js'
import { ProgressReport, type SaveProgress } from './progress.js'
import {
  chooseFormat,
  extensionOf,
  type FormatName,
  formatByName,
  formatOfModel,
  type WriteOptions,
  writeOptionNames,
} from './registry.js'
import { remoteSink } from './remote_sink.js'
import { refuseLostGraph, refuseTakenName, refuseTakenSiblings } from './replaced_file.js'
import { endJournal, hasJournal, removeLeftovers, removeUnnamed, writeJournal } from './save_journal.js'
import { memorySink, pathSink, type SiblingSink, type Sink, siblingSink, streamSink } from './sink.js'
import { writeChunks } from './write_chunks.js'

/** Memory that a running save borrows from the budget: chunks in flight and buffers of threads. */
const WORKING_BYTES = 8 * 1024 * 1024

/** Most files that all saves together have open for writing: many systems limit a process to 1,024 descriptors. */
const MAX_OUTPUT_FILES = 256
const openFiles = new Allowance(MAX_OUTPUT_FILES)

/** Stands for the folder of a remote file while it is planned: formats look for existing files there, and a device has none. */
const NO_FOLDER = devNull

export type SerializeOptions = {
  /**
   * Default: by the extension of the path; without an extension the format of the saved file; `btf` for tensors that are
   * written to a stream or memory.
   */
  readonly format?: FormatName
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SaveProgress) => void
  /**
   * Bytes of the largest output, with the files beside it: a larger one is ERR_LIMIT before anything is computed, allocated or
   * sent. Default: no limit.
   */
  readonly maxOutputBytes?: number
} & Partial<WriteOptions>

export type SaveOptions = SerializeOptions & {
  /**
   * Keeps data files and shards to which only the replaced file refers. Default false: those with names that tilework chose are
   * removed after the new file is committed.
   */
  readonly keepOldData?: boolean
  /**
   * False refuses a path that exists: ERR_IO with a cause of code EEXIST. Default true. For paths; a stream replaces nothing, and
   * for a URL false is refused.
   */
  readonly overwrite?: boolean
  /**
   * Allows tensors without a graph to replace the file of a model whose graph has nodes (an ONNX model or a tmfile). Default false:
   * ERR_UNSUPPORTED. For paths.
   */
  readonly replaceGraph?: boolean
  /** Request options for a remote target. */
  readonly remote?: RemoteOptions
}

/**
 * What can be saved: tensors; an open file, which is copied byte for byte in its own format; or a model, possibly of an open
 * file, with all its edits.
 */
export type Saveable =
  | OpenFile
  | OnnxModel
  | TmfileModel
  | GgufModel
  | OpenvinoModel
  | AnyTensor
  | Iterable<AnyTensor>

/** A file that is planned but not written. */
interface PlannedFile {
  readonly plan: WritePlan
  readonly format: FormatEntry
  readonly tensorsTotal: number
  /** Number of tensors in a range segment, for progress reports. */
  readonly tensorsOfRanges: number
  /** True for tensors alone, which a format with graphs would store without one. */
  readonly isBare?: boolean
}

/**
 * Saves tensors, or an open file, to a path, a URL (`s3:`, those of `registerScheme`) or a stream. The extension of the path
 * decides the format. A stream has none: name the option `format`, or tensors are written as BTF.
 *
 * @throws TileworkError ERR_UNSUPPORTED, before anything is written, for content that the format cannot represent, such as the
 * graph of a model of another format; ERR_IO; ERR_ABORTED; ERR_FILE_CHANGED if a source changed while it was read. After an error
 * the target is unchanged.
 */
export async function save(
  target: string | URL | WritableStream<Uint8Array> | Writable,
  content: Saveable,
  given: SaveOptions = {},
): Promise<void> {
  const options = readSaveOptions(given, 'save')
  throwIfAborted(options.signal)
  const url = remoteUrlOf(target)
  if (url) return saveToUrl(url, content, options)
  const path = pathOf(target)
  if (path !== undefined) return saveToPath(path, content, options)
  const planned = await planFile(content, options, path)
  refuseSiblings(planned.plan)
  await withMeans(planned, options.signal, async () =>
    writeFile(openStream(target, options.signal), planned, options),
  )
}

/**
 * A copy of the options, read once.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown option, and for a listener that is not a function
 */
function readSaveOptions<Options extends SaveOptions>(given: Options, call: string): Options {
  const own = [...SERIALIZE_NAMES, ...(call === 'save' ? saveOptionNames() : [])]
  const known = [...own, ...writeOptionNames()]
  checkOptions<Record<string, unknown>>(given, call, known)
  const options = readInput(`The options of ${call}`, () => ({ ...given }))
  checkListener(options.onProgress, 'onProgress')
  checkFlags(options, FILE_FLAGS)
  checkMaxOutputBytes(options)
  return options
}

/** Options about the files that a save replaces. */
export const FILE_FLAGS = ['keepOldData', 'overwrite', 'replaceGraph'] as const

/** Names of the options of every call with `SerializeOptions`, besides those of the formats. */
export const SERIALIZE_NAMES = ['format', 'signal', 'onProgress', 'maxOutputBytes'] as const

/** Names of the options of `save` that other calls with `SerializeOptions` do not have. */
export function saveOptionNames(): string[] {
  return [...FILE_FLAGS, 'remote']
}

/** @throws TileworkError ERR_ARGUMENT */
export function checkMaxOutputBytes({
  maxOutputBytes: limit,
}: Pick<SerializeOptions, 'maxOutputBytes'>): void {
  if (limit === undefined || (typeof limit === 'number' && limit >= 0)) return
  const message = `maxOutputBytes is ${valueText(limit)}; it must be a number from 0.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

async function saveToPath(path: string, content: Saveable, options: SaveOptions): Promise<void> {
  const isNew = options.overwrite === false
  if (isNew) await refuseTakenName(path)
  // The file may be planned twice, but an iterable may be readable only once.
  const again =
    openedFile(content) || formatOfModel(content)
      ? content
      : listTensors(content as AnyTensor | Iterable<AnyTensor>)
  const planned = await planFile(again, options, path)
  const { siblings = [], replaced = [] } = planned.plan
  if (isNew) await refuseTakenSiblings(dirname(path), siblings)
  else if (planned.isBare && !options.replaceGraph) await refuseLostGraph(path)
  if (siblings.length === 0 && replaced.length === 0 && !hasJournal(path)) {
    return withMeans(planned, options.signal, () =>
      writeFile(pathSink(path, { byteLength: planned.plan.byteLength, isNew }), planned, options),
    )
  }
  await withMeans(planned, options.signal, () =>
    withFolder(dirname(path), options.signal, async (isAlone) => {
      const leftovers = isAlone ? await removeLeftovers(path, planned.format) : []
      // Planned again, because the names of the first plan may exist by now.
      await writeModel(path, await planFile(again, options, path), options, { isAlone, leftovers })
    }),
  )
}

/**
 * Saves to a remote target. Files to which the main file refers are visible before it is. Data of an earlier save that are no
 * longer used are kept, because others may still read them.
 */
async function saveToUrl(url: URL, content: Saveable, options: SaveOptions): Promise<void> {
  if (options.overwrite === false) {
    const message = 'overwrite: false needs a path: objects of other machines are replaced as a whole.'
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const { signal } = options
  const remote = { ...checkRemoteOptions(options.remote), ...(signal && { signal }) }
  const planned = await planFile(
    content,
    options,
    join(NO_FOLDER, basename(decodeURIComponent(url.pathname))),
  )
  await withMeans(planned, signal, async () => {
    const files = await openRemoteFiles(url, planned.plan, remote)
    await orAbort(files, async () => {
      await writeContents(files, planned, options)
      // All parts are uploaded before the first object becomes visible.
      await Promise.all(files.map(({ sink }) => sink.sync?.()))
      for (const { sink } of files) await sink.commit()
    })
  })
}

/** The main file is the last. */
async function openRemoteFiles(
  url: URL,
  plan: WritePlan,
  remote: CheckedRemoteOptions,
): Promise<readonly OutputFile[]> {
  const parts = (plan.siblings ?? []).map((sibling) => ({ plan: sibling, at: siblingUrl(url, sibling.name) }))
  const files: OutputFile[] = []
  try {
    for (const { plan: part, at } of [...parts, { plan, at: url }]) {
      files.push({ ...part, sink: await remoteSink(at, remote, part.byteLength) })
    }
    return files
  } catch (error) {
    await Promise.all(files.map(({ sink }) => sink.abort(error)))
    throw error
  }
}

/**
 * As `save`, into memory: without the option `format` tensors are written as BTF.
 *
 * @throws TileworkError as `save`, and ERR_VIEW_TOO_LARGE when the file does not fit one Uint8Array
 */
export async function serialize(content: Saveable, given: SerializeOptions = {}): Promise<Uint8Array> {
  const options = readSaveOptions(given, 'serialize')
  throwIfAborted(options.signal)
  const planned = await planFile(content, options, undefined)
  refuseSiblings(planned.plan)
  const bytes = resultBytes(planned.plan.byteLength)
  await withMeans(planned, options.signal, () => writeFile(memorySink(bytes), planned, options))
  return bytes
}

/** @throws TileworkError ERR_LIMIT for a file that would be larger than `maxOutputBytes` */
async function planFile(
  content: Saveable,
  options: SaveOptions,
  path: string | undefined,
): Promise<PlannedFile> {
  const planned = await planContent(content, options, path)
  const { maxOutputBytes = Number.POSITIVE_INFINITY } = options
  const byteLength = totalBytes(planned.plan)
  if (byteLength <= maxOutputBytes) return planned
  throw new TileworkError(
    'ERR_LIMIT',
    `The output would have ${byteLength} bytes; maxOutputBytes allows ${maxOutputBytes}.`,
    path === undefined ? {} : { path },
  )
}

async function planContent(
  content: Saveable,
  options: SaveOptions,
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
    const copy = await unchanged(opened, content as OpenFile, format, path)
    if (copy) return copy
  }
  // Planned as a model: its tensors alone would have no graph.
  if (ownFormat === format) return planModel(model as object, ownFormat, options, { path, ownPath })
  if (ownFormat) await refuseOtherGraph(model as object, ownFormat, format)
  const tensors = opened
    ? (content as OpenFile).tensors
    : listTensors(content as AnyTensor | Iterable<AnyTensor>)
  return planTensors(tensors, format, options, path)
}

async function planTensors(
  tensors: Tensors,
  entry: FormatEntry,
  options: SerializeOptions,
  path: string | undefined,
): Promise<PlannedFile> {
  const format = await entry.load()
  const kept = entry.keepsBlocks ? tensors : mapTensors(tensors, withoutBlocks)
  // A writer that keeps blocks takes tensors of every kind.
  const plan = await format.plan(kept as Tensors<Tensor>, options, path === undefined ? {} : { path })
  return { plan, format: entry, tensorsTotal: tensors.length, tensorsOfRanges: 0, isBare: true }
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
    let tensorsTotal = countKinds(plan, ['range', 'tensor'])
    for (const sibling of plan.siblings ?? []) tensorsTotal += countKinds(sibling, ['tensor'])
    return { plan, format: own, tensorsTotal, tensorsOfRanges: 1 }
  }
  await refuseOtherGraph(model, own, entry)
  return planTensors(ownFormat.weightsOf(model), entry, options, path)
}

/**
 * Refuses to save a model in another model format: a file with only its tensors would be mistaken for a model. A format without
 * graphs stores the weights.
 */
async function refuseOtherGraph(model: object, own: ModelFormatEntry, target: FormatEntry): Promise<void> {
  if (formatByName(target.name).modelProperty === undefined) return
  const count = (await own.load()).nodesOf(model)
  if (count === 0) return
  const nodes = count === 1 ? 'node' : 'nodes'
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `The ${own.name} model has ${count} ${nodes}, which ${target.name} cannot store: their graph would be lost. Save it as ${own.name}, its weights in a format without graphs such as safetensors, or the tensors alone as a list.`,
  )
}

function countKinds({ segments }: WritePlan, kinds: readonly WriteSegment['kind'][]): number {
  let count = 0
  for (const { kind } of segments) if (kinds.includes(kind)) count++
  return count
}

/** True for a plain copy: without options of the writer, and not from a file to an index of shards or back. */
function isUnchanged(
  { source }: OpenedFile,
  path: string | undefined,
  format: FormatEntry,
  {
    format: _,
    signal,
    onProgress,
    maxOutputBytes,
    keepOldData,
    overwrite,
    replaceGraph,
    remote,
    ...writeOptions
  }: SaveOptions,
): boolean {
  if (Object.values(writeOptions).some((value) => value !== undefined)) return false
  const [from, to] = [source.label, path].map((name) => extensionOf(format, name))
  if (from === undefined && to !== undefined && format.isEncoded?.(to)) return false
  return from === undefined || to === undefined || from === to
}

/**
 * Copies an open file byte for byte, with the files to which it refers. These keep their names, unless the names exist already; undefined
 * where the file cannot refer to others without being written anew.
 */
async function unchanged(
  { source, siblings }: OpenedFile,
  { tensors }: OpenFile,
  format: FormatEntry,
  path: string | undefined,
): Promise<PlannedFile | undefined> {
  const planCopy = siblings.size > 0 && path !== undefined ? (await format.load()).planCopy : undefined
  const plan = planCopy ? await planCopy(source, siblings, { path: path! }) : copyOf(source, siblings)
  return plan && { plan, format, tensorsTotal: tensors.length, tensorsOfRanges: tensors.length }
}

function copyOf(source: ByteSource, siblings: ReadonlyMap<string, ByteSource>): WritePlan {
  const whole = (source: ByteSource): WritePlan => ({
    byteLength: source.byteLength,
    segments: [{ kind: 'range', source, start: 0, end: source.byteLength }],
  })
  return {
    ...whole(source),
    siblings: [...siblings].map(([name, sibling]) => ({ ...whole(sibling), name, replaces: true })),
  }
}

function refuseSiblings({ siblings = [] }: WritePlan): void {
  if (siblings.length === 0) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `The file refers to ${siblings.length} other files, such as ${siblings[0]!.name}; save it to a path.`,
  )
}

/**
 * The content as a sequence of tensors. The list of a file is used as it is: an array may take many times the size of the file.
 *
 * @param call - name of the call, for messages
 * @param done - participle for messages, such as "saved"
 */
export function listTensors(
  content: AnyTensor | Iterable<AnyTensor>,
  { call, done } = { call: 'A save', done: 'saved' },
): Tensors {
  if (isInstance(content, LazyTensorList)) return content as LazyTensorList<AnyTensor>
  return readInput('The content', () => {
    if (typeof content === 'object' && content !== null && !ArrayBuffer.isView(content)) {
      if (Symbol.iterator in content)
        return Array.from(content, (each) => checkTensor(each, call, 'or blocks'))
      if ('dtype' in content && 'shape' in content) return [checkTensor(content, call, 'or blocks')]
    }
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${valueText(content)} cannot be ${done}; expected a tensor, an iterable of tensors, an open file or a model.${adviceFor(content)}`,
    )
  })
}

/** Advice for content that other libraries accept: arrays, and objects with tensors as properties. */
function adviceFor(content: unknown): string {
  if (ArrayBuffer.isView(content)) return ' tensor(array, { shape }) makes a tensor of it.'
  const values = typeof content === 'object' && content !== null ? Object.values(content) : []
  const areTensors = values.length > 0 && values.every((value) => value?.kind && value.shape)
  return areTensors
    ? ' Each tensor carries its own name, as in tensor(array, { name }): pass Object.values(…).'
    : ''
}

function openStream(target: unknown, signal: AbortSignal | undefined): Sink {
  if (isNodeStream(target)) {
    if (!target.writable) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        'The stream is not writable: it was ended or destroyed, or has failed.',
      )
    }
    return streamSink(Writable.toWeb(target) as WritableStream<Uint8Array>, signal)
  }
  if (!isInstance(target, WritableStream)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The target is ${valueText(target)}; it must be a path, a file: URL or a writable stream.`,
    )
  }
  if (target.locked) throw new TileworkError('ERR_ARGUMENT', 'The stream is locked by another writer.')
  return streamSink(target, signal)
}

/** Responses and requests of node:http are streams without being instances of Writable. */
function isNodeStream(target: unknown): target is Writable {
  if (isInstance(target, Writable)) return true
  if (typeof target !== 'object' || target === null) return false
  return readInput('The target', () => {
    const { write, end, on } = target as Partial<Writable>
    return [write, end, on].every((method) => typeof method === 'function')
  })
}

/** A file that is being written. */
interface OutputFile extends WritePlan {
  readonly sink: Sink
}

/** A file beside the main file. */
interface OutputSibling extends OutputFile {
  readonly name: string
  readonly isNew: boolean
  readonly sink: SiblingSink
}

/** The siblings in the order of their commits. */
function openSiblings(path: string, { siblings = [] }: WritePlan, overwrite: boolean): OutputSibling[] {
  const files: OutputSibling[] = []
  try {
    for (const sibling of siblings) {
      const { name, byteLength, replaces = false } = sibling
      if (isSameName(name, basename(path))) {
        const message = `The file would replace ${JSON.stringify(name)}, to which it refers; save it under another name.`
        throw new TileworkError('ERR_ARGUMENT', message, { path })
      }
      const isNew = !(replaces && overwrite)
      files.push({ ...sibling, isNew, sink: siblingSink(dirname(path), name, { byteLength, isNew }) })
    }
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

/** Runs `job` when the memory and the file descriptors that it needs are available. */
async function withMeans(
  { plan }: PlannedFile,
  signal: AbortSignal | undefined,
  job: () => Promise<void>,
): Promise<void> {
  const memory = Math.min(WORKING_BYTES, totalBytes(plan))
  const files = 1 + (plan.siblings?.length ?? 0)
  await withBorrowedMemory(memory, signal, () => openFiles.lend(files, signal, job))
}

function totalBytes({ byteLength, siblings = [] }: WritePlan): number {
  return siblings.reduce((sum, sibling) => sum + sibling.byteLength, byteLength)
}

/** Writes a single file. */
async function writeFile(sink: Sink, planned: PlannedFile, options: SaveOptions): Promise<void> {
  const files = [{ ...planned.plan, sink }]
  await orAbort(files, async () => {
    await writeContents(files, planned, options)
    await sink.commit()
  })
}

/** Writes a file and the files to which it refers, and removes files to which only the replaced file referred. */
async function writeModel(
  path: string,
  planned: PlannedFile,
  options: SaveOptions,
  { isAlone, leftovers }: { readonly isAlone: boolean; readonly leftovers: readonly IdentifiedFile[] },
): Promise<void> {
  const { plan, format } = planned
  const { overwrite = true } = options
  const siblings = openSiblings(path, plan, overwrite)
  await orAbort(siblings, async () => {
    const main = { ...plan, sink: pathSink(path, { byteLength: plan.byteLength, isNew: !overwrite }) }
    await orAbort([main], async () => {
      await writeContents([...siblings, main], planned, options)
      // All data are flushed before the first rename, so that a kill between two renames is unlikely.
      if (siblings.length > 0) await Promise.all([...siblings, main].map(({ sink }) => sink.sync?.()))
      const replaced = options.keepOldData ? [] : (plan.replaced ?? [])
      const created = newFiles(siblings)
      if (isAlone) await writeJournal(path, [...leftovers, ...created, ...replaced])
      // Files that may be unused: after an error it is unknown whether the old or the new model is in place.
      let unused = [...created, ...replaced]
      try {
        // The main file, which refers to the others, is committed last.
        for (const { sink } of [...siblings, main]) await sink.commit()
        unused = [...replaced]
      } finally {
        const isRemoved = await removeUnnamed(path, format, unused)
        if (isAlone) await endJournal(path, isRemoved ? leftovers : [...leftovers, ...unused])
      }
    })
  })
}

function newFiles(siblings: readonly OutputSibling[]): IdentifiedFile[] {
  return siblings.filter(({ isNew }) => isNew).map(({ name, sink }) => ({ name, identity: sink.identity() }))
}

/** Runs `job`; an error aborts the files. */
async function orAbort(files: readonly OutputFile[], job: () => Promise<void>): Promise<void> {
  try {
    await job()
  } catch (error) {
    await Promise.all(files.map(({ sink }) => sink.abort(error)))
    throw error
  }
}

/** The main file is last in `files`. */
async function writeContents(
  files: readonly OutputFile[],
  { plan, tensorsTotal, tensorsOfRanges }: PlannedFile,
  { signal, onProgress }: SaveOptions,
): Promise<void> {
  const progress = new ProgressReport(totalBytes(plan), tensorsTotal, onProgress)
  await withCancelFlag(signal, async (cancel) => {
    for (const [index, { segments, sink, byteLength }] of files.entries()) {
      const isLast = index === files.length - 1
      const chunks = chunksOf(segments, {
        isNative: sink.run !== undefined,
        tensorsOfRanges: isLast ? tensorsOfRanges : 0,
      })
      await writeChunks(chunks, { progress, signal, cancel, sink, byteLength })
    }
  })
}
