/** Opens a file of any known format: detects the format, lets its reader check the headers, and provides the tensors. */
import { inspect } from 'node:util'

import { MemorySource } from '../bytes/memory.js'
import { type OpenSourceOptions, openSource, pathOfUrl, type SourceInput } from '../bytes/open_source.js'
import { DEFAULT_INPUT_BYTES } from '../bytes/receive.js'
import { checkRemoteOptions, type RemoteOptions } from '../bytes/remote/remote_options.js'
import { isRemoteSource, openRemote, remoteUrl, siblingUrl } from '../bytes/remote/schemes.js'
import { urlLabel } from '../bytes/remote/url_scheme.js'
import { checkSiblingName, type HardLinkPolicy, openSibling, type SymlinkPolicy } from '../bytes/sibling.js'
import type { ByteSource } from '../bytes/source.js'
import { isWindows } from '../bytes/windows_names.js'
import { checkFlag, checkOneOf, isInstance, readInput } from '../caller_input.js'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { withDeadline } from '../deadline.js'
import { aboutFile, type Finding, type Level, TileworkError } from '../errors.js'
import { isOfBytes } from '../formats/file_fault.js'
import type { Format, FormatEntry, ReadOptions, TensorList } from '../formats/format.js'
import type { GgufModel } from '../formats/gguf/index.js'
import { checkLimits, type InputLimits } from '../formats/limits.js'
import type { PytorchFile } from '../formats/pytorch/index.js'
import type { TfliteFile } from '../formats/tflite/index.js'
import type { FileMessage, OnnxModel } from '../models/onnx/index.js'
import type { OpenvinoModel } from '../models/openvino/index.js'
import type { TmfileModel } from '../models/tmfile/index.js'
import { expectedText } from '../nearest_names.js'
import type { AnyTensor, BlockTensor, DenseTensor, SparseTensor } from '../tensor/tensor.js'
import { uncloneable } from '../uncloneable.js'
import { valueText } from '../value_text.js'
import { foreignFileError, unknownFormatError } from './foreign_file.js'
import { type DetectedFormat, detectFormat, type FormatName, formatByName } from './registry.js'
import { selectTensor } from './select_tensors.js'

/**
 * What can be opened: a path, a URL (`file:`, `https:`, `http:`, `s3:`, those of `registerScheme`), bytes in memory, a Blob,
 * a source of the caller's own; or a Response or byte stream, which is received into memory up to `limits.inputBytes`.
 */
export type Input = SourceInput

export interface OpenOptions {
  /** Format of the bytes. Default: detected by extension and content. */
  readonly format?: FormatName
  /** `strict` refuses any violation of the format's rules; `lenient` (default) only what cannot be read safely. */
  readonly level?: Level
  /**
   * `map` maps a file; `read` reads ranges, for files that others write and for network shares. Default: `map`, on Windows
   * `read`, because nobody can replace or delete a file there while it is mapped.
   */
  readonly mode?: 'map' | 'read'
  /**
   * With `mode: 'map'`: a file that is truncated while it is mapped reads as zeros and fails with ERR_FILE_CHANGED, where
   * the system would otherwise kill the process (SIGBUS). Installs a signal handler, which passes on other faults. On
   * Windows the file is read instead.
   */
  readonly guard?: boolean
  /**
   * Symbolic links among the files that a multi-part file refers to: `inside` (default) allows targets in the same folder
   * only, `follow` any target, as the caches of model hubs need, whatever `hardLinks` says.
   */
  readonly symlinks?: SymlinkPolicy
  /**
   * External data files with several names (hard links): `refuse` (default), because such a file may belong to another
   * folder and no path shows it, or `allow`, as stores with deduplicated files need.
   */
  readonly hardLinks?: HardLinkPolicy
  /**
   * Provides the files that a multi-part file refers to, where they are not in its folder: bytes in memory, a path in a
   * cache, a source of your own. Called first, with names that stay inside the folder; undefined means the folder.
   */
  readonly resolve?: (name: string) => Input | undefined | Promise<Input | undefined>
  readonly limits?: InputLimits
  /** For URLs of other machines: how they are read. */
  readonly remote?: RemoteOptions
  /**
   * A pickle of PyTorch that imports what is not data: `refuse` (default) names it in an error, `omit` leaves out what it would
   * make, with a finding. Neither runs anything.
   */
  readonly unknown?: 'refuse' | 'omit'
  /** The message type of an ONNX file. Default: by content; `findings` names other types that are possible. */
  readonly message?: FileMessage
}

/** A file that a multi-part file refers to. */
export interface FilePart {
  /** Relative to the folder of the main file. */
  readonly name: string
  readonly byteLength: number
}

/** The fields of open files of every format. */
export interface OpenFileFields {
  /** Every tensor entry of the format, in file order. */
  readonly tensors: TensorList
  /**
   * The dense tensor with a name, or at an index (below 0 from the end).
   * Errors: ERR_ARGUMENT if there is none, ERR_UNSUPPORTED if it is of another kind.
   */
  dense(key: string | number): DenseTensor
  /** As `dense`, for a sparse tensor. */
  sparse(key: string | number): SparseTensor
  /** As `dense`, for a tensor of blocks. */
  blocks(key: string | number): BlockTensor
  /** The data files and shards that the file has referred to so far. */
  readonly parts: readonly FilePart[]
  /** Findings of a lenient read. */
  readonly findings: readonly Finding[]
  /** Length of the file in bytes. */
  readonly byteLength: number
  /**
   * Closes the file: afterwards it and its tensors throw ERR_CLOSED. Existing views stay valid, and the memory is freed with the
   * last of them. With `revoke` the views are detached as well, which is safe only if no asynchronous call of Node uses one.
   * May be called twice.
   */
  close(options?: { readonly revoke?: boolean }): void
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** The properties of single formats; files of other formats have them undefined. */
export interface NoFormatProperties {
  readonly onnx?: undefined
  readonly tmfile?: undefined
  readonly gguf?: undefined
  readonly pytorch?: undefined
  readonly tflite?: undefined
  readonly openvino?: undefined
}

/** An open tmfile. */
export interface OpenTmfile extends OpenFileFields, Omit<NoFormatProperties, 'tmfile'> {
  readonly format: 'tmfile'
  /** The model of the file. It may be edited; saving the file writes the edited model. */
  readonly tmfile: TmfileModel
}

/** An open ONNX file. */
export interface OpenOnnx extends OpenFileFields, Omit<NoFormatProperties, 'onnx'> {
  readonly format: 'onnx'
  /**
   * The model; edits are written when it is saved. `tensors` keeps listing the file as it was opened:
   * `onnx.graph.initializers()` gives the initializers as they are now. Absent where the file is no model but a tensor, a value
   * or a list of tensors.
   */
  readonly onnx?: OnnxModel
}

/** An open GGUF file. */
export interface OpenGguf extends OpenFileFields, Omit<NoFormatProperties, 'gguf'> {
  readonly format: 'gguf'
  /** The metadata of the file, which may be edited; saving the file writes it as it is then. */
  readonly gguf: GgufModel
}

/** An open checkpoint of PyTorch. */
export interface OpenPytorch extends OpenFileFields, Omit<NoFormatProperties, 'pytorch'> {
  readonly format: 'pytorch'
  /** What it holds beside its tensors. */
  readonly pytorch: PytorchFile
}

/** An open TFLite file. */
export interface OpenTflite extends OpenFileFields, Omit<NoFormatProperties, 'tflite'> {
  readonly format: 'tflite'
  /** Its subgraphs, signatures and metadata. */
  readonly tflite: TfliteFile
}

/** An open OpenVINO IR. */
export interface OpenOpenvino extends OpenFileFields, Omit<NoFormatProperties, 'openvino'> {
  readonly format: 'openvino'
  /** The model around the constants. */
  readonly openvino: OpenvinoModel
}

/** An open file of a format of tensors alone. */
export interface OpenTensorFile extends OpenFileFields, NoFormatProperties {
  readonly format: Exclude<FormatName, keyof NoFormatProperties>
}

/** An open file. Its tensors can be used until `close`. `format` determines which model it has. */
export type OpenFile =
  | OpenTmfile
  | OpenOnnx
  | OpenGguf
  | OpenPytorch
  | OpenTflite
  | OpenOpenvino
  | OpenTensorFile

/** The sources of an open file, for copying it unchanged. */
export interface OpenedFile {
  readonly source: ByteSource
  /** The files to which it refers, by their names in its folder. */
  readonly siblings: ReadonlyMap<string, ByteSource>
}

const UNCLONEABLE = uncloneable('an open file; send its path or bytes instead')

const openedFiles = new WeakMap<object, OpenedFile>()

/** Undefined for anything but an open file. */
export function openedFile(content: unknown): OpenedFile | undefined {
  return typeof content === 'object' && content !== null ? openedFiles.get(content) : undefined
}

/**
 * Opens a tensor file. Only headers are read; payloads are read when the bytes of a tensor are requested.
 *
 * @throws TileworkError ERR_IO, ERR_UNKNOWN_FORMAT, ERR_LIMIT, and the codes of the format's reader
 */
export async function open(input: Input, given: OpenOptions = {}): Promise<OpenFile> {
  const copied = copyOptions(given)
  try {
    return await withRemoteDeadline(input, copied, (options) => openInput(input, options))
  } catch (error) {
    throw aboutFile(error, pathOf(input))
  }
}

/** Runs a job whose requests end at the deadline of the options. */
function withRemoteDeadline<T>(
  input: Input,
  options: OpenOptions,
  job: (options: OpenOptions) => Promise<T>,
): Promise<T> {
  const url = remoteUrlOf(input)
  const { deadline, ...remote } = checkRemoteOptions(options.remote)
  if (!url || deadline === undefined) return job(options)
  return withDeadline({ deadline, signal: remote.signal, what: `Opening ${urlLabel(url)}` }, (signal) =>
    job({ ...options, remote: { ...remote, ...(signal && { signal }) } }),
  )
}

async function openInput(input: Input, options: OpenOptions): Promise<OpenFile> {
  const checked = checkOptions(options)
  const opened = await openWithFormat(input, options)
  const { detected } = opened
  let { source } = opened
  const siblings = new SiblingFiles(input, options)
  const close = (closeOptions?: { readonly revoke?: boolean }): void => {
    source.close?.(closeOptions)
    siblings.close(closeOptions)
  }
  try {
    if (!detected) throw await unknownFormatError(source)
    const { entry } = detected
    const format = await entry.load()
    const readOptions = { ...checked, ...messagesOf(detected), sibling: siblings.open }
    source = await withSyncReads(source, entry, options)
    const { byteLength } = source
    source = await decoded(source, format, readOptions)
    const { tensors, findings, model, details } = await format.read(source, readOptions)
    const file = {
      // The first property, because a failed structuredClone reports the first property that cannot be cloned.
      uncloneable: UNCLONEABLE,
      format: entry.name as FormatName,
      tensors,
      ...(model && entry.modelProperty !== undefined && { [entry.modelProperty]: model }),
      ...(details && entry.detailsProperty !== undefined && { [entry.detailsProperty]: details }),
      dense: (key) => pick(tensors, key, 'dense'),
      sparse: (key) => pick(tensors, key, 'sparse'),
      blocks: (key) => pick(tensors, key, 'block'),
      get parts() {
        return Array.from(siblings.sources, ([name, { byteLength }]) => ({ name, byteLength }))
      },
      findings,
      byteLength,
      close,
      [Symbol.dispose]: () => close(),
      [Symbol.asyncDispose]: async () => close(),
      toJSON: () => ({ format: entry.name, byteLength, tensors, findings }),
      [inspect.custom]: () =>
        `OpenFile ${entry.name}, ${byteLength} bytes, ${inspect(tensors)}${model ? `, ${inspect(model)}` : ''}`,
    } as OpenFile
    openedFiles.set(file, { source, siblings: siblings.sources })
    return file
  } catch (error) {
    const better =
      error instanceof TileworkError && detected ? await foreignFileError(source, detected) : undefined
    close()
    throw better ?? error
  }
}

/**
 * The objects of an ONNX model read its file synchronously on access. A remote model is therefore downloaded completely, up to
 * `limits.inputBytes`; of a larger one only the tensors can be read.
 */
async function withSyncReads(
  source: ByteSource,
  entry: FormatEntry,
  options: OpenOptions,
): Promise<ByteSource> {
  const limit = checkLimits(options.limits).inputBytes ?? DEFAULT_INPUT_BYTES
  if (entry.modelProperty !== 'onnx' || !isRemoteSource(source) || source.byteLength > limit) return source
  const held = new MemorySource(await source.read(0, source.byteLength), source.label)
  source.close?.()
  return held
}

/** What a format reads of a file, which is closed where that is not the file itself. */
async function decoded(
  source: ByteSource,
  format: Format<unknown, AnyTensor>,
  options: ReadOptions,
): Promise<ByteSource> {
  const bytes = await format.decode?.(source, options)
  if (!bytes) return source
  source.close?.()
  return bytes
}

/** The result of the detection, so that the reader need not repeat it. */
function messagesOf({ detection }: DetectedFormat): Pick<ReadOptions, 'detectedMessages'> {
  return typeof detection === 'object' ? { detectedMessages: detection.messages } : {}
}

function pick<K extends AnyTensor['kind']>(tensors: TensorList, key: string | number, kind: K): TensorOf<K> {
  const tensor = selectTensor(tensors, key)
  if (tensor.kind === kind) return tensor as TensorOf<K>
  const what = `Tensor ${valueText(key)} is ${tensor.kind}, not ${kind}`
  throw new TileworkError('ERR_UNSUPPORTED', `${what}; file.tensors has tensors of every kind.`)
}

type TensorOf<K extends AnyTensor['kind']> = Extract<AnyTensor, { readonly kind: K }>

/** The files to which a multi-part file refers; each is opened once, and closed with the main file. */
class SiblingFiles {
  readonly sources = new Map<string, ByteSource>()
  readonly #path: string | undefined
  readonly #url: URL | undefined
  readonly #options: OpenOptions

  constructor(input: Input, options: OpenOptions) {
    this.#url = remoteUrlOf(input)
    this.#path = pathOf(input)
    this.#options = options
  }

  readonly open: ReadOptions['sibling'] = async (name, { isSole = false } = {}) => {
    const known = this.sources.get(name)
    if (known) return known
    const given = await this.#resolve(name)
    if (given) return given
    if (this.#path === undefined) {
      const message = `The file refers to the file ${JSON.stringify(name)} in its folder, but the input has no path; provide the file with the option resolve.`
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    const source = this.#url
      ? await openRemote(siblingUrl(this.#url, name), this.#options.remote)
      : await this.#openBeside(this.#path, name, isSole)
    this.sources.set(name, source)
    return source
  }

  #openBeside(path: string, name: string, isSole: boolean): Promise<ByteSource> {
    const { symlinks = 'inside', hardLinks = 'refuse' } = this.#options
    const policy = { symlinks, hardLinks: isSole ? hardLinks : 'allow' }
    return openSibling(path, name, policy, sourceOptions(this.#options))
  }

  async #resolve(name: string): Promise<ByteSource | undefined> {
    // Names that are special on Windows are allowed for remote objects.
    checkSiblingName(name, isWindows && this.#url === undefined)
    const given = await this.#options.resolve?.(name)
    if (given === undefined) return undefined
    const source = await openSource(given, sourceOptions(this.#options))
    this.sources.set(name, source)
    return source
  }

  close(options?: { readonly revoke?: boolean }): void {
    for (const source of this.sources.values()) source.close?.(options)
  }
}

/** Options of `check`: those of `open`, and a signal. */
export interface CheckOptions extends OpenOptions {
  /** Rejects the call with ERR_ABORTED; a read in progress is not stopped. */
  readonly signal?: AbortSignal
}

/**
 * Checks a file, costly checks included (indices of sparse tensors, padding bytes).
 *
 * @returns findings in file order; one with the code ERR_UNKNOWN_FORMAT when no format fits
 * @throws TileworkError ERR_IO, ERR_FILE_CHANGED, ERR_ARGUMENT, ERR_ABORTED; never for bad bytes
 */
export async function check(input: Input, given: CheckOptions = {}): Promise<Finding[]> {
  const { signal, ...options } = copyOptions(given)
  throwIfAborted(signal)
  const checked = withRemoteDeadline(input, options, (limited) => checkInput(input, limited))
  return untilAborted(checked, signal)
}

async function checkInput(input: Input, options: OpenOptions): Promise<Finding[]> {
  const checked = checkOptions(options)
  const { source, detected } = await openWithFormat(input, options)
  const siblings = new SiblingFiles(input, options)
  try {
    if (detected) {
      const format = await detected.entry.load()
      const readOptions = { ...checked, ...messagesOf(detected), sibling: siblings.open }
      const findings = await checkDecoded(source, format, readOptions)
      const isBad = findings.some(({ severity }) => severity === 'error')
      const foreign = isBad ? await foreignFileError(source, detected) : undefined
      return foreign ? [errorFinding(foreign), ...findings] : findings
    }
    return [errorFinding(await unknownFormatError(source))]
  } finally {
    // No view of a source that was opened here can exist outside, so its memory can be freed at once.
    if (source !== input) source.close?.({ revoke: true })
    siblings.close({ revoke: true })
  }
}

/** A file that cannot be decoded has one finding. */
async function checkDecoded(
  source: ByteSource,
  format: Format<unknown, AnyTensor>,
  options: ReadOptions,
): Promise<Finding[]> {
  let bytes: ByteSource | undefined
  try {
    bytes = await format.decode?.(source, options)
  } catch (error) {
    if (!isOfBytes(error)) throw error
    return [errorFinding(error)]
  }
  return format.check(bytes ?? source, options)
}

function errorFinding({ code, message }: TileworkError): Finding {
  return { severity: 'error', code, path: '', offset: 0, message }
}

async function openWithFormat(
  input: Input,
  options: OpenOptions,
): Promise<{ source: ByteSource; detected: DetectedFormat | undefined }> {
  const named = options.format === undefined ? undefined : { entry: formatByName(options.format) }
  const source = await openSource(input, sourceOptions(options))
  try {
    return { source, detected: named ?? (await detectFormat(source, pathOf(input) ?? source.label)) }
  } catch (error) {
    source.close?.()
    throw error
  }
}

function sourceOptions({ mode, guard, limits, remote }: OpenOptions): OpenSourceOptions {
  const { inputBytes } = checkLimits(limits)
  return {
    ...(mode !== undefined && { mode }),
    ...(guard !== undefined && { guard }),
    ...(inputBytes !== undefined && { maxInputBytes: inputBytes }),
    ...(remote !== undefined && { remote }),
  }
}

/** One line per option; a missing one does not compile. */
const OPTION_NAMES = {
  format: true,
  level: true,
  mode: true,
  guard: true,
  symlinks: true,
  hardLinks: true,
  resolve: true,
  limits: true,
  remote: true,
  unknown: true,
  message: true,
} as const satisfies Record<keyof OpenOptions, true>

/** A copy, read once. @throws TileworkError ERR_ARGUMENT for anything but an object, and for getters that throw */
function copyOptions<Options extends OpenOptions>(options: Options): Options {
  if (typeof options !== 'object' || options === null) {
    throw new TileworkError('ERR_ARGUMENT', `The options are ${valueText(options)}; they must be an object.`)
  }
  return readInput('The options', () => ({ ...options }))
}

function checkOptions(options: OpenOptions): Omit<ReadOptions, 'sibling'> {
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(OPTION_NAMES, key))
  if (unknown !== undefined) {
    const message = `unknown option ${valueText(unknown)}${expectedText(unknown, Object.keys(OPTION_NAMES))}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const { level = 'lenient', limits, guard, message, unknown: names, resolve, remote } = options
  if (remote !== undefined) checkRemoteOptions(remote)
  if (resolve !== undefined && typeof resolve !== 'function') {
    throw new TileworkError('ERR_ARGUMENT', `resolve is ${valueText(resolve)}; it must be a function.`)
  }
  if (guard !== undefined) checkFlag(guard, 'guard')
  checkOneOf(level, 'level', ['lenient', 'strict'])
  checkOneOf(options.symlinks ?? 'inside', 'symlinks', ['inside', 'follow'])
  checkOneOf(options.hardLinks ?? 'refuse', 'hardLinks', ['refuse', 'allow'])
  checkOneOf(options.unknown ?? 'refuse', 'unknown', ['refuse', 'omit'])
  const { inputBytes: _, ...formatLimits } = checkLimits(limits)
  return {
    level,
    limits: formatLimits,
    ...(message !== undefined && { message }),
    ...(names !== undefined && { unknown: names }),
  }
}

/**
 * The path of an input, if it has one; for a remote URL its text without the query, which has the same extension.
 *
 * @throws TileworkError ERR_ARGUMENT for a URL that is neither a local path nor of a known scheme
 */
export function pathOf(input: unknown): string | undefined {
  const url = remoteUrlOf(input)
  if (url) return urlLabel(url)
  if (typeof input === 'string') return input
  return isInstance(input, URL) ? pathOfUrl(input) : undefined
}

/** The URL of a remote input or target. @throws TileworkError ERR_ARGUMENT for an unknown scheme */
export function remoteUrlOf(input: unknown): URL | undefined {
  return typeof input === 'string' || isInstance(input, URL) ? remoteUrl(input) : undefined
}
