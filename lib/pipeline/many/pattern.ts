/**
 * Patterns of file names, for shells that did not expand them: in quotes, or longer than a command line may be.
 * `*`, `**`, `?`, `[…]`, `{…,…}` and `!(…)` as in most shells; a backslash takes the meaning from the next sign.
 */
import { readdir } from 'node:fs'
import { join } from 'node:path'
import { systemError } from '../../bytes/system_error.js'

/** A pattern, cut where its first folder with a wildcard begins. */
interface SplitPattern {
  /** The folder to search in; empty for the current one. */
  readonly base: string
  readonly rest: string
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

/** The signs that begin a wildcard, unless a backslash stands before them. */
const WILDCARD = /(?<!\\)(?:[*?[{]|[!+@]\()/

/** True for text with wildcards, which `convertMany` expands unless a file has that name. */
export function isPattern(text: string): boolean {
  return typeof text === 'string' && WILDCARD.test(text)
}

/**
 * The files that a pattern names, in no order. Names that begin with a dot are matched only where the pattern has the
 * dot. Links to folders are followed.
 *
 * @throws TileworkError ERR_IO for a folder that cannot be read, whose files would else be missing without a word
 */
export async function matchPattern(pattern: string, signal: AbortSignal | undefined): Promise<Matches> {
  // Loaded on first use: most runs name their files, and starting must stay quick.
  const { glob } = await import('tinyglobby')
  const { base, rest } = splitPattern(pattern)
  let refused: { readonly path: string; readonly error: unknown } | undefined
  const names = await glob(escapeNegation(rest), {
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
  if (refused) throw systemError.from(refused.path, refused.error)
  return { base, files: names.map((name) => ({ path: join(base, name), name })) }
}

function splitPattern(pattern: string): SplitPattern {
  // A brace may have slashes in it, and so may not be cut: {a/b,c}/*.btf has no folder before its wildcard.
  const cut = pattern.lastIndexOf('/', pattern.search(WILDCARD))
  if (cut === -1) return { base: '', rest: pattern }
  return {
    base: cut === 0 ? '/' : pattern.slice(0, cut).replace(/\\(.)/g, '$1'),
    rest: pattern.slice(cut + 1),
  }
}

/** A leading `!` would turn the whole pattern round; in the middle of a command line nobody means that. */
function escapeNegation(pattern: string): string {
  return pattern.startsWith('!') && !pattern.startsWith('!(') ? `\\${pattern}` : pattern
}

function isAbsent({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR'
}
