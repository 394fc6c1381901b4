/** A save to a remote object: parts are filled in order and uploaded in parallel; the object becomes visible only as a whole. */
import type { CheckedRemoteOptions } from '../bytes/remote/remote_options.js'
import { withRetries } from '../bytes/remote/retry.js'
import { createRemote } from '../bytes/remote/schemes.js'
import { type RemoteUpload, urlLabel } from '../bytes/remote/url_scheme.js'
import type { Sink } from './sink.js'

/**
 * Starts an object under a URL.
 *
 * @throws TileworkError ERR_UNSUPPORTED where the scheme cannot write; ERR_IO
 */
export async function remoteSink(url: URL, options: CheckedRemoteOptions, byteLength: number): Promise<Sink> {
  return new RemoteSink(await createRemote(url, options, byteLength), urlLabel(url), options)
}

class RemoteSink implements Sink {
  readonly isOrdered = true
  readonly #upload: RemoteUpload
  readonly #label: string
  readonly #options: CheckedRemoteOptions
  readonly #inFlight = new Set<Promise<void>>()
  #part: Uint8Array | undefined
  #filled = 0
  #parts = 0
  #error: { readonly reason: unknown } | undefined

  constructor(upload: RemoteUpload, label: string, options: CheckedRemoteOptions) {
    this.#upload = upload
    this.#label = label
    this.#options = options
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      if (this.#error) throw this.#error.reason
      this.#part ??= new Uint8Array(this.#upload.partBytes)
      const taken = bytes.subarray(at, at + this.#part.byteLength - this.#filled)
      this.#part.set(taken, this.#filled)
      this.#filled += taken.byteLength
      at += taken.byteLength
      if (this.#filled === this.#part.byteLength) await this.#sendPart()
    }
  }

  /** Resolves when every part is uploaded. */
  async sync(): Promise<void> {
    if (this.#filled > 0) await this.#sendPart()
    await Promise.all(this.#inFlight)
    if (this.#error) throw this.#error.reason
  }

  async commit(): Promise<void> {
    await this.sync()
    await this.#retried(() => this.#upload.commit())
  }

  /** Removes the parts, which are not visible yet. A failure here is ignored in favour of the error of the save. */
  async abort(): Promise<void> {
    await Promise.all(this.#inFlight)
    await withRetries(this.#label, { retries: 1 }, () => this.#upload.abort()).catch(() => undefined)
  }

  /** Sends the full part. Waits for a free connection first, which bounds memory. */
  async #sendPart(): Promise<void> {
    const { connections = this.#options.connections } = this.#upload
    while (this.#inFlight.size >= Math.min(connections, this.#options.connections)) {
      await Promise.race(this.#inFlight)
    }
    if (this.#error) throw this.#error.reason
    const bytes = this.#part!.subarray(0, this.#filled)
    const index = this.#parts++
    this.#part = undefined
    this.#filled = 0
    const sent: Promise<void> = this.#retried(() => this.#upload.writePart(index, bytes))
      .catch((reason: unknown) => {
        this.#error ??= { reason }
      })
      .finally(() => this.#inFlight.delete(sent))
    this.#inFlight.add(sent)
  }

  #retried(request: () => Promise<void>): Promise<void> {
    return withRetries(this.#label, this.#options, request)
  }
}
