/**
 * Admits only requests with a loopback Host header, from the server's own page, with the right token. A page of another site can
 * make a browser send requests to a loopback port, also through a host name that resolves to 127.0.0.1 (DNS rebinding); but it
 * can neither choose the Host and Origin headers nor know the token.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Random bytes of a token: too many to guess. */
const TOKEN_BYTES = 24

export function createToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

/** Why a request is refused before its path is considered. */
export interface Refusal {
  readonly status: 403 | 404 | 405
  readonly message: string
}

export class Guard {
  readonly #hosts: ReadonlySet<string>
  readonly #token: Buffer

  constructor(port: number, token: string) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `localhost:${port}`])
    this.#token = digestOf(token)
  }

  /** @returns the path below the token, without the query, or why the request is refused */
  admit({ method, url = '', headers, rawHeaders }: IncomingMessage): { readonly path: string } | Refusal {
    const { host = '', origin } = headers
    // Node takes the first one, a proxy perhaps the last.
    if (rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length > 1)
      return { status: 403, message: 'The Host header occurs twice.' }
    if (!this.#hosts.has(host)) return { status: 403, message: 'The Host header names another server.' }
    if (origin !== undefined && origin !== `http://${host}`)
      return { status: 403, message: 'The request comes from another origin.' }
    const site = headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return { status: 403, message: 'The request comes from another site.' }
    const [, token = '', path] = /^\/([^/?]*)(\/[^?]*)?/.exec(url) ?? []
    // Digests have equal length, so the comparison takes constant time for every token.
    if (!timingSafeEqual(digestOf(token), this.#token)) return { status: 403, message: 'The token is wrong.' }
    if (method !== 'GET') return { status: 405, message: 'Only GET is allowed.' }
    return { path: path ?? '' }
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
