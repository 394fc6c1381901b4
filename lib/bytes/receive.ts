/**
 * Receives the bytes of a response or a stream into memory. The sender decides the length of such an input, so it is limited
 * (CWE-770).
 */
import { Readable } from 'node:stream'
import { readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { CollectedBytes } from './collected_bytes.js'
import { MemorySource } from './memory.js'
import { systemError } from './system_error.js'

/** Inputs that are received into memory as a whole. */
export type ReceivedInput = Response | ReadableStream<Uint8Array> | Readable

/** 1 GiB: enough for most models. A larger one should be stored in a file first, which is mapped and not held in memory. */
export const DEFAULT_INPUT_BYTES = 1024 ** 3

/** Names a stream in messages; a response is named by its URL. */
const STREAM = 'stream'

/** @throws whatever the getters of a caller's object throw */
export function isReceivedInput(input: unknown): input is ReceivedInput {
  return isResponse(input) || input instanceof ReadableStream || input instanceof Readable
}

/** Duck typing, because HTTP packages have their own response classes. */
function isResponse(input: unknown): input is Response {
  if (typeof input !== 'object' || input === null) return false
  if (input instanceof Response) return true
  const { status, headers, body, bodyUsed } = input as Partial<Response>
  const isBody = body === null || body instanceof ReadableStream
  return typeof status === 'number' && typeof headers?.get === 'function' && isBody && bodyUsed !== undefined
}

/**
 * @param maxBytes - the limit; Infinity for none
 * @throws TileworkError ERR_LIMIT for more bytes than `maxBytes`; ERR_IO for a response with an error status and a stream
 * that fails; ERR_ARGUMENT for a body or stream that is in use or was read already
 */
export async function receive(input: ReceivedInput, maxBytes: number): Promise<MemorySource> {
  if (isResponse(input)) return receiveResponse(input, maxBytes)
  if (input instanceof Readable) {
    if (!input.readable) refuseUsed(STREAM)
    return new MemorySource(await collect(input, STREAM, maxBytes), STREAM)
  }
  if (input.locked) refuseUsed(STREAM)
  return new MemorySource(await collect(chunksOf(input), STREAM, maxBytes), STREAM)
}

async function receiveResponse(response: Response, maxBytes: number): Promise<MemorySource> {
  const { label, body, length } = readInput('The response', () => fieldsOf(response))
  if (body && length > maxBytes) {
    await body.cancel().catch(() => undefined)
    throw tooLong(label, `${length} bytes`, maxBytes)
  }
  if (!body) return new MemorySource(new Uint8Array(0), label)
  return new MemorySource(await collect(chunksOf(body), label, maxBytes), label)
}

interface ResponseFields {
  readonly label: string
  readonly body: ReadableStream<Uint8Array> | null
  /** The header `content-length`; 0 without it. */
  readonly length: number
}

function fieldsOf(response: Response): ResponseFields {
  const { url, ok, status, statusText, body, bodyUsed, headers } = response
  const label = labelOf(url)
  if (!ok) {
    // An error page would be reported as a damaged tensor file.
    void body?.cancel().catch(() => undefined)
    const text = typeof statusText === 'string' && statusText !== '' ? ` ${statusText.slice(0, 80)}` : ''
    throw new TileworkError('ERR_IO', `${label}: the response has status ${status}${text}; it must be 2xx.`, {
      path: label,
    })
  }
  if (bodyUsed || body?.locked) refuseUsed(label)
  const length = Number(headers.get('content-length') ?? 0)
  return { label, body, length: Number.isSafeInteger(length) ? length : 0 }
}

/** Without user name, password and query, which often hold secrets. */
function labelOf(url: unknown): string {
  if (typeof url !== 'string' || !URL.canParse(url)) return 'response'
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** The stream's async iterator, which `lib.dom` does not declare. */
function chunksOf(stream: ReadableStream<Uint8Array>): AsyncIterable<unknown> {
  return stream as unknown as AsyncIterable<unknown>
}

/** An error in the loop cancels the stream. */
async function collect(
  chunks: AsyncIterable<unknown>,
  label: string,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  return systemError.wrapAsync(label, async () => {
    const collected = new CollectedBytes()
    for await (const chunk of chunks) {
      if (!(chunk instanceof Uint8Array)) {
        const message = `A chunk of ${label} is ${valueText(chunk)}; it must be a Uint8Array.`
        throw new TileworkError('ERR_ARGUMENT', message)
      }
      if (collected.length + chunk.byteLength > maxBytes) throw tooLong(label, 'more bytes', maxBytes)
      collected.add(chunk)
    }
    return collected.take()
  })
}

function tooLong(label: string, found: string, maxBytes: number): TileworkError {
  return new TileworkError(
    'ERR_LIMIT',
    `${label} has ${found}; limits.inputBytes allows ${maxBytes}. Raise it, or store the input in a file.`,
    { path: label },
  )
}

function refuseUsed(label: string): never {
  throw new TileworkError('ERR_ARGUMENT', `The body of ${label} is locked or was read already.`)
}
