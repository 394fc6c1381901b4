/** Opens a file of any known format: finds the format, lets its reader check the headers, hands out tensors. */

import { type OpenSourceOptions, openSource, pathOfUrl, type SourceInput } from '../bytes/open_source.js'
import { checkSiblingName, type HardLinkPolicy, openSibling, type SymlinkPolicy } from '../bytes/sibling.js'
import type { ByteSource } from '../bytes/source.js'
import { readInput } from '../caller_input.js'
import { type Finding, type Level, TileworkError } from '../errors.js'
import type { ReadOptions, TensorList } from '../formats/format.js'
import { checkLimits, type InputLimits } from '../formats/limits.js'
import type { FileMessage, OnnxModel } from '../formats/onnx/index.js'
import {
  type DetectedFormat,
  detectFormat,
  type FileModels,
  type FormatName,
  formatByName,
} from '../formats/registry.js'
import type { TmfileModel } from '../formats/tmfile/index.js'
import type { DenseTensor, SparseTensor, Tensor } from '../tensor/tensor.js'
import { uncloneable } from '../uncloneable.js'
import { valueText } from '../value_text.js'
import { selectTensor } from './select_tensors.js'
import { textFileError } from './text_file.js'

/**
 * What can be opened: a path, a `file:` URL, bytes in memory, a Blob, a source of the caller's own; or a Response or byte
 * stream, which is received into memory up to `limits.inputBytes`.
 */
export type Input = SourceInput

export interface OpenOptions {
  /** Format of the bytes. Default: found by extension and content. */
  readonly format?: FormatName
  /** `strict` refuses what breaks a rule of the format; `lenient` (default) what cannot be read safely. */
  readonly level?: Level
  /** `map` (default) maps the file; `read` reads ranges of it, for untrusted writers and network shares. */
  readonly mode?: 'map' | 'read'
  /**
   * With `mode: 'map'`: a file that someone truncates under the map gives zeros and ERR_FILE_CHANGED, where the system
   * would else kill the process (SIGBUS). Installs a signal handler, which hands on all faults that are not its own.
   */
  readonly guard?: boolean
  /**
   * Symbolic links among the files that a file of several parts refers to: `inside` (default) lets them lead to files
   * of the same folder only, `follow` anywhere, as the caches of model hubs need it.
   */
  readonly symlinks?: SymlinkPolicy
  /**
   * Files of external data that have other names too (hard links): `refuse` (default), since such a name is a way out of
   * the folder that no path shows, or `allow`, as stores that keep equal files once need it.
   */
  readonly hardLinks?: HardLinkPolicy
  /**
   * Other files that a file of several parts refers to, where these are not in its folder: bytes in memory, a path of a
   * cache, a source of your own. It is asked first, with names that lead out of no folder; for undefined the folder is asked.
   */
  readonly resolve?: (name: string) => Input | undefined | Promise<Input | undefined>
  readonly limits?: InputLimits
  /** Which message an ONNX file is. Default: what its content says, and its `findings` name what else it could be. */
  readonly message?: FileMessage
}

/** An open file. Its tensors live until `close`. */
export interface OpenFile extends FileModels {
  readonly format: FormatName
  /** Every tensor entry of the format, in file order. */
  readonly tensors: TensorList
  /** The model that a tmfile is. It may be changed; saving the file writes it as it is then. */
  readonly tmfile?: TmfileModel
  /**
   * The model of an ONNX file; edits are written when it is saved. `tensors` keeps listing the file as it was opened:
   * `onnx.graph.initializers()` gives the initializers as they are now.
   */
  readonly onnx?: OnnxModel
  /**
   * The dense tensor of a name, or at a place (below 0 from the end).
   * Errors: ERR_ARGUMENT when there is none, ERR_UNSUPPORTED when it is of another kind.
   */
  dense(key: string | number): DenseTensor
  /** As `dense`, for a sparse tensor. */
  sparse(key: string | number): SparseTensor
  /** What a lenient read noticed. */
  readonly findings: readonly Finding[]
  /** Length of the file in bytes. */
  readonly byteLength: number
  /**
   * Ends the use of the file: it and its tensors become ERR_CLOSED at once. Views that were given out stay valid
   * and the memory goes with the last of them, unless `revoke` is true: then they are detached as well, which is
   * safe only when no asynchronous call of Node is using one. May be called twice.
   */
  close(options?: { readonly revoke?: boolean }): void
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>
}

/** What lies behind an open file, for an unchanged save. */
export interface OpenedFile {
  readonly source: ByteSource
  /** Other files that it refers to, by their names in its folder. */
  readonly siblings: ReadonlyMap<string, ByteSource>
}

const UNCLONEABLE = uncloneable('an open file; send its path or bytes instead')

const openedFiles = new WeakMap<object, OpenedFile>()

/** Undefined for what is no open file. */
export function openedFile(content: unknown): OpenedFile | undefined {
  return typeof content === 'object' && content !== null ? openedFiles.get(content) : undefined
}

/**
 * Opens a tensor file. Only headers are read; payloads are read when a tensor's bytes are asked for.
 *
 * @throws TileworkError ERR_IO, ERR_UNKNOWN_FORMAT, ERR_LIMIT, and the codes of the format's reader
 */
export async function open(input: Input, given: OpenOptions = {}): Promise<OpenFile> {
  const options = copyOptions(given)
  const checked = checkOptions(options)
  const { source, detected } = await openWithFormat(input, options)
  const siblings = new SiblingFiles(input, options)
  const close = (closeOptions?: { readonly revoke?: boolean }): void => {
    source.close?.(closeOptions)
    siblings.close(closeOptions)
  }
  try {
    if (!detected) throw unknownFormat(source)
    const { entry } = detected
    const format = await entry.load()
    const readOptions = { ...checked, ...messagesOf(detected), sibling: siblings.open }
    const { tensors, findings, model } = await format.read(source, readOptions)
    const file: OpenFile & { readonly uncloneable: symbol } = {
      // The first property, so that its text is what a failed clone reports.
      uncloneable: UNCLONEABLE,
      format: entry.name as FormatName,
      tensors,
      ...(model && entry.modelProperty !== undefined && { [entry.modelProperty]: model }),
      dense: (key) => pick(tensors, key, 'dense'),
      sparse: (key) => pick(tensors, key, 'sparse'),
      findings,
      byteLength: source.byteLength,
      close,
      [Symbol.dispose]: () => close(),
      [Symbol.asyncDispose]: async () => close(),
    }
    openedFiles.set(file, { source, siblings: siblings.sources })
    return file
  } catch (error) {
    const better =
      error instanceof TileworkError && detected
        ? await textFileError(source, pathOf(input), detected.entry)
        : undefined
    close()
    throw better ?? error
  }
}

/** What detection has found, so that the reader does not look for it again. */
function messagesOf({ detection }: DetectedFormat): Pick<ReadOptions, 'detectedMessages'> {
  return typeof detection === 'object' ? { detectedMessages: detection.messages } : {}
}

function pick<K extends Tensor['kind']>(tensors: TensorList, key: string | number, kind: K): TensorOf<K> {
  const tensor = selectTensor(tensors, key)
  if (tensor.kind === kind) return tensor as TensorOf<K>
  const what = `Tensor ${valueText(key)} is ${tensor.kind}, not ${kind}`
  throw new TileworkError('ERR_UNSUPPORTED', `${what}; file.tensors has tensors of every kind.`)
}

type TensorOf<K extends Tensor['kind']> = Extract<Tensor, { readonly kind: K }>

/** The other files that a file refers to, opened once each and closed with it. */
class SiblingFiles {
  readonly sources = new Map<string, ByteSource>()
  readonly #path: string | undefined
  readonly #options: OpenOptions

  constructor(input: Input, options: OpenOptions) {
    this.#path = pathOf(input)
    this.#options = options
  }

  readonly open: ReadOptions['sibling'] = async (name, { isSole = false } = {}) => {
    const known = this.sources.get(name)
    if (known) return known
    const given = await this.#resolve(name)
    if (given) return given
    if (this.#path === undefined) {
      const message = `The file refers to ${JSON.stringify(name)} beside it, and bytes in memory lie in no folder.`
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    const { symlinks = 'inside', hardLinks = 'refuse' } = this.#options
    const policy = { symlinks, hardLinks: isSole ? hardLinks : 'allow' }
    const source = await openSibling(this.#path, name, policy, sourceOptions(this.#options))
    this.sources.set(name, source)
    return source
  }

  async #resolve(name: string): Promise<ByteSource | undefined> {
    checkSiblingName(name)
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

/** Findings of every check that the format has at the given level. Bad bytes never throw. */
export interface CheckOptions extends OpenOptions {}

/**
 * Checks a file, costly checks included (indices of sparse tensors, padding bytes).
 *
 * @returns findings in file order; one with the code ERR_UNKNOWN_FORMAT when no format fits
 * @throws TileworkError ERR_IO, ERR_FILE_CHANGED, ERR_ARGUMENT; never for bad bytes
 */
export async function check(input: Input, given: CheckOptions = {}): Promise<Finding[]> {
  const options = copyOptions(given)
  const checked = checkOptions(options)
  const { source, detected } = await openWithFormat(input, options)
  const siblings = new SiblingFiles(input, options)
  try {
    if (detected) {
      const format = await detected.entry.load()
      const readOptions = { ...checked, ...messagesOf(detected), sibling: siblings.open }
      const findings = await format.check(source, readOptions)
      const isBad = findings.some(({ severity }) => severity === 'error')
      const text = isBad ? await textFileError(source, pathOf(input), detected.entry) : undefined
      return text ? [errorFinding(text), ...findings] : findings
    }
    return [errorFinding(unknownFormat(source))]
  } finally {
    // Nobody else has views of a source that was opened here, so its memory can go at once.
    if (source !== input) source.close?.({ revoke: true })
    siblings.close({ revoke: true })
  }
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
    return { source, detected: named ?? (await detectFormat(source, pathOf(input))) }
  } catch (error) {
    source.close?.()
    throw error
  }
}

function sourceOptions({ mode, guard, limits }: OpenOptions): OpenSourceOptions {
  const { inputBytes } = checkLimits(limits)
  return {
    ...(mode !== undefined && { mode }),
    ...(guard !== undefined && { guard }),
    ...(inputBytes !== undefined && { maxInputBytes: inputBytes }),
  }
}

/** One line an option; the type makes a forgotten one an error of compilation. */
const OPTION_NAMES = {
  format: true,
  level: true,
  mode: true,
  guard: true,
  symlinks: true,
  hardLinks: true,
  resolve: true,
  limits: true,
  message: true,
} as const satisfies Record<keyof OpenOptions, true>

/** Read once. @throws TileworkError ERR_ARGUMENT for what is no object, or cannot be read */
function copyOptions<Options extends OpenOptions>(options: Options): Options {
  if (typeof options !== 'object' || options === null) {
    throw new TileworkError('ERR_ARGUMENT', `The options must be an object; they are ${valueText(options)}.`)
  }
  return readInput('The options', () => ({ ...options }))
}

function checkOptions(options: OpenOptions): Omit<ReadOptions, 'sibling'> {
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(OPTION_NAMES, key))
  if (unknown !== undefined) {
    const known = Object.keys(OPTION_NAMES).join(', ')
    throw new TileworkError('ERR_ARGUMENT', `${valueText(unknown)} is no option; known are: ${known}.`)
  }
  const { level = 'lenient', limits, guard, message, resolve } = options
  if (resolve !== undefined && typeof resolve !== 'function') {
    throw new TileworkError('ERR_ARGUMENT', `resolve must be a function; it is ${valueText(resolve)}.`)
  }
  if (guard !== undefined && typeof guard !== 'boolean') {
    throw new TileworkError('ERR_ARGUMENT', `guard must be true or false; it is ${valueText(guard)}.`)
  }
  if (level !== 'lenient' && level !== 'strict') {
    throw new TileworkError('ERR_ARGUMENT', `level must be "lenient" or "strict"; it is ${valueText(level)}.`)
  }
  checkChoice('symlinks', options.symlinks, ['inside', 'follow'])
  checkChoice('hardLinks', options.hardLinks, ['refuse', 'allow'])
  const { inputBytes: _, ...formatLimits } = checkLimits(limits)
  return { level, limits: formatLimits, ...(message !== undefined && { message }) }
}

function checkChoice(option: string, value: unknown, choices: readonly [string, string]): void {
  if (value === undefined || choices.includes(value as string)) return
  const [one, other] = choices
  const message = `${option} must be "${one}" or "${other}"; it is ${valueText(value)}.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function unknownFormat(source: ByteSource): TileworkError {
  const what = source.label ?? 'the input'
  return new TileworkError('ERR_UNKNOWN_FORMAT', `${what} is not readable as any known format.`)
}

/**
 * The path of an input that has one.
 *
 * @throws TileworkError ERR_ARGUMENT for a URL that is no path of this machine
 */
export function pathOf(input: unknown): string | undefined {
  if (typeof input === 'string') return input
  return input instanceof URL ? pathOfUrl(input) : undefined
}
