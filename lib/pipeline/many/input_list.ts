/**
 * The list of inputs of a run: names and patterns become files, each real file once, in an order that depends on the
 * paths alone. So two machines with the same files have the same list, and can share it.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, extname, join, relative, resolve } from 'node:path'
import { pathOfUrl } from '../../bytes/open_source.js'
import { isUrl, remoteUrl } from '../../bytes/remote/schemes.js'
import { urlLabel } from '../../bytes/remote/url_scheme.js'
import { systemError } from '../../bytes/system_error.js'
import { isInstance, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { formatByExtension } from '../../formats/registry.js'
import { valueText } from '../../value_text.js'
import { isPattern, type Match, matchPattern } from './pattern.js'
import { isInside, type Located, RealPaths } from './real_paths.js'

/**
 * An input of a run: a path, a URL, or a pattern where no file has that name. A URL or `{ path }` is never taken as a pattern.
 */
export type ConvertInput = string | URL | { readonly path: string }

/** One or many inputs. */
export type ConvertInputs = ConvertInput | Iterable<ConvertInput> | AsyncIterable<ConvertInput>

/** One file to convert. */
export interface InputFile {
  /** As the caller named it, or as the pattern matched it; of a URL its text. */
  readonly path: string
  /** Absolute, with links resolved; of a URL without its query. */
  readonly real: string
  /** Path of its output, relative to the folder of outputs. */
  readonly name: string
  /** Length in bytes when the list was made; 0 for URLs and where the file could not be inspected. For progress only. */
  readonly byteLength: number
}

export interface InputSelection {
  readonly inputs: ConvertInputs
  /** Outputs keep the path of their input below this folder. */
  readonly base: string | undefined
  /** Patterns omit files in this folder, because outputs of an earlier run are not inputs of the next. */
  readonly outDir: string
  readonly signal: AbortSignal | undefined
}

/** About 1 GiB of paths. A longer list can be converted in parts. */
const MAX_FILES = 2_000_000

/** Files between two yields to the event loop, so that signals and other work are handled. */
const FILES_PER_YIELD = 512

/**
 * All inputs, sorted by path, without duplicates. Without `base` the output of a named file has its file name, and the
 * output of a matched file its path below the part of the pattern without wildcards.
 *
 * @throws TileworkError ERR_ARGUMENT for folders, patterns without a match, a `base` that is not a folder and files outside
 * `base`; ERR_LIMIT for more than 2,000,000 files; ERR_ABORTED; ERR_IO
 */
export async function listInputs(selection: InputSelection): Promise<InputFile[]> {
  if (selection.base !== undefined) checkBase(selection.base)
  const list = new InputList(selection)
  if (isSingle(selection.inputs)) await list.add(selection.inputs)
  else for await (const input of selection.inputs) await list.add(input)
  return list.finish()
}

function isSingle(inputs: ConvertInputs): inputs is ConvertInput {
  if (typeof inputs === 'string' || inputs instanceof URL) return true
  if (typeof inputs === 'object' && inputs !== null && !ArrayBuffer.isView(inputs)) {
    if (Symbol.iterator in inputs || Symbol.asyncIterator in inputs) return false
    if ('path' in inputs) return true
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The inputs must be paths, patterns, file: URLs or an iterable of these; they are ${valueText(inputs)}.`,
  )
}

function checkBase(base: string): void {
  if (remoteUrl(base)) return
  if (statSync(base, { throwIfNoEntry: false })?.isDirectory()) return
  const reason = existsSync(base) ? 'is not a folder' : 'does not exist'
  throw new TileworkError('ERR_ARGUMENT', `The base folder ${base} ${reason}.`)
}

/** The URL of an input on another machine. */
function urlOf(input: ConvertInput): URL | undefined {
  return typeof input === 'string' || isInstance(input, URL) ? remoteUrl(input) : undefined
}

/** Undefined for text, which may be a pattern. */
function literalPath(input: ConvertInput): string | undefined {
  if (typeof input === 'string') return undefined
  const path = readInput('An input', () => (input instanceof URL ? pathOfUrl(input) : input?.path))
  if (typeof path === 'string') return path
  throw new TileworkError(
    'ERR_ARGUMENT',
    `An input must be a path, a pattern, a file: URL or { path }; it is ${valueText(input)}.`,
  )
}

class InputList {
  readonly #files: InputFile[] = []
  readonly #paths = new RealPaths()
  readonly #selection: InputSelection
  /** Undefined where outputs are objects. */
  readonly #outDir: string | undefined

  constructor(selection: InputSelection) {
    this.#selection = selection
    const { outDir } = selection
    this.#outDir = isUrl(outDir) ? undefined : this.#paths.folder(resolve(outDir))
  }

  async add(input: ConvertInput): Promise<void> {
    const url = urlOf(input)
    if (url) return this.#addObject(url)
    const path = literalPath(input)
    if (path === undefined) {
      const text = input as string
      if (this.#paths.locate(text).stats === undefined && isPattern(text)) return this.#addMatches(text)
    }
    const found = path ?? (input as string)
    return this.#add({ path: found, name: basename(found) }, this.#paths.locate(found))
  }

  async #add({ path, name }: Match, { real, stats }: Located): Promise<void> {
    if (stats?.isDirectory()) {
      const pattern = join(path, '**', `*${extensionIn(path)}`)
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${path} is a folder; select its files with a pattern such as '${pattern}'.`,
      )
    }
    await this.#push({ path, real, name: this.#nameBelowBase(path, name), byteLength: stats?.size ?? 0 })
  }

  /** Nobody is asked for the object before it is its turn: a list may have a million. */
  async #addObject(url: URL): Promise<void> {
    await this.#push({ path: url.href, real: urlLabel(url), name: this.#nameBelowUrl(url), byteLength: 0 })
  }

  async #push(file: InputFile): Promise<void> {
    this.#files.push(file)
    if (this.#files.length > MAX_FILES) {
      throw new TileworkError('ERR_LIMIT', `The list has more than ${MAX_FILES} files; convert it in parts.`)
    }
    if (this.#files.length % FILES_PER_YIELD === 0) await yieldOrAbort(this.#selection.signal)
  }

  async #addMatches(pattern: string): Promise<void> {
    const { base, files } = await matchPattern(pattern, this.#selection.signal)
    // A search that starts among the outputs means the outputs.
    const outDir = this.#outDir
    const isOutput = (path: string): boolean => outDir !== undefined && isInside(path, outDir)
    const isSearchOfOutputs = isOutput(this.#paths.folder(resolve(base)))
    let found = 0
    for (const match of files) {
      const located = this.#paths.locate(match.path)
      if (!isSearchOfOutputs && isOutput(located.real)) continue
      await this.#add(match, located)
      found++
    }
    if (found === 0) throw new TileworkError('ERR_ARGUMENT', `No file matches the pattern '${pattern}'.`)
  }

  #nameBelowBase(path: string, name: string): string {
    const { base } = this.#selection
    if (base === undefined) return name
    const below = relative(resolve(base), resolve(path))
    if (below !== '..' && !below.startsWith('../')) return below
    throw new TileworkError('ERR_ARGUMENT', `${path} lies outside the base folder ${base}.`)
  }

  #nameBelowUrl(url: URL): string {
    const { base } = this.#selection
    const label = urlLabel(url)
    const folder = base === undefined ? label.slice(0, label.lastIndexOf('/') + 1) : folderUrl(base)
    const name = label.startsWith(folder) ? decodedName(label.slice(folder.length)) : undefined
    if (name !== undefined && name !== '' && !name.split('/').includes('..')) return name
    const reason = base === undefined ? 'names no object' : `lies outside the base ${base}`
    throw new TileworkError('ERR_ARGUMENT', `${label} ${reason}.`)
  }

  finish(): InputFile[] {
    const seen = new Set<string>()
    return this.#files.sort(byPath).filter(({ real }) => seen.size < seen.add(real).size)
  }
}

/** The text that URLs below a folder start with. */
function folderUrl(base: string): string {
  const url = remoteUrl(base)
  const label = url ? urlLabel(url) : base
  return label.endsWith('/') ? label : `${label}/`
}

/** The name that a part of a URL spells; undefined where it spells none. */
function decodedName(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** By code units, independent of the locale. */
function byPath(one: InputFile, other: InputFile): number {
  return compare(one.path, other.path) || compare(one.name, other.name)
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

async function yieldOrAbort(signal: AbortSignal | undefined): Promise<void> {
  await yieldToEventLoop()
  throwIfAborted(signal)
}

/** The extension of the first file in a folder that is one of a format. */
function extensionIn(folder: string): string {
  const known = systemError.wrap(folder, () => readdirSync(folder)).find((name) => formatByExtension(name))
  return known === undefined ? '.safetensors' : extname(known)
}
