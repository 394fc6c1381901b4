/** Responses: JSON, or bytes. */
import type { ServerResponse } from 'node:http'
import { TileworkError } from '../../errors.js'

export interface Answer {
  readonly type: string
  readonly body: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** Allows only the page's own scripts, and connections only to this server. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types tilework',
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

export function json(value: unknown): Answer {
  return { type: 'application/json; charset=utf-8', body: JSON.stringify(value, plainNumber) }
}

/** Numbers that JSON cannot represent (integers beyond 2^53, NaN, infinities) become strings. */
function plainNumber(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value >= -MAX && value <= MAX ? Number(value) : String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return value
}

const MAX = BigInt(Number.MAX_SAFE_INTEGER)

export function send(response: ServerResponse, status: number, { type, body, headers }: Answer): void {
  if (response.destroyed || response.headersSent) return
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    ...headers,
  })
  response.end(body)
}

export function sendError(response: ServerResponse, error: unknown): void {
  const isOurs = error instanceof TileworkError
  const [status, code] = isOurs ? [400, error.code] : [500, 'ERR_INTERNAL']
  const message = error instanceof Error ? error.message : String(error)
  send(response, status, json({ error: { code, message } }))
}
