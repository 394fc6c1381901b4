/** Remote inputs and outputs of a run: their names, lists and states. */
import { checkRemoteOptions, type RemoteOptions } from '../../bytes/remote/remote_options.js'
import { isUrl, listRemote, remoteState, remoteUrl } from '../../bytes/remote/schemes.js'
import { encodedPath, urlLabel } from '../../bytes/remote/url_scheme.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { type FileState, fileState } from './file_state.js'
import { matcherOf, splitPattern, WILDCARD } from './pattern.js'

/** An object that a pattern has matched. */
export interface RemoteMatch {
  readonly url: URL
  /** Its key below the part of the pattern without wildcards. */
  readonly name: string
  readonly byteLength: number
}

/** The URL of a remote input or output; undefined for a path. @throws TileworkError ERR_ARGUMENT */
export function urlOf(path: string): URL | undefined {
  return isUrl(path) ? remoteUrl(path) : undefined
}

/** A path unchanged; a URL without user, password and query, which often contain secrets. */
export function publicName(path: string): string {
  const url = urlOf(path)
  return url ? urlLabel(url) : path
}

/** True for a URL with wildcards in its path. A question mark starts the query. */
export function isUrlPattern(text: string): boolean {
  return isUrl(text) && WILDCARD.test(text.replace(/\?.*/s, ''))
}

/**
 * The objects that match a URL with wildcards.
 *
 * @throws TileworkError ERR_UNSUPPORTED where the scheme cannot list; ERR_PATH_ESCAPE for a key that is not a file name
 */
export async function* matchUrls(pattern: string, options: RemoteOptions): AsyncGenerator<RemoteMatch> {
  const { base, tail } = splitPattern(pattern)
  const isMatch = await matcherOf(tail)
  const prefix = remoteUrl(`${base}/`)!
  const start = decodeURIComponent(prefix.pathname).length
  for await (const { url, byteLength } of listRemote(prefix, checkRemoteOptions(options))) {
    const name = decodeURIComponent(url.pathname).slice(start)
    if (isMatch(name)) yield { url, name: checkName(name, url), byteLength }
  }
}

/** The last part of the path of a URL. @throws TileworkError ERR_PATH_ESCAPE, ERR_ARGUMENT */
export function urlBaseName(url: URL): string {
  const name = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1))
  if (name !== '') return checkName(name, url)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${urlLabel(url)} is a folder; select its objects with a pattern such as '${urlLabel(url)}*.safetensors'.`,
  )
}

/** Keys may contain any text; those that would lead out of the output folder are refused (CWE-22). */
function checkName(name: string, url: URL): string {
  const isSafe = name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (isSafe && !/[\\\x00-\x1f]/.test(name) && !/^[A-Za-z]:/.test(name)) return name
  throw new TileworkError('ERR_PATH_ESCAPE', `${valueText(name)} cannot be the name of an output.`, {
    path: urlLabel(url),
  })
}

/** The URL of an output below a folder that is a URL. */
export function urlBelow(folder: URL, name: string): string {
  const url = new URL(folder)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${encodedPath(name)}`
  return url.href
}

/** The state of a file, or of an object by its tag and length (one request). @throws TileworkError ERR_IO, ERR_ABORTED */
export function stateAt(path: string, options: RemoteOptions): FileState | Promise<FileState> {
  const url = urlOf(path)
  return url ? remoteState(url, checkRemoteOptions(options)).then(objectState) : fileState(path)
}

/** The state of an object; where the server sends no version, a state that never equals another one. */
export function objectState(object: {
  readonly byteLength: number
  readonly version?: string | undefined
}): FileState {
  const { byteLength, version } = object
  return { bytes: byteLength, mtime: version ?? `unknown ${Math.random()}`, inode: '' }
}
