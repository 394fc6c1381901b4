/** The URL schemes of `open` and `save`: built-in ones and those that a program registers. */
import { checkObject, readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import type { ByteSource } from '../source.js'
import { CachedSource, MIN_REQUEST_BYTES } from './cached_source.js'
import { storeScheme } from './object_store.js'
import { type CheckedRemoteOptions, checkRemoteOptions, type RemoteOptions } from './remote_options.js'
import { withRetries } from './retry.js'
import {
  encodedPath,
  type ListedObject,
  type RemoteObject,
  type RemoteUpload,
  type UrlScheme,
  urlLabel,
} from './url_scheme.js'

/** Loaded on first use: most programs never need it, and Node's HTTP modules take a tenth of the start-up time. */
const loadHttp = () => import('./http_object.js')
const http: UrlScheme = {
  open: async (url, options, headBytes) =>
    (await loadHttp()).openHttpObject(url, checkRemoteOptions(options), headBytes),
}

const schemes = new Map<string, UrlScheme>([
  ['http', http],
  ['https', http],
  ['s3', storeScheme(async () => (await import('./s3_object.js')).s3Store)],
  ['gs', storeScheme(async () => (await import('./gcs_object.js')).gcsStore)],
  ['az', storeScheme(async () => (await import('./azure_object.js')).azureStore)],
])

/** RFC 3986, section 3.1, but with at least two characters: a single letter is a Windows drive. */
const SCHEME = /^[a-z][a-z0-9+.-]+$/

/**
 * Lets `open` and `save` take URLs of a scheme, in this process.
 *
 * @param name - without the colon, in lower case; `file` cannot be replaced
 * @throws TileworkError ERR_ARGUMENT
 */
export function registerScheme(name: string, scheme: UrlScheme): void {
  if (typeof name !== 'string' || !SCHEME.test(name) || name === 'file') {
    const message = `${valueText(name)} cannot be the name of a scheme: two or more of a-z, 0-9, "+", "." and "-", such as "hub".`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  checkObject(scheme, 'The scheme is { open, create?, list? }')
  const { open, ...others } = readInput('The scheme', () => ({
    open: scheme.open,
    create: scheme.create,
    list: scheme.list,
  }))
  const isFunction = (method: unknown): boolean => method === undefined || typeof method === 'function'
  if (typeof open !== 'function' || !Object.values(others).every(isFunction)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The scheme ${name} needs the method open; create and list must be methods.`,
    )
  }
  // The object itself is kept, so that its methods are called with their `this`.
  schemes.set(name, scheme)
}

/** The scheme of a URL with an authority, `scheme://`. */
const URL_START = /^([a-z][a-z0-9+.-]+):\/\//i

/** True for a URL, `file:` included; false for a path. */
export function isUrl(text: string): boolean {
  return URL_START.test(text)
}

/**
 * The URL of a remote input; undefined for a path or a `file:` URL.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown scheme
 */
export function remoteUrl(input: string | URL): URL | undefined {
  const text = typeof input === 'string' ? input : input.href
  const name = URL_START.exec(text)?.[1]?.toLowerCase()
  if (name === undefined || name === 'file') return undefined
  // Errors do not show the URL: it may contain a password or a signature.
  if (!URL.canParse(text)) throw new TileworkError('ERR_ARGUMENT', `The ${name}: URL is not valid.`)
  if (schemes.has(name)) return new URL(text)
  const known = [...schemes.keys()].map((each) => `${each}:`).join(', ')
  throw new TileworkError(
    'ERR_ARGUMENT',
    `Unknown URL scheme ${name}:; known are file:, ${known}. registerScheme adds one.`,
  )
}

/**
 * The URL of a file in the same folder that another file names. The query is kept: it may be an access token.
 *
 * @throws TileworkError ERR_PATH_ESCAPE
 */
export function siblingUrl(url: URL, name: string): URL {
  const folder = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1)
  const sibling = new URL(url)
  try {
    sibling.pathname = folder + encodedPath(name)
  } catch (cause) {
    // `encodedPath` throws for a lone surrogate.
    throw new TileworkError('ERR_PATH_ESCAPE', `${JSON.stringify(name)} is not a file name.`, {
      path: name,
      cause,
    })
  }
  return sibling
}

/** True for an object that `openRemote` has opened. */
export function isRemoteSource(source: ByteSource): source is CachedSource {
  return source instanceof CachedSource
}

/** @throws TileworkError ERR_UNSUPPORTED where the scheme cannot write; ERR_IO, ERR_ABORTED, ERR_ARGUMENT */
export async function createRemote(
  url: URL,
  options: CheckedRemoteOptions,
  byteLength: number,
): Promise<RemoteUpload> {
  const label = urlLabel(url)
  const scheme = schemes.get(url.protocol.slice(0, -1))!
  if (!scheme.create) {
    throw new TileworkError('ERR_UNSUPPORTED', `${label}: objects of ${url.protocol} are read-only.`)
  }
  return withRetries(label, options, () => scheme.create!(url, options, byteLength))
}

/** @throws TileworkError ERR_IO, ERR_FILE_CHANGED, ERR_ABORTED, ERR_ARGUMENT */
export async function openRemote(url: URL, given: RemoteOptions | undefined): Promise<ByteSource> {
  const options = checkRemoteOptions(given)
  const label = urlLabel(url)
  const scheme = schemes.get(url.protocol.slice(0, -1))!
  const object = await withRetries(label, options, () => scheme.open(url, options, MIN_REQUEST_BYTES))
  return new CachedSource(object, label, options)
}

/** The objects whose URLs start with `prefix`. @throws TileworkError ERR_UNSUPPORTED where the scheme cannot list; ERR_IO */
export function listRemote(prefix: URL, options: CheckedRemoteOptions): AsyncIterable<ListedObject> {
  const scheme = schemes.get(prefix.protocol.slice(0, -1))!
  if (scheme.list) return scheme.list(prefix, options)
  const message = `${urlLabel(prefix)}: objects of ${prefix.protocol} cannot be listed; name each object.`
  throw new TileworkError('ERR_UNSUPPORTED', message)
}

/** Length and version of an object, by one request. @throws TileworkError ERR_IO, ERR_ABORTED */
export async function remoteState(
  url: URL,
  options: CheckedRemoteOptions,
): Promise<Pick<RemoteObject, 'byteLength' | 'version'>> {
  const scheme = schemes.get(url.protocol.slice(0, -1))!
  const object = await withRetries(urlLabel(url), options, () => scheme.open(url, options, 1))
  object.close?.()
  return object
}
