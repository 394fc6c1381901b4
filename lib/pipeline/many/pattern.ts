/**
 * File name patterns, for patterns that the shell does not expand: quoted, or with more matches than fit on a command line. `*`,
 * `**`, `?`, `[…]`, `{…,…}` and `!(…)` as in most shells; a backslash escapes the next character, but separates folders on
 * Windows.
 */
import type { Dirent } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type Picomatch from 'picomatch'
import { isUrl } from '../../bytes/remote/schemes.js'
import { systemError } from '../../bytes/system_error.js'
import { isWindows, withSlashes } from '../../bytes/windows_names.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'

/** A pattern, split before its first component with a wildcard. */
interface SplitPattern {
  /** The folder to search in; empty for the current one. */
  readonly base: string
  readonly tail: string
}

export interface Match {
  readonly path: string
  /** The path below the part of the pattern without wildcards. */
  readonly name: string
}

export interface Matches {
  readonly base: string
  readonly files: readonly Match[]
}

/** The characters that start a wildcard, unless a backslash escapes them. */
export const WILDCARD = /(?<!\\)(?:[*?[{]|[!+@]\()/

/** True for text with wildcards, which `convertMany` expands unless a file has that name. A URL may have a query instead. */
export function isPattern(text: string): boolean {
  return typeof text === 'string' && !isUrl(text) && WILDCARD.test(portable(text))
}

/**
 * The files that match a pattern, in no particular order. Names that begin with a dot match only where the pattern has
 * the dot. Links to folders are followed.
 *
 * @throws TileworkError ERR_IO for a folder that cannot be read, since its files would otherwise be skipped silently;
 * ERR_ARGUMENT for a pattern that cannot be searched, such as one with a NUL; ERR_ABORTED
 */
export async function matchPattern(pattern: string, signal: AbortSignal | undefined): Promise<Matches> {
  const { base, tail } = splitPattern(portable(pattern))
  try {
    // Loaded on first use, because most runs name their files and start-up must stay fast.
    const { default: picomatch } = await import('picomatch')
    const names: string[] = []
    await new Search(base, compile(escapeNegation(tail), picomatch), names, signal).run()
    return { base, files: names.map((name) => ({ path: join(base, name), name })) }
  } catch (cause) {
    if (cause instanceof TileworkError) throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new TileworkError('ERR_ARGUMENT', `The pattern '${pattern}' cannot be searched: ${reason}.`, {
      cause,
    })
  }
}

/** A function that tells whether a name below the base of a pattern matches its tail. */
export async function matcherOf(tail: string): Promise<(name: string) => boolean> {
  const { default: picomatch } = await import('picomatch')
  return compile(escapeNegation(tail), picomatch).isMatch
}

/** A pattern without its base. */
interface Compiled {
  isMatch(name: string): boolean
  /** Whether a folder of this name, `depth` levels below the base, can contain a match. */
  canContain(name: string, depth: number): boolean
}

function compile(tail: string, picomatch: typeof Picomatch): Compiled {
  const parts = picomatch.scan(tail, { parts: true }).parts ?? [tail]
  // From `**` or a group with a slash on, matches may be at any depth.
  const open = parts.findIndex((part) => part.includes('**') || part.includes('/'))
  const levels = parts.slice(0, open === -1 ? -1 : open).map((part) => picomatch(part, MATCHING))
  const namesDots = /(?:^|[/{(,|])\\?\./.test(tail)
  return {
    isMatch: picomatch(tail, MATCHING),
    canContain: (name, depth) =>
      levels[depth]?.(name) ?? (open !== -1 && (namesDots || !name.startsWith('.'))),
  }
}

/** Slashes separate folders on every system. */
const MATCHING = { posix: true } as const

/** A folder of a search, by its path below the base. */
interface Folder {
  readonly name: string
  readonly depth: number
  /** Real paths of the folder and its parents: following a link to one of them would never end. */
  readonly real: readonly string[]
}

class Search {
  constructor(
    private readonly base: string,
    private readonly pattern: Compiled,
    private readonly found: string[],
    private readonly signal: AbortSignal | undefined,
  ) {}

  async run(): Promise<void> {
    await this.#visit({ name: '', depth: 0, real: [await realpath(this.base || '.').catch(() => this.base)] })
  }

  async #visit({ name: folder, depth, real }: Folder): Promise<void> {
    throwIfAborted(this.signal)
    for (const entry of await entriesOf(join(this.base || '.', folder))) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`
      const path = join(this.base, name)
      const kind = entry.isSymbolicLink() ? await stat(path).catch(() => undefined) : entry
      if (kind?.isFile() && this.pattern.isMatch(name)) this.found.push(name)
      if (!kind?.isDirectory() || !this.pattern.canContain(entry.name, depth)) continue
      const target = entry.isSymbolicLink() ? await realpath(path) : join(real.at(-1)!, entry.name)
      if (!real.includes(target)) await this.#visit({ name, depth: depth + 1, real: [...real, target] })
    }
  }
}

/** @throws TileworkError ERR_IO for an existing folder that cannot be read */
async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    if (code === 'ERR_INVALID_ARG_VALUE') throw error
    throw systemError.from(path, error)
  }
}

/** On Windows a backslash separates folders; `[*]` stands for a character that is no wildcard. */
function portable(pattern: string): string {
  return isWindows ? withSlashes(pattern) : pattern
}

export function splitPattern(pattern: string): SplitPattern {
  // A brace may contain slashes and must stay whole: {a/b,c}/*.btf has no folder before its wildcard.
  const wildcard = pattern.search(WILDCARD)
  const cut = pattern.lastIndexOf('/', wildcard === -1 ? pattern.length : wildcard)
  if (cut === -1) return { base: '', tail: pattern }
  // The slash is kept: "C:" alone means the current folder of the drive.
  const isRoot = cut === 0 || (isWindows && /^[A-Za-z]:$/.test(pattern.slice(0, cut)))
  return {
    base: pattern.slice(0, isRoot ? cut + 1 : cut).replace(/\\(.)/g, '$1'),
    tail: pattern.slice(cut + 1),
  }
}

/** Escapes a leading `!`, which picomatch would treat as a negation of the whole pattern. */
function escapeNegation(pattern: string): string {
  return pattern.startsWith('!') && !pattern.startsWith('!(') ? `\\${pattern}` : pattern
}
