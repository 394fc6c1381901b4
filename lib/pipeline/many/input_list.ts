/**
 * The list of inputs of a run: names and patterns become files, each real file once, in an order that depends only on the paths.
 * So two machines with the same files compute the same list and can divide it.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, extname, join, relative, resolve } from 'node:path'
import { isInside } from '../../bytes/confinement.js'
import { pathOfUrl } from '../../bytes/open_source.js'
import type { RemoteOptions } from '../../bytes/remote/remote_options.js'
import { remoteUrl } from '../../bytes/remote/schemes.js'
import { systemError } from '../../bytes/system_error.js'
import { readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { valueText } from '../../value_text.js'
import { formatByExtension } from '../registry.js'
import { isPattern, type Match, matchPattern } from './pattern.js'
import { type Located, RealPaths } from './real_paths.js'
import { isUrlPattern, matchUrls, publicName, urlBaseName, urlOf } from './remote_files.js'

/**
 * An input of a run: a path or a URL, or a pattern of either where no file has that name. A `URL` and `{ path }` are never
 * taken as a pattern.
 */
export type ConvertInput = string | URL | { readonly path: string }

/** One or many inputs. */
export type ConvertInputs = ConvertInput | Iterable<ConvertInput> | AsyncIterable<ConvertInput>

/** One file to convert. */
export interface InputFile {
  /** As the caller named it, or as the pattern matched it. */
  readonly path: string
  /** Absolute, with links resolved. */
  readonly real: string
  /** Path of its output, relative to the folder of outputs. */
  readonly name: string
  /** Length in bytes when the list was made; 0 where the file could not be inspected. For progress only. */
  readonly byteLength: number
}

export interface InputSelection {
  readonly inputs: ConvertInputs
  /** Outputs keep the path of their input below this folder. */
  readonly base: string | undefined
  /** Files in this folder are not matched by patterns, because outputs of an earlier run must not be inputs of the next. */
  readonly outDir: string
  readonly signal: AbortSignal | undefined
  /** Request options for listing remote objects. */
  readonly remote?: RemoteOptions
}

/** Most files of a list: about 1 GiB of paths. A longer list can be converted in parts. */
const MAX_FILES = 2_000_000

/** Files between two yields to the event loop, so that signals are handled. */
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
    `The inputs are ${valueText(inputs)}; they must be paths, patterns, URLs or an iterable of these.`,
  )
}

function checkBase(base: string): void {
  if (urlOf(base)) return
  if (statSync(base, { throwIfNoEntry: false })?.isDirectory()) return
  const reason = existsSync(base) ? 'is not a folder' : 'does not exist'
  throw new TileworkError('ERR_ARGUMENT', `The base folder ${base} ${reason}.`)
}

/** Undefined for text, which may be a pattern. */
function literalPath(input: ConvertInput): string | undefined {
  if (typeof input === 'string') return undefined
  const path = readInput('An input', () => {
    if (input instanceof URL) return remoteUrl(input) ? input.href : pathOfUrl(input)
    return input?.path
  })
  if (typeof path === 'string') return path
  throw new TileworkError(
    'ERR_ARGUMENT',
    `An input is ${valueText(input)}; it must be a path, a pattern, a URL or { path }.`,
  )
}

class InputList {
  readonly #files: InputFile[] = []
  readonly #paths = new RealPaths()
  readonly #selection: InputSelection
  readonly #outDir: string

  constructor(selection: InputSelection) {
    this.#selection = selection
    const { outDir } = selection
    this.#outDir = urlOf(outDir) ? outDir : this.#paths.folder(resolve(outDir))
  }

  async add(input: ConvertInput): Promise<void> {
    const path = literalPath(input)
    const url = urlOf(path ?? (input as string))
    if (url) return this.#addUrl(url, path === undefined ? (input as string) : undefined)
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

  async #push(file: InputFile): Promise<void> {
    this.#files.push(file)
    if (this.#files.length > MAX_FILES) {
      throw new TileworkError('ERR_LIMIT', `The list has more than ${MAX_FILES} files; convert it in parts.`)
    }
    if (this.#files.length % FILES_PER_YIELD === 0) await yieldOrAbort(this.#selection.signal)
  }

  async #addMatches(pattern: string): Promise<void> {
    const { base, files } = await matchPattern(pattern, this.#selection.signal)
    // A pattern that starts in the output folder is meant to match outputs.
    const isSearchOfOutputs = isInside(this.#paths.folder(resolve(base)), this.#outDir)
    let found = 0
    for (const match of files) {
      const located = this.#paths.locate(match.path)
      if (!isSearchOfOutputs && isInside(located.real, this.#outDir)) continue
      await this.#add(match, located)
      found++
    }
    if (found === 0) throw new TileworkError('ERR_ARGUMENT', `No file matches the pattern '${pattern}'.`)
  }

  /** @param text - the URL as text where it may be a pattern */
  async #addUrl(url: URL, text: string | undefined): Promise<void> {
    if (text === undefined || !isUrlPattern(text)) {
      const name = this.#urlBelowBase(url, urlBaseName(url))
      return this.#push({ path: url.href, real: url.href, name, byteLength: 0 })
    }
    const outputs = `${urlOf(this.#selection.outDir)?.href.replace(/\/$/, '')}/`
    const isSearchOfOutputs = text.startsWith(outputs)
    let found = 0
    for await (const match of matchUrls(text, this.#selection.remote ?? {})) {
      const { href } = match.url
      if (!isSearchOfOutputs && href.startsWith(outputs)) continue
      const name = this.#urlBelowBase(match.url, match.name)
      await this.#push({ path: href, real: href, name, byteLength: match.byteLength })
      found++
    }
    if (found === 0) throw new TileworkError('ERR_ARGUMENT', `No object matches the pattern '${text}'.`)
  }

  #urlBelowBase({ href }: URL, name: string): string {
    const { base } = this.#selection
    if (base === undefined) return name
    const start = `${urlOf(base)?.href.replace(/\/$/, '')}/`
    if (href.startsWith(start)) return decodeURIComponent(href.slice(start.length).replace(/[?#].*/s, ''))
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${publicName(href)} lies outside the base folder ${publicName(base)}.`,
    )
  }

  #nameBelowBase(path: string, name: string): string {
    const { base } = this.#selection
    if (base === undefined) return name
    const below = relative(resolve(base), resolve(path))
    if (below !== '..' && !below.startsWith('../')) return below
    throw new TileworkError('ERR_ARGUMENT', `${path} lies outside the base folder ${base}.`)
  }

  finish(): InputFile[] {
    const seen = new Set<string>()
    return this.#files.sort(byPath).filter(({ real }) => seen.size < seen.add(real).size)
  }
}

/** Compares paths by code units, independent of the locale. */
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

/** The extension of the first file in a folder that has the extension of a known format. */
function extensionIn(folder: string): string {
  const known = systemError.wrap(folder, () => readdirSync(folder)).find((name) => formatByExtension(name))
  return known === undefined ? '.safetensors' : extname(known)
}
