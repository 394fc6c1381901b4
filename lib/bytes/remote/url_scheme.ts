/** The interface of a URL scheme. Each call is one request; caching, retries and parallel requests are done by the caller. */
import type { ByteSource } from '../source.js'
import type { RemoteOptions } from './remote_options.js'

/** An object under a URL. Each `read` is one request. */
export interface RemoteObject extends Pick<ByteSource, 'byteLength' | 'label' | 'close'> {
  /** Bytes `[start, end)` of the version that was opened. ERR_FILE_CHANGED where that version is gone. */
  read(start: number, end: number): Promise<Uint8Array>
  /** First bytes, where the request for the length has returned them: they need no further request. */
  readonly head?: Uint8Array
  /** Identifies the version: an entity tag, a generation, a time. Runs over many objects skip unchanged ones by it. */
  readonly version?: string
}

/** An object that is being written, part by part. Nothing is visible under its URL before `commit`. */
export interface RemoteUpload {
  /** Size of each part in bytes; the last one may be smaller. */
  readonly partBytes: number
  /** Most parallel parts, where the store allows fewer than `remote.connections`; 1 for parts that must come in order. */
  readonly connections?: number
  /** Uploads part `index`, counted from 0. Parts may be uploaded in parallel, and again after a failure. */
  writePart(index: number, bytes: Uint8Array): Promise<void>
  /** Makes the complete object visible. */
  commit(): Promise<void>
  /** Removes the parts. */
  abort(): Promise<void>
}

/** How `open` and `save` handle URLs of a scheme. */
export interface UrlScheme {
  /**
   * Opens an object. Throw a `RetryableError` for a transient failure; any other error is final.
   *
   * @param headBytes - number of bytes at the start of the object that will be read
   */
  open(url: URL, options: RemoteOptions, headBytes: number): Promise<RemoteObject>
  /** Starts an upload of `byteLength` bytes. Absent where the scheme cannot write. */
  create?(url: URL, options: RemoteOptions, byteLength: number): Promise<RemoteUpload>
  /** The objects whose URLs start with `prefix`, in any order. Absent where the scheme cannot list. */
  list?(prefix: URL, options: RemoteOptions): AsyncIterable<ListedObject>
}

/** An object as a scheme lists it. */
export interface ListedObject {
  readonly url: URL
  /** Length in bytes. */
  readonly byteLength: number
}

/** A transient failure: the request is repeated. */
export class RetryableError extends Error {
  override readonly name = 'RetryableError'
  /** Milliseconds to wait at least, as requested by the server. */
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
