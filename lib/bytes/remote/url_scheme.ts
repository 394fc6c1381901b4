/** What a URL scheme must be able to do. One request for each call: caching, retries and parallel requests are not its matter. */
import type { ByteSource } from '../source.js'
import type { RemoteOptions } from './remote_options.js'

/** An object under a URL. Each `read` is one request. */
export interface RemoteObject extends Pick<ByteSource, 'byteLength' | 'label' | 'close'> {
  /** Bytes `[start, end)` of the version that was opened. ERR_FILE_CHANGED where that version is gone. */
  read(start: number, end: number): Promise<Uint8Array>
  /** First bytes that came with the length, so that they need no request of their own. */
  readonly head?: Uint8Array
  /** What identifies the version: an entity tag, a generation, a time. Runs over many objects skip one that has the same. */
  readonly version?: string
}

/** An object that is being written, part by part. Nothing is visible under its URL before `commit`. */
export interface RemoteUpload {
  /** Bytes of each part but the last. */
  readonly partBytes: number
  /** Parts on their way at one time at most, where the store needs fewer than `remote.connections`; 1 for parts in order. */
  readonly connections?: number
  /** Uploads part `index`, counted from 0. Parts may be uploaded at the same time, and again after a failure. */
  writePart(index: number, bytes: Uint8Array): Promise<void>
  /** Makes the object visible, whole. */
  commit(): Promise<void>
  /** Removes the parts. */
  abort(): Promise<void>
}

/** How `open` and `save` handle URLs of a scheme. */
export interface UrlScheme {
  /**
   * Opens an object. Throw a `RetryableError` for a failure that may pass; any other error ends the work.
   *
   * @param headBytes - number of first bytes that will be needed
   */
  open(url: URL, options: RemoteOptions, headBytes: number): Promise<RemoteObject>
  /** Starts an object of `byteLength` bytes. Absent where the scheme cannot write. */
  create?(url: URL, options: RemoteOptions, byteLength: number): Promise<RemoteUpload>
  /** The objects whose URLs start with `prefix`, in any order. Absent where the scheme cannot list. */
  list?(prefix: URL, options: RemoteOptions): AsyncIterable<ListedObject>
}

/** An object that a scheme has listed. */
export interface ListedObject {
  readonly url: URL
  /** Length in bytes. */
  readonly byteLength: number
}

/** A failure that may pass: the request is repeated. */
export class RetryableError extends Error {
  override readonly name = 'RetryableError'
  /** Milliseconds to wait at least, as the server asks. */
  readonly wait: number

  /** @param options - `wait`: milliseconds to wait at least */
  constructor(message: string, options: { readonly cause?: unknown; readonly wait?: number } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.wait = options.wait ?? 0
  }
}

/** Without user name, password and query, which often hold secrets. */
export function urlLabel({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`
}

/** A path in which each part has the spelling of URLs. @throws URIError for a lone surrogate, which UTF-8 cannot represent */
export function encodedPath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}
