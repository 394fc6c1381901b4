/** A server of ranges on loopback, which counts its requests and can be told to fail. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Bytes that are computed where they are asked for, so that an object may be larger than memory. */
export interface ServedObject {
  readonly byteLength: number
  bytes(start: number, end: number): Uint8Array
  readonly etag?: string
  readonly time?: string
}

export interface Request {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  /** Bytes that were sent. */
  readonly sent: number
}

/** Answers in place of the server; true where it has. */
export type Fault = (request: IncomingMessage, response: ServerResponse, number: number) => boolean

export class RangeServer {
  readonly objects = new Map<string, ServedObject>()
  readonly requests: Request[] = []
  /** Asked first, with the number of the request, counted from 1. */
  fault: Fault = () => false
  /** False: the server sends whole objects. */
  knowsRanges = true
  readonly #server: Server
  #count = 0

  constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`
  }

  get bytesSent(): number {
    return this.requests.reduce((sum, { sent }) => sum + sent, 0)
  }

  put(path: string, bytes: Uint8Array, { etag = '"1"' } = {}): string {
    this.objects.set(path, {
      byteLength: bytes.byteLength,
      bytes: (start, end) => bytes.subarray(start, end),
      etag,
    })
    return this.url(path)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url!, 'http://x').pathname)
    const note = (sent: number): void => {
      this.requests.push({ url: request.url!, headers: request.headers, sent })
    }
    if (this.fault(request, response, ++this.#count)) {
      note(0)
      return
    }
    const object = this.objects.get(path)
    if (!object) {
      note(0)
      response.writeHead(404).end()
      return
    }
    note(this.#send(object, request, response))
  }

  #send(object: ServedObject, { headers }: IncomingMessage, response: ServerResponse): number {
    const { byteLength, etag, time } = object
    const version = {
      ...(etag !== undefined && { etag }),
      ...(time !== undefined && { 'last-modified': time }),
    }
    const wanted = headers['if-match']
    if (wanted !== undefined && wanted !== etag) {
      response.writeHead(412).end()
      return 0
    }
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '')?.map(Number) ?? []
    if (first === undefined || !this.knowsRanges) {
      response.writeHead(200, { ...version, 'content-length': byteLength }).end(object.bytes(0, byteLength))
      return byteLength
    }
    if (first >= byteLength) {
      response.writeHead(416, { 'content-range': `bytes */${byteLength}` }).end()
      return 0
    }
    const end = Math.min(last! + 1, byteLength)
    const range = `bytes ${first}-${end - 1}/${byteLength}`
    response.writeHead(206, { ...version, 'content-range': range, 'content-length': end - first })
    response.end(object.bytes(first, end))
    return end - first
  }
}
