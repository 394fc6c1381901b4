/** A scheme of URLs whose objects live in memory: what a program of a user would register, with failures on request. */
import { type RemoteObject, type RemoteUpload, RetryableError, type UrlScheme } from '../../../lib/remote.js'

export class MemoryStore implements UrlScheme {
  readonly objects = new Map<string, Uint8Array>()
  /** What happened, in order: `part m.npy 0`, `commit m.npy`, `abort m.npy`. */
  readonly events: string[] = []
  /** Called before each event; throws to fail. */
  fault: (event: string, attempt: number) => void = () => undefined
  partBytes = 1000
  /** Most parts on their way at one time. */
  mostInFlight = 0
  readonly #attempts = new Map<string, number>()

  readonly open = async (url: URL): Promise<RemoteObject> => {
    const bytes = this.objects.get(url.pathname)
    if (!bytes) throw new Error('there is no such object')
    return { byteLength: bytes.byteLength, read: async (start, end) => bytes.slice(start, end) }
  }

  readonly create = async ({ pathname }: URL, _: unknown, byteLength: number): Promise<RemoteUpload> => {
    const bytes = new Uint8Array(byteLength)
    const { partBytes } = this
    let inFlight = 0
    return {
      partBytes,
      writePart: async (index, part) => {
        this.mostInFlight = Math.max(this.mostInFlight, ++inFlight)
        const copy = part.slice()
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
        inFlight--
        this.#note(`part ${pathname} ${index}`)
        bytes.set(copy, index * partBytes)
      },
      commit: async () => {
        this.#note(`commit ${pathname}`)
        this.objects.set(pathname, bytes)
      },
      abort: async () => this.#note(`abort ${pathname}`),
    }
  }

  #note(event: string): void {
    const attempt = (this.#attempts.get(event) ?? 0) + 1
    this.#attempts.set(event, attempt)
    this.fault(event, attempt)
    this.events.push(event)
  }
}

/** Fails the first `times` attempts of each event that starts with `start`, as a busy server does. */
export function busy(start: string, times: number): MemoryStore['fault'] {
  return (event, attempt) => {
    if (event.startsWith(start) && attempt <= times) throw new RetryableError('busy')
  }
}
