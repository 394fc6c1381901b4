/**
 * Resumable uploads of Google Cloud Storage, by their session URL, which needs no further credentials. Parts are sent one after
 * the other; each gets status 308 until the last one creates the object (Cloud Storage, "Perform resumable uploads").
 */
import { TileworkError } from '../../errors.js'
import { RETRYABLE_STATUS } from './retry.js'
import { type RemoteUpload, RetryableError } from './url_scheme.js'

/** The answer to a part that is not the last, "Resume Incomplete". */
const INCOMPLETE = 308

export class ResumableUpload implements RemoteUpload {
  readonly connections = 1
  readonly partBytes: number
  readonly #session: string
  readonly #byteLength: number
  readonly #signal: AbortSignal | undefined
  /** Bytes that the store has. */
  #stored = 0
  /** False after a failure, until the store has said how much it has. */
  #isKnown = true
  /** Held back, because it makes the object visible. */
  #last: Uint8Array = new Uint8Array(0)

  /** @param partBytes - a multiple of 256 KiB, which the store demands of all parts but the last */
  constructor(session: string, byteLength: number, partBytes: number, signal: AbortSignal | undefined) {
    this.#session = session
    this.#byteLength = byteLength
    this.partBytes = partBytes
    this.#signal = signal
  }

  async writePart(index: number, bytes: Uint8Array): Promise<void> {
    const at = index * this.partBytes
    if (at + bytes.byteLength === this.#byteLength) this.#last = bytes
    else await this.#send(at, bytes)
  }

  async commit(): Promise<void> {
    await this.#send(this.#byteLength - this.#last.byteLength, this.#last)
  }

  async abort(): Promise<void> {
    // Without the signal: an aborted upload must be removed too.
    const { status } = await fetch(this.#session, { method: 'DELETE' })
    if (RETRYABLE_STATUS.has(status)) throw new RetryableError(`the response has status ${status}`)
  }

  /** Sends the bytes from `at` on that the store does not have yet. */
  async #send(at: number, bytes: Uint8Array): Promise<void> {
    const end = at + bytes.byteLength
    if (!this.#isKnown) await this.#put(`bytes */${this.#byteLength}`)
    while (this.#stored < end) {
      if (this.#stored < at) {
        throw new TileworkError(
          'ERR_IO',
          `The store has lost the uploaded bytes from offset ${this.#stored} on.`,
        )
      }
      const before = this.#stored
      const range = `bytes ${before}-${end - 1}/${this.#byteLength}`
      await this.#put(range, bytes.subarray(before - at))
      if (this.#stored === before) throw new RetryableError('the store accepted no byte of a part')
    }
  }

  async #put(range: string, body?: Uint8Array): Promise<void> {
    this.#isKnown = false
    const response = await fetch(this.#session, {
      method: 'PUT',
      headers: { 'content-range': range },
      // Here 308 means "resume incomplete", not a redirect.
      redirect: 'manual',
      ...(body && { body: body as Uint8Array<ArrayBuffer> }),
      ...(this.#signal && { signal: this.#signal }),
    }).catch((cause: Error) => {
      throw new RetryableError(`the connection failed: ${causeText(cause)}`, { cause })
    })
    await response.arrayBuffer().catch(() => undefined)
    const { status, headers } = response
    if (status === INCOMPLETE)
      this.#stored = Number(/-(\d+)$/.exec(headers.get('range') ?? '')?.[1] ?? -1) + 1
    else if (response.ok) this.#stored = this.#byteLength
    else if (RETRYABLE_STATUS.has(status)) throw new RetryableError(`the response has status ${status}`)
    else throw new TileworkError('ERR_IO', `The store refuses the upload with status ${status}.`)
    this.#isKnown = true
  }
}

/** The cause of a failed `fetch`; its own message is only "fetch failed". */
function causeText({ cause, message }: Error): string {
  return cause instanceof Error ? cause.message : message
}
