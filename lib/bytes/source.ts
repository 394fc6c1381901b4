/**
 * Where bytes come from. Format readers see only this interface, so one reader serves mapped files, files read by ranges,
 * memory, and sources of the caller (HTTP, object storage).
 */

/** Half-open range of bytes. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** A random-access source of bytes. `open` takes any object with this interface. */
export interface ByteSource {
  /** Length in bytes. */
  readonly byteLength: number
  /** A name for error messages: a path, or a word such as `memory`. */
  readonly label?: string
  /**
   * Bytes `[start, end)`, which may share memory with the source and must not be written to. A file returns a copy: reading
   * mapped memory beyond the end of a truncated file would kill the process.
   * Errors: ERR_CLOSED, ERR_RANGE, ERR_IO, ERR_FILE_CHANGED, ERR_VIEW_TOO_LARGE.
   */
  read(start: number, end: number): Promise<Uint8Array>
  /** A view of mapped memory, returned to callers without a copy; tilework itself never reads it. Absent for other sources. */
  readonly view?: ((start: number, end: number) => Uint8Array) | undefined
  /** As `read`, into existing memory. Optional: without it, the bytes of `read` are copied. */
  readInto?(start: number, target: Uint8Array): Promise<void>
  /** As `read`, synchronously. Optional: without it, synchronous methods of tensors throw ERR_ASYNC_ONLY. */
  readSync?(start: number, end: number): Uint8Array
  /** As `readInto`, synchronously. */
  readIntoSync?(start: number, target: Uint8Array): void
  /** Closes the source. Views stay valid unless `revoke` is true. May be called twice. */
  close?(options?: { readonly revoke?: boolean }): void
}
