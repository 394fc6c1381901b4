/** What a worker may read and write: only the folders and URLs that its operator has named, whatever a job requests. */
import { lstatSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { isInside } from '../bytes/confinement.js'
import { isUrl, remoteUrl } from '../bytes/remote/schemes.js'
import { urlLabel } from '../bytes/remote/url_scheme.js'
import { systemError } from '../bytes/system_error.js'
import { TileworkError } from '../errors.js'
import { RealPaths } from '../pipeline/many/real_paths.js'
import { valueText } from '../value_text.js'

export interface ScopeOptions {
  /** Folders, and URLs that end with "/", below which files are read and written. */
  readonly roots: readonly string[]
  /** Schemes for which every URL is allowed, without the colon. */
  readonly schemes: readonly string[]
}

/** Spellings of "/", "\" and "." that a server may decode after the check. */
const ENCODED_SEPARATOR = /%(2f|5c|2e)/i

export class Scope {
  /** The roots that are folders: real paths. */
  readonly folders: readonly string[]
  readonly #prefixes: readonly string[]
  readonly #schemes: ReadonlySet<string>

  /** @throws TileworkError ERR_ARGUMENT, ERR_IO */
  constructor({ roots, schemes }: ScopeOptions) {
    this.folders = roots.filter((root) => !isUrl(root)).map(realFolder)
    this.#prefixes = roots.filter(isUrl).map(urlPrefix)
    this.#schemes = new Set(schemes.map(checkedScheme))
    if (roots.length + schemes.length > 0) return
    throw new TileworkError(
      'ERR_ARGUMENT',
      'A worker needs at least one root or allowed scheme; without them it may neither read nor write.',
    )
  }

  /**
   * The path or URL from which an input of a job is read.
   *
   * @throws TileworkError ERR_PATH_ESCAPE
   */
  input(name: string): string {
    return isUrl(name) ? this.#url(name) : this.#path(name)
  }

  /**
   * The path or URL to which an output of a job is written.
   *
   * @throws TileworkError ERR_PATH_ESCAPE; ERR_IO where the path cannot be that of a file
   */
  output(name: string): string {
    if (isUrl(name)) return this.#url(name)
    const real = this.#path(name)
    // Links are resolved by now, so a path that is still a link has no target.
    const status = systemError.wrap(real, () => lstatSync(real, { throwIfNoEntry: false }))
    if (status?.isSymbolicLink()) throw escapes(name, 'is a link without a target')
    return real
  }

  /** True for a URL that is allowed by its scheme alone: whoever wrote the job chose the host. */
  isForeignHost(name: string): boolean {
    return isUrl(name) && !this.#hasPrefix(new URL(name))
  }

  #path(name: string): string {
    if (!isAbsolute(name)) throw escapes(name, 'is not an absolute path')
    const { real } = new RealPaths().locate(name)
    if (this.folders.some((folder) => real !== folder && isInside(real, folder))) return real
    throw escapes(name, 'lies outside the roots of this worker')
  }

  #url(name: string): string {
    const url = allowedUrl(name)
    const scheme = url.protocol.slice(0, -1)
    if (this.#schemes.has(scheme) || this.#hasPrefix(url)) return url.href
    throw escapes(urlLabel(url), 'lies outside the roots of this worker, which does not allow its scheme')
  }

  #hasPrefix(url: URL): boolean {
    const label = urlLabel(url)
    return this.#prefixes.some((prefix) => label.startsWith(prefix) && label.length > prefix.length)
  }
}

function allowedUrl(name: string): URL {
  if (/^file:/i.test(name)) throw escapes(name, 'is a file: URL; a job must name a path')
  const url = remoteUrl(name)
  if (!url) throw escapes(name, 'is not a URL')
  if (url.username !== '' || url.password !== '') throw escapes(urlLabel(url), 'has a user or password')
  if (ENCODED_SEPARATOR.test(url.pathname) || url.pathname.includes('//')) {
    throw escapes(urlLabel(url), 'has an encoded separator or dot, or an empty path segment')
  }
  return url
}

function realFolder(root: string): string {
  const real = systemError.wrap(root, () => realpathSync(root))
  if (statSync(real).isDirectory()) return real
  throw new TileworkError('ERR_ARGUMENT', `The root ${root} is not a folder.`)
}

function urlPrefix(root: string): string {
  const url = allowedUrl(root)
  if (url.search !== '') throw new TileworkError('ERR_ARGUMENT', `The root ${urlLabel(url)} has a query.`)
  return urlLabel(url).replace(/\/?$/, '/')
}

function checkedScheme(scheme: string): string {
  const name = scheme.replace(/:(\/\/)?$/, '').toLowerCase()
  // Throws for a scheme that is not registered.
  if (name !== 'file' && remoteUrl(`${name}://host/name`)) return name
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${valueText(scheme)} cannot be allowed as a scheme; use roots for folders.`,
  )
}

function escapes(name: string, reason: string): TileworkError {
  return new TileworkError('ERR_PATH_ESCAPE', `${valueText(name)} ${reason}.`, { path: name })
}
