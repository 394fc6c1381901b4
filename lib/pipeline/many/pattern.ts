/**
 * File name patterns, for shells that do not expand them: in quotes, or longer than a command line may be. `*`, `**`, `?`,
 * `[…]`, `{…,…}` and `!(…)` as in most shells; a backslash escapes the next character, and on Windows it separates folders.
 */
import { readdir } from 'node:fs'
import { join } from 'node:path'
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
  /** The path below the part of the pattern that has no wildcard. */
  readonly name: string
}

export interface Matches {
  readonly base: string
  readonly files: readonly Match[]
}

type ReaddirCallback = (error: NodeJS.ErrnoException | null, entries: unknown) => void

/** The characters that start a wildcard, unless a backslash escapes them. */
const WILDCARD = /(?<!\\)(?:[*?[{]|[!+@]\()/

/** True for text with wildcards, which `convertMany` expands unless a file has that name. */
export function isPattern(text: string): boolean {
  return typeof text === 'string' && WILDCARD.test(portable(text))
}

/**
 * The files that match a pattern, in no particular order. Names that begin with a dot match only where the pattern has
 * the dot. Links to folders are followed.
 *
 * @throws TileworkError ERR_IO for a folder that cannot be read; its files would otherwise be missing silently; ERR_ARGUMENT
 * for a pattern that cannot be searched, such as one with a NUL; ERR_ABORTED
 */
export async function matchPattern(pattern: string, signal: AbortSignal | undefined): Promise<Matches> {
  // Loaded on first use, because most runs name their files and start-up must stay fast.
  const { glob } = await import('tinyglobby')
  const { base, tail } = splitPattern(portable(pattern))
  let refused: { readonly path: string; readonly error: unknown } | undefined
  const searched = glob(escapeNegation(tail), {
    cwd: base === '' ? '.' : base,
    expandDirectories: false,
    fs: {
      readdir: ((path: string, options: { withFileTypes: true }, done: ReaddirCallback) =>
        readdir(path, options, (error, entries) => {
          if (error && !isAbsent(error)) refused ??= { path, error }
          done(error, entries)
        })) as typeof readdir,
    },
    ...(signal && { signal }),
  })
  const names = await searched.catch((cause: unknown) => {
    throwIfAborted(signal)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new TileworkError('ERR_ARGUMENT', `The pattern '${pattern}' cannot be searched: ${reason}.`, {
      cause,
    })
  })
  if (refused) throw systemError.from(refused.path, refused.error)
  return { base, files: names.map((name) => ({ path: join(base, name), name })) }
}

/** On Windows a backslash separates folders; `[*]` stands for a character that is no wildcard. */
function portable(pattern: string): string {
  return isWindows ? withSlashes(pattern) : pattern
}

function splitPattern(pattern: string): SplitPattern {
  // A brace may contain slashes and must stay whole: {a/b,c}/*.btf has no folder before its wildcard.
  const cut = pattern.lastIndexOf('/', pattern.search(WILDCARD))
  if (cut === -1) return { base: '', tail: pattern }
  // Without its slash "C:" would be the current folder of the drive.
  const isRoot = cut === 0 || (isWindows && /^[A-Za-z]:$/.test(pattern.slice(0, cut)))
  return {
    base: pattern.slice(0, isRoot ? cut + 1 : cut).replace(/\\(.)/g, '$1'),
    tail: pattern.slice(cut + 1),
  }
}

/** A leading `!` would negate the whole pattern, which nobody means in a list of inputs. */
function escapeNegation(pattern: string): string {
  return pattern.startsWith('!') && !pattern.startsWith('!(') ? `\\${pattern}` : pattern
}

function isAbsent({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR'
}
