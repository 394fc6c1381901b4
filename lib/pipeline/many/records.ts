/**
 * Splits a byte stream into records that end with a line feed or NUL. It works on bytes: in UTF-8 neither byte occurs inside
 * another character, so each record can be decoded separately.
 */

/** A byte stream; `process.stdin` is one. */
export type ByteChunks = AsyncIterable<Uint8Array | string>

export interface StreamRecord {
  /** The record without its separator; undefined for a record longer than the limit, which is dropped. */
  readonly bytes: Buffer | undefined
  /** False for bytes after the last separator. */
  readonly isEnded: boolean
}

/**
 * The records of `chunks` in order. A stream that ends with a separator has no last empty record. No chunk is referenced
 * after the next one is requested, so the caller may reuse one buffer.
 */
export async function* splitRecords(
  chunks: ByteChunks,
  separator: number,
  maxBytes: number,
): AsyncGenerator<StreamRecord> {
  let pending = Buffer.alloc(0)
  let isTooLong = false
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : asBuffer(chunk)
    let start = 0
    for (let end = bytes.indexOf(separator); end !== -1; end = bytes.indexOf(separator, start)) {
      const length = pending.length + end - start
      yield {
        bytes: isTooLong || length > maxBytes ? undefined : join(pending, bytes.subarray(start, end)),
        isEnded: true,
      }
      pending = Buffer.alloc(0)
      isTooLong = false
      start = end + 1
    }
    isTooLong ||= pending.length + bytes.length - start > maxBytes
    pending = isTooLong ? Buffer.alloc(0) : join(pending, bytes.subarray(start))
  }
  if (isTooLong) yield { bytes: undefined, isEnded: false }
  else if (pending.length > 0) yield { bytes: pending, isEnded: false }
}

function join(head: Buffer, tail: Buffer): Buffer<ArrayBuffer> {
  return Buffer.concat(head.length === 0 ? [tail] : [head, tail])
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
