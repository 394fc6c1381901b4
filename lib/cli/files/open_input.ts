/** Opens the input of a command; a failure is marked, because message and exit code depend on it. */
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { type Command, Option } from 'commander'
import {
  type Input,
  type OpenFile,
  type OpenOptions,
  open,
  type RemoteOptions,
  TileworkError,
} from '../../index.js'
import type { RedirectPolicy } from '../../remote.js'
import type { Terminal } from '../text/terminal.js'

/** Flags for reading inputs, named as the options of `open`. */
export type ReadChoice = Pick<OpenOptions, 'mode' | 'guard' | 'symlinks' | 'hardLinks'> & {
  readonly redirects?: RedirectPolicy
}

/** A failure to open an input. */
export class InputError extends Error {
  override readonly name = 'InputError'

  /** @param file - path of the input; the path in `reason` is a location inside the file */
  constructor(
    readonly reason: TileworkError,
    readonly file?: string,
  ) {
    super(reason.message, { cause: reason })
  }
}

/** Adds the flags for reading inputs. */
export function addReadOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--mode <how>',
        'map inputs into memory, or read them by ranges (for network shares and files that others may change)',
      )
        .choices(['map', 'read'])
        .default(process.platform === 'win32' ? 'read' : 'map'),
    )
    .option('--guard', 'with --mode map: survive inputs that are truncated while they are read')
    .addOption(
      new Option(
        '--symlinks <policy>',
        'where symbolic links of data files and shards may lead: inside the folder of the input, or anywhere',
      )
        .choices(['inside', 'follow'])
        .default('inside'),
    )
    .addOption(
      new Option('--hard-links <policy>', 'refuse or allow external data files with several hard links')
        .choices(['refuse', 'allow'])
        .default('refuse'),
    )
    .addOption(
      new Option(
        '--redirects <policy>',
        'where redirects of a URL may lead: the same host only, also hosts with public addresses, or anywhere',
      )
        .choices(['same-host', 'public', 'any'])
        .default('same-host'),
    )
}

/** The options for `open` and `check`. */
export function readChoice({ mode, guard, symlinks, hardLinks, redirects }: ReadChoice): OpenOptions {
  return {
    ...(mode && { mode }),
    ...(guard && { guard }),
    ...(symlinks && { symlinks }),
    ...(hardLinks && { hardLinks }),
    ...(redirects && { remote: { redirects } }),
  }
}

/** The input for `path`; `-` is stdin, which is received into memory up to the limit for streams. */
export function inputOf(path: string, { stdin }: Pick<Terminal, 'stdin'>): Input {
  return path === '-' && stdin ? Readable.from(stdin(), { objectMode: true }) : path
}

/**
 * The file behind `path`, read leniently.
 *
 * @param terminal - provides stdin for `-`
 * @param limit - of the requests for a URL
 * @throws InputError around what `open` throws
 */
export async function openInput(
  path: string,
  choice: ReadChoice = {},
  terminal: Pick<Terminal, 'stdin'> = { stdin: undefined },
  limit: Pick<RemoteOptions, 'deadline'> = {},
): Promise<OpenFile> {
  try {
    const options = readChoice(choice)
    return await open(inputOf(path, terminal), { ...options, remote: { ...options.remote, ...limit } })
  } catch (error) {
    throw inputError((await isFolder(path)) ? folderError(path) : error, path)
  }
}

/** False also where the path cannot be inspected: reading or writing then fails with the reason. */
export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

function folderError(path: string): TileworkError {
  return new TileworkError('ERR_IO', `${path} is a folder; name a file in it.`)
}

/** Marks an error of `open` as an InputError. */
export function inputError(error: unknown, path: string): unknown {
  return error instanceof TileworkError ? new InputError(error, path) : error
}
